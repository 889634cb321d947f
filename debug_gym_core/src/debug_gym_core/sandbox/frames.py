"""Frames between host and guest, and the bounded text made of what a program printed.

A frame is the lengths of header and body (two 32-bit big-endian numbers), the header (JSON), the body (raw bytes).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.answers import header_of

HEADER_LIMIT = 1 << 22
"""Bytes of a header; what may be long travels in bodies."""

BODY_LIMIT = 1 << 30
"""Bytes of a body."""

_LENGTHS = struct.Struct(">II")
_encode = json.JSONEncoder(separators=(",", ":")).encode

Header = dict[str, Any]


def pack(header: Mapping[str, Any], body: bytes | memoryview = b"") -> bytes:
    """Make a frame.

    Args:
        header: what JSON can hold
        body: raw bytes

    Raises:
        ValueError: the body is longer than a frame may be (1 GiB)
    """
    if len(body) > BODY_LIMIT:
        raise ValueError(f"{len(body)} bytes are more than one request can carry ({BODY_LIMIT})")
    head = _encode(header).encode("ascii")
    return b"".join((_LENGTHS.pack(len(head), len(body)), head, body))


def _admit_all(header: Header, size: int) -> bool:
    return True


class FrameReader:
    """Cuts a stream of bytes into frames, of which nothing is kept that nobody wants."""

    def __init__(self, admit: Callable[[Header, int], bool] = _admit_all) -> None:
        """Begin with an empty stream.

        Args:
            admit: whether a frame may come, of which this is the header and so many bytes long it is; asked once of
                each frame, before its body is read
        """
        self._data = bytearray()
        self._admit = admit
        self._header: Header | None = None

    def feed(self, data: bytes) -> Iterator[tuple[Header, bytes]]:
        """Take what was read from the stream.

        Args:
            data: the next bytes

        Yields:
            header and body of every frame that is complete now

        Raises:
            SandboxLost: the stream holds something else than frames, or one that is not admitted
        """
        self._data += data
        while len(self._data) >= _LENGTHS.size:
            head, body = _LENGTHS.unpack_from(self._data)
            start = _LENGTHS.size + head
            if head > HEADER_LIMIT or body > BODY_LIMIT:
                raise SandboxLost(f"the guest's stream is corrupt: {bytes(self._data[:40])!r}")
            if len(self._data) < start:
                return
            if self._header is None:
                self._header = header_of(self._data[_LENGTHS.size : start])
                if not self._admit(self._header, head + body):
                    raise SandboxLost(f"the guest sent more than it was asked for ({head + body} bytes at once)")
            if len(self._data) < start + body:
                return
            header, self._header = self._header, None
            content = bytes(memoryview(self._data)[start : start + body])
            del self._data[: start + body]
            yield header, content


class PrintedOutput:
    """What a program printed, as pieces come from the guest: at most about `limit` bytes of it, head and tail."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def add(self, header: Header, data: bytes) -> None:
        """Take a piece: `data`, of which `header["cut"]` bytes were left out after `header["head"]` bytes."""
        cut = header.get("cut", 0)
        middle = header.get("head", len(data)) if cut else len(data)
        if self._cut == 0:
            self._head += data[:middle]
            self._tail += data[middle:]
            self._cut = cut
            if cut and len(self._head) > self._head_limit:
                self._cut += len(self._head) - self._head_limit
                del self._head[self._head_limit :]
            elif cut == 0 and len(self._head) > self._head_limit + self._tail_limit:
                self._cut = len(self._head) - self._head_limit - self._tail_limit
                self._tail += self._head[self._head_limit + self._cut :]
                del self._head[self._head_limit :]
            return
        if cut:
            self._cut += len(self._tail) + middle + cut
            self._tail[:] = data[middle:]
            return
        self._tail += data
        excess = len(self._tail) - self._tail_limit
        if excess > 0:
            self._cut += excess
            del self._tail[:excess]

    def take(self) -> tuple[str, int]:
        """The text since the last call, with a line that marks what was left out, and the bytes left out; empties."""
        result = decode_output(bytes(self._head), bytes(self._tail), self._cut)
        self._head.clear()
        self._tail.clear()
        self._cut = 0
        return result


def decode_output(head: bytes, tail: bytes, cut: int) -> tuple[str, int]:
    r"""Make text of a program's output.

    Args:
        head: the bytes before the gap; all of them when there is none
        tail: the bytes after the gap
        cut: the size of the gap in bytes, 0: none

    Returns:
        the text, bytes that are no UTF-8 escaped as `\xff`, a line in place of the gap; the bytes left out
    """
    if cut:
        kept = _whole_characters(head)
        skipped = _continuation(tail)
        cut += len(head) - kept + skipped
        before = head[:kept].decode("utf-8", "backslashreplace")
        after = tail[skipped:].decode("utf-8", "backslashreplace")
        newline = "" if not before or before.endswith("\n") else "\n"
        return f"{before}{newline}[... {cut} bytes left out ...]\n{after}", cut
    return (head + tail).decode("utf-8", "backslashreplace"), 0


def _whole_characters(data: bytes) -> int:
    """The length without a character that is cut off at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        needed = 2 if byte >> 5 == 0b110 else 3 if byte >> 4 == 0b1110 else 4 if byte >> 3 == 0b11110 else 1
        return len(data) - back if needed > back else len(data)
    return len(data)


def _continuation(data: bytes) -> int:
    """How many bytes at the beginning (at most three) belong to a character that began before."""
    for index, byte in enumerate(data[:4]):
        if byte & 0b1100_0000 != 0b1000_0000:
            return index
    return 0
