"""Finds breakpoints by `sys.monitoring` (Python 3.12 and newer), at no cost where there are none.

`next`, `until` and `return` need no trace function either: only the frame that they wait for is looked at.
"""

import sys
from opcode import opmap

from debug_gym_core.debugging.inside.monitoring import MONITORING, listen, take_number
from debug_gym_core.debugging.inside.process import OURS, _current_frames, _getframe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable, Dict, FrozenSet, Optional, Set, Tuple

    from .settrace import Lines

_RESUME = opmap.get("RESUME", 0)


class Monitoring:
    """Finds breakpoints by events of the code objects that have them.

    Attributes:
        awaited: frames whose trace events are wanted
    """

    def __init__(
        self,
        reached: "Callable[[FrameType], None]",
        stepped: "Callable[[FrameType, str, Any], Any]",
        lines: "Lines",
        passes: "Callable[[CodeType], FrozenSet[int]]",
        canonic: "Callable[[str], str]",
    ) -> None:
        """Find nothing yet.

        Args:
            reached: called at a line with a breakpoint
            stepped: called with the trace events of frames that are waited for
            lines: of a code object and breakpoints, the lines to look at, and the offsets at which not to
            passes: of a code object, where a loop that is written in one line jumps to another pass, for which there is
                no line event
            canonic: makes one file name of all that a file has
        """
        self._reached = reached
        self._stepped = stepped
        self._lines = lines
        self._passes = passes
        self._canonic = canonic
        self._tool: "Optional[int]" = None
        self._breaks: "Dict[str, FrozenSet[int]]" = {}
        self._files: "Dict[str, Optional[FrozenSet[int]]]" = {}
        # By identity: code objects that look alike are equal, but have events of their own.
        self._codes: "Dict[int, Tuple[CodeType, FrozenSet[int], FrozenSet[int]]]" = {}
        self.awaited: "Tuple[FrameType, ...]" = ()
        self._disabled: "Set[Tuple[int, int]]" = set()
        self._in: "Dict[int, CodeType]" = {}

    def available(self) -> bool:
        """Whether there is a free number for a tool; takes it."""
        if self._tool is None:
            self._tool = take_number()
            if self._tool is not None:
                listen(self._tool, self)
        return self._tool is not None

    def end(self) -> None:
        """Hear of no event any more."""
        if self._tool is not None:
            listen(self._tool, self, ends=True)
            MONITORING.set_events(self._tool, 0)

    # ---- breakpoints

    def watch(self, breaks: "Dict[str, FrozenSet[int]]") -> None:
        """Find these lines, by canonical file name, from now on."""
        if breaks == self._breaks:
            return
        self._breaks = breaks
        self._files = {OURS: None}
        known, self._codes = self._codes, {}
        for code, _, _ in known.values():
            self._learn(code)
        for top in _current_frames().values():
            frame: "Optional[FrameType]" = top
            while frame is not None:
                self._learn(frame.f_code)
                frame = frame.f_back
        self._set_global()
        self._restart()

    def _learn(self, code: "CodeType") -> None:
        """Look at the lines of a code object that have breakpoints."""
        if id(code) in self._codes:
            return
        try:
            breaks = self._files[code.co_filename]
        except KeyError:
            breaks = self._files[code.co_filename] = self._breaks.get(self._canonic(code.co_filename))
        if breaks:
            self._codes[id(code)] = (code, *self._lines(code, breaks))
        self._set_local(code)

    def _set_local(self, code: "CodeType") -> None:
        events = MONITORING.events
        known = self._codes.get(id(code))
        wanted = events.LINE if known is not None and known[1] else 0
        if wanted and _begins_unseen(code):
            wanted |= events.PY_START
        if id(code) in self._in:
            wanted |= events.LINE | events.PY_RETURN | events.STOP_ITERATION
        if wanted & events.LINE and self._passes(code):
            wanted |= events.JUMP
        if wanted != MONITORING.get_local_events(self._tool, code):
            MONITORING.set_local_events(self._tool, code, wanted)

    def _set_global(self) -> None:
        events = MONITORING.events
        wanted = events.PY_START | events.PY_RESUME if self._breaks else 0
        if self.awaited:
            wanted |= events.RAISE | events.PY_UNWIND
        if wanted != MONITORING.get_events(self._tool):
            MONITORING.set_events(self._tool, wanted)

    def looks_at(self, frame: "FrameType") -> bool:
        """Whether the line event that a frame is at comes to us too."""
        code = frame.f_code
        if self._tool is None or (id(code), frame.f_lasti) in self._disabled:
            return False
        return bool(MONITORING.get_local_events(self._tool, code) & MONITORING.events.LINE)

    def _restart(self) -> None:
        """Have all events again, those of lines without breakpoints too."""
        self._disabled.clear()
        MONITORING.restart_events()

    # ---- steps

    def wait_for(self, *frames: "FrameType") -> None:
        """Have the events of these frames, of none other; none: stop waiting."""
        if frames == self.awaited:
            return
        before, self.awaited = self._in, frames
        self._in = {id(frame.f_code): frame.f_code for frame in frames}
        for code in before.values():
            self._set_local(code)
        for code in self._in.values():
            self._set_local(code)
        self._set_global()
        if self._in.keys() - before.keys():
            self._restart()

    # ---- events

    def _on_py_start(self, code: "CodeType", offset: int) -> "Any":
        self._learn(code)
        kept = MONITORING.get_local_events(self._tool, code) & MONITORING.events.PY_START
        return None if kept else MONITORING.DISABLE

    _on_py_resume = _on_py_start

    def _on_line(self, code: "CodeType", line: int) -> "Any":
        return self._at_line(code, line, _getframe(1))

    def _on_jump(self, code: "CodeType", offset: int, to: int) -> "Any":
        if offset not in self._passes(code):
            return MONITORING.DISABLE
        frame = _getframe(1)
        return self._at_line(code, frame.f_lineno, frame)

    def _at_line(self, code: "CodeType", line: int, frame: "FrameType") -> "Any":
        if id(code) in self._in and frame in self.awaited:
            self._stepped(frame, "line", None)
            return None
        known = self._codes.get(id(code))
        if known is None or line not in known[1]:
            if id(code) in self._in or frame.f_lineno != line:  # the latter: another has jumped from here
                return None
            self._disabled.add((id(code), frame.f_lasti))
            return MONITORING.DISABLE
        if frame.f_lasti not in known[2]:
            self._reached(frame)
        return None

    def _on_py_return(self, code: "CodeType", offset: int, value: "Any") -> "Any":
        frame = _getframe(1)
        if frame in self.awaited:
            self._stepped(frame, "return", value)

    def _on_py_unwind(self, code: "CodeType", offset: int, error: BaseException) -> "Any":
        frame = _getframe(1)
        if frame in self.awaited:
            self._stepped(frame, "return", None)

    def _on_raise(self, code: "CodeType", offset: int, error: BaseException) -> "Any":
        frame = _getframe(1)
        if frame in self.awaited:
            self._stepped(frame, "exception", (type(error), error, error.__traceback__))

    def _on_stop_iteration(self, code: "CodeType", offset: int, error: BaseException) -> "Any":
        frame = _getframe(1)
        if frame in self.awaited:
            self._stepped(frame, "exception", (StopIteration, error, None))


def _begins_unseen(code: "CodeType") -> bool:
    """Whether there is no event of the line that a code object begins with, unless there is one of its start too.

    So it is from Python 3.13 on where that is the line of the definition as well (CPython issue 155992).
    """
    if sys.version_info < (3, 13):
        return False
    lines = {offset: line for first, end, line in code.co_lines() for offset in range(first, end, 2)}
    start = next((at for at in range(0, len(code.co_code), 2) if code.co_code[at] == _RESUME), 0)
    return lines.get(start) == lines.get(start + 2)
