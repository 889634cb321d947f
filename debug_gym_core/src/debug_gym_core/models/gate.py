"""How fast a service is asked: a gate that all who ask it share, and the pauses between two attempts."""

from __future__ import annotations

import math
import random
import threading
import time

from debug_gym_core.errors import LLMError, LLMUnavailable

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds between two attempts: the first, doubled each time, and the most; random below that, so that workers part."""

STOPPED = "the run is being stopped"
"""What is said of a call that nobody waits for any more."""

LOOK = 0.2
"""Seconds between two looks whether a wait was ended."""

TOLD = 60.0
"""Seconds until they are told again, whichever call it is that waits."""


class Gate:
    """How many calls a service is given at once: all that come until it refuses one, then half, slowly more again.

    Shared by all that ask one service.
    """

    def __init__(self) -> None:
        """Let everything through."""
        self._changed = threading.Condition()
        self._limit = math.inf
        self._active = 0
        self._refusals = 0
        self._closed_until = 0.0
        self._since = 0.0
        self._told = -math.inf

    def may_tell(self) -> bool:
        """Whether it is time to say once more that the service does not answer; counts as said."""
        with self._changed:
            now = time.monotonic()
            if now < self._told + TOLD:
                return False
            self._told = now
            return True

    def enter(self, stopped: threading.Event) -> float:
        """Wait for a place; returns what `leave` wants to know.

        Args:
            stopped: ends the wait

        Raises:
            LLMError: the wait was ended
        """
        with self._changed:
            while not stopped.is_set():
                now = time.monotonic()
                if now >= self._closed_until and self._active < self._limit:
                    self._active += 1
                    return now
                self._changed.wait(min(LOOK, self._closed_until - now) if now < self._closed_until else LOOK)
        raise LLMError(STOPPED)

    def leave(self, entered: float, refusal: LLMUnavailable | None = None, *, answered: bool = False) -> None:
        """Give the place back.

        Args:
            entered: what `enter` returned
            refusal: the service's, for too many requests
            answered: whether it has answered
        """
        with self._changed:
            active, self._active = self._active, self._active - 1
            now = time.monotonic()
            if refusal is not None and entered >= self._since:
                # Calls that were under way at the last refusal say nothing new.
                self._limit = max(1.0, min(self._limit, active) / 2)
                self._since = now
                self._closed_until = now + pause(self._refusals, refusal.retry_after)
                self._refusals += 1
            elif answered:
                self._refusals = 0
                self._limit += 1 / self._limit
            self._changed.notify_all()


def pause(before: int, retry_after: float | None) -> float:
    """Seconds until a service is asked again.

    Args:
        before: pauses that there were already
        retry_after: what the service asked for
    """
    most: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(before, 10))
    return max(retry_after or 0.0, random.uniform(most / 2, most))
