"""Which of the tools of `sys.monitoring` (Python 3.12 and newer) a debugger is."""

import functools
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

MONITORING: "Any" = getattr(sys, "monitoring", None)

_NUMBERS = (5, 4, 3, 0)
"""Numbers that a debugger may have, in order: what a program is not likely to take comes first.

Python gives names to 0 (DEBUGGER_ID), 1 (COVERAGE_ID), 2 (PROFILER_ID) and 5 (OPTIMIZER_ID); 3 and 4 are free for all,
and Hypothesis takes 3. 5 comes first, since programs run under debuggers, coverage and profilers, and hardly an
optimizer of their own.
"""


def take_number() -> "Optional[int]":
    """Become a tool for as long as the process lasts; None: all numbers are taken, or there are none."""
    for number in _NUMBERS if MONITORING is not None else ():
        try:
            MONITORING.use_tool_id(number, "debug-gym")
        except ValueError:
            continue
        MONITORING.free_tool_id = _kept(MONITORING.free_tool_id, number)
        return number
    return None


def listen(number: int, listener: "Any", ends: bool = False) -> None:
    """Have the events of a tool call the methods that `listener` has for them, such as `_on_py_start`.

    Args:
        number: the tool's
        listener: whose methods are called
        ends: whether they are called no more
    """
    for name, event in vars(MONITORING.events).items():
        callback = getattr(listener, "_on_" + name.lower(), None)
        if callback is not None:
            MONITORING.register_callback(number, event, None if ends else callback)


def _kept(free: "Callable[[int], None]", ours: int) -> "Callable[[int], None]":
    """What a program frees numbers for tools with, as some do with all of them: ours is not freed."""

    @functools.wraps(free)
    def free_tool_id(tool_id: int) -> None:
        if tool_id != ours:
            free(tool_id)

    return free_tool_id
