"""The workspace's directory: paths in it, which lead nowhere else, and what lies at them."""

import contextlib
import errno
import os
import stat

from .frames import to_bytes, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHUNK = 1 << 18  # bytes that are read or sent at once
LONGEST_PATH = 4096  # bytes of a path below which we look: the kernel takes no longer ones, and each is sent in full
DEEPEST = 64  # directories one in another that are open while a tree is removed


class Outside(PermissionError):
    """A path that leads out of the workspace."""

    def __init__(self) -> None:
        PermissionError.__init__(self, errno.EACCES, "leads out of the workspace")


class Tree:
    """The workspace.

    Paths are relative to it, and must not leave it whatever links there are, or come to be, on the way; an absolute
    path is taken as it is.
    """

    def __init__(self, root: bytes) -> None:
        self.root = os.path.realpath(root)

    def mend(self) -> None:
        """Open the workspace's directory again when a command closed it, and make a new one when it is gone."""
        try:
            if stat.S_ISDIR(os.lstat(self.root).st_mode):
                if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
                    permit(self.root, 0o700)
                return
            os.unlink(self.root)
        except FileNotFoundError:
            pass
        except OSError:  # not ours: what the request needs of it fails by itself
            return
        with contextlib.suppress(OSError):
            os.makedirs(self.root)

    def path(self, header: "dict[str, Any]") -> bytes:
        """The path that a request is about."""
        return os.path.join(self.root, to_bytes(header["path"]))

    def holds(self, real: bytes) -> bool:
        """Whether a path without links is the workspace or leads into it."""
        return real == self.root or real.startswith(self.root.rstrip(b"/") + b"/")

    def real(self, header: "dict[str, Any]") -> bytes:
        """The path without links; a relative one that leads out of the workspace is refused."""
        real = os.path.realpath(self.path(header))
        if not (header["path"].startswith("/") or self.holds(real)):
            raise Outside()
        return real

    def open_file(self, path: bytes, real: bytes) -> int:
        """Open a regular file to read it; of one of the workspace no link, on its way or in its place, is followed."""
        descriptor = self._open(path, real)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            return descriptor
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise OSError(errno.EINVAL, "Not a regular file")

    def _open(self, path: bytes, real: bytes) -> int:
        # Without O_NONBLOCK the opening of a named pipe would wait for a writer.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        if real == self.root or not self.holds(real):
            return os.open(path, flags)
        directory = self.open_directory(os.path.dirname(real), create=False)
        try:
            return os.open(os.path.basename(real), flags | os.O_NOFOLLOW, dir_fd=directory)
        finally:
            os.close(directory)

    def open_directory(self, real: bytes, create: bool) -> int:
        """Open a directory by its real path; one of the workspace step by step, so that no link leads out of it."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        if not self.holds(real):
            if create:
                os.makedirs(real, exist_ok=True)
            return os.open(real, flags)
        descriptor = os.open(self.root, flags)
        for part in os.path.relpath(real, self.root).split(b"/"):
            if part == b".":
                continue
            try:
                try:
                    below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
                except FileNotFoundError:
                    if not create:
                        raise
                    os.mkdir(part, 0o755, dir_fd=descriptor)
                    below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor


def names_in(directory: int) -> "list[bytes]":
    """The names in an open directory, the last one first."""
    return sorted(map(os.fsencode, os.listdir(directory)), reverse=True)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it to a file."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def describe(shown: str, name: bytes, status: os.stat_result, directory: "int | None" = None) -> "list[Any]":
    """An entry, a name in an open directory, for the host: path, kind, size, mode, time, target, stamp."""
    mode = status.st_mode
    target = None
    if stat.S_ISREG(mode):
        kind = "file"
    elif stat.S_ISDIR(mode):
        kind = "directory"
    elif stat.S_ISLNK(mode):
        kind = "link"
        try:
            target = to_text(os.readlink(name, dir_fd=directory))
        except OSError:
            target = ""
    else:
        kind = "other"
    stamp = "%d-%o-%d-%d-%d" % (status.st_size, mode, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return [shown, kind, status.st_size, stat.S_IMODE(mode), status.st_mtime_ns, target, stamp]


def identity(status: os.stat_result) -> "tuple[int, int]":
    """What tells a file from all others."""
    return status.st_dev, status.st_ino


def permit(name: bytes, permissions: int, directory: "int | None" = None) -> None:
    """Add permissions to those of a directory; a link in its place is not followed."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        os.chmod(b"/proc/self/fd/%d" % descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | permissions)
    finally:
        os.close(descriptor)


def remove_below(directory: int, name: bytes) -> None:
    """Remove an entry of an open directory and what is below it, however deep, following no link.

    What lies deeper than `DEEPEST` is moved up first.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    todo = [(directory, [name])]
    moved = 0
    try:
        while True:
            directory, names = todo[-1]
            if not names:
                if len(todo) == 1:
                    return
                os.close(todo.pop()[0])
                above, names = todo[-1]
                os.rmdir(names.pop(), dir_fd=above)
                continue
            name = names[-1]
            try:
                mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
                if not stat.S_ISDIR(mode):
                    os.unlink(name, dir_fd=directory)
                    names.pop()
                    continue
                if stat.S_IMODE(mode) & 0o700 != 0o700:
                    permit(name, 0o700, directory)
                if len(todo) > DEEPEST:
                    moved += 1
                    fresh = b".debug-gym-%d-%d.removed" % (os.getpid(), moved)
                    os.rename(name, fresh, src_dir_fd=directory, dst_dir_fd=todo[1][0])
                    todo[1][1].insert(0, fresh)
                    names.pop()
                    continue
                below = os.open(name, flags, dir_fd=directory)
            except FileNotFoundError:  # gone since
                names.pop()
                continue
            todo.append((below, []))
            todo[-1][1].extend(map(os.fsencode, os.listdir(below)))
    finally:
        for directory, _ in todo[1:]:
            os.close(directory)
