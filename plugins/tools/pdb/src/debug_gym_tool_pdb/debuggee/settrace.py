"""Finds breakpoints by `sys.settrace`: always right, and what single steps are made of."""

import bdb

from debug_gym_core.debugging.inside.process import OURS, _get_ident, _main_thread, _settrace

from .code_lines import lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable, Dict, FrozenSet, Optional, Set, Tuple

    from .shown import Shown

    Tracer = Callable[[FrameType, str, Any], Any]
    Lines = Callable[[CodeType, FrozenSet[int]], Tuple[FrozenSet[int], FrozenSet[int]]]

MOST_CODES = 10000
"""Code objects that are remembered; a program may make them by the thousand."""


class Settrace:
    """Finds breakpoints by a trace function.

    Code of files without a breakpoint is left after one look into a dictionary; code without a breakpoint line after
    two. In other code a line costs one function call.
    """

    def __init__(
        self,
        reached: "Callable[[FrameType, Tracer], Any]",
        shown: "Shown",
        lines: "Lines",
        canonic: "Callable[[str], str]",
    ) -> None:
        """Find nothing yet.

        Args:
            reached: called at a line with a breakpoint; returns what traces the frame from then on
            shown: told of frames that were traced and return
            lines: of a code object and breakpoints, the lines to look at, and the offsets at which not to
            canonic: makes one file name of all that a file has
        """
        self._reached = reached
        self._shown = shown
        self._lines = lines
        self._canonic = canonic
        self._breaks: "Dict[str, FrozenSet[int]]" = {}
        self._files: "Dict[str, Optional[FrozenSet[int]]]" = {OURS: None}
        self._codes: "Dict[int, Tuple[CodeType, Set[int], Set[int], Tracer]]" = {}
        self.on_call = self._make_on_call()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to find."""
        return not self._breaks

    def watch(self, breaks: "Dict[str, FrozenSet[int]]") -> None:
        """Find these lines, by canonical file name, from now on."""
        if breaks == self._breaks:
            return
        self._breaks = breaks
        self._files.clear()
        self._files[OURS] = None
        for code, lines, skipped, _ in list(self._codes.values()):
            found = self._lines(code, breaks.get(self._canonic(code.co_filename), frozenset()))
            lines.clear()
            lines.update(found[0])
            skipped.clear()
            skipped.update(found[1])

    def tracer(self, frame: "FrameType") -> "Optional[Tracer]":
        """What must trace a frame that is already there; None: nothing."""
        return self.on_call(frame, "call", None)

    def install(self, stay: bool) -> None:
        """Trace the calling thread, as far as there is something to find.

        Args:
            stay: whether threads other than the main one stay traced: no signal can reach them when that changes
        """
        traced = stay and _get_ident() != _main_thread().ident
        _settrace(self.on_call if traced or not self.idle else None)

    def _make_on_call(self) -> "Callable[[FrameType, str, Any], Optional[Tracer]]":
        files, codes, shown = self._files, self._codes, self._shown

        def on_call(frame: "FrameType", event: str, arg: "Any") -> "Optional[Tracer]":
            code = frame.f_code
            try:
                breaks = files[code.co_filename]
            except KeyError:
                breaks = files[code.co_filename] = self._breaks.get(self._canonic(code.co_filename))
            if not breaks:
                return None
            known = codes.get(id(code))
            if known is None:
                known = self._learn(code, breaks)
            if not known[1]:
                return None
            if frame.f_trace is not None:  # a generator's, that was suspended
                shown.unfollow(frame)
            return known[3]

        return on_call

    def _learn(self, code: "CodeType", breaks: "FrozenSet[int]") -> "Tuple[CodeType, Set[int], Set[int], Tracer]":
        lines, skipped = map(set, self._lines(code, breaks))
        reached, left, suspended = self._reached, self._shown.left, self._shown.suspended
        ends = not code.co_flags & bdb.GENERATOR_AND_COROUTINE_FLAGS

        def on_line(frame: "FrameType", event: str, arg: "Any") -> "Any":
            if event == "line":
                if frame.f_lineno in lines and frame.f_lasti not in skipped:
                    return reached(frame, on_line)
            elif event == "return":
                if not ends:
                    return suspended(frame, on_line)
                left(id(frame))
            return on_line

        if len(self._codes) > MOST_CODES:
            self._codes.clear()
        known = self._codes[id(code)] = (code, lines, skipped, on_line)
        return known


def lines_in(code: "CodeType", breaks: "FrozenSet[int]") -> "FrozenSet[int]":
    """Lines of a code object to look at; all, when a breakpoint may be set on the function itself."""
    lines = frozenset(line for line in lines_of(code))
    return lines if code.co_firstlineno in breaks else lines & breaks
