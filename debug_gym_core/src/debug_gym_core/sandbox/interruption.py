"""Ends what runs in a sandbox before its time, as a person expects of Ctrl-C."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class UnderWay:
    """What is under way.

    Attributes:
        ended: whether somebody asked for its end, or a part's: before it began, or since then so that it ends
    """

    def __init__(self, end: Callable[[], bool]) -> None:
        """It is about to begin.

        Args:
            end: see `Interruption.ending`
        """
        self.ended = False
        self._end = end

    def end(self) -> bool:
        """Have it end soon; whether it will."""
        ends = self._end()
        self.ended = self.ended or ends
        return ends


class Interruption:
    """What another thread ends by what is under way: all that a tool does, and in that one command after another.

    Attributes:
        asked: whether anybody asked for the end of what is under way, or of what that is a part of
    """

    def __init__(self) -> None:
        """Nothing is under way."""
        self.asked = False
        self._under_way: UnderWay | None = None
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def ending(
        self, end: Callable[[], bool] = lambda: False, unbegun: Callable[[], object] | None = None
    ) -> Iterator[UnderWay]:
        """Something is under way, by itself or as a part of what is: then it ends at once where that was asked to end.

        Args:
            end: ends it soon, and returns whether it will; called as often as somebody asks. The default ends nothing:
                only what begins as a part is ended
            unbegun: ends at once what somebody asked to end before it began; None: `end` does
        """
        whole, part = self._under_way, UnderWay(end)
        try:
            with self._lock:
                self._under_way = part
                part.ended = self.asked
                if self.asked:
                    (unbegun or end)()
            yield part
        finally:
            with self._lock:  # whoever asked is done with this one
                self._under_way = whole
                self.asked = self.asked and whole is not None
                if whole is not None:
                    whole.ended = whole.ended or part.ended

    def beginning(self) -> contextlib.AbstractContextManager[UnderWay]:
        """As `ending`, of what runs nothing yet: who asks ends what begins as a part of it."""
        return self.ending(lambda: True)

    def ask(self) -> bool:
        """End what is under way, and whatever else begins as a part of the same; whether what is under way ends."""
        with self._lock:
            self.asked = self._under_way is not None
            return self._under_way is not None and self._under_way.end()
