"""Elements of sets, in an order that is the same in each run where Python has one."""

import contextlib
import itertools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import AbstractSet, Any, List

MOST_SORTED = 1000
"""Elements of a set that are put in order; of a larger one the first are shown."""

_IN_ORDER = frozenset((bool, bytes, float, int, str))
"""Types whose order is Python's own: what others compare by is the program's code."""


def first_of(elements: "AbstractSet[Any]", most: int) -> "List[Any]":
    """The first elements of a set, without asking any of them."""
    if len(elements) <= MOST_SORTED and _IN_ORDER.issuperset(map(type, elements)):
        with contextlib.suppress(TypeError):  # they are of several types
            return sorted(elements)[:most]
    return list(itertools.islice(elements, most))
