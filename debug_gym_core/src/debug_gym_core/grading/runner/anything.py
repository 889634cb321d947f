"""What equals anything because the tests have made it so, as `mock.ANY` does; anything else of that kind lies."""

import os
from collections import Counter, OrderedDict, deque

from .unlike import LONG, is_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Pair = tuple[Any, Any]

DEPTH = 10
"""Of containers in containers."""

SEQUENCES = (list, tuple, deque)

EQUAL = frozenset(vars(one)["__eq__"] for one in (*SEQUENCES, dict, OrderedDict, Counter) if "__eq__" in vars(one))
"""How containers are equal: by what is in them."""

_FUNCTION = type(lambda: None)
_urandom = os.urandom


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
        if type(value) in self.types:
            return free
        equal = _equal_of(value)
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

    def is_in(self, value: "Any", free: str, depth: int = 5) -> bool:
        """Whether something in a container may equal anything, whoever has made it.

        Args:
            value: the container
            free: see `Bindings.free`
            depth: of containers in containers
        """
        kinds = type.__dict__["__mro__"].__get__(type(value))
        kind = next((one for one in (*SEQUENCES, dict, set, frozenset) if one in kinds), None)
        if kind is None or self.call in kinds:
            return self.is_made(value, "A" in free or self.call in kinds)
        if is_data(value, depth) or depth == 0:
            return depth == 0
        inside = [*kind.__iter__(value), *(dict.values(value) if kind is dict else ())]
        return any(self.is_in(one, free, depth - 1) for one in inside)

    def pairs(self, left: "Any", right: "Any", free: str) -> "list[Pair]":
        """What is compared with each other in two containers, however deep, but for plain data.

        Args:
            left: one of them
            right: the other
            free: see `Bindings.free`

        Returns:
            the pairs; some of them, which nobody can know, where they are many
        """
        found = []  # type: list[Pair]
        self._collect(left, right, free, found, DEPTH)
        if len(found) <= LONG:
            return found
        return [found[int.from_bytes(_urandom(4), "big") % len(found)] for _ in range(LONG)]

    def _collect(self, left: "Any", right: "Any", free: str, found: "list[Pair]", depth: int) -> None:
        for one, other in self._parts(left, right):
            if is_data(one) and is_data(other):
                continue
            if depth and self._parts(one, other):
                self._collect(one, other, free, found, depth - 1)
                continue
            first = "E" in free
            if not self.is_made(one, first and "A" in free) and not self.is_made(other, not first and "A" in free):
                found.append((one, other))

    def _parts(self, left: "Any", right: "Any") -> "list[Pair]":
        """What is in the same places of two containers, of which each is equal by that."""
        if type(left) is self.call and type(right) is self.call:  # of (name, arguments, named) a call has the last
            left, right = (list(tuple.__iter__(one))[-2:] for one in (left, right))
        if _equal_of(left) not in EQUAL or _equal_of(right) not in EQUAL:
            return []
        spaces = [type.__dict__["__mro__"].__get__(type(one)) for one in (left, right)]
        for kind in SEQUENCES:
            if all(kind in one for one in spaces):
                ones, others = (list(kind.__iter__(one)) for one in (left, right))
                return list(zip(ones, others)) if len(ones) == len(others) else []  # noqa: B905 - Python 3.6
        if all(dict in one for one in spaces):
            keys = [one for one in dict.__iter__(left) if dict.__contains__(right, one)]
            return [(dict.__getitem__(left, one), dict.__getitem__(right, one)) for one in keys]
        return []


def _equal_of(value: object) -> "Any":
    """What a value's class has for `==`; not by way of the class of its class, which may say otherwise."""
    spaces = map(type.__dict__["__dict__"].__get__, type.__dict__["__mro__"].__get__(type(value)))
    return next(space["__eq__"] for space in spaces if "__eq__" in space)
