"""Files that a command writes for a person: never over what is there, never half."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from debug_gym_core.errors import UsageError


def check_target(path: Path, *, force: bool, may_be_directory: bool = False) -> None:
    """Make sure that a file may be made.

    Args:
        path: the file
        force: whether one that is there may be replaced
        may_be_directory: whether what is made, or replaced, may be a directory

    Raises:
        UsageError: it may not, or there is no directory for it
    """
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no directory {path.parent}")
    if path.is_dir() and not may_be_directory:
        raise UsageError(f"{path} is a directory; name a file in it")
    if not force and (path.exists() or path.is_symlink()):
        raise UsageError(f"{path} is there already; --force replaces it")


@contextlib.contextmanager
def written_as(path: Path, temporary: Path) -> Iterator[None]:
    """Have what the system refuses in this block, of a temporary file or of none by name, be said of what it is for.

    Args:
        path: as a person knows it
        temporary: what takes its place at the end

    Raises:
        OSError: the system refused
    """
    try:
        yield
    except OSError as error:
        if error.filename not in (None, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
