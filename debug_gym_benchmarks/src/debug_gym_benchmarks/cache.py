"""What benchmarks keep on this machine: clones, and the directories of tasks that are made from them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from debug_gym_core import RequirementError, UsageError
from debug_gym_core.workspace.snapshot import FileState

UNFINISHED = ".part"
"""What the names of directories end with that are being made, or were when their process was killed."""

LOOK = 0.1
"""Seconds between two looks whether another process is done."""


def directory() -> Path:
    """Where benchmarks keep things: `debug-gym/benchmarks` below `$XDG_CACHE_HOME`, or `~/.cache`."""
    from debug_gym_core.places import cache

    return cache() / "benchmarks"


@contextlib.contextmanager
def locked(place: Path, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Be the only one, of processes and threads, who makes a place; the kernel unlocks it when a process ends.

    Args:
        place: in a directory below `directory()`, which is made
        waits: called again and again while another process has it

    Raises:
        RequirementError: nothing can be written there
    """
    with contextlib.ExitStack() as stack:
        with explained():
            place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            file = stack.enter_context(place.with_name(f"{place.name}.lock").open("a"))
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waits()
                time.sleep(LOOK)
        yield


@contextlib.contextmanager
def making(place: Path, take_up: Callable[[Path, Path], None] | None = None) -> Iterator[Path]:
    """Make a directory that is there whole or not at all; for who has it `locked`.

    Args:
        place: where it shall be; what is there now gives way at the end
        take_up: moves what is of use from a directory that was not finished into the new one; None: nothing is of use.
            With it, what is in the directory when the block fails is left for the next time

    Yields:
        a directory to fill, empty but for what was taken up

    Raises:
        RequirementError: nothing can be written there
    """
    with explained():
        place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        # Never the directory that is left: a process of who was killed may still write there.
        part = Path(tempfile.mkdtemp(prefix=f"{place.name}.", suffix=UNFINISHED, dir=place.parent))
        try:
            for left in _unfinished(place):
                if take_up is not None and left != part:
                    take_up(left, part)
            _remove(path for path in _unfinished(place) if path != part)
            yield part
            if place.exists():
                place.rename(part.with_name(f"{part.name}.old{UNFINISHED}"))
            part.rename(place)
        finally:
            _remove(path for path in _unfinished(place) if path != part or take_up is None)


def forget(parent: Path, age: float) -> None:
    """Remove what was left unfinished in a directory, and that nobody has taken up or is at.

    Args:
        parent: has the places
        age: seconds since it was last written to
    """
    for left in parent.glob(f"*{UNFINISHED}"):
        name = _PART.fullmatch(left.name)
        with contextlib.suppress(OSError):  # somebody has it locked, or removed it
            if name and time.time() - max(path.stat().st_mtime for path in (left, *left.rglob("*"))) > age:
                with left.with_name(f"{name[1]}.lock").open("a") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove([left])


_PART = re.compile(rf"(.+?)\.[^.]+({re.escape(UNFINISHED)}(\.old{re.escape(UNFINISHED)})?)")


def _unfinished(place: Path) -> list[Path]:
    """What is being made of a place, and what was."""
    return list(place.parent.glob(f"{place.name}.*{UNFINISHED}"))


def _remove(directories: Iterable[Path]) -> None:
    for one in directories:
        shutil.rmtree(one, ignore_errors=True)


def keep(name: str, files: Mapping[str, FileState]) -> Path:
    """A directory that holds just these files; made once, and again when something has changed it.

    Args:
        name: what it is for, `benchmark/task`
        files: by path

    Raises:
        RequirementError: nothing can be written where benchmarks keep things
    """
    odd = next((path for path in files if not is_plain(path)), None)
    if odd is not None:
        raise UsageError(f"{name} has a file {odd!r}, which would lead out of its directory; that is refused")
    place = directory() / "tasks" / f"{name}-{_digest(files)[:16]}"
    if _holds(place, files):
        return place
    with locked(place.parent):
        if not _holds(place, files):  # whoever had the lock before may have made it, and use it by now
            with making(place) as part:
                for path, state in files.items():
                    write(part / path, state)
    return place


def is_plain(path: str) -> bool:
    """Whether a path leads to nothing but what lies below: git makes no other, but stores what it is given."""
    return not {"", ".", ".."}.intersection(path.split("/"))


def write(path: Path, state: FileState) -> None:
    """Write a file or link, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if state.kind == "link":
        path.symlink_to(os.fsdecode(state.data))
    else:
        path.write_bytes(state.data)
        path.chmod(0o755 if state.executable else 0o644)


def read(path: Path) -> FileState:
    """Read a file or link."""
    if path.is_symlink():
        return FileState(os.fsencode(path.readlink()), kind="link")
    return FileState(path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Say of an OSError what can be done about it."""
    try:
        yield
    except OSError as error:
        raise RequirementError(
            f"{error}: benchmarks keep clones and tasks in {directory()}; set XDG_CACHE_HOME to another directory"
        ) from error


def _digest(files: Mapping[str, FileState]) -> str:
    text = hashlib.sha256()
    for path, state in sorted(files.items()):
        text.update(os.fsencode(f"{path}\0{state.kind}\0{state.executable}\0{len(state.data)}\0") + state.data)
    return text.hexdigest()


def _holds(place: Path, files: Mapping[str, FileState]) -> bool:
    """Whether a directory holds just these files."""
    try:
        found = {str(path.relative_to(place)): path for path in place.rglob("*") if path.is_symlink() or path.is_file()}
        return found.keys() == files.keys() and all(read(path) == files[name] for name, path in found.items())
    except OSError:
        return False
