"""How long an answer of a model is waited for when the run is being stopped."""

from __future__ import annotations

import threading
import time

GRACE = 10.0
"""Seconds that an answer under way has to come when the run is being stopped: it is paid for."""


class Stopping:
    """That the run is being stopped: no service is asked any more, and an answer under way has some seconds to come.

    Attributes:
        begun: whether it is
    """

    def __init__(self) -> None:
        """It is not."""
        self.begun = threading.Event()
        self._since = 0.0

    def begin(self) -> None:
        """It is from now on."""
        self._since = time.monotonic()
        self.begun.set()

    def is_over(self) -> bool:
        """Whether an answer that is still coming is waited for no more."""
        return self.begun.is_set() and time.monotonic() > self._since + GRACE
