"""The program's own signals and its timer, which wait while its debugger talks."""

import contextlib
import os
import signal

from debug_gym_core.debugging.inside.process import (
    INTERRUPT_SIGNAL,
    _get_ident,
    _getpid,
    _getsignal,
    _main_thread,
    _setitimer,
    _signal,
)

from .channel import _SIG_DFL, ARM_SIGNAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Dict, Iterator, List, Optional, Tuple

_kill = os.kill
_NUMBERS = [one for one in range(1, signal.NSIG) if one not in (ARM_SIGNAL, INTERRUPT_SIGNAL)]


class Signals:
    """Holds signals back that have a handler of the program's own, and its timer.

    A handler runs in the main thread, wherever that is: while it waits for a command, an exception of the handler's
    would be raised in the debugger. Other threads that talk leave the main one running, and its signals with it.
    """

    def __init__(self) -> None:
        """Hold none back."""
        self._handlers: "Dict[int, Any]" = {}
        self._timer: "Tuple[float, float]" = (0.0, 0.0)
        self._holding = False
        self._waiting: "List[int]" = []

    def hold(self) -> None:
        """From now on no handler of the program's is called, and its timer stands still."""
        if _get_ident() != _main_thread().ident or self._holding:
            return
        self._holding = True
        for number in _NUMBERS:
            handler = _getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                _signal(number, self._ring)
        self._timer = _setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, signum: int, frame: "Optional[FrameType]") -> None:
        self._waiting.append(signum)

    def release(self) -> None:
        """All is as it was before; signals that came meanwhile still wait for `deliver`."""
        if not self._holding or _get_ident() != _main_thread().ident:
            return
        self._holding = False
        while self._handlers:
            _signal(*self._handlers.popitem())
        _setitimer(signal.ITIMER_REAL, *self._timer)

    @contextlib.contextmanager
    def released(self) -> "Iterator[None]":
        """Code of the program's is run at the prompt, and sees its signals."""
        holding = self._holding
        self.release()
        try:
            yield
        finally:
            if holding:
                self.hold()

    def deliver(self, frame: "Optional[FrameType]") -> None:
        """Call the handlers of the signals that came while they were held back, as if `frame` was interrupted."""
        while self._waiting and not self._holding and _get_ident() == _main_thread().ident:
            number = self._waiting.pop(0)
            handler = _getsignal(number)
            if callable(handler):
                handler(number, frame)
            elif handler == _SIG_DFL:
                _kill(_getpid(), number)

    def forked(self) -> None:
        """A child has none of the signals that its parent waits with."""
        self._waiting = []
