"""Frames: what processes of ours say to each other and to the host.

A frame is the lengths of header and body (two 32-bit big-endian numbers), the header (JSON), the body (raw bytes).
"""

import collections
import errno
import json
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from typing import Any

encode = json.JSONEncoder(separators=(",", ":")).encode
LENGTHS = struct.Struct(">II")


def pack(header: "dict[str, Any]", body: "bytes | bytearray" = b"") -> bytes:
    """Make a frame."""
    head = encode(header).encode("ascii")
    return LENGTHS.pack(len(head), len(body)) + head + body


def to_bytes(text: str) -> bytes:
    """A path, argument or variable as the system wants it; bytes that are no UTF-8 travel as lone surrogates."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """The reverse of `to_bytes`."""
    return data.decode("utf-8", "surrogateescape")


def os_error(error: OSError, path: "str | None" = None) -> "dict[str, Any]":
    """Describe an OSError for the host, by the error's name since numbers differ between systems."""
    number = error.errno or errno.EIO
    reply = {"t": "error", "kind": "os", "errno": errno.errorcode.get(number, "EIO")}  # type: dict[str, Any]
    reply["text"] = error.strerror or os.strerror(number)
    if path is not None:
        reply["path"] = path
    return reply


class Link:
    """A non-blocking end of a stream of frames, with a buffer for what the other side has not taken yet.

    Attributes:
        broken: the other side is gone and has not read all that was sent to it
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd
        self.incoming = bytearray()
        self.outgoing = collections.deque()  # type: collections.deque[bytes | memoryview]
        self.waiting = 0
        self.broken = False
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    def send(self, frame: bytes) -> None:
        """Send a frame, or keep it until the other side takes it."""
        if self.broken:
            return
        self.outgoing.append(frame)
        self.waiting += len(frame)
        if len(self.outgoing) == 1:
            self.flush()

    def flush(self) -> None:
        """Write as much as the other side takes now."""
        while self.outgoing and not self.broken:
            piece = self.outgoing[0]
            try:
                count = os.write(self.write_fd, piece)
            except BlockingIOError:
                return
            except OSError:
                self._break()
                return
            self.waiting -= count
            if count == len(piece):
                self.outgoing.popleft()
            else:
                self.outgoing[0] = memoryview(piece)[count:]

    def _break(self) -> None:
        self.broken = True
        self.outgoing.clear()
        self.waiting = 0

    def receive(self) -> "bool":
        """Read what is there; False at the end of the stream."""
        try:
            data = os.read(self.read_fd, 1 << 16)
        except BlockingIOError:
            return True
        except ConnectionResetError:  # so the kernel tells, of a socket, what the other side has left unread
            self._break()
            return False
        except OSError:
            return False
        self.incoming += data
        return bool(data)

    def frames(self) -> "Iterator[tuple[dict[str, Any], bytes, bytes]]":
        """The complete frames received: header, body, and the frame as it came."""
        while len(self.incoming) >= 8:
            head, body = LENGTHS.unpack_from(self.incoming)
            size = 8 + head + body
            if len(self.incoming) < size:
                return
            frame = bytes(self.incoming[:size])
            del self.incoming[:size]
            yield json.loads(frame[8 : 8 + head].decode("utf-8")), frame[8 + head :], frame


class Exchange:
    """A blocking end of such a stream, for who has one thing to do at a time."""

    def __init__(self, connection: "socket.socket") -> None:
        connection.setblocking(True)
        self.connection = connection
        self.file = connection.makefile("rb")

    def next(self) -> "tuple[dict[str, Any], bytes] | None":
        """Wait for a frame: header and body; None at the end of the stream."""
        lengths = self.file.read(8)
        if len(lengths) < 8:
            return None
        head, body = LENGTHS.unpack(lengths)
        return json.loads(self.file.read(head).decode("utf-8")), self.file.read(body)

    def send(self, header: "dict[str, Any]", body: bytes = b"") -> None:
        """Send a frame."""
        self.connection.sendall(pack(header, body))
