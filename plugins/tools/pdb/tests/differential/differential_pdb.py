"""The standard library's pdb, run as `python -m pdb main.py` runs it, with commands from a list.

Python 3.6, standard library only. `Oracle` is that pdb; what it is told to do as ours does (`like_ours`) are the
differences of `differential_differences`, each as small a change as can be.
"""

import os
import pdb
import sys
import traceback

from differential_answers import (
    Assignments,
    BlankLines,
    ContinuationLines,
    FrozenCode,
    Hits,
    Jumps,
    NestedConditions,
    NestedExpressions,
    NoCommands,
    OwnNames,
    PostMortem,
    StaticFunctions,
)
from differential_oracle import Oracle
from differential_stops import (
    ComesBack,
    FirstLines,
    Generators,
    InsideLines,
    LateCommands,
    OtherCoroutines,
    Runner,
    StaleLine,
    UntracedCallers,
)

LIKE_OURS = {
    "late commands": LateCommands,
    "runner": Runner,
    "stale line": StaleLine,
    "untraced callers": UntracedCallers,
    "comes back": ComesBack,
    "nested conditions": NestedConditions,
    "nested expressions": NestedExpressions,
    "hits": Hits,
    "first lines": FirstLines,
    "post-mortem": PostMortem,
    "jumps": Jumps,
    "no commands": NoCommands,
    "continuation lines": ContinuationLines,
    "blank lines": BlankLines,
    "static functions": StaticFunctions,
    "assignments": Assignments,
    "other coroutines": OtherCoroutines,
    "generators": Generators,
    "inside lines": InsideLines,
    "own names": OwnNames,
    "frozen code": FrozenCode,
}
"""What ours does otherwise, by the names of `differential_differences`."""


def run(root, request, send):
    """Run `main.py` as `pdb.main` does, once; returns its exit status."""
    path = os.path.join(root, "main.py")
    sys.argv[:] = [path]
    sys.path.insert(0, root)
    kinds = [LIKE_OURS[name] for name in request["like_ours"]]
    oracle = type("LikeOurs", (*kinds, Oracle), {"about": request["about"]})(request["commands"], send)
    end = {"t": "exit", "status": 0}
    try:
        if hasattr(oracle, "_runscript"):
            oracle._runscript(path)
        else:
            oracle._run(pdb._ScriptTarget(path))
    except SystemExit as error:
        end["status"] = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException as error:
        traceback.print_exc()
        end["status"] = 1
        oracle.over = True
        end["exception"] = {"type": type(error).__name__, "message": str(error)}
        oracle.interaction(None, error if sys.version_info >= (3, 13) else error.__traceback__)
    end["out"] = oracle.take()
    send(end)
    return end["status"]
