"""What tests and tools leave in a person's repository besides a change: files that git ignores there."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from debug_gym_core import hermetic_git
from debug_gym_core.sandbox import plain_files
from debug_gym_core.workspace import patch

log = logging.getLogger("debug_gym")

NAME = "fix.diff"
"""The change without by-products, beside the `patch.diff` that has all."""

_SHARED = 1000
"""Files with the rest of a split index that are looked at; git removes those that are two weeks old."""

_INDEX = 1 << 28
"""Bytes of an index that are read; a million files take half of it."""


def without_byproducts(change: Path, directory: Path) -> tuple[Path, list[str]]:
    """Leave out of a change what git ignores, such as the data of a coverage measurement.

    Args:
        change: a patch of git
        directory: what it is for, a repository of git or none

    Returns:
        the patch to show and to apply, another file where something was left out, and the paths that were
    """
    data = change.read_bytes()
    ignored = _ignored(patch.touched(data), directory) if data else set()
    if not ignored:
        return change, []
    sections = [section for section in re.split(rb"(?m)^(?=diff --git )", data) if section]
    kept = change.with_name(NAME)
    kept.write_bytes(b"".join(section for section in sections if not ignored.issuperset(patch.touched(section))))
    return kept, sorted(ignored)


def _ignored(paths: Sequence[str], directory: Path) -> set[str]:
    """Those that git ignores and does not know; none where there is no git, or no repository of its.

    Git is asked in a repository of ours that has nothing but the other one's index and what it ignores. The other
    one's own settings can name programs: to ask which files changed, to fetch an object that is not there.
    """
    directory = directory.absolute()
    top = next((place for place in (directory, *directory.parents) if os.path.lexists(place / ".git")), None)
    if top is None:
        return set()
    environment = hermetic_git.without_git()
    below = directory.relative_to(top)
    with tempfile.TemporaryDirectory(prefix="debug-gym-ignored-") as temporary:
        copy = Path(temporary)
        _copy_git(top / ".git", copy / ".git")
        for place in sorted({Path(), *(above for path in paths for above in (below / path).parents)}):
            if ".." not in place.parts and ".git" not in place.parts:
                try:
                    (copy / place).mkdir(parents=True, exist_ok=True)
                except OSError:  # it lies in what is a file before the change, or its name is too long here
                    continue
                _copy(top / place / ".gitignore", copy / place / ".gitignore")
        (copy / below).mkdir(parents=True, exist_ok=True)
        command = ["git", "-c", "core.fsmonitor=false", "check-ignore", "-z", "--stdin"]
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        try:
            done = subprocess.run(command, cwd=copy / below, env=environment, input=names, capture_output=True)
        except FileNotFoundError:
            return set()
    if done.returncode not in (0, 1):
        log.warning("git cannot tell what is ignored: %s", done.stderr.decode(errors="replace").strip())
    return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}


def _copy_git(git: Path, into: Path) -> None:
    """Make a git directory with the index, and the patterns for what to ignore, of another one."""
    hermetic_git.make_empty(into)
    (into / "info").mkdir()
    own = common = _named(git, "gitdir:") or git  # a work tree that was added has its own index, and no more
    if main := _named(own / "commondir"):
        common = main
    _copy(common / "info" / "exclude", into / "info" / "exclude")
    _copy(own / "index", into / "index", _INDEX)
    if shared := _shared_index(into / "index", own):
        _copy(own / shared, into / shared, _INDEX)


def _shared_index(index: Path, git: Path) -> str | None:
    """The file with the rest of an index that is split, which its extension `link` names; git keeps old ones beside it.

    Args:
        index: that may be split
        git: the directory where the files lie
    """
    with contextlib.suppress(OSError), os.scandir(git) as found:
        named = (re.fullmatch("sharedindex[.]([0-9a-f]{40}|[0-9a-f]{64})", one.name) for one in found)
        sums = [one.group(1) for one in itertools.islice(filter(None, named), _SHARED)]
        if sums and index.exists():
            # `link`, its size, and the checksum; the files in the index may be called anything.
            pattern = b"link.{4}(" + b"|".join(re.escape(bytes.fromhex(one)) for one in sums) + b")"
            if link := re.search(pattern, index.read_bytes(), re.DOTALL):
                return f"sharedindex.{link.group(1).hex()}"
    return None


def _named(file: Path, key: str = "") -> Path | None:
    """The directory that a file of git's names; None: there is no such file."""
    text = os.fsdecode(plain_files.read(file) or b"").strip()
    return file.parent / text.removeprefix(key).strip() if text.startswith(key) and "\0" not in text and text else None


def _copy(file: Path, into: Path, most: int = plain_files.SMALL) -> None:
    content = plain_files.read(file, most)
    if content is not None:
        into.write_bytes(content)
