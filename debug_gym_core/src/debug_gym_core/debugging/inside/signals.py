"""Exceptions that come from a handler of a signal: they are meant for wherever the program was."""

import signal
import types

from debug_gym_core.debugging.inside.process import OURS, _getsignal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

_NUMBERS = range(1, signal.NSIG)
_default_int_handler = signal.default_int_handler


def is_of_a_handler(error: "Optional[BaseException]") -> bool:
    """Whether an exception was raised in a handler of a signal of the program's, which may have run within ours."""
    codes = set()
    for number in _NUMBERS:
        handler: "Any" = _getsignal(number)
        function = handler.__func__ if type(handler) is types.MethodType else handler
        if type(function) is types.FunctionType and function.__code__.co_filename != OURS:
            codes.add(function.__code__)
    if type(error) is KeyboardInterrupt and _getsignal(signal.SIGINT) is _default_int_handler:
        return True  # its handler is none in Python
    step = error.__traceback__ if error is not None else None
    while step is not None and step.tb_frame.f_code not in codes:
        step = step.tb_next
    return step is not None
