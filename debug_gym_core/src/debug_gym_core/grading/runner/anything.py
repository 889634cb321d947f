"""What equals anything because the tests have made it so, as `mock.ANY` does; anything else of that kind lies."""

from collections import deque

from .unlike import SCALARS, mro_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTAINERS = (list, tuple, deque, dict, set, frozenset)
"""Classes of what holds others."""

DEPTH = 10
"""Of containers in containers."""

_FUNCTION = type(lambda: None)
_space_of = type.__dict__["__dict__"].__get__


class Anything(object):
    """Tells it from others.

    Attributes:
        types: of `mock.ANY` and its like, as they were before any tested code ran
        call: of what a mock tells of a call
        own: numbers of code that the tests have for comparing
    """

    __slots__ = ("call", "own", "types")

    def __init__(self) -> None:
        from unittest import mock

        self.call = type(mock.call)
        self.types = frozenset((type(mock.ANY), self.call))
        self.own = frozenset()  # type: frozenset[int]

    def is_made(self, value: object, free: bool) -> bool:
        """Whether the test itself has made a value that may equal any other.

        Args:
            value: it
            free: whether the test says so where the value stands
        """
        return self._is_kind(type(value), free)

    def _is_kind(self, kind: type, free: bool) -> bool:
        if kind in self.types:
            return free
        equal = equal_of(kind)
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
        is_left, is_right = first or not self.is_in(right, free), not first or not self.is_in(left, free)
        return "l" * is_left + "r" * is_right

    def is_in(self, value: "Any", free: str) -> bool:
        """Whether something in a container may equal anything, whoever has made it.

        Args:
            value: the container
            free: see `Bindings.free`
        """
        level, known = [value], set()  # type: list[Any], set[int]
        for _ in range(DEPTH):
            holding = {}  # type: dict[type, Any]
            for kind in set(map(type, level)):
                bases = mro_of(kind)
                holding[kind] = next((one for one in CONTAINERS if one in bases and self.call not in bases), None)
                if holding[kind] is None and self._is_kind(kind, "A" in free or self.call in bases):
                    return True
            known.update(map(id, level))
            inside = []  # type: list[Any]
            for one in level:
                base = holding[type(one)]
                if base is not None:
                    inside += base.__iter__(one)
                    inside += dict.values(one) if base is dict else ()
            level = list({id(one): one for one in inside if type(one) not in SCALARS and id(one) not in known}.values())
            if not level:
                return False
        return True


def equal_of(kind: type) -> "Any":
    """What a class has for `==`; not by way of its own class, which may say otherwise."""
    return next(space["__eq__"] for space in map(_space_of, mro_of(kind)) if "__eq__" in space)
