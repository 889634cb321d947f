"""Events by a trace function; the only way up to Python 3.11."""

import sys
import threading

from debug_gym_core.debugging.inside.process import _settrace

from .frames import how_left, is_resumed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Optional

    from .story import Call
    from .watching import Watch

    Tracer = Callable[[FrameType, str, Any], Any]


class SetTrace:
    """Events of this thread, and of those that are started from now on."""

    def __init__(self, watch: "Watch") -> None:
        """Tell `watch`."""
        self._watch = watch
        self._calls_matter = True

    def start(self) -> None:
        """See Backend."""
        threading.settrace(self._trace)
        _settrace(self._trace)

    def follow(self, call: "Call") -> None:
        """See Backend: `_trace` hands out what follows it."""

    def end_only(self, call: "Call") -> None:
        """See Backend."""
        if call.frame is not None:
            _without_lines(call.frame)

    def no_more_calls(self) -> None:
        """See Backend."""
        self._calls_matter = False

    def stop(self) -> None:
        """See Backend: other threads end it at their next call."""
        _settrace(None)
        threading.settrace(None)

    def _trace(self, frame: "FrameType", event: str, arg: "Any") -> "Optional[Tracer]":
        """A function is called, or goes on that was suspended."""
        watch = self._watch
        if watch.root is None:
            code = frame.f_code
            if code.co_name in watch.names and watch.is_wanted(code) and not is_resumed(frame) and watch.begins(frame):
                return self._follow
            return None
        if watch.done:
            _settrace(None)
            return None
        call = watch.find(frame)
        if call is not None:
            watch.resumed(call)
            return self._follow
        call = watch.called(frame) if self._calls_matter and not is_resumed(frame) else None
        if call is None:
            return None
        if not call.detailed:
            _without_lines(frame)
        return self._follow

    def _follow(self, frame: "FrameType", event: str, arg: "Any") -> "Optional[Tracer]":
        """Something happens in a call that is followed, or made by one."""
        watch = self._watch
        call = watch.find(frame)
        if call is None:
            return None if watch.done else self._follow
        if event == "line":
            watch.line(call, frame, frame.f_lineno)
        elif event == "exception":
            call.heard_at = frame.f_lasti
            watch.raised(call, arg[1] if isinstance(arg[1], BaseException) else arg[0]())
        elif event == "return":
            how = how_left(frame, arg, call.heard_at, call.pending)
            if how == "yielded":
                watch.yielded(call, frame, arg)
            elif how == "returned":
                watch.returned(call, frame, arg)
            else:
                watch.unwound(call, frame, None)
        return self._follow


def _without_lines(frame: "FrameType") -> None:
    """Hear of a frame nothing of its lines, where it can be said."""
    if sys.version_info >= (3, 7):
        frame.f_trace_lines = False
