"""Interrupts that wait for the end of what must not be left half done, and waiting that does not miss them."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["NOTICED", "Terminated", "postponed_interrupts", "wait_for"]

NOTICED = 0.5
"""Seconds after which who waits looks for interrupts: one that comes just as a thread falls asleep does not wake it."""


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, handled as Ctrl-C is; but nobody repeats them.

    Attributes:
        exit_status: of the command that it ends
    """

    def __init__(self, number: int) -> None:
        """Know which it was.

        Args:
            number: of the signal
        """
        super().__init__()
        self.exit_status = 128 + number


def wait_for(event: threading.Event, seconds: float = math.inf) -> bool:
    """Wait for an event; interrupts come through, see `NOTICED`.

    Args:
        event: what is waited for
        seconds: how long at most

    Returns:
        whether it has come
    """
    until = time.monotonic() + seconds
    while not event.wait(max(0.0, min(NOTICED, until - time.monotonic()))):
        if time.monotonic() >= until:
            return False
    return True


@contextlib.contextmanager
def postponed_interrupts() -> Iterator[None]:
    """Have SIGINT, SIGTERM and SIGHUP handled at the end of this block, by whoever handles them outside of it.

    Their handlers usually raise, between any two instructions: also where a lock of the standard library has been
    taken and its release has not begun, which leaves the lock taken for good. So what takes locks that others need
    later does it in here; it should be short. Outside of the main thread this does nothing, as handlers run there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if callable(handler := signal.getsignal(one)):
            handlers[one] = handler
    try:
        for number in handlers:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            handlers[number](number, None)
