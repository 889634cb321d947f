"""The directory of a run: whether it is one, who holds it, what is removed of one that never began."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from debug_gym_core.config.paths import is_run
from debug_gym_core.errors import UsageError
from debug_gym_core.names import some

LOCK = ".lock"


def require_run(directory: Path) -> None:
    """Refuse a directory that is no run's."""
    if not (directory / "run.json").is_file():
        raise no_run(directory)


def no_run(directory: Path) -> UsageError:
    """That a directory is no run's; names the runs right below it."""
    below = sorted(str(path.parent) for path in directory.glob("*/run.json"))
    more = f"below it: {some(below[::-1], 3)}" if below else "debug-gym run makes one"
    return UsageError(f"{directory} holds no run (no run.json); {more}")


def refuse_other_contents(directory: Path) -> None:
    """A run does not mix its files with those of something else, nor lies among those of another run.

    Args:
        directory: where it is to be; need not be there

    Raises:
        UsageError: something else is there, or a run above it
    """
    if directory.is_symlink() and not directory.exists():
        raise UsageError(f"{directory} is a link to {directory.readlink()}, which is not there")
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file; -o names the directory of a run")
    if (directory / "run.json").exists():
        return
    above = next((one for one in directory.absolute().parents if is_run(one)), None)
    if above is not None:
        raise UsageError(f"{directory} lies in a run, {above}; name a directory outside of it")
    if not directory.exists():
        return
    others = sorted(path.name for path in directory.iterdir() if path.name != LOCK)
    if others:
        raise UsageError(f"{directory} is not empty ({others[0]!r}) and holds no run; name a new directory")


def refuse_unwritable(directory: Path) -> None:
    """Make sure that a run could be kept in a directory, which is not made yet.

    Raises:
        UsageError: it could not
    """
    directory = directory.absolute()
    try:
        with tempfile.TemporaryFile(dir=next(one for one in (directory, *directory.parents) if one.exists())):
            pass
    except OSError as error:
        raise UsageError(f"{directory}: {error.strerror}") from error


def remove(directory: Path, made: Iterable[Path]) -> None:
    """Remove the files of a run in which nothing was played, and the directories that were made for it."""
    for name in ("run.json", "results.jsonl", LOCK):
        (directory / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        for one in made:
            one.rmdir()


def hold(directory: Path) -> int:
    """Hold a directory; the kernel gives it free when the process ends, however it ends."""
    while True:
        try:
            descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError as error:
            raise UsageError(f"{directory} was removed just now, by whoever had begun a run there") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise UsageError(f"{directory} is in use by another debug-gym (process {holder or 'unknown'})") from error
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)  # of a run that was discarded just now
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_held(directory: Path, descriptor: int) -> bool:
    """Whether a directory is still the one that is held, and has the record of its run.

    Args:
        directory: the run's
        descriptor: that `hold` returned
    """
    try:
        return os.path.samestat((directory / LOCK).stat(), os.fstat(descriptor)) and (directory / "run.json").is_file()
    except (FileNotFoundError, NotADirectoryError):
        return False
