"""Archives that the host sends."""

import errno
import os
import stat

from .frames import to_text
from .tree import CHUNK, Outside, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .frames import Exchange


class Archive:
    """The bytes of an archive that arrive in frames."""

    def __init__(self, host: "Exchange", request: int) -> None:
        self.host = host
        self.request = request
        self.buffer = bytearray()
        self.ended = False

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        while len(self.buffer) < size and not self.ended:
            frame = self.host.next()
            if frame is None:
                os._exit(0)
            header, body = frame
            if header["op"] == "chunk":
                self.buffer += body
                self.host.send({"id": self.request, "t": "ack"})
            elif header["op"] == "end":
                self.ended = True
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data


def unpack(archive: Archive, root: bytes, open_directory: "Callable[[bytes, bool], int]") -> int:
    """Unpack a tar archive (ustar, pax, GNU long names) below a directory; returns the number of entries.

    Format: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar manual, "Basic Tar Format".
    """
    count = 0
    parent_path, parent = None, -1  # type: bytes | None, int
    directories = []  # type: list[tuple[bytes, int, float]]
    extended = {}  # type: dict[bytes, bytes]
    try:
        while True:
            block = archive.read(512)
            if not block or block == bytes(512):
                break
            member = _tar_header(block)
            if member["kind"] in (b"x", b"g", b"L", b"K"):
                data = archive.read(_padded(member["size"]))[: member["size"]]
                if member["kind"] == b"x":
                    extended.update(_pax_records(data))
                elif member["kind"] != b"g":
                    extended[b"path" if member["kind"] == b"L" else b"linkpath"] = data.rstrip(b"\0")
                continue
            path = extended.get(b"path", member["path"])
            link = extended.get(b"linkpath", member["link"])
            size = int(extended.get(b"size", member["size"]))
            modified = float(extended.get(b"mtime", member["mtime"]))
            extended = {}
            parts = [part for part in path.split(b"/") if part not in (b"", b".")]
            if path.startswith(b"/") or b".." in parts:
                raise Outside()
            count += 1
            if not parts:
                continue
            above = os.path.join(root, *parts[:-1])
            try:
                if above != parent_path:
                    if parent >= 0:
                        os.close(parent)
                    parent = -1
                    parent, parent_path = open_directory(above, True), above
                if member["kind"] == b"5":
                    directories.append((os.path.join(root, *parts), member["mode"], modified))
                _tar_member(archive, member["kind"], parent, parts[-1], link, size, member["mode"], modified, root)
            except OSError as error:
                error.entry = to_text(path)  # type: ignore[attr-defined]
                raise
    finally:
        if parent >= 0:
            os.close(parent)
    for path, mode, modified in reversed(directories):  # at last, since a read-only one could not be filled
        os.chmod(path, mode)
        os.utime(path, (modified, modified))
    return count


def _padded(size: int) -> int:
    return (size + 511) // 512 * 512


def _tar_number(field: bytes) -> int:
    if field[:1] in (b"\x80", b"\xff"):  # GNU: binary
        return int.from_bytes(field[1:], "big") - (1 << 8 * (len(field) - 1) if field[:1] == b"\xff" else 0)
    return int(field.strip(b"\0 ") or b"0", 8)


def _tar_header(block: bytes) -> "dict[str, Any]":
    try:
        checksum = _tar_number(block[148:156])
        if len(block) < 512 or checksum != sum(block[:148]) + 256 + sum(block[156:]):
            raise ValueError
        path = block[:100].split(b"\0")[0]
        prefix = block[345:500].split(b"\0")[0]
        if prefix and block[257:263] == b"ustar\0":
            path = prefix + b"/" + path
        return {
            "path": path,
            "mode": _tar_number(block[100:108]) & 0o777,
            "size": _tar_number(block[124:136]),
            "mtime": _tar_number(block[136:148]),
            "kind": block[156:157],
            "link": block[157:257].split(b"\0")[0],
        }
    except ValueError:
        raise OSError(errno.EINVAL, "The archive is damaged") from None


def _pax_records(data: bytes) -> "dict[bytes, bytes]":
    records = {}
    while data:
        length = int(data.split(b" ", 1)[0])
        key, value = data[:length].split(b" ", 1)[1][:-1].split(b"=", 1)
        records[key] = value
        data = data[length:]
    return records


def _tar_member(
    archive: Archive,
    kind: bytes,
    parent: int,
    name: bytes,
    link: bytes,
    size: int,
    mode: int,
    modified: float,
    root: bytes,
) -> None:
    """Make one entry; one that is in its place is replaced."""
    try:
        known = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        known = 0
    if known and not (kind == b"5" and stat.S_ISDIR(known)):
        if stat.S_ISDIR(known):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        os.unlink(name, dir_fd=parent)
        known = 0
    if kind in (b"0", b"\0", b"7"):
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=parent)
        try:
            left = size
            while left:
                data = archive.read(min(left, CHUNK))
                if not data:
                    raise OSError(errno.EINVAL, "The archive ends too early")
                write_all(descriptor, data)
                left -= len(data)
            archive.read(_padded(size) - size)
            os.fchmod(descriptor, mode)
            os.utime(descriptor, (modified, modified))
        finally:
            os.close(descriptor)
    elif kind == b"5":
        if known:
            os.chmod(name, 0o700, dir_fd=parent)  # until it is filled
        else:
            os.mkdir(name, 0o700, dir_fd=parent)
    elif kind == b"2":
        os.symlink(link, name, dir_fd=parent)
        os.utime(name, (modified, modified), dir_fd=parent, follow_symlinks=False)
    elif kind == b"1":
        if link.startswith(b"/") or b".." in link.split(b"/"):
            raise Outside()
        os.link(os.path.join(root, link), name, dst_dir_fd=parent, follow_symlinks=False)
    else:  # a device or a named pipe
        archive.read(_padded(size))
