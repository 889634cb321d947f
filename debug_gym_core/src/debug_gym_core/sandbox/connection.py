"""One guest: its byte stream, the thread that reads it, the requests under way."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
import weakref
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from debug_gym_core.errors import SandboxError, SandboxLost, cause_of
from debug_gym_core.sandbox import shipping
from debug_gym_core.sandbox.frames import FrameReader, Header, pack
from debug_gym_core.sandbox.replies import ROOM, Handler, Waiter
from debug_gym_core.sandbox.terminal import Stream, Terminal

VERSION = 1

GUEST = "debug_gym_core.sandbox.guest"

START_TIMEOUT = 60.0
"""Seconds that a guest has to say hello."""

STALL_TIMEOUT = 60.0
"""Seconds that a guest may take to read a megabyte from its stream before it counts as hung."""

SILENCE = 10.0
"""Seconds that a guest may say nothing while something is under way before it is asked whether it is there."""

ANSWER_TIMEOUT = 60.0
"""Seconds that it has to answer that before it counts as hung."""

BOOT = f"""\
# debug-gym: guest
import os, sys
{shipping.BOOT}
def read(n):
    data = b""
    while len(data) < n:
        piece = os.read(0, n - len(data))
        if not piece: sys.exit(1)
        data += piece
    return data
from _frozen_importlib_external import MAGIC_NUMBER
head = b'{{"id":0,"t":"boot","magic":"%s"}}' % MAGIC_NUMBER.hex().encode()
os.write(1, len(head).to_bytes(4, "big") + bytes(4) + head)
enter(unpack(read(int(read(9))))).main()
"""
"""What `python -c` runs in the sandbox: says which bytecode it understands, reads the guest's program, becomes it."""

GRACE = 6.0
"""Seconds over a command's timeout after which the guest, which enforces it, counts as hung."""

_WRITE_SIZE = 1 << 20


@lru_cache(maxsize=4)  # whoever speaks in a sandbox says `magic`
def guest_program(magic: str) -> bytes:
    """The guest's program as `BOOT` takes it: nine digits of length, then the blob (see `shipping`).

    Args:
        magic: the magic number, hexadecimal, of the bytecode that the sandbox's Python understands
    """
    program = shipping.parcel(GUEST).blob_for(magic)
    return b"%09d" % len(program) + program


class Connection:
    """A running guest.

    Attributes:
        hello: what it said at its start: `pid`, `python` (version), `notes`
        blobs: digests of the blobs that it has
    """

    def __init__(self, terminal: Terminal, settings: Header) -> None:
        """Start a guest in a started terminal.

        Args:
            terminal: where
            settings: the fields of its `start` request

        Raises:
            SandboxLost: it did not start because the sandbox is gone
            SandboxError: it did not start
        """
        self.hello: Header = {}
        self.blobs: set[str] = set()
        self._terminal = terminal
        self._owner = os.getpid()
        self._error: SandboxLost | None = None
        self._reason = ""
        self._handlers: dict[int, Handler] = {}
        self._ids = itertools.count(1)
        self._state = threading.Lock()
        self._writing = threading.Lock()
        self._writing_since: float | None = None
        self._heard = time.monotonic()
        self._asking: threading.Thread | None = None
        self._reader = threading.Thread(target=self._read, name=f"debug-gym-{terminal.name}", daemon=True)
        self._stream: Stream = terminal.open([terminal.python, "-I", "-S", "-B", "-c", BOOT])
        try:
            _watch(self)
            boot = Waiter()
            self._handlers[0] = boot
            self._reader.start()
            self._write(guest_program(str(self.wait(boot, "its start", START_TIMEOUT)[0].get("magic"))))
            self.hello = self.request("start", timeout=START_TIMEOUT, **settings)[0]
            if self.hello.get("version") != VERSION:
                raise SandboxError(f"the guest speaks version {self.hello.get('version')}, not {VERSION}")
        except (OSError, SandboxError) as error:
            cause = self._reason or str(error) or type(error).__name__
            self.close()
            kind = SandboxError if terminal.alive() else SandboxLost
            raise kind(self.describe(f"the guest did not start ({cause})")) from error
        except BaseException:  # Ctrl-C
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether requests can be made."""
        return self._error is None

    def describe(self, what: str) -> str:
        """An error's text, with where it was and the end of the terminal's log."""
        try:
            log = self._terminal.log().strip()
        except Exception as error:  # of somebody's backend; what there is to tell is told all the same
            log = f"(it cannot be had: {cause_of(error)})"
        return f"{self._terminal.name} sandbox: {what}" + (f"; its log ends with: {log[-600:]}" if log else "")

    def send(self, header: Header, body: bytes = b"") -> None:
        """Send a frame that has no reply of its own.

        Raises:
            SandboxLost: the guest is gone
        """
        self._write(pack(header, body))

    def submit(self, handler: Handler, op: str, body: bytes = b"", **fields: Any) -> int:
        """Make a request; `handler` gets its replies.

        Returns:
            the request's id

        Raises:
            SandboxLost: the guest is gone
        """
        number = next(self._ids)
        frame = pack({"id": number, "op": op, **fields}, body)
        with self._state:
            if self._error is not None:
                raise SandboxLost(str(self._error))
            self._handlers[number] = handler
        try:
            self._write(frame)
        except BaseException:
            self._handlers.pop(number, None)
            raise
        return number

    def request(
        self, op: str, body: bytes = b"", *, timeout: float | None, room: int = ROOM, **fields: Any
    ) -> tuple[Header, bytes]:
        """Make a request that has one reply, and wait for it.

        Args:
            op: what the guest shall do
            body: raw bytes that go with it
            timeout: seconds after which the guest counts as hung; None: never
            room: bytes that the reply may have
            fields: further fields of the request's header

        Raises:
            SandboxLost: the guest is gone, or hung
            CommandLost: what served the request died
            OSError: the guest refused or failed
        """
        waiter = Waiter(room)
        self.submit(waiter, op, body, **fields)
        return self.wait(waiter, op, timeout)

    def wait(self, waiter: Waiter, what: str, timeout: float | None) -> tuple[Header, bytes]:
        """Wait for a reply; a guest that takes longer than `timeout` seconds is given up.

        Raises:
            SandboxLost: the guest is gone, or hung
            CommandLost: what served the request died
            OSError: the guest refused or failed
        """
        end = None if timeout is None else time.monotonic() + timeout
        try:
            return waiter.next(timeout)
        except SandboxLost as error:
            raise SandboxLost(f"{error} (during {what})") from None
        except TimeoutError:
            if end is None or time.monotonic() < end:  # the guest's own ETIMEDOUT
                raise
            self.fail(f"the guest did not answer within {timeout:g} s")
            raise SandboxLost(f"{self._error} (during {what})") from None

    @contextlib.contextmanager
    def believing(self) -> Iterator[None]:
        """Give the guest up when what it said turns out to be no answer."""
        try:
            yield
        except SandboxLost as error:
            self.fail(str(error))
            raise

    def fail(self, reason: str) -> None:
        """Give the guest up: whatever is under way learns it."""
        with self._state:
            if self._error is not None:
                return
            self._reason = reason
            self._error = SandboxLost(self.describe(reason))
            handlers = list(self._handlers.values())
            self._handlers.clear()
        for handler in handlers:
            handler.lost(self._error)
        self._stream.close()

    def close(self) -> None:
        """End the guest; what is under way learns it."""
        self.fail("the session was closed")
        if self._reader.is_alive() and threading.current_thread() is not self._reader:
            self._reader.join(5)

    def check_stall(self, now: float) -> None:
        """Give the guest up when it has read nothing for long; called from time to time."""
        since = self._writing_since
        if since is not None and now - since > STALL_TIMEOUT:
            self.fail(f"the guest took nothing from its stream for {STALL_TIMEOUT:g} s")

    def check_silence(self, now: float) -> None:
        """Ask a guest that has been silent for long while something is under way; called from time to time.

        What has no time limit of its own, such as a command without timeout, is bounded by this: a guest that was
        stopped, or whose container was, is given up.
        """
        asking = self._asking is not None and self._asking.is_alive()
        if asking or not self._handlers or now - self._heard < SILENCE:
            return
        thread = threading.Thread(target=self._ask, name="debug-gym-ask", daemon=True)
        thread.start()
        self._asking = thread

    def _ask(self) -> None:
        # Who waits for something learns that the guest is gone; one that refuses to answer is there.
        with contextlib.suppress(SandboxError, OSError):
            self.request("ping", timeout=ANSWER_TIMEOUT)

    def _write(self, frame: bytes) -> None:
        if self._error is not None:
            raise SandboxLost(str(self._error))
        if os.getpid() != self._owner:
            raise SandboxLost(f"{self._terminal.name} sandbox: it belongs to the process that this one was forked from")
        try:
            with self._writing:
                try:
                    self._writing_since = time.monotonic()
                    if len(frame) <= _WRITE_SIZE:
                        self._stream.write(frame)
                        return
                    view = memoryview(frame)
                    for start in range(0, len(view), _WRITE_SIZE):
                        self._writing_since = time.monotonic()
                        self._stream.write(view[start : start + _WRITE_SIZE])
                finally:
                    self._writing_since = None
        except (OSError, ValueError) as error:
            self.fail(f"the guest is gone ({error})")
            raise SandboxLost(str(self._error)) from error
        except BaseException:  # Ctrl-C: half a frame may be written
            self.fail("a request was interrupted while it was sent")
            raise

    def _admit(self, header: Header, size: int) -> bool:
        handler = self._handlers.get(header["id"])
        return size <= ROOM if handler is None else handler.admit(size)  # of what has ended, the last may be late

    def _read(self) -> None:
        frames = FrameReader(self._admit)
        reason = "the guest is gone"
        try:
            while data := self._stream.read(1 << 16):
                self._heard = time.monotonic()
                for header, body in frames.feed(data):
                    number = header["id"]
                    final = header["t"] in ("done", "error", "exit", "hello", "boot")
                    handler = self._handlers.pop(number, None) if final else self._handlers.get(number)
                    if handler is not None:
                        try:
                            handler.reply(header, body)
                        except SandboxLost as error:  # no answer: nobody else tells it
                            handler.lost(error)
                            raise
        except (OSError, SandboxLost) as error:
            reason = str(error)
        finally:  # nobody waits for what will not be read
            self.fail(reason)


_watched: weakref.WeakSet[Connection] = weakref.WeakSet()
_watching = threading.Lock()
_watcher: tuple[int, threading.Thread] | None = None


def _watch(connection: Connection) -> None:
    """Have a thread that all connections of this process share check it about once a second."""
    global _watcher
    with _watching:
        _watched.add(connection)
        if _watcher is None or _watcher[0] != os.getpid() or not _watcher[1].is_alive():
            thread = threading.Thread(target=_watch_all, name="debug-gym-watch", daemon=True)
            _watcher = (os.getpid(), thread)
            thread.start()


def _watch_all() -> None:
    global _watcher
    while True:
        time.sleep(1.0)
        with _watching:
            connections = [connection for connection in _watched if connection.alive]
            if not connections:
                _watcher = None  # the next connection starts another
                return
        for connection in connections:
            with contextlib.suppress(Exception):
                connection.check_stall(time.monotonic())
                connection.check_silence(time.monotonic())
