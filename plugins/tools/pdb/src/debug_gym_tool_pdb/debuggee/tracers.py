"""Trace functions that the program sets itself, as a profiler or coverage does."""

import functools
import sys
import threading
import types

from debug_gym_core.debugging.inside.process import OURS, _get_ident, _getframe, _settrace

from .channel import _gettrace
from .own_frames import is_ours
from .shown import Followed
from .unseen import is_inserted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Dict, List, Optional, Protocol, Set

    from .finder import Finder

    class Tracing(Protocol):
        """The debugger, as it traces."""

        finder: Finder
        busy: Set[int]
        stepper: Optional[int]

        def is_foreign(self, tracer: Any) -> bool:
            """Whether a trace function is the program's own."""


class Tracers:
    """Lets the program trace itself, between stops and in steps; its trace functions see nothing of ours."""

    def __init__(self, debugger: "Tracing") -> None:
        """Know of none yet."""
        self._debugger = debugger
        self._by_thread: "Dict[int, Any]" = {}
        self._given: "Dict[int, Any]" = {}  # what traces on behalf of these
        self._of_frames: "Dict[int, Any]" = {}

    def are_set(self) -> bool:
        """Whether the program traces the calling thread."""
        return _get_ident() in self._by_thread

    def keep(self) -> None:
        """Remember what traces the calling thread, for `trace_freely`.

        What does so in C, as coverage, was set without us, and sees the events of frames that have no trace function;
        they get one.
        """
        ident = _get_ident()
        tracer: "Any" = _gettrace()
        if tracer is None:
            self._by_thread.pop(ident, None)  # it has ended without us, too
        if tracer is self._given.get(ident) or not self._debugger.is_foreign(tracer):
            return
        self._by_thread[ident] = tracer
        frame: "Optional[FrameType]" = _getframe(1)
        while frame is not None and type(tracer) not in (types.FunctionType, types.MethodType):
            if frame.f_trace is None:
                frame.f_trace = tracer
            frame = frame.f_back

    def pass_on(self, frame: "FrameType", event: str, arg: "Any") -> "Any":
        """Have the program see an event that came to us; returns its trace function for the frame."""
        ident = _get_ident()
        function = self._by_thread.get(ident)
        if function is None or is_inserted(frame):
            return None
        if event != "call":
            function = self._of_frames.get(id(frame))
            if function is None:
                return None
        tracing = _gettrace()
        result = function(frame, event, arg)
        if self._by_thread.get(ident) is not None and _gettrace() is not tracing:
            _settrace(tracing)  # it has traced in C again, from this call on
        if event == "return":
            self._of_frames.pop(id(frame), None)
        elif event != "call" and result is not None:
            self._of_frames[id(frame)] = result
        return result

    def put_aside(self, frame: "FrameType", own: "Any") -> None:
        """Remember the program's trace function for a frame that we trace."""
        if is_own(own):
            self._of_frames[id(frame)] = own

    def taken_back(self, frame: "FrameType") -> "Any":
        """The program's trace function for a frame that we trace no more; None: it has none."""
        return self._of_frames.pop(id(frame), None)

    def trace_freely(self) -> None:
        """Trace the calling thread by what the program wants to trace it with, else to find breakpoints."""
        function = self._by_thread.get(_get_ident())
        if function is None:
            self._debugger.finder.install()
        else:
            given = self._given.get(_get_ident())
            if given is None or given.args[0] is not function:
                given = self._given[_get_ident()] = functools.partial(_trace_for, function)
            _settrace(given)

    def install(self) -> None:
        """Let the program trace itself, and find breakpoints again when it has done so."""
        debugger = self._debugger
        set_in_threads = threading.settrace
        if debugger.finder.traces_threads:
            set_in_threads(debugger.finder.on_call)
        in_threads: "List[Any]" = [None]

        @functools.wraps(_settrace)
        def settrace(function: "Any") -> None:
            ident = _get_ident()
            if ident in debugger.busy or (function is not None and not debugger.is_foreign(function)):
                _settrace(function)  # pdb's own
                return
            if function is None:
                if self._by_thread.pop(ident, None) is not None and debugger.stepper != ident:
                    _settrace(None)  # the program's own must not see what follows
            else:
                self._by_thread[ident] = function
            if debugger.stepper == ident:
                return  # the step is finished first
            self.trace_freely()

        @functools.wraps(_gettrace)
        def gettrace() -> "Any":
            ident = _get_ident()
            return _gettrace() if ident in debugger.busy else self._by_thread.get(ident)

        @functools.wraps(set_in_threads)
        def settrace_in_threads(func: "Any") -> None:
            in_threads[0] = func
            set_in_threads(debugger.finder.on_call if func is None and debugger.finder.traces_threads else func)

        sys.settrace, sys.gettrace, threading.settrace = settrace, gettrace, settrace_in_threads
        if hasattr(threading, "gettrace"):
            threading.gettrace = functools.wraps(threading.gettrace)(lambda: in_threads[0])


def _trace_for(function: "Any", frame: "FrameType", event: str, arg: "Any") -> "Any":
    return None if is_ours(frame) else function(frame, event, arg)


def is_own(tracer: "Any") -> bool:
    """Whether a frame's trace function is the program's."""
    if type(tracer) is types.MethodType:
        tracer = tracer.__func__
    if type(tracer) is types.FunctionType:
        return bool(tracer.__code__.co_filename != OURS)
    return tracer is not None and type(tracer) is not Followed
