"""Files by which programs that run tests are told what to do: Makefiles and their kin."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator

from debug_gym_core.tasks.entrypoint import Entrypoint, Kind

MAKEFILES = {
    "make": ("Makefile", "makefile", "GNUmakefile", "*.mk"),
    "gmake": ("Makefile", "makefile", "GNUmakefile", "*.mk"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "invoke": ("tasks.py",),
}


def build_files(entrypoint: Entrypoint) -> Iterator[str]:
    """Patterns of files that the programs of a command read by themselves, new ones before those that are there."""
    for word in shlex.split(entrypoint.text) if entrypoint.kind is Kind.COMMAND else ():
        yield from MAKEFILES.get(posixpath.basename(word), ())
