"""The byte stream to the guest: the attached socket of an exec, with standard output and error in frames."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import SandboxError
from debug_gym_terminal_docker import engine

if TYPE_CHECKING:
    from docker import APIClient

_HEADER = struct.Struct(">BxxxI")
_STDOUT = 1
_CHUNK = 1 << 18
_FAILED = b"OCI runtime "
"""How the engine's words begin, on standard output, when the command could not be run."""


class ExecStream:
    """A `debug_gym_core.sandbox.terminal.Stream` over an exec's socket.

    Frame: one byte that names the stream, three zeros, the length (4 bytes, big-endian), the bytes; as the Docker
    Engine API says under "attach to a container".
    """

    def __init__(self, attached: Any, tell: Callable[[bytes], None]) -> None:
        """Take over the socket.

        Args:
            attached: what the SDK gives: a raw file over a socket, or a socket
            tell: called with what comes on standard error
        """
        self._attached = attached
        self._socket: socket.socket = getattr(attached, "_sock", attached)
        self._tell = tell
        self._closed = False
        self._closing = threading.Lock()
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._received = _read_ahead(attached, self._socket)
        self._stream = 0
        self._left = 0
        self._begun = False
        self._socket.settimeout(None)

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes of standard output, at least one; empty at the end; blocks."""
        with self._reading:
            while True:
                while self._left == 0:  # a frame may be empty
                    if not self._next_frame():
                        return b""
                data = self._take(min(self._left, size if self._stream == _STDOUT else _CHUNK))
                if not data:
                    return b""
                self._left -= len(data)
                if self._stream == _STDOUT and (self._begun or not data.startswith(_FAILED)):
                    self._begun = True
                    return data
                self._tell(data)

    def _next_frame(self) -> bool:
        """Read the head of a frame; False at the end."""
        head = b""
        while len(head) < _HEADER.size:
            data = self._take(_HEADER.size - len(head))
            if not data:
                return False
            head += data
        self._stream, self._left = _HEADER.unpack(head)
        return True

    def _take(self, size: int) -> bytes:
        """Some bytes of what was received, at most `size`; empty at the end."""
        if size == 0:
            return b""
        if not self._received:
            try:
                self._received = self._socket.recv(_CHUNK)
            except OSError:
                return b""
        data, self._received = self._received[:size], self._received[size:]
        return data

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`; blocks; raises OSError when the other side is gone."""
        with self._writing:
            if self._closed:
                raise BrokenPipeError("the stream is closed")
            self._socket.sendall(data)

    def close(self) -> None:
        """End the stream; the guest, whose standard input ends, ends too. May be called twice."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            with self._reading, self._writing:
                hang_up(self._attached)


def _read_ahead(attached: Any, connection: socket.socket) -> bytes:
    """What came along with the head of the engine's answer: the SDK's reader has taken it from the socket."""
    response = getattr(attached, "_response", None)
    if response is None:
        return b""
    connection.settimeout(0)
    return bytes(response.raw._fp.fp.peek())


def hang_up(attached: Any) -> None:
    """Close what the SDK gives for an attached socket: a raw file, whose end leaves the socket open, or a socket."""
    connection = getattr(attached, "_sock", attached)
    attached.close()
    connection.close()


@contextlib.contextmanager
def bounded(stream: ExecStream, timeout: float) -> Iterator[threading.Event]:
    """Close a stream when what is done with it takes longer than `timeout` seconds; the event tells."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        stream.close()

    timer = threading.Timer(timeout, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def output(client: APIClient, container: str, command: Sequence[str], user: str, timeout: float) -> bytes:
    """Run a short command in a container; what it wrote to standard output.

    Args:
        client: the engine
        container: its id
        command: the program and its arguments
        user: who runs it
        timeout: seconds that it may take

    Raises:
        SandboxError: it could not be run, or took longer; the text has what the engine or it said
    """
    errors = bytearray()
    with engine.explained(f"{command[0]} could not be run in the container"):
        created = client.exec_create(container, list(command), stdin=True, user=user, workdir="/")
        stream = ExecStream(client.exec_start(created["Id"], socket=True), errors.extend)
    try:
        with bounded(stream, timeout) as late:
            data = b"".join(iter(lambda: stream.read(1 << 16), b""))
    finally:
        stream.close()
    if late.is_set():
        raise SandboxError(f"docker: {command[0]} in the container did not end within {timeout:g} s")
    if not data and errors:
        raise SandboxError(f"docker: {command[0]} in the container: {errors.decode('utf-8', 'replace').strip()[:500]}")
    return data
