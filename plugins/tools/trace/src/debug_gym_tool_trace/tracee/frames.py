"""What a frame tells of itself."""

import dis
import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Optional, Tuple

    from .files import Files
    from .story import Call

GENERATOR, COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x200
_SUSPENDS = GENERATOR | COROUTINE | ASYNC_GENERATOR | 0x100
_TRANSPARENT = frozenset(["<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"])
"""Code that is its function's own: what it calls, the function does."""

_YIELDS = frozenset(dis.opmap[name] for name in ("YIELD_VALUE", "YIELD_FROM") if name in dis.opmap)
_RETURNS = frozenset(dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap)
_RESUME = dis.opmap.get("RESUME")
_END_FINALLY = dis.opmap.get("END_FINALLY") if sys.version_info < (3, 8) else None
_RAISE = dis.opmap["RAISE_VARARGS"]
_HANDLER = dis.opmap.get("PUSH_EXC_INFO")
_OF_3_9 = sys.version_info[:2] == (3, 9)
_CLEANUPS = frozenset(dis.opmap[name] for name in ("WITH_EXCEPT_START", "END_ASYNC_FOR") if name in dis.opmap)
DEEPEST = 80
"""Frames between a function of the repository and the one that it was called from, a library's."""


def kind_of(code: "CodeType") -> str:
    """What calling a code object is: a function, or what goes on in parts."""
    if code.co_name == "<module>":
        return "module"
    if code.co_flags & COROUTINE:
        return "coroutine"
    if code.co_flags & ASYNC_GENERATOR:
        return "async generator"
    if code.co_flags & GENERATOR:
        return "generator"
    return "function" if code.co_flags & 0x2 else "class"


def is_transparent(code: "CodeType") -> bool:
    """Whether code belongs to the function around it: a comprehension's."""
    return code.co_name in _TRANSPARENT


def is_resumed(frame: "FrameType") -> bool:
    """Whether a frame goes on that was suspended, when it is called."""
    code = frame.f_code
    if not code.co_flags & _SUSPENDS:
        return False
    if _RESUME is None:
        return frame.f_lasti >= 0
    at = frame.f_lasti
    return at >= 0 and code.co_code[at] == _RESUME and bool(code.co_code[at + 1] & 3)


def raises(frame: "FrameType") -> bool:
    """Whether a frame is at a `raise`."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _RAISE


def enters_handler(frame: "FrameType") -> bool:
    """Whether a frame is about to handle an exception that is on its way; Python 3.11 says the line before."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _HANDLER


def is_cleanup(frame: "FrameType") -> bool:
    """Whether the line that begins is none: Python 3.9 gives what ends a `with` or `async for` that of their body."""
    return _OF_3_9 and frame.f_code.co_code[frame.f_lasti] in _CLEANUPS


def has_wrong_line(frame: "FrameType") -> bool:
    """Whether the line of a frame that an exception leaves is such a one."""
    return _OF_3_9 and frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == dis.opmap["RERAISE"]


def how_left(frame: "FrameType", value: "Any", call: "Call") -> str:
    """How a frame is left when its trace function hears that it returns: `returned`, `yielded` or `raised`.

    Args:
        frame: which
        value: what it returns; None for what raises too
        call: what was heard of it before
    """
    code, at = frame.f_code.co_code, frame.f_lasti
    if at < 0:
        return "raised"
    # An exception that is raised again on the way out of a `with` is back where it came from.
    goes_out = value is None and (call.heard_at == at or at < call.line_at)
    if frame.f_code.co_flags & _SUSPENDS and _is_yield(code, at) and not goes_out:
        return "yielded"
    if code[at] in _RETURNS:
        return "returned"
    if code[at] == _END_FINALLY:  # which ends a return too
        return "raised" if call.pending and value is None else "returned"
    return "raised"


def _is_yield(code: bytes, at: int) -> bool:
    if code[at] in _YIELDS:
        return True
    if sys.version_info < (3, 11):  # it is left before the instruction, to carry it out again
        return at + 2 < len(code) and code[at + 2] == dis.opmap["YIELD_FROM"]
    return code[at] == _RESUME and at >= 2 and code[at - 2] in _YIELDS


def is_awaiting(frame: "FrameType", value: "Any") -> bool:
    """Whether what a frame yields only says that it waits: it is no value of its function's."""
    flags = frame.f_code.co_flags
    return bool(flags & COROUTINE) or bool(flags & ASYNC_GENERATOR and type(value).__name__ != _WRAPPED)


_WRAPPED = "async_generator_wrapped_value"


def yielded_value(value: "Any") -> "Any":
    """The value that a function yields, where an asynchronous generator has it wrapped."""
    if type(value).__name__ == _WRAPPED:
        inside = gc.get_referents(value)
        return inside[0] if inside else None
    return value


def caller(frame: "FrameType", files: "Files") -> "Optional[FrameType]":
    """The frame of the repository's code that called a frame, through whatever libraries; None: there is none.

    A function that a library has put around another one, with that one's name and place, is a library's.
    """
    found, steps = frame.f_back, 0
    while found is not None and steps < DEEPEST:
        code = found.f_code
        is_around = code is not frame.f_code and _place(code) == _place(frame.f_code)
        if files.is_own(code.co_filename) and code.co_name not in _TRANSPARENT and not is_around:
            return found
        found, steps = found.f_back, steps + 1
    return None


def _place(code: "CodeType") -> "Tuple[str, int, str]":
    return code.co_name, code.co_firstlineno, code.co_filename
