"""Files by which programs that run tests are told what to do: Makefiles and their kin, configuration, scripts."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from debug_gym_core.grading.links import leads_to, way
from debug_gym_core.tasks.entrypoint import Entrypoint, Kind
from debug_gym_core.workspace.snapshot import Member

MAKEFILES = {
    "make": ("Makefile", "makefile", "GNUmakefile", "*.mk"),
    "gmake": ("Makefile", "makefile", "GNUmakefile", "*.mk"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "invoke": ("tasks.py",),
}

CONFIGURING = frozenset({"-c", "--config-file", "--rootdir", "--confcutdir", "--cov-config"})
"""Options of pytest and unittest, which a Python file may follow that is no more than that."""

TESTED = frozenset({"--ignore", "--ignore-glob", "--deselect", "--cov", "--cov-report"})
"""Options of theirs that say of files whether they are tested, or measured."""


def build_files(entrypoint: Entrypoint) -> Iterator[str]:
    """Patterns of files that the programs of a command read by themselves, new ones before those that are there."""
    for word in shlex.split(entrypoint.text) if entrypoint.kind is Kind.COMMAND else ():
        yield from MAKEFILES.get(posixpath.basename(word), ())


def named_files(entrypoint: Entrypoint, members: Mapping[str, Member]) -> Iterator[str]:
    """The pristine files that a command names and that are no more than configuration or scripts.

    What it names to be tested may be fixed, unless there are tests that count in it.

    Args:
        entrypoint: the command
        members: the pristine repository

    Returns:
        their paths, and the links that lead there
    """
    words: Sequence[str] = entrypoint.args
    if entrypoint.kind is Kind.COMMAND:
        words = shlex.split(entrypoint.text)
    elif entrypoint.kind is Kind.SCRIPT and "test" in posixpath.basename(entrypoint.target):
        words = [*words, entrypoint.target]
    if entrypoint.runs_tests:  # what it is told to test may be what is to be fixed
        words = [word for before, word in pairwise(["", *words]) if not _is_tested(before, word)]
    for word in words:
        for part in (word, word.partition("=")[2], word.partition("::")[0], word[2:]):
            found = members.get(leads_to(members, part))
            if found is not None and found.kind != "directory":
                yield from way(members, part)


def _is_tested(before: str, word: str) -> bool:
    """Whether a word of a command line of a runner of tests may say what is tested, by the one before it."""
    if word.startswith("-"):
        return word.partition("=")[0] in TESTED
    return before not in CONFIGURING and (before in TESTED or word.partition("::")[0].endswith(".py"))
