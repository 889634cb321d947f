"""What a frame tells of itself."""

import dis
import inspect
import sys

from debug_gym_core.debugging.inside.process import _current_frames, _get_ident, _getframe

from .code_lines import NOWHERE, line_starts
from .unseen import lies_in_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pdb
    from types import CodeType, FrameType
    from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

MOST_IN_A_CYCLE = 4
"""Functions that call each other in a circle, for which a stack is folded."""

_YIELDS = frozenset(dis.opmap[name] for name in ("YIELD_VALUE", "YIELD_FROM") if name in dis.opmap)
_AWAITING = _YIELDS.union(
    dis.opmap[name]
    for name in ("LOAD_CONST", "SEND", "RESUME", "JUMP_BACKWARD_NO_INTERRUPT", "CACHE", "EXTENDED_ARG")
    if name in dis.opmap
)
"""What follows the instruction that gets what is awaited, while that is awaited."""


def outwards(frame: "Optional[FrameType]") -> "Iterator[FrameType]":
    """A frame and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_shown(name: "Any") -> bool:
    """Whether a variable is one to show; anything may be a key where variables are kept."""
    return type(name) is str and name.isidentifier() and not name.startswith("__")


def in_order(names: "Iterable[str]", frame: "FrameType") -> "List[str]":
    """Local names as they come in the code; up to Python 3.7 a frame gives them as it likes."""
    code = frame.f_code
    order = {name: place for place, name in enumerate(code.co_varnames + code.co_cellvars + code.co_freevars)}
    return sorted(names, key=lambda name: order.get(name, len(order)))


def folded(keys: "List[Any]") -> "List[Tuple[int, int, int]]":
    """Where a list repeats itself, as the stack of a recursion does.

    Returns:
        beginning, length and number of what comes again and again, or of the elements that do not
    """
    found = []
    at = 0
    while at < len(keys):
        best = (at, 1, 1)
        for length in range(1, MOST_IN_A_CYCLE + 1):
            one, times = keys[at : at + length], 1
            while keys[at + times * length : at + (times + 1) * length] == one:
                times += 1
            if times > 1 and times * length > best[1] * best[2]:
                best = (at, length, times)
        found.append(best)
        at += best[1] * best[2]
    return found


def other_frames() -> "Dict[int, FrameType]":
    """Where the other threads are; a frame that holds itself would keep the program's objects alive."""
    frames = _current_frames()
    frames.pop(_get_ident(), None)
    return frames


def is_yielding(frame: "FrameType") -> bool:
    """Whether a generator or coroutine that returns will be resumed."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if code[at] in _YIELDS:
        return True
    if sys.version_info < (3, 11):  # it returns from before the instruction, to carry it out again
        return at + 2 < len(code) and code[at + 2] == dis.opmap["YIELD_FROM"]
    return code[at] == dis.opmap["RESUME"] and code[at - 2] in _YIELDS  # from Python 3.13 on


def ends_async_for(frame: "FrameType") -> bool:
    """Whether a frame that has a StopAsyncIteration has it of an `async for`, which ends by it."""
    code, at = frame.f_code.co_code, frame.f_lasti
    while at > 0 and code[at] in _AWAITING:
        at -= 2
    return code[at] == dis.opmap["GET_ANEXT"]


def has_arguments(code: "CodeType") -> bool:
    """Whether a function takes any."""
    several = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return bool(code.co_argcount + code.co_kwonlyargcount + several)


def is_cleared(frame: "FrameType") -> bool:
    """Whether a frame that has ended has no variables any more, as after unittest's `assertRaises`.

    That the function has deleted them is the same to see: code that deletes some need not have run, and others may.
    """
    return has_arguments(frame.f_code) and not frame.f_locals and frame not in outwards(_getframe())


def is_hidden(frame: "FrameType") -> bool:
    """Whether a frame only reports the failure: of unittest, or one that pytest hides."""
    return bool(frame.f_locals.get("__tracebackhide__", False)) or "__unittest" in frame.f_globals


def line_of(frame: "FrameType") -> int:
    """The line that a frame is at."""
    return real_line(frame, frame.f_lineno)


def real_line(frame: "FrameType", line: "Optional[int]") -> int:
    """The line of the statement that a frame is before, when it is in what we have compiled in.

    Where an exception leaves an `except*`, and the like, a frame has no line: it is the one before.
    """
    if line is None and not lies_in_ours(frame.f_code, frame.f_lasti):
        known = [number for offset, number in line_starts(frame.f_code) if offset <= frame.f_lasti]
        return known[-1] if known else frame.f_code.co_firstlineno
    if line is not None and line != NOWHERE:
        return line
    starts = (number for offset, number in line_starts(frame.f_code) if offset > frame.f_lasti and number != NOWHERE)
    return next(starts, frame.f_code.co_firstlineno)


def first_real_line(code: "CodeType") -> int:
    """The first line of a function that is executed, when it is called, but for what we have compiled in."""
    lines = [line for _, line in line_starts(code) if line != NOWHERE]
    return lines[1] if len(lines) > 1 else code.co_firstlineno


def local_names(debugger: "pdb.Pdb") -> "Dict[str, Any]":
    """The names of a debugger's current frame; none without one.

    Up to Python 3.13 pdb keeps them as they were read when it came there; from 3.14 on it keeps none and warns those
    who ask.
    """
    if sys.version_info < (3, 14):
        return debugger.curframe_locals  # type: ignore[return-value]
    frame = debugger.curframe
    return frame.f_locals if frame is not None else {}


def keep_locals(frame: "Optional[FrameType]") -> None:
    """Write changed locals back to a frame; up to Python 3.12 only a trace event would do it by itself.

    Python 3.11 and 3.12 write back once for each time that `f_locals` was read.
    """
    if frame is None or sys.version_info >= (3, 13):
        return
    try:
        import ctypes

        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        frame.f_locals  # noqa: B018
    except (ImportError, AttributeError):
        pass
