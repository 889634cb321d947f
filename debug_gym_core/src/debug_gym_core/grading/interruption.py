"""Ends a run of the tests before its time, as a person expects of Ctrl-C."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class Interruption:
    """What another thread ends a run by; serves one run after another."""

    def __init__(self) -> None:
        """No run is under way."""
        self._end: Callable[[], object] | None = None
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def ending(self, end: Callable[[], object]) -> Iterator[None]:
        """A run is under way.

        Args:
            end: ends it soon; called as often as somebody asks
        """
        with self._lock:
            self._end = end
        try:
            yield
        finally:
            with self._lock:  # whoever asked is done with this run
                self._end = None

    def ask(self) -> bool:
        """End the run that is under way; whether there is one."""
        with self._lock:
            if self._end is None:
                return False
            self._end()
            return True
