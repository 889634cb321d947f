"""What happened to files since somebody looked."""

import errno
import os
import struct

from .system import LIBC

try:
    import ctypes
except ImportError:  # then there is no `LIBC` either
    ctypes = None  # type: ignore[assignment]

IN_MODIFY = 0x2
IN_ATTRIB = 0x4
IN_CLOSE_WRITE = 0x8  # what was written to a mapping of a file is told with this alone
IN_MOVED = 0x40 | 0x80
IN_CREATE = 0x100
IN_DELETE = 0x200
IN_Q_OVERFLOW = 0x4000
IN_IGNORED = 0x8000
IN_ONLYDIR = 0x1000000
IN_EXCL_UNLINK = 0x4000000
IN_ISDIR = 0x40000000
_EVENT = struct.Struct("iIII")

CHANGES = 5000
"""Paths that a watch tells of at once; when there are more, comparing everything is cheaper."""


class Watch:
    """What happened below a directory, as inotify(7) tells: the kernel keeps it until it is asked for."""

    def __init__(self, prune: "frozenset[bytes]") -> None:
        """Watch nothing yet; raises OSError where inotify cannot be had."""
        if LIBC is None:
            raise OSError(errno.ENOSYS, "there is no ctypes")
        self.prune = prune
        self.top = None  # type: tuple[int, int] | None
        self.paths = {}  # type: dict[int, bytes]
        self.complete = True
        self.descriptor = int(LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def close(self) -> None:
        """Watch no longer."""
        os.close(self.descriptor)

    def add_directory(self, directory: int, prefix: bytes) -> None:
        """Watch the entries of an open directory; `prefix` stands before their names."""
        mask = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED | IN_CREATE | IN_DELETE | IN_EXCL_UNLINK | IN_ONLYDIR
        self._add(b"/proc/self/fd/%d" % directory, prefix, mask)

    def add_file(self, name: bytes, directory: int, path: bytes) -> None:
        """Watch one file in an open directory, by whatever name it is changed (it may have others elsewhere)."""
        self._add(b"/proc/self/fd/%d/%s" % (directory, name), path, IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE)

    def _add(self, place: bytes, path: bytes, mask: int) -> None:
        number = LIBC.inotify_add_watch(ctypes.c_int(self.descriptor), place, ctypes.c_uint32(mask))
        if number >= 0:
            self.paths[number] = path
        elif ctypes.get_errno() != errno.ENOENT:
            self.complete = False

    def take(self) -> "tuple[set[bytes], set[bytes]] | None":
        """Where something happened since the last call, and which of these are new directories; None: unknown."""
        changed = set()  # type: set[bytes]
        fresh = set()  # type: set[bytes]
        while self.complete:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return changed, fresh
            position = 0
            while position < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, position)
                position += _EVENT.size + length
                prefix = self.paths.get(number)
                if mask & IN_IGNORED:
                    self.paths.pop(number, None)
                    self.complete = self.complete and prefix != b""  # else the directory itself is gone
                if mask & IN_Q_OVERFLOW or (mask & IN_ISDIR and mask & IN_MOVED) or len(changed) > CHANGES:
                    self.complete = False
                elif prefix is not None:
                    path = (prefix + data[position - length : position].rstrip(b"\0")).rstrip(b"/")
                    changed.add(path)
                    if mask & IN_CREATE and mask & IN_ISDIR:
                        fresh.add(path)
        return None
