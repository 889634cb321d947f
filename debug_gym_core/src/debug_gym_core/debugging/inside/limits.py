"""A limit in time for code of the program's that a debugger calls, such as the `repr` of a value."""

import signal
import threading

from debug_gym_core.debugging.inside.process import (
    _get_ident,
    _getsignal,
    _monotonic,
    _process_time,
    _setitimer,
    _signal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Optional, TypeVar

    Result = TypeVar("Result")

MOST_PATIENCE = 4
"""How often the limit may pass on a busy machine, on which most of the time may be others'."""

_AGAIN = 0.05
"""Seconds after which it rings again: code under it may swallow the first exception."""

_main_thread = threading.main_thread


class OutOfTime(BaseException):
    """A call took too long."""


class TimeLimit:
    """A limit for calls; a context manager.

    Only the main thread has it, where signals arrive. Nothing but what `call` calls is ever ended by it, also when the
    time is over just before or after. The program's own timer and handler are as they were when it is stopped.

    Attributes:
        seconds: in which the calls between `start` and `stop` are to be done
        active: whether calls are limited
        expired: whether one was ended
    """

    def __init__(self, seconds: float) -> None:
        """Prepare a limit in seconds of wall-clock time; they are more for what has hardly had the processor."""
        self.seconds = seconds
        self.active = False
        self.expired = False

    def start(self) -> bool:
        """Begin to measure, unless it has begun.

        Returns:
            whether the caller's calls are limited: in another thread, or when SIGALRM is not Python's, they are not
        """
        if _get_ident() != _main_thread().ident:  # `threading.current_thread` would give a nameless one a name
            return False
        if not self.active and _getsignal(signal.SIGALRM) is not None:
            self.active = True
            self._handler = _signal(signal.SIGALRM, self._ring)
            self._started = self._since = _monotonic()
            self._used = _process_time()
            self._timer = _setitimer(signal.ITIMER_REAL, self.seconds, _AGAIN)
        return self.active

    def extend(self) -> None:
        """Begin to measure again, so that the next calls have as much time as the first had."""
        if self.active:
            self.expired = False
            self._since, self._used = _monotonic(), _process_time()
            _setitimer(signal.ITIMER_REAL, self.seconds, _AGAIN)

    def stop(self) -> None:
        """Limit no more. May be called twice."""
        if not self.active:
            return
        _setitimer(signal.ITIMER_REAL, 0)
        _signal(signal.SIGALRM, self._handler)
        self.active = False
        remaining, interval = self._timer
        if remaining:
            left = remaining - (_monotonic() - self._started)
            _setitimer(signal.ITIMER_REAL, max(left, 0.000001), interval)

    def call(self, function: "Callable[..., Result]", *arguments: "Any") -> "Result":
        """Call a function.

        Args:
            function: one written in Python, such as `repr_of`: another can only be ended where it calls such
            arguments: its own

        Raises:
            OutOfTime: it took too long
        """
        return function(*arguments)

    def _ring(self, signum: int, frame: "Optional[FrameType]") -> None:
        taken, used = _monotonic() - self._since, _process_time() - self._used
        if not self.expired and used <= self.seconds / 2 and taken <= self.seconds * MOST_PATIENCE:
            return
        caller = frame and frame.f_back  # in the frame of `call` itself the function has not begun, or has ended
        while caller is not None:
            if caller.f_code is _CALL and caller.f_locals["self"] is self:
                self.expired = True
                raise OutOfTime
            caller = caller.f_back

    def __enter__(self) -> "TimeLimit":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


_CALL = TimeLimit.call.__code__


def repr_of(value: "Any") -> str:
    """A value's own repr; for a limit's `call`."""
    return repr(value)


def text_of(value: "Any") -> str:
    """A value's own text, such as an exception's; for a limit's `call`."""
    return str(value)
