"""Trace functions that the program sets itself, as a profiler or coverage does."""

import functools
import sys
import threading

from debug_gym_core.debugging.inside.process import _get_ident, _settrace

from .channel import _gettrace
from .own_frames import is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    """Lets the program trace itself between stops; it sees its own trace functions only, they see nothing of ours."""

    def __init__(self, debugger: "Tracing") -> None:
        """Know of none yet."""
        self._debugger = debugger
        self._by_thread: "Dict[int, Any]" = {}

    def are_set(self) -> bool:
        """Whether the program traces the calling thread."""
        return _get_ident() in self._by_thread

    def keep(self, tracer: "Any") -> None:
        """Remember what traces the calling thread, for `trace_freely`."""
        self._by_thread.setdefault(_get_ident(), tracer)

    def trace_freely(self) -> None:
        """Trace the calling thread by what the program wants to trace it with, else to find breakpoints."""
        function = self._by_thread.get(_get_ident())
        if function is None:
            self._debugger.finder.install()
        else:
            _settrace(lambda frame, *event: None if is_ours(frame) else function(frame, *event))

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
