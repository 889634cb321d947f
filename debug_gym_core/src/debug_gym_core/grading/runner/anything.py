"""What equals anything because the tests have made it so, as `mock.ANY` does; anything else of that kind lies."""

from .unlike import PLAIN, is_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_FUNCTION = type(lambda: None)


class Anything(object):
    """Tells it from others.

    Attributes:
        types: of `mock.ANY` and its like, as they were before any tested code ran
        own: numbers of code that the tests have for comparing
    """

    __slots__ = ("own", "types")

    def __init__(self) -> None:
        from unittest import mock

        self.types = frozenset((type(mock.ANY), type(mock.call)))
        self.own = frozenset()  # type: frozenset[int]

    def is_made(self, value: object, free: bool) -> bool:
        """Whether the test itself has made a value that may equal any other.

        Args:
            value: it
            free: whether the test says so where the value stands
        """
        kind = type(value)
        if kind in self.types:
            return free
        # Not by way of the class of its class, which may say otherwise.
        spaces = map(type.__dict__["__dict__"].__get__, type.__dict__["__mro__"].__get__(kind))
        equal = next(space["__eq__"] for space in spaces if "__eq__" in space)
        return type(equal) is _FUNCTION and id(equal.__code__) in self.own

    def changing(self, left: "Any", right: "Any", free: str) -> str:
        """Which sides of a comparison, `l` and `r`, are not equal to the other when something in them is changed.

        Not the one of which the other has something in that place that equals anything.

        Args:
            left: one of them
            right: the other
            free: what the test says of them; see `Bindings.free`
        """
        first = "E" in free
        return "l" * (first or not self.is_in(right)) + "r" * (not first or not self.is_in(left))

    def is_in(self, value: "Any", depth: int = 5) -> bool:
        """Whether something in a container may equal anything, whoever has made it.

        Args:
            value: the container
            depth: of containers in containers
        """
        kind = type(value)
        if kind not in PLAIN:
            return self.is_made(value, True)
        if is_data(value, depth) or depth == 0:
            return False
        return any(self.is_in(one, depth - 1) for one in ([*value, *value.values()] if kind is dict else value))
