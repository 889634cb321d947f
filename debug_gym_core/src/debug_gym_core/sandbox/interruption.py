"""Ends what runs in a sandbox before its time, as a person expects of Ctrl-C."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class Interruption:
    """What another thread ends a command in the sandbox by; serves one after another.

    Attributes:
        asked: whether anybody asked for the end of the one that is under way, or of the last
    """

    def __init__(self) -> None:
        """Nothing is under way."""
        self.asked = False
        self._coming = False
        self._end: Callable[[], object] | None = None
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def coming(self) -> Iterator[None]:
        """A command is being made: who asks before it is under way is heard as soon as it is."""
        with self._lock:
            self.asked, self._coming = False, True
        try:
            yield
        finally:
            with self._lock:
                self._coming = False

    @contextlib.contextmanager
    def ending(self, end: Callable[[], object]) -> Iterator[bool]:
        """A command is under way.

        Args:
            end: ends it soon; called as often as somebody asks

        Yields:
            whether somebody asked before: it is to be ended at once
        """
        with self._lock:
            self.asked, self._coming, self._end = self.asked and self._coming, False, end
            early = self.asked
        try:
            yield early
        finally:
            with self._lock:  # whoever asked is done with this one
                self._end = None

    def ask(self) -> bool:
        """End the command that is under way, or coming; whether there is one."""
        with self._lock:
            if self._end is None:
                self.asked = self.asked or self._coming
                return self._coming
            self.asked = True
            self._end()
            return True
