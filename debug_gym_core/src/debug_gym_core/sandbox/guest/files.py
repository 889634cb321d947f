"""What is done with single files."""

import errno
import os
import stat

from .declared import HEAD, declaration, is_python
from .frames import to_text
from .search import Search
from .tar import Archive, unpack
from .tree import CHUNK, Outside, describe, remove_below, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .frames import Exchange
    from .tree import Tree

    Reply = tuple[dict[str, Any], bytes]


class Files:
    """Operations on files: each takes header and body, returns the fields and body of its reply."""

    def __init__(self, tree: "Tree", host: "Exchange") -> None:
        self.tree = tree
        self.host = host
        self.counter = 0

    def read(self, header: "dict[str, Any]", _body: bytes) -> "Reply":
        """Bytes of a file, in several frames when it is large."""
        descriptor = self.tree.open_file(self.tree.path(header), self.tree.real(header))
        try:
            if header.get("offset"):
                os.lseek(descriptor, header["offset"], os.SEEK_SET)
            left = header.get("size")
            held = b""
            while left is None or left > 0:
                data = os.read(descriptor, CHUNK if left is None else min(left, CHUNK))
                if not data:
                    break
                if held:
                    self.host.send({"id": header["id"], "t": "data"}, held)
                held = data
                if left is not None:
                    left -= len(data)
            return {}, held
        finally:
            os.close(descriptor)

    def lines(self, header: "dict[str, Any]", _body: bytes) -> "Reply":
        """Lines of a file of any size, by number from 1; a line ends at a newline byte only.

        `real` is the path without links; nothing is read where it leads out of the workspace. `total` counts the file's
        lines, `length` the bytes of the wanted lines, of which at most `limit` are sent; `declared` is what Python
        source calls its encoding.
        """
        real = os.path.realpath(self.tree.path(header))
        fields = {"real": to_text(real), "total": 0, "length": 0, "declared": ""}  # type: dict[str, Any]
        if not self.tree.holds(real):
            return fields, b""
        first, behind, room = header["start"], header["start"] + header["count"], header["limit"]
        line, last, body = 1, b"\n", []
        descriptor = self.tree.open_file(real, real)
        try:
            if is_python(fields["real"]):
                fields["declared"] = declaration(os.pread(descriptor, HEAD, 0))
            while True:
                data = os.read(descriptor, CHUNK)
                if not data:
                    break
                ends = data.count(b"\n")
                if line < behind and line + ends >= first:
                    begin = 0
                    for _ in range(first - line):
                        begin = data.index(b"\n", begin) + 1
                    end = begin
                    for _ in range(behind - max(first, line)):
                        end = data.find(b"\n", end) + 1
                        if not end:
                            end = len(data)
                            break
                    fields["length"] += end - begin
                    body.append(data[begin : min(end, begin + room)])
                    room -= len(body[-1])
                line += ends
                last = data[-1:]
        finally:
            os.close(descriptor)
        fields["total"] = line - 1 if last == b"\n" else line
        return fields, b"".join(body)

    def write(self, header: "dict[str, Any]", body: bytes) -> "Reply":
        """Write a file atomically."""
        path = self.tree.path(header)
        real = os.path.realpath(path)
        if not header.get("follow") and not self.tree.holds(real):
            raise Outside()
        if real == self.tree.root or path.endswith(b"/"):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        directory = self.tree.open_directory(os.path.dirname(real), create=True)
        try:
            name = os.path.basename(real)
            mode = header.get("mode")
            try:
                known = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            except FileNotFoundError:
                known = stat.S_IFREG | 0o644
            if stat.S_ISDIR(known):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if stat.S_ISLNK(known):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            self._replace(directory, name, body, stat.S_IMODE(known) if mode is None else mode)
            return {}, b""
        finally:
            os.close(directory)

    def _replace(self, directory: int, name: bytes, data: bytes, mode: int) -> None:
        self.counter += 1
        temporary = b".debug-gym-%d-%d.tmp" % (os.getpid(), self.counter)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
        try:
            try:
                write_all(descriptor, data)
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(temporary, dir_fd=directory)
            raise

    def remove(self, header: "dict[str, Any]", _body: bytes) -> "Reply":
        """Remove a file, link or tree; what is not there is no error."""
        path = self.tree.path(header).rstrip(b"/")
        parent, name = os.path.split(os.path.normpath(path))
        parent = os.path.realpath(parent)
        if not self.tree.holds(os.path.join(parent, name)) or os.path.join(parent, name) == self.tree.root:
            raise Outside()
        try:
            directory = self.tree.open_directory(parent, create=False)
        except (FileNotFoundError, NotADirectoryError):
            return {}, b""
        try:
            remove_below(directory, name)
        finally:
            os.close(directory)
        return {}, b""

    def stat(self, header: "dict[str, Any]", _body: bytes) -> "Reply":
        """What is at a path, a link itself and not where it leads; `entry` null: nothing."""
        path = os.path.normpath(self.tree.path(header))
        try:
            if header["path"].startswith("/") or path == self.tree.root:
                return {"entry": describe(header["path"], path, os.lstat(path))}, b""
            above, name = os.path.split(path)
            above = os.path.realpath(above)
            if not self.tree.holds(above):
                raise Outside()
            directory = self.tree.open_directory(above, create=False)
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                return {"entry": describe(header["path"], name, status, directory)}, b""
            finally:
                os.close(directory)
        except (FileNotFoundError, NotADirectoryError):
            return {"entry": None}, b""

    def realpath(self, header: "dict[str, Any]", _body: bytes) -> "Reply":
        """The path with every link resolved."""
        return {"real": to_text(os.path.realpath(self.tree.path(header)))}, b""

    def put(self, header: "dict[str, Any]", _body: bytes) -> "Reply":
        """Unpack an uncompressed tar archive that follows in `chunk` frames and ends with `end`."""
        self.host.send({"id": header["id"], "t": "go"})
        archive = Archive(self.host, header["id"])
        count = unpack(archive, self.tree.root, self.tree.open_directory)
        while not archive.ended:
            archive.read(CHUNK)
        return {"count": count}, b""

    def grep(self, header: "dict[str, Any]", _body: bytes) -> "Reply":
        """Lines that match a pattern, a frame for each file that has some; then the sums."""
        return Search(self.tree, self.host, header).run(), b""
