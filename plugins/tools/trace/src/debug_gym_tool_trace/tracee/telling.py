"""How often the host is told: at once, while there is little, and for a small part of the time later."""

from debug_gym_core.debugging.inside.process import _monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from .channel import Channel

    Json = Dict[str, Any]

AT_ONCE = 100
"""Steps after each of which the host is told, so that it knows when the program kills itself."""

SECONDS_BETWEEN = 0.1
SHARE = 30
"""Of the time that passes, the part that telling the host may take."""


class Telling:
    """Tells the host."""

    def __init__(self, channel: "Channel") -> None:
        """Tell it over `channel`."""
        self._channel = channel
        self._told = 0.0
        self._pause = SECONDS_BETWEEN

    def is_due(self, steps: int) -> bool:
        """Whether the host should hear of so many steps."""
        if self._channel.is_sending():  # which would wait for itself
            return False
        return steps <= AT_ONCE or _monotonic() - self._told > self._pause

    def tell(self, message: "Json") -> None:
        """Send a message, and see how long that takes."""
        began = _monotonic()
        self._channel.send(message)
        self._told = _monotonic()
        self._pause = max(SECONDS_BETWEEN, SHARE * (self._told - began))
