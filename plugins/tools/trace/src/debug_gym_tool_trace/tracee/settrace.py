"""Events by a trace function; the only way up to Python 3.11."""

import functools
import sys
import threading
import types

from debug_gym_core.debugging.inside.process import OURS, _get_ident, _settrace

from .backend import Backend
from .channel import _exc_info, _gettrace
from .frames import enters_handler, how_left, is_cleanup, is_resumed, raises

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, Optional, Tuple

    from .story import Call
    from .watching import Watch

    Tracer = Callable[[FrameType, str, Any], Any]


class SetTrace(Backend):
    """Events of this thread, and of those that are started from now on."""

    def __init__(self, watch: "Watch") -> None:
        """Tell `watch`."""
        self._watch = watch
        self._calls_matter = True
        self._leaving: "Dict[int, Tuple[Call, FrameType, bool]]" = {}
        self._set_in_threads: "Callable[[Any], None]" = threading.settrace
        self._in_threads: "Any" = None
        self._own = threading.local()

    def start(self) -> None:
        """See Backend."""
        self._notice()
        self._set_in_threads(self._trace)
        _settrace(self._trace)

    def _notice(self) -> None:
        """Notice when the program traces itself, as coverage does, and come back when it does so no more.

        It sees its own trace functions only, and they see nothing of ours.
        """
        watch = self._watch

        @functools.wraps(_settrace)
        def settrace(function: "Any") -> None:
            if function is None or self._is_ours(function):
                self._own.tracer = None
                _settrace(None if watch.done else self._trace)
            else:
                self._own.tracer = function
                watch.blind = watch.blind or not watch.done
                _settrace(lambda frame, *event: None if frame.f_code.co_filename == OURS else function(frame, *event))

        @functools.wraps(_gettrace)
        def gettrace() -> "Any":
            known = _gettrace()
            return None if known is None or self._is_ours(known) else getattr(self._own, "tracer", None) or known

        @functools.wraps(self._set_in_threads)
        def settrace_in_threads(func: "Any") -> None:
            self._in_threads = func
            watch.blind = watch.blind or (func is not None and not watch.done)
            self._set_in_threads(self._trace if func is None and not watch.done else func)
            if func is None and not watch.done and _gettrace() is None:  # coverage ends its own in C
                _settrace(self._trace)

        sys.settrace, sys.gettrace, threading.settrace = settrace, gettrace, settrace_in_threads
        if hasattr(threading, "gettrace"):
            threading.gettrace = functools.wraps(threading.gettrace)(lambda: self._in_threads)

    def _is_ours(self, tracer: "Any") -> bool:
        return type(tracer) is types.MethodType and tracer.__self__ is self

    def hears(self) -> bool:
        """See Backend: a trace function is gone too when there was no room to call it."""
        return self._is_ours(_gettrace())

    def follow(self, call: "Call") -> None:
        """See Backend: `_trace` hands out what follows it."""

    def end_only(self, call: "Call") -> None:
        """See Backend."""
        if call.frame is not None:
            _without_lines(call.frame)

    def no_more_calls(self) -> None:
        """See Backend."""
        self._calls_matter = False

    def settle(self, frame: "Optional[FrameType]" = None, event: str = "", arg: "Any" = None) -> None:
        """See Backend: who called a function that an exception left says which it is, in its next event.

        Args:
            frame: in which there is an event
            event: which
            arg: what it brings
        """
        waiting = self._leaving.pop(_get_ident(), None) if self._leaving else None
        if waiting is None:
            return
        call, outer, borrowed = waiting
        if borrowed:
            outer.f_trace = None
        known = event == "exception" and frame is outer and isinstance(arg[1], BaseException)
        self._watch.left(call, arg[1] if known else None)

    def _leave(self, call: "Call", frame: "FrameType") -> None:
        """An exception leaves a call; a trace function hears which only from its caller."""
        self._watch.leaves(call, frame)
        outer = frame.f_back
        if outer is None:
            self._watch.left(call, None)
            return
        borrowed = outer.f_trace is None
        if borrowed:
            outer.f_trace = self._catch
        self._leaving[_get_ident()] = call, outer, borrowed

    def _catch(self, frame: "FrameType", event: str, arg: "Any") -> None:
        self.settle(frame, event, arg)

    def stop(self) -> None:
        """See Backend: other threads end it at their next call."""
        if self.hears():
            _settrace(None)
        self._set_in_threads(self._in_threads)

    def _trace(self, frame: "FrameType", event: str, arg: "Any") -> "Optional[Tracer]":
        """A function is called, or goes on that was suspended."""
        self.settle(frame, event, arg)
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
            call.goes_on(_exc_info()[1])
            return self._follow
        call = watch.called(frame) if self._calls_matter and not is_resumed(frame) else None
        if call is None:
            return None
        if not call.detailed:
            _without_lines(frame)
        return self._follow

    def _follow(self, frame: "FrameType", event: str, arg: "Any") -> "Optional[Tracer]":
        """Something happens in a call that is followed, or made by one."""
        self.settle(frame, event, arg)
        watch = self._watch
        call = watch.find(frame)
        if call is None:
            return None if watch.done else self._follow
        if event == "line":
            if not is_cleanup(frame):
                handles = enters_handler(frame)
                call.begins_line(frame.f_lasti, frame.f_lineno, handles)
                if not handles:
                    watch.handles(call, _exc_info()[1])
                watch.line(call, frame, frame.f_lineno)
        elif event == "exception":
            call.heard_at = frame.f_lasti
            error = arg[1] if isinstance(arg[1], BaseException) else arg[0]()
            watch.raised(call, error, inside=not raises(frame))
        elif event == "return":
            how = how_left(frame, arg, call)
            if how == "yielded":
                watch.yielded(call, frame, arg)
            elif how == "returned":
                watch.returned(call, frame, arg)
            else:
                self._leave(call, frame)
        return self._follow


def _without_lines(frame: "FrameType") -> None:
    """Hear of a frame nothing of its lines, where it can be said."""
    if sys.version_info >= (3, 7):
        frame.f_trace_lines = False
