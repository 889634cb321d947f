"""Asks for files and directories by what is built into Python, as it was before any tested code ran.

Who could answer in its place could say of any code that it is in a file of the tests.
"""

import os
from stat import S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

LINKS = 40
"""Links on the way to a file, at most."""

_open, _stat, _lstat, _readlink, _getcwd = open, os.stat, os.lstat, os.readlink, os.getcwd
_statvfs, _READ_ONLY = os.statvfs, os.ST_RDONLY
_is_regular = S_ISREG


def read(path: str) -> "Union[bytes, None]":
    """What is in a file; None: it cannot be read.

    Args:
        path: of it
    """
    try:
        with _open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def is_file(path: str) -> bool:
    """Whether a path leads to a file."""
    try:
        return _is_regular(_stat(path).st_mode)
    except (OSError, ValueError):
        return False


def exists(path: str) -> bool:
    """Whether a path leads to anything."""
    try:
        _stat(path)
    except (OSError, ValueError):
        return False
    return True


def may_be_written_since(path: str, began: float) -> bool:
    """Whether a file, or the link to it, was written or moved since some time; not where nobody here can.

    Of that the host may have made one more link meanwhile, as uv does.

    Args:
        path: of it
        began: the time

    Raises:
        OSError: there is none
    """
    is_new = max(_lstat(path).st_ctime, _stat(path).st_ctime) >= began
    return is_new and not _statvfs(path).f_flag & _READ_ONLY


def identity_of(path: str) -> "tuple[int, int]":
    """What stays the same of a directory or file under whatever name, and no other one has.

    Args:
        path: of it

    Raises:
        OSError: there is none
    """
    found = _stat(path or ".")
    return found.st_dev, found.st_ino


def is_same(path: str, other: str) -> bool:
    """Whether two paths lead to one directory or file."""
    try:
        return identity_of(path) == identity_of(other)
    except (OSError, ValueError):
        return False


def joined(directory: str, path: str) -> str:
    """A path as it is seen from a directory."""
    return path if path.startswith("/") else directory.rstrip("/") + "/" + path


def split(path: str) -> "tuple[str, str]":
    """The directory of a file, and its name there."""
    directory, _, name = path.rpartition("/")
    return directory, name


def absolute(path: str) -> str:
    """A path from the root."""
    return path if path.startswith("/") else joined(_getcwd(), path)


def plain(path: str) -> str:
    """An absolute path without `.` and `..`, whatever is a link."""
    parts = []  # type: list[str]
    for part in absolute(path).split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def real(path: str) -> str:
    """An absolute path without links, as far as it leads.

    Args:
        path: of anything
    """
    found, links = "", 0
    left = absolute(path).split("/")[::-1]
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            found = split(found)[0]
            continue
        place = found + "/" + part
        try:
            link = _readlink(place) if links < LINKS else ""
        except (OSError, ValueError):  # it is no link, or is not there
            link = ""
        if not link:
            found = place
            continue
        links += 1
        found = "" if link.startswith("/") else found
        left += link.split("/")[::-1]
    return found or "/"


_HOME = split(os.__file__)[0]
_HOMES = (_HOME + "/", real(_HOME) + "/")


def is_pythons(path: str) -> bool:
    """Whether a path is that of a file of Python's own library."""
    return any(path.startswith(home) and "-packages/" not in path[len(home) :] for home in _HOMES)
