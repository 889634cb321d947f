"""What is in an exception group, of Python's own kind (from 3.11 on) or of the package `exceptiongroup`."""

import sys

from debug_gym_core.debugging.inside.limits import TimeLimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

_GROUP: "Any" = getattr(sys.modules["builtins"], "BaseExceptionGroup", None)


def members(error: "BaseException", limit: "TimeLimit") -> "Sequence[BaseException]":
    """The exceptions of which a group consists; none of another exception, or where the program's own code fails.

    Args:
        error: the group, or any other exception
        limit: the time in which code of the program's is to be done
    """
    if _GROUP is not None:  # whatever the class makes of it
        return _GROUP.exceptions.__get__(error) or () if issubclass(type(error), _GROUP) else ()
    if limit.expired or "exceptiongroup" not in sys.modules:
        return ()
    try:
        found = limit.call(_exceptions_of, error)
    except BaseException:
        return ()
    return [one for one in found if issubclass(type(one), BaseException)] if type(found) is tuple else ()


def _exceptions_of(error: "Any") -> "Any":
    """What a group of the package `exceptiongroup` says of itself; for a limit's `call`."""
    kind = sys.modules["exceptiongroup"].BaseExceptionGroup
    return error.exceptions if issubclass(type(error), kind) else ()
