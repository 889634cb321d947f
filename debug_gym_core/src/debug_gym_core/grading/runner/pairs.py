"""What is compared with each other where two containers are: the elements in the same places, however deep."""

from collections import Counter, OrderedDict, deque

from .anything import DEPTH, equal_of
from .unlike import LONG, below, is_data, mro_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    from .anything import Anything

    Pair = tuple[Any, Any]

SEQUENCES = (list, tuple, deque)

EQUAL = frozenset(vars(one)["__eq__"] for one in (*SEQUENCES, dict, OrderedDict, Counter) if "__eq__" in vars(one))
"""How containers are equal: by what is in them."""

SOME = 100
"""Pairs that are taken of more than `LONG`."""


class Pairs(object):
    """Of two containers, but for plain data, and for what the test has made to equal anything.

    Args:
        anything: tells that from others
        free: what the test says of them; see `Bindings.free`
    """

    __slots__ = ("anything", "known", "left", "right")

    def __init__(self, anything: "Anything", free: str) -> None:
        self.anything = anything
        self.left, self.right = "E" in free and "A" in free, "E" not in free and "A" in free
        self.known = {}  # type: dict[tuple[int, int], tuple[list[Pair], list[Pair]]]

    def of(self, left: "Any", right: "Any") -> "list[Pair]":
        """The pairs; some of them, which nobody can know, where they are many."""
        over, found = [(left, right)], []  # type: list[Pair], list[Pair]
        while over and len(self.known) <= LONG and len(found) <= LONG:
            one, other = over.pop()
            if (id(one), id(other)) not in self.known:  # Containers may hold themselves.
                inner, leaves = self.inside(one, other)
                over += inner
                found += leaves
        if not over and len(found) <= LONG:
            return found
        walks = [self.walk(left, right) for _ in range(SOME)]
        return [one for one in walks if one is not None]

    def walk(self, left: "Any", right: "Any") -> "Union[Pair, None]":
        """A pair in a place that nobody can know; None where the way there led to none."""
        for _ in range(DEPTH):
            inner, leaves = self.inside(left, right)
            if not inner and not leaves:
                return None
            place = below(len(inner) + len(leaves))
            if place < len(leaves):
                return leaves[place]
            left, right = inner[place - len(leaves)]
        return None

    def inside(self, left: "Any", right: "Any") -> "tuple[list[Pair], list[Pair]]":
        """The pairs of containers in two containers, and those of others; some, where there are many."""
        key = id(left), id(right)
        if key not in self.known:
            inner, leaves = [], []  # type: list[Pair], list[Pair]
            for pair in self.parts(left, right):
                if is_data(pair[0]) and is_data(pair[1]):
                    continue
                if self.kind_of(*pair) is not None:
                    inner.append(pair)
                elif not self.anything.is_made(pair[0], self.left) and not self.anything.is_made(pair[1], self.right):
                    leaves.append(pair)
            self.known[key] = inner, leaves
        return self.known[key]

    def kind_of(self, left: "Any", right: "Any") -> "Any":
        """The kind of container that both are, each equal by what is in it; None: they are none, or empty."""
        call = self.anything.call
        if type(left) is call and type(right) is call:
            return call
        if equal_of(type(left)) not in EQUAL or equal_of(type(right)) not in EQUAL:
            return None
        bases = [mro_of(type(one)) for one in (left, right)]
        kind = next((one for one in (*SEQUENCES, dict) if all(one in some for some in bases)), None)
        return kind if kind is not None and kind.__len__(left) and kind.__len__(right) else None

    def parts(self, left: "Any", right: "Any") -> "list[Pair]":
        """What is in the same places of two containers; of some places where they are many."""
        kind = self.kind_of(left, right)
        if kind is None:
            return []
        if kind is dict:
            keys = [one for one in _some(list(dict.__iter__(left))) if dict.__contains__(right, one)]
            return [(dict.__getitem__(left, one), dict.__getitem__(right, one)) for one in keys]
        base = tuple if kind is self.anything.call else kind
        ones, others = list(base.__iter__(left)), list(base.__iter__(right))
        if kind is self.anything.call:  # of (name, arguments, named) it has the last
            ones, others = ones[-2:], others[-2:]
        if len(ones) != len(others):
            return []
        return _some(list(zip(ones, others)))  # noqa: B905 - Python 3.6


def _some(values: "list[Any]") -> "list[Any]":
    """Values, or those in some places that nobody can know, where they are many."""
    return values if len(values) <= LONG else [values[below(len(values))] for _ in range(LONG)]
