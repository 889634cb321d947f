"""Stops at each failing test of unittest, whoever runs it."""

import bdb
import functools

from debug_gym_core.debugging.inside.process import _getframe

from .stop import Stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .stop import Stops


def watch_unittest(debugger: "Stops") -> None:
    """Stop at each failing test of unittest."""
    import unittest

    def watched(method: "Any") -> "Any":
        @functools.wraps(method)
        def add(self: "Any", test: "Any", *args: "Any") -> "Any":
            result = method(self, test, *args)
            problem = args[-1]
            if problem is not None and problem[1] is not None:
                stop = Stop("test failed", test=(args[0] if len(args) > 1 else test).id())
                debugger.post_mortem(problem[1], stop, _getframe(1))
                if debugger.quitting:
                    raise bdb.BdbQuit
            return result

        return add

    for name in ("addError", "addFailure", "addSubTest"):
        setattr(unittest.TestResult, name, watched(getattr(unittest.TestResult, name)))
