"""What mocks have to assert something of their calls."""

from types import FunctionType

from .unlike import home_of, mro_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CALLED_WITH = frozenset((
    "assert_called_with", "assert_called_once_with", "assert_any_call",
    "assert_awaited_with", "assert_awaited_once_with", "assert_any_await",
))  # fmt: skip
"""Assertion methods of mocks: with one argument more they must fail."""

MOCKS = frozenset(("unittest.mock", "mock.mock", "mock"))
"""Modules of mocks."""

OF_MOCKS = CALLED_WITH | {
    "assert_called", "assert_called_once", "assert_not_called", "assert_has_calls",
    "assert_awaited", "assert_awaited_once", "assert_not_awaited", "assert_has_awaits",
}  # fmt: skip
"""What a mock has to assert something of its calls."""


def is_put(owner: "Any", name: str) -> bool:
    """Whether what a mock has by a name is not what its class has, unless that is another's than the library's.

    Args:
        owner: the mock, or a function that is one's as those that `create_autospec` makes; anything else is none
        name: of something that asserts what its calls were
    """
    if type(owner) is FunctionType:
        return hasattr(owner, "mock")
    kinds = mro_of(type(owner))
    kind = next((one for one in kinds if name in vars(one)), object)
    if not any(home_of(one) in MOCKS for one in kinds):
        return False
    return home_of(kind) in MOCKS or name in object.__getattribute__(owner, "__dict__")
