"""What takes the replies of a guest, and how much of them: no more than was asked for, whoever speaks there."""

from __future__ import annotations

import errno
import queue
import threading
import time
from typing import Protocol

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.postponed import NOTICED
from debug_gym_core.sandbox.frames import Header

ROOM = 1 << 20
"""Bytes of replies to a request that asks for nothing long."""

BACKLOG = 1 << 27
"""Bytes that a program may have sent and nobody taken: a longest message, and what the guest sends before it waits."""

PIECE = 1 << 26
"""Bytes of one frame where many come: five hundred changes, with the longest names that there are."""

_FRAME = 64  # what the guest counts for a message besides its bytes
_KEPT = 512  # what the host needs for a frame besides its bytes, which is much only where these are few
_FEW = 1 << 14


class CommandLost(SandboxError):
    """The guest's process that served one request died; the sandbox itself goes on."""


class CommandEnded(SandboxError):
    """The program that a request is about has ended."""


class Handler(Protocol):
    """What takes the replies to a request; called on the reading thread, must not block."""

    def admit(self, size: int) -> bool:
        """Whether a frame of so many bytes may come: called of each one before it is read.

        Whatever speaks in the sandbox, the host keeps no more of it than it asked for.
        """

    def reply(self, header: Header, body: bytes) -> None:
        """Take a reply."""

    def lost(self, error: SandboxLost) -> None:
        """Learn that there will be no reply."""


class Waiter:
    """Replies to a request, waited for by the thread that made it."""

    def __init__(self, room: int = ROOM, longest: int | None = None) -> None:
        """Expect replies.

        Args:
            room: bytes that they may have together
            longest: bytes that one may have; None: all
        """
        self._replies: queue.SimpleQueue[tuple[Header, bytes] | SandboxLost] = queue.SimpleQueue()
        self._room = room + _KEPT
        self._longest = room if longest is None else longest

    def admit(self, size: int) -> bool:
        """Whether a frame of so many bytes may come: as long as there is room."""
        self._room -= size + (_KEPT if size < _FEW else 0)
        return self._room >= 0 and size <= self._longest

    def reply(self, header: Header, body: bytes) -> None:
        """Take a reply."""
        self._replies.put((header, body))

    def lost(self, error: SandboxLost) -> None:
        """Learn that there will be no reply."""
        self._replies.put(error)

    def next(self, timeout: float | None) -> tuple[Header, bytes]:
        """Wait for the next reply.

        Raises:
            TimeoutError: none came in `timeout` seconds
            SandboxLost: the guest is gone
            CommandLost: what served the request died
            OSError: the guest refused or failed
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = NOTICED if end is None else min(NOTICED, max(0.0, end - time.monotonic()))
            try:
                item = self._replies.get(timeout=left)
                break
            except queue.Empty:
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError from None
        if isinstance(item, SandboxLost):
            raise SandboxLost(str(item))
        if item[0]["t"] == "error":
            raise reply_error(item[0])
        return item


def reply_error(header: Header) -> Exception:
    """The exception that an error frame tells of."""
    kind, text = header.get("kind"), str(header.get("text"))
    if kind == "os":
        number = getattr(errno, str(header.get("errno")), errno.EIO)
        path = header.get("path")
        return OSError(number, text) if path is None else OSError(number, text, path)
    if kind == "lost":
        return CommandLost(text)
    if kind == "ended":
        return CommandEnded(text)
    return SandboxError(f"the guest failed: {text}")


def again(error: Exception) -> Exception:
    """A copy of an error to raise, since one that is raised twice gathers tracebacks."""
    return type(error)(*error.args)


class Backlog:
    """How much a program has sent that nobody has taken."""

    def __init__(self, room: int) -> None:
        """Begin with nothing.

        Args:
            room: bytes that there may be
        """
        self._room = room
        self._lock = threading.Lock()

    def admit(self, size: int) -> bool:
        """Whether so many bytes more may come."""
        return size <= self._room

    def add(self, data: bytes) -> None:
        """Count what has come."""
        with self._lock:
            self._room -= len(data) + _FRAME

    def take(self, data: bytes) -> int:
        """Count what was taken; returns its bytes as the guest counts them."""
        with self._lock:
            self._room += len(data) + _FRAME
        return len(data) + _FRAME
