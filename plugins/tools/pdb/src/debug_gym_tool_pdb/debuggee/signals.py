"""The program's own signals and its timer, which wait while its debugger talks."""

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
    from typing import Any, Callable, Dict, List, Optional, Tuple

_kill = os.kill
_NUMBERS = [one for one in range(1, signal.NSIG) if one not in (ARM_SIGNAL, INTERRUPT_SIGNAL)]


class Signals:
    """Holds signals back that have a handler of the program's own, and its timer.

    A handler runs in the main thread, wherever that is: while it waits for a command, an exception of the handler's
    would be raised in the debugger. Other threads that talk leave the main one running, and its signals with it.

    What a handler raises while handlers are put in place waits as well: it is meant for the program.
    """

    def __init__(self) -> None:
        """Hold none back."""
        self._handlers: "Dict[int, Any]" = {}
        self._timer: "Tuple[float, float]" = (0.0, 0.0)
        self._holding = False
        self._holder = 0
        self._changing = False
        self._interrupted = False
        self._waiting: "List[int]" = []
        self._raised: "List[BaseException]" = []
        self._bell = self._ring  # one and the same at each time: what the program has may be equal to anything

    def hold(self) -> None:
        """From now on no handler of the program's is called, and its timer stands still."""
        if _get_ident() != _main_thread().ident or self._holding:
            return
        self._holding, self._holder = True, _get_ident()
        self._to_the_end(self._take_handlers)

    def _take_handlers(self) -> None:
        for number in _NUMBERS:
            handler = _getsignal(number)
            if callable(handler) and handler is not self._bell:
                self._handlers[number] = handler
                _signal(number, self._bell)
        self._timer = _setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, signum: int, frame: "Optional[FrameType]") -> None:
        self._waiting.append(signum)

    def release(self) -> None:
        """All is as it was before; signals that came meanwhile still wait for `deliver`."""
        if not self._holding or _get_ident() != self._holder:
            return
        self._holding = False
        _setitimer(signal.ITIMER_REAL, *self._timer)  # first: as long as no handler is called that could raise
        self._to_the_end(self._give_handlers)

    def _give_handlers(self) -> None:
        for number, handler in list(self._handlers.items()):
            if _getsignal(number) is self._bell:  # else it is given, and has made another the handler
                _signal(number, handler)
            self._handlers.pop(number, None)

    def _to_the_end(self, change: "Callable[[], None]") -> None:
        """Change handlers, all of them, whatever those raise that are called meanwhile.

        Each try begins anew, and is short: a program whose signals came faster than that would not go on by itself.
        """
        self._changing, done = True, False
        while not done:
            try:
                change()
                done = True
            except BaseException as error:
                self._raised.append(error)
        self._changing = False
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    def interrupt(self) -> None:
        """End the command that runs; not while handlers are put in place, but as soon as they are.

        Raises:
            KeyboardInterrupt: at once
        """
        if not self._changing:
            raise KeyboardInterrupt
        self._interrupted = True

    def released(self) -> "Released":
        """In its block code of the program's is run at the prompt, and sees its signals."""
        return Released(self, self._holding)

    def deliver(self, frame: "Optional[FrameType]") -> None:
        """Call the handlers of the signals that came meanwhile; calls hardly anything else, as there may be no room.

        Args:
            frame: what goes on, as if it was interrupted

        Raises:
            BaseException: what a handler raised
        """
        # Calls no function of threading's, which a trace function of the program's would see.
        while (self._raised or self._waiting) and _get_ident() == _main_thread().ident:
            if self._raised:
                raise self._raised.pop(0)
            number = self._waiting.pop(0)
            handler = _getsignal(number)
            if callable(handler):
                handler(number, frame)
            elif handler == _SIG_DFL:
                _kill(_getpid(), number)

    def forked(self) -> None:
        """A child has none of the signals that its parent waits with."""
        self._waiting = []
        self._raised = []
        self._holder = _get_ident()


class Released(object):
    """See `Signals.released`; not one of contextlib's: those ask functions that the program may have replaced."""

    def __init__(self, signals: Signals, holding: bool) -> None:
        """`holding`: whether signals are held again behind the block."""
        self._signals = signals
        self._holding = holding

    def __enter__(self) -> None:
        """Let the program see its signals."""
        try:
            self._signals.release()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *raised: object) -> None:
        """Hold them back again."""
        if self._holding:
            self._signals.hold()
