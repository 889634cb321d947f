"""Interrupts that wait for the end of what must not be left half done, and waiting that does not miss them."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["NOTICED", "postponed_interrupts", "wait_for"]

NOTICED = 0.5
"""Seconds after which who waits looks for interrupts: one that comes just as a thread falls asleep does not wake it."""


def wait_for(event: threading.Event) -> None:
    """Wait for an event however long it takes; interrupts come through, see `NOTICED`."""
    while not event.wait(NOTICED):
        pass


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
