"""Frames of the debugger's own: which they are, and how the program's tracebacks have none."""

import sys
import types

from debug_gym_core.debugging.inside.process import OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any, Callable, Optional, Tuple

    Load = Callable[[Any, str], Any]

_GET_CODE = compile(
    """
def _call_with_frames_removed(self, fullname):
    code, error = load(self, fullname)
    if error is not None:
        raise error
    return code
""",
    "<frozen importlib._bootstrap>",
    "exec",
)
"""Python leaves a function of this name, in a file of the importer's, out of the traceback of an import that fails."""

_DISGUISED = next(one for one in _GET_CODE.co_consts if isinstance(one, types.CodeType))


def is_ours(frame: "FrameType") -> bool:
    """Whether a frame is of the debugger's own code."""
    return frame.f_code.co_filename == OURS or frame.f_code is _DISGUISED


def disguised(load: "Load") -> "Load":
    """What does as a loader's `get_code` what `load` does, without its frames where that fails."""

    def load_or_fail(loader: "Any", fullname: str) -> "Tuple[Any, Optional[Exception]]":
        try:
            return load(loader, fullname), None
        except Exception as error:
            return None, error.with_traceback(_without_ours(error.__traceback__))

    space = {"load": load_or_fail}
    exec(_GET_CODE, space)
    return space["_call_with_frames_removed"]


def _without_ours(first: "Optional[TracebackType]") -> "Optional[TracebackType]":
    """A traceback without frames of ours at its ends; Python 3.6 can take none away at the inner one."""
    while first is not None and is_ours(first.tb_frame):
        first = first.tb_next
    last, step = first, first
    while step is not None:
        if not is_ours(step.tb_frame):
            last = step
        step = step.tb_next
    if last is None or last.tb_next is None:
        return first
    if sys.version_info < (3, 7):
        return None
    last.tb_next = None
    return first
