"""Whether a breakpoint stops where it is reached."""

from .evaluating import Prepared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Dict


CONDITION = "<condition>"
"""File name that the code of a condition has."""


class TakesTooLong(Exception):
    """A condition was interrupted while it was evaluated."""


class Conditions:
    """Evaluates conditions, each of which is compiled once."""

    def __init__(self) -> None:
        """Know none yet."""
        self._known: "Dict[str, Prepared]" = {}

    def hold(self, condition: str, frame: "FrameType") -> bool:
        """Whether a condition is true in a frame; raises what it raises."""
        known = self._known.get(condition)
        if known is None:
            code = compile(condition.strip(), CONDITION, "eval", dont_inherit=True)
            known = self._known[condition] = Prepared(code)
        return bool(known.evaluate(frame.f_globals, frame.f_locals))


def is_at(one: "Any", frame: "FrameType", line: int) -> bool:
    """Whether a breakpoint is meant: one of a function stops at the first line of it that is executed."""
    if one.funcname is None:
        return bool(one.line == line)
    if frame.f_code.co_name != one.funcname:
        return False
    if one.func_first_executable_line is None:
        one.func_first_executable_line = line
    return bool(one.func_first_executable_line == line)
