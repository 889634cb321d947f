"""Whether files and directories are still as they were when modules were loaded from them."""

import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def places_of(path: "list[str]") -> "list[str]":
    """Where installing something would show, besides in the files of modules that were loaded."""
    found = [sys.executable, os.path.join(sys.prefix, "pyvenv.cfg")]
    for entry in path:
        if entry:
            found.append(entry)
            try:
                names = [name for name in os.listdir(entry) if name.endswith((".pth", ".egg-link"))]
                found += [os.path.join(entry, name) for name in names]
            except OSError:
                continue
    return found


def files_of(modules: "Iterable[Any]") -> "list[str]":
    """The files of modules."""
    files = (getattr(module, "__file__", None) for module in modules)
    return [file for file in files if isinstance(file, str)]


def stamps(paths: "Iterable[str]") -> "dict[str, tuple[int, int, int] | None]":
    """What tells whether files or directories were changed."""
    found = {}  # type: dict[str, tuple[int, int, int] | None]
    for path in paths:
        try:
            status = os.stat(path)
            found[path] = status.st_mtime_ns, status.st_size, status.st_ino
        except OSError:
            found[path] = None
    return found


class Stamped(object):
    """Files and directories as they were, to be asked before each start whether they still are.

    In two pieces: to look at hundreds of objects would make the kernel copy a page for nearly each, after every fork.
    """

    STATUS = struct.Struct("=qqQ")
    GONE = STATUS.pack(0, 0, 0)

    def __init__(self, stamp: "dict[str, tuple[int, int, int] | None]") -> None:
        self.paths = "".join(path + "\0" for path in stamp)
        self.known = b"".join(self.GONE if one is None else self.STATUS.pack(*one) for one in stamp.values())

    def has_changed(self) -> bool:
        """Whether anything is not as `stamps` found it."""
        stat, pack, paths, known, size = os.stat, self.STATUS.pack, self.paths, self.known, self.STATUS.size
        begin = place = 0
        while begin < len(paths):
            end = paths.index("\0", begin)
            try:
                status = stat(paths[begin:end])
                now = pack(status.st_mtime_ns, status.st_size, status.st_ino)
            except OSError:
                now = self.GONE
            if now != known[place : place + size]:
                return True
            begin, place = end + 1, place + size
        return False
