"""A program in the sandbox that runs while the host does other things."""

from __future__ import annotations

import contextlib
import queue
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox.frames import Header, PrintedOutput
from debug_gym_core.sandbox.replies import BACKLOG, ROOM, Backlog, CommandEnded, again, reply_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from debug_gym_core.sandbox.connection import Connection

CONTROL_TIMEOUT = 15.0
"""Seconds that the guest has to answer a request about a running program."""

_ACKNOWLEDGE = 1 << 20
_ACKNOWLEDGE_TEXT = 1 << 17


class Process:
    """A program in the sandbox that runs while the host does other things (the debugger, a test runner, a PTY).

    Made by `Session.process`. As a context manager it kills the program at the end.

    Attributes:
        pid: its number in the sandbox
        warm: whether it is a fork of an interpreter that had modules loaded
    """

    def __init__(self, connection: Connection, output_limit: int) -> None:
        self.pid = 0
        self.warm = False
        self._connection = connection
        self._id = 0
        self._lock = threading.Lock()
        self._output = PrintedOutput(output_limit)
        self._output_limit = output_limit
        self._backlog = Backlog(output_limit + BACKLOG)
        self._messages: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()
        self._text: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()
        self._rest = b""
        self._has_started = False
        self._started: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._news = threading.Condition()
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._status: int | None = None
        self._timed_out = False
        self._fresh = False
        self._consumed = 0
        self._consumed_text = 0

    def start(self, submit: Callable[[Process], int]) -> None:
        """Make the request that starts the program and wait until it runs; for `Session.process`.

        Raises:
            OSError: the program cannot be started
            SandboxError: the guest, or its process for this program, is gone
        """
        self._id = submit(self)
        try:
            failure = self._started.get(timeout=CONTROL_TIMEOUT)
        except queue.Empty:
            self._connection.fail("the guest did not start a program")
            failure = self._failure
        if failure is not None:
            raise failure

    def give_up(self, reason: str) -> SandboxLost:
        """Give the guest up, since it does not do what it must; returns the error to raise."""
        self._connection.fail(reason)
        return SandboxLost(self._connection.describe(reason))

    # -- the reading thread

    def admit(self, size: int) -> bool:
        """Whether a frame of so many bytes may come: as long as there is room beside what nobody has taken."""
        return self._backlog.admit(size)

    def reply(self, header: Header, body: bytes) -> None:
        """Take a frame of the guest's."""
        self._take(header, body)
        with self._news:
            self._news.notify_all()

    def _take(self, header: Header, body: bytes) -> None:
        kind = header["t"]
        if kind == "message":
            size = header.get("output", 0)
            with self._lock:
                if size:
                    self._output.add(header, body[:size])
                self._fresh = True
            self._backlog.add(body[size:])
            self._messages.put(body[size:])
        elif kind == "text":
            self._backlog.add(body)
            self._text.put(body)
        elif kind == "started" and (not self._has_started or (self.warm and not header["warm"])):
            self._has_started = True  # once more, cold, where a warm start died before it spoke
            self.pid = header["pid"]
            self.warm = header["warm"]
            self._started.put(None)
        elif kind == "exit":
            with self._lock:
                self._output.add(header, body)
            self._status = header["status"]
            self._timed_out = header["timed_out"]
            self._end(None)
        elif kind == "error":
            self._end(reply_error(header))
        else:  # nobody counts it
            raise SandboxLost(f"the guest said {kind!r:.60} of a program")

    def lost(self, error: SandboxLost) -> None:
        """Learn that the guest is gone."""
        self._end(error)
        with self._news:
            self._news.notify_all()

    def _end(self, failure: Exception | None) -> None:
        self._failure = failure
        self._ended.set()
        self._started.put(failure)
        self._messages.put(failure)
        self._text.put(failure)

    # -- everyone

    @property
    def returncode(self) -> int | None:
        """The exit status, or minus the signal's number; None while it runs."""
        return self._status

    @property
    def running(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return not self._ended.is_set()

    @property
    def is_lost(self) -> bool:
        """Whether it is not known what became of it: the guest, or its process for this program, is gone."""
        return self._failure is not None

    @property
    def timed_out(self) -> bool:
        """Whether it was ended for reaching its timeout."""
        return self._timed_out

    def send(self, message: bytes) -> None:
        """Send one message over the program's own channel (framed: the program receives exactly this message).

        Nothing happens when the program has ended or closed its channel.

        Raises:
            SandboxLost: the guest is gone
        """
        self._connection.send({"op": "send", "of": self._id}, message)

    def receive(self, timeout: float | None = None) -> bytes | None:
        """Wait for the program's next message on its channel.

        Everything that the program wrote to its output before the message is in `take_output` when this returns.

        Args:
            timeout: seconds

        Returns:
            the message, or None when the program ended without another one

        Raises:
            TimeoutError: none came in `timeout` seconds; the program goes on
            CommandLost: the guest's process that served this program died, and the program with it
            SandboxLost: the guest is gone
        """
        try:
            message = self._messages.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"no message within {timeout:g} s") from None
        if isinstance(message, bytes):
            self._consumed += self._backlog.take(message)
            if self._consumed > _ACKNOWLEDGE:
                self._acknowledge(messages=self._consumed)
                self._consumed = 0
            return message
        self._messages.put(message)
        if message is not None:
            raise again(message)
        return None

    def take_output(self) -> tuple[str, int]:
        """What the program wrote to its standard streams since the last call, and how many bytes of it were left out.

        After a message, that is what it wrote before the message; otherwise the guest is asked for what there is now.
        Head and tail, at most the `output_limit` that the program was started with; bytes that are no UTF-8 escaped.

        Raises:
            SandboxLost: the guest is gone
        """
        with self._lock:
            fresh = self._fresh
            self._fresh = False
        if not fresh and not self._ended.is_set():
            with contextlib.suppress(CommandEnded), self._connection.believing():
                room = ROOM + self._output_limit
                header, body = self._connection.request("output", timeout=CONTROL_TIMEOUT, room=room, of=self._id)
                with self._lock:
                    self._output.add(header, body)
        with self._lock:
            return self._output.take()

    def read_text(self, timeout: float | None = None) -> bytes:
        """Wait for output of a program started with `follow`.

        Args:
            timeout: seconds

        Returns:
            the next bytes that it wrote; empty: it has ended

        Raises:
            TimeoutError: there was none in `timeout` seconds
            SandboxLost: the guest is gone
        """
        try:
            data = self._text.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"no output within {timeout:g} s") from None
        if isinstance(data, bytes):
            self._backlog.take(data)
            self._consumed_text += len(data)
            if self._consumed_text > _ACKNOWLEDGE_TEXT:
                self._acknowledge(text=self._consumed_text)
                self._consumed_text = 0
            return data
        self._text.put(data)
        if data is not None:
            raise again(data)
        return b""

    def _acknowledge(self, **taken: int) -> None:
        """Tell the guest that there is room for more; what has come before it went is taken all the same."""
        with contextlib.suppress(SandboxLost):
            self._connection.send({"op": "ack", "of": self._id, **taken})

    def wait_for_news(self, timeout: float | None = None) -> bool:
        """Wait for output of a program started with `follow`, for a message on its channel, or for the end.

        What it wrote to its output before a message can be read when the message can.

        Args:
            timeout: seconds

        Returns:
            whether there is some: `read_text` or `receive` return at once
        """
        with self._news:
            return self._news.wait_for(lambda: not (self._text.empty() and self._messages.empty()), timeout)

    def write_stdin(self, data: bytes, close: bool = False) -> None:
        r"""Type into the program's standard input (its PTY, or its pipe).

        A PTY takes lines of at most 4095 bytes; `\x04` at the beginning of a line ends the input, `\x03` interrupts.

        Args:
            data: the bytes
            close: end the input after them (a pipe's)

        Raises:
            SandboxLost: the guest is gone
        """
        self._connection.send({"op": "stdin", "of": self._id, "close": close}, data)

    def signal(self, number: int, pid: int = 0) -> bool:
        """Send a signal to the program itself, or to one of the processes that it started, directly or not.

        Args:
            number: the signal; 0: none, only ask whether there is such a process
            pid: of which process, in the sandbox; 0: the program itself

        Returns:
            whether there was one; nothing happens when there is none

        Raises:
            SandboxLost: the guest is gone
        """
        fields: dict[str, Any] = {"number": int(number), "pid": pid}
        with contextlib.suppress(CommandEnded):
            return self._count("signal", fields) > 0
        return False

    def checkpoint(self) -> None:
        """Begin a new part of what the program does, for `signal_since`; its PTY is put in its first state.

        Raises:
            SandboxLost: the guest is gone
        """
        self._connection.send({"op": "checkpoint", "of": self._id})

    def signal_since(self, number: int, itself: bool = False, most: int | None = None, again: bool = False) -> int:
        """Send a signal to every process that the program started, directly or not, since the last `checkpoint`.

        SIGKILL ends them for good, also when they fork quickly. Of another one, a process gets no second, unless it is
        sent again, and all that are stopped go on.

        Args:
            number: the signal; 0: none, only count
            itself: send it to the program itself too (not SIGKILL), every time
            most: if there are more, end them for good instead
            again: send it to those too that had it: they may not have heard it, while they were about to be programs

        Returns:
            how many processes there were, without the program itself

        Raises:
            SandboxLost: the guest is gone
        """
        with contextlib.suppress(CommandEnded):
            return self._count("signal_since", {"number": number, "itself": itself, "most": most, "again": again})
        return 0

    def _count(self, op: str, fields: dict[str, Any]) -> int:
        """Make a request that is answered with a number of processes."""
        with self._connection.believing():
            header, _ = self._connection.request(op, timeout=CONTROL_TIMEOUT, of=self._id, **fields)
            return int(header["count"])

    def resize(self, rows: int, columns: int) -> None:
        """Give its PTY another size.

        Raises:
            SandboxLost: the guest is gone
        """
        with contextlib.suppress(CommandEnded):
            self._connection.request("resize", timeout=CONTROL_TIMEOUT, of=self._id, rows=rows, columns=columns)

    def echo(self, state: bool | None = None) -> bool:
        """Whether its PTY echoes what is typed; False when it has ended.

        Args:
            state: what it shall do from now on; None: as before

        Raises:
            SandboxLost: the guest is gone
        """
        with contextlib.suppress(CommandEnded), self._connection.believing():
            header, _ = self._connection.request("echo", timeout=CONTROL_TIMEOUT, of=self._id, state=state)
            return bool(header["echo"])
        return False

    def ended(self, timeout: float) -> bool:
        """Wait for the end, at most `timeout` seconds; returns whether it has ended."""
        return self._ended.wait(timeout)

    def kill(self) -> None:
        """End the program and every process that it left, whatever they do to survive; returns when they are gone.

        Nothing happens when it has ended, or the guest with it.
        """
        if self._ended.is_set():
            return
        with contextlib.suppress(SandboxError):
            self._connection.request("kill", timeout=CONTROL_TIMEOUT, of=self._id)
            self._ended.wait(CONTROL_TIMEOUT)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end.

        Args:
            timeout: seconds

        Returns:
            the exit status, or minus the signal's number

        Raises:
            TimeoutError: it has not ended in `timeout` seconds
            CommandLost: the guest's process that served this program died, and the program with it
            SandboxLost: the guest is gone
        """
        if not self._ended.wait(timeout):
            raise TimeoutError(f"still running after {timeout:g} s")
        if self._failure is not None:
            raise again(self._failure)
        assert self._status is not None
        return self._status

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
