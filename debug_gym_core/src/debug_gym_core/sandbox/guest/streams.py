"""What goes into and comes out of a command: its output, its input, the messages of its channel."""

import collections
import os
import socket
import struct

from .frames import Link, pack
from .loop import READ, WRITE
from .terminals import open_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import Loop

STREAM_WINDOW = 1 << 18  # bytes of followed output that the host has not acknowledged
MESSAGE_WINDOW = 1 << 22  # the same for messages on a channel
MESSAGE_LIMIT = 1 << 26  # a longer message means that something else than our program wrote to the channel
TURN = 1 << 21  # bytes of output that are taken before others have their turn
DRAIN = 1 << 22  # bytes that are taken at most of a program that never stops printing


class Output:
    """What a program printed: at most `limit` bytes of it, head and tail."""

    def __init__(self, limit: int) -> None:
        self.head_limit = limit // 2
        self.tail_limit = limit - self.head_limit
        self.head = bytearray()
        self.tail = collections.deque()  # type: collections.deque[bytes]
        self.tail_size = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Take more output."""
        room = self.head_limit - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if data:
            self.tail.append(data)
            self.tail_size += len(data)
            while self.tail and self.tail_size - len(self.tail[0]) >= self.tail_limit:
                gone = len(self.tail.popleft())
                self.tail_size -= gone
                self.dropped += gone

    def take(self) -> "tuple[dict[str, int], bytes]":
        """The output since the last call as header fields (`output`, `head`, `cut`) and bytes; empties."""
        tail = b"".join(self.tail)
        cut = self.dropped
        if len(tail) > self.tail_limit:
            cut += len(tail) - self.tail_limit
            tail = tail[len(tail) - self.tail_limit :]
        data = bytes(self.head) + tail
        fields = {"output": len(data)} if data else {}
        if cut:
            fields["head"] = len(self.head)
            fields["cut"] = cut
        self.head = bytearray()
        self.tail.clear()
        self.tail_size = self.dropped = 0
        return fields, data


class Streams:
    """The streams of one command, on the keeper's side.

    Attributes:
        terminal_fd: the master of its PTY, -1: it has none; it is output and input then
        slave_fd: the PTY's other end, open so that reading its master does not fail when nobody else has it open
        draining: all that the program left is taken, whether the host can follow or not
    """

    def __init__(self, loop: "Loop", host: Link, request: "dict[str, Any]", said: "Callable[[], None]") -> None:
        """Open nothing yet.

        Args:
            loop: what calls back
            host: where output and messages go
            request: what the command was started by; empty: there is none
            said: called before a message of the program is passed on
        """
        self.loop = loop
        self.host = host
        self.id = request.get("id", 0)
        self.follow = bool(request.get("follow"))
        self.said = said
        self.output = Output(request.get("output_limit", 0))
        self.output_fd = self.stdin_fd = self.terminal_fd = self.slave_fd = -1
        self.channel = None  # type: Link | None
        self.stdin = collections.deque()  # type: collections.deque[bytes | memoryview]
        self.close_stdin = False
        self.unacknowledged = 0
        self.text_unacknowledged = 0
        self.draining = False

    def close(self) -> None:
        """Close them all."""
        for descriptor in {self.output_fd, self.stdin_fd, self.terminal_fd, self.slave_fd} - {-1}:
            self.loop.watch(descriptor, 0)
            os.close(descriptor)
        self.output_fd = self.stdin_fd = self.terminal_fd = self.slave_fd = -1
        self.close_channel()

    def open_channel(self) -> int:
        """Make a channel; returns the program's end of it."""
        ours, theirs = socket.socketpair()
        descriptor = ours.detach()
        self.channel = Link(descriptor, descriptor)
        return theirs.detach()

    def open(self, request: "dict[str, Any]", has_stdin: bool) -> "tuple[int, int]":
        """Make a PTY or pipes; returns the program's ends: its input, its output.

        Args:
            request: `pty`, with `rows` and `columns`; `stdin`: the host will write to it
            has_stdin: the request itself holds input
        """
        if request.get("pty"):
            self.terminal_fd, self.slave_fd = open_terminal(request.get("rows", 24), request.get("columns", 80))
            self.output_fd = self.stdin_fd = self.terminal_fd
            streams = self.slave_fd, self.slave_fd
        else:
            self.output_fd, write_end = os.pipe()
            streams = -1, write_end
        if request.get("stdin") or (has_stdin and not request.get("pty")):
            read_end, self.stdin_fd = os.pipe()
            os.set_blocking(self.stdin_fd, False)
            streams = read_end, streams[1]
        elif not request.get("pty"):
            streams = os.open(os.devnull, os.O_RDONLY), streams[1]
        os.set_blocking(self.output_fd, False)
        return streams

    def acknowledge(self, messages: int, text: int) -> None:
        """The host has taken so many bytes."""
        self.unacknowledged -= messages
        self.text_unacknowledged -= text
        self.watch_channel()
        self.watch_output()

    # -- output

    def watch_output(self) -> None:
        """Wait for output, unless the host has enough of it for now."""
        if self.output_fd >= 0:
            full = self.follow and self.text_unacknowledged >= STREAM_WINDOW
            events = 0 if full else READ
            if self.stdin_fd == self.output_fd and self.stdin:
                events |= WRITE
            self.loop.watch(self.output_fd, events, self._on_output)

    def _on_output(self, events: int) -> None:
        if events & WRITE and self.stdin_fd == self.output_fd:
            self.write()
        if events & READ:
            self.drain(TURN)

    def drain(self, limit: int = DRAIN) -> None:
        """Take what the program has printed so far; the limit holds against one that never stops."""
        taken = 0
        while self.output_fd >= 0 and taken < limit:
            if self.follow and self.text_unacknowledged >= STREAM_WINDOW and not self.draining:
                self.watch_output()
                return
            try:
                data = os.read(self.output_fd, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._close_output()
                return
            taken += len(data)
            if self.follow:
                self.text_unacknowledged += len(data)
                self.host.send(pack({"id": self.id, "t": "text"}, data))
            else:
                self.output.add(data)

    def _close_output(self) -> None:
        """Every process that had the output open is gone, or closed it."""
        self.loop.watch(self.output_fd, 0)
        if self.terminal_fd < 0:
            os.close(self.output_fd)
        self.output_fd = -1

    # -- input

    def feed(self, data: bytes, close: bool) -> None:
        """Give the program input; `close`: no more will come."""
        if self.stdin_fd >= 0:
            if data:
                self.stdin.append(data)
            self.close_stdin = self.close_stdin or close
            self.write()

    def write(self, _events: int = 0) -> None:
        """Write as much input as the program takes now."""
        while self.stdin:
            piece = self.stdin[0]
            try:
                count = os.write(self.stdin_fd, piece)
            except BlockingIOError:
                break
            except OSError:  # nobody reads it any more
                self.stdin.clear()
                break
            if count == len(piece):
                self.stdin.popleft()
            else:
                self.stdin[0] = memoryview(piece)[count:]
        if self.stdin_fd == self.terminal_fd:
            self.watch_output()
            return
        self.loop.watch(self.stdin_fd, WRITE if self.stdin else 0, self.write)
        if self.close_stdin and not self.stdin:
            os.close(self.stdin_fd)
            self.stdin_fd = -1

    # -- the channel

    def send(self, message: bytes) -> None:
        """Pass a message of the host's on to the program."""
        if self.channel is not None:
            self.channel.send(struct.pack(">I", len(message)) + message)
            self.watch_channel()

    def watch_channel(self) -> None:
        """Wait for messages, unless the host has enough of them for now."""
        channel = self.channel
        if channel is not None:
            events = READ if self.unacknowledged < MESSAGE_WINDOW else 0
            if channel.outgoing:
                events |= WRITE
            self.loop.watch(channel.read_fd, events, self._on_channel)

    def _on_channel(self, events: int) -> None:
        channel = self.channel
        if channel is None:
            return
        if events & WRITE:
            channel.flush()
        if events & READ:
            alive = channel.receive()
            self._relay(channel)
            if not alive:
                self.close_channel()
                return
        self.watch_channel()

    def _relay(self, channel: Link) -> None:
        data = channel.incoming
        while len(data) >= 4:
            size = struct.unpack_from(">I", data)[0]
            if size > MESSAGE_LIMIT:
                self.close_channel()
                return
            if len(data) < 4 + size:
                return
            message = bytes(data[4 : 4 + size])
            del data[: 4 + size]
            self.said()
            draining, self.draining = self.draining, True  # what was printed before it comes before it
            self.drain()
            self.draining = draining
            fields, printed = self.output.take()
            self.unacknowledged += size + 64
            self.host.send(pack(dict(fields, id=self.id, t="message"), printed + message))

    def drain_channel(self) -> None:
        """Take the messages that a program that has ended left."""
        while self.channel is not None:
            before = len(self.channel.incoming)
            if not self.channel.receive() or len(self.channel.incoming) == before:
                break
            self._relay(self.channel)

    def close_channel(self) -> None:
        """Have no channel any more."""
        if self.channel is not None:
            self.loop.watch(self.channel.read_fd, 0)
            os.close(self.channel.read_fd)
            self.channel = None
