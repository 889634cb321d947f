"""Messages to the host, and functions bound before the program can replace them, as tests do with mocks."""

import sys
import threading

from debug_gym_core.debugging.inside.process import Messages, _get_ident, _getpid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, Set

    Json = Dict[str, Any]

_main_ident = threading.main_thread().ident
_exc_info = sys.exc_info
_getframe = sys._getframe
_gettrace = sys.gettrace


class Channel(Messages):
    """Messages to and from the host, which only the process sends that was started by it."""

    def __init__(self, descriptor: int) -> None:
        """Take over a descriptor."""
        super().__init__(descriptor)
        self._lock = threading.Lock()
        self._senders: "Set[int]" = set()
        self._later: "Optional[Callable[[], None]]" = None
        self._process = _getpid()

    def send(self, message: "Json") -> None:
        """Send one message; a host that is gone ends the program."""
        if _getpid() != self._process:
            return
        ident = _get_ident()
        # Before the lock is taken and after it is given back: a signal may come between, whose handler sends as well.
        self._senders.add(ident)
        with self._lock:
            super().send(message)
        self._senders.discard(ident)
        later, self._later = self._later, None
        if later is not None:
            later()

    def is_sending(self) -> bool:
        """Whether the calling thread sends a message, and runs something else meanwhile: the handler of a signal."""
        return _get_ident() in self._senders

    def from_handler(self, say: "Callable[[], None]") -> None:
        """Call what sends a message: now, or when the message that a signal's handler interrupted is sent."""
        if self.is_sending():
            self._later = say
        else:
            say()
