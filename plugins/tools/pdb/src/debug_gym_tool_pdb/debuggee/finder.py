"""Finds each breakpoint by the cheapest means that is right for it."""

import bdb

from debug_gym_core.debugging.inside.monitoring import MONITORING
from debug_gym_core.debugging.inside.process import _get_ident

from .channel import OwnBuiltins
from .code_lines import jumps_inside_lines
from .insertion import places_of
from .instrument import UNTRACED, Instrument
from .monitoring import Monitoring
from .settrace import MOST_CODES, Settrace, lines_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

    from .insertion import Placed
    from .settrace import Tracer
    from .shown import Shown
    from .statements import Sources

BACKENDS = ("monitoring", "instrument", "settrace") if MONITORING is not None else ("instrument", "settrace")
"""What there is, best first; a condition is compiled in wherever it can be."""


class Finder:
    """Finds breakpoints while the program runs freely."""

    def __init__(
        self,
        reached: "Callable[[FrameType, Optional[Tracer]], Any]",
        shown: "Shown",
        sources: "Sources",
        hooked: "Callable[[FrameType, int, int], None]",
        stepped: "Callable[[FrameType, str, Any], Any]",
        canonic: "Callable[[str], str]",
    ) -> None:
        """Find nothing yet.

        Args:
            reached: called at a line with a breakpoint; returns what traces the frame from then on
            shown: told of frames that were traced and return
            sources: the statements of the files
            hooked: called before a line with a breakpoint, with the line and what is known of its condition
            stepped: called with the trace events of frames that are waited for
            canonic: makes one file name of all that a file has
        """
        self.allowed: "Sequence[str]" = BACKENDS
        self._reached = reached
        self._canonic = canonic
        self._sources = sources
        self._settrace = Settrace(reached, shown, self._lines, canonic)
        self.instrument = Instrument(hooked, self._lost, canonic)
        self._monitoring = Monitoring(self._monitored, stepped, self._lines, self._passes, canonic)
        self._begun: "Dict[Tuple[int, int], Tuple[CodeType, int]]" = {}
        self._jumps: "Dict[int, Tuple[CodeType, FrozenSet[int], FrozenSet[int]]]" = {}
        self._compiled: "Dict[str, Set[int]]" = {}
        self.on_call = self._settrace.on_call

    @property
    def idle(self) -> bool:
        """Whether no thread has to be traced."""
        return self._settrace.idle

    @property
    def steps(self) -> bool:
        """Whether single frames can be waited for without tracing."""
        return "monitoring" in self.allowed and self._monitoring.available()

    @property
    def waits(self) -> bool:
        """Whether some frames are waited for."""
        return bool(self._monitoring.awaited)

    def waits_for(self, frame: "FrameType") -> bool:
        """Whether a frame is waited for."""
        return frame in self._monitoring.awaited

    @property
    def has_conditions(self) -> bool:
        """Whether conditions were compiled into the program."""
        return self.instrument.has_conditions

    def is_compiled(self, filename: str, line: int, first: int) -> bool:
        """Whether a breakpoint of a line, or of the function that starts at `first`, is found by what was compiled."""
        lines = self._compiled.get(self._canonic(filename), ())
        return line in lines or first in lines

    def monitors(self, frame: "FrameType") -> bool:
        """Whether the line event that a frame is at comes to `reached` or `stepped` as well."""
        return self._monitoring.looks_at(frame)

    @property
    def traces_threads(self) -> bool:
        """Whether new threads must be traced from their start, for breakpoints that are set later."""
        return not self.steps

    def _monitored(self, frame: "FrameType") -> None:
        if _get_ident() not in UNTRACED:
            self._reached(frame, None)

    def wait_for(self, *frames: "FrameType") -> None:
        """Have the events of these frames, where `steps`; none: stop waiting."""
        if "monitoring" in self.allowed:
            self._monitoring.wait_for(*frames)

    def end(self) -> None:
        """Find nothing any more: the interpreter ends, and what would find it with it."""
        self._monitoring.end()
        self.instrument.end()

    def tracer(self, frame: "FrameType") -> "Optional[Tracer]":
        """What must trace a frame that is already there; None: nothing."""
        return self._settrace.tracer(frame)

    def install(self) -> None:
        """Trace the calling thread, as far as that is needed."""
        self._settrace.install(self.traces_threads)

    def watch(self) -> None:
        """Find the breakpoints that there are now."""
        self._begun.clear()
        breaks = enabled()
        monitoring = "monitoring" in self.allowed and (bool(breaks) or None) and self._monitoring.available()
        self._compiled = self._compile_in(breaks, only_conditions=bool(monitoring))
        rest = {
            file: frozenset(line for line in lines if line not in self._compiled.get(file, ()))
            for file, lines in breaks.items()
        }
        rest = {file: lines for file, lines in rest.items() if lines}
        if monitoring is not None and "monitoring" in self.allowed:
            self._monitoring.watch(rest if monitoring else {})
        self._settrace.watch({} if monitoring else rest)

    def _compile_in(self, breaks: "Dict[str, Dict[int, List[Any]]]", only_conditions: bool) -> "Dict[str, Set[int]]":
        """Have the breakpoints compiled in that can be; returns them."""
        if "instrument" not in self.allowed:
            return {}
        asked: "Dict[str, Dict[int, Placed]]" = {}
        for file, lines in breaks.items():
            asked[file] = {}
            statements = None
            for line, found in lines.items():
                if only_conditions and not all(one.cond for one in found):
                    continue
                statements = statements or self._sources.statements(file)
                if statements is None:
                    break
                by_name = any(one.funcname for one in found)
                places = places_of(statements, line, [one.cond for one in found], by_name)
                if not only_conditions or all(places.values()):
                    asked[file][line] = places
        return self.instrument.watch(asked)

    def begun(self, frame: "FrameType") -> int:
        """The first line of the statement that a frame at a line event begins; 0: it is in the middle of one."""
        code, offset = frame.f_code, frame.f_lasti
        known = self._begun.get((id(code), offset))
        if known is None or known[0] is not code:
            with OwnBuiltins():
                known = self._begun[id(code), offset] = code, self._begins(code, offset, frame.f_lineno)
        return known[1]

    def _begins(self, code: "CodeType", offset: int, line: int) -> int:
        file = self._canonic(code.co_filename)
        statements = self._sources.statements(file)
        if statements is None:
            return line
        begun = 0 if offset in statements.returns(code, line) else line
        for first in enabled().get(file, ()):
            if offset in statements.begins(code, first):
                begun = first
        return begun

    def inside(self, code: "CodeType") -> "FrozenSet[int]":
        """Offsets at which a comprehension has only gone on to its next element, which is no stop."""
        return self._jumps_of(code)[1]

    def _passes(self, code: "CodeType") -> "FrozenSet[int]":
        """Offsets of the jumps with which a loop that is written in one line begins another pass."""
        return self._jumps_of(code)[2]

    def _jumps_of(self, code: "CodeType") -> "Tuple[CodeType, FrozenSet[int], FrozenSet[int]]":
        known = self._jumps.get(id(code))
        if known is None or known[0] is not code:
            if len(self._jumps) > MOST_CODES:
                self._jumps.clear()
            with OwnBuiltins():
                known = self._jumps[id(code)] = (code, *jumps_inside_lines(code))
        return known

    def _lost(self, file: str) -> None:
        """A breakpoint could not be compiled in: find it in another way, from now on."""
        self.watch()
        if not self.idle:
            self.install()

    def _lines(self, code: "CodeType", breaks: "FrozenSet[int]") -> "Tuple[FrozenSet[int], FrozenSet[int]]":
        """The lines of a code object to look at, and the offsets where it only comes back to one of them."""
        with OwnBuiltins():
            lines = lines_in(code, breaks)
            statements = self._sources.statements(self._canonic(code.co_filename)) if breaks else None
            if statements is None:
                return lines, frozenset()
            begins = [statements.begins(code, line) for line in breaks]
            skipped = self.inside(code).union(*(statements.returns(code, line) for line in lines))
            return lines.union(*(one.values() for one in begins)), skipped.difference(*begins)


def enabled() -> "Dict[str, Dict[int, List[Any]]]":
    """Breakpoints that are enabled, by file and line."""
    found: "Dict[str, Dict[int, List[Any]]]" = {}
    for (file, line), breakpoints in bdb.Breakpoint.bplist.items():
        here = [one for one in breakpoints if one.enabled]
        if here:
            found.setdefault(file, {})[line] = here
    return found
