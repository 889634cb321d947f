"""Whether a breakpoint stops where it is reached."""

import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Dict, Tuple


CONDITION = "<condition>"
"""File name that the code of a condition has."""


class TakesTooLong(Exception):
    """A condition was interrupted while it was evaluated."""


class Conditions:
    """Evaluates conditions, each of which is compiled once."""

    def __init__(self) -> None:
        """Know none yet."""
        self._known: "Dict[str, Tuple[CodeType, bool]]" = {}

    def hold(self, condition: str, frame: "FrameType") -> bool:
        """Whether a condition is true in a frame; raises what it raises."""
        known = self._known.get(condition)
        if known is None:
            code = compile(condition.strip(), CONDITION, "eval", dont_inherit=True)
            nested = any(isinstance(one, types.CodeType) for one in code.co_consts)
            known = self._known[condition] = code, nested
        names = frame.f_locals
        if known[1]:  # functions in it, as of a comprehension, look for names among the global ones only
            return bool(eval(known[0], dict(frame.f_globals, **names)))
        return bool(eval(known[0], frame.f_globals, names))


def is_at(one: "Any", frame: "FrameType", line: int) -> bool:
    """Whether a breakpoint is meant: one of a function stops at the first line of it that is executed."""
    if one.funcname is None:
        return bool(one.line == line)
    if frame.f_code.co_name != one.funcname:
        return False
    if one.func_first_executable_line is None:
        one.func_first_executable_line = line
    return bool(one.func_first_executable_line == line)
