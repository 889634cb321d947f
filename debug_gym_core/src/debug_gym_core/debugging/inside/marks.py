"""Whether a value is what it was: a number for all of it, of which only a part is shown."""

import contextlib
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

MOST_SIMPLE = 20000
MOST_VISITED = 500
MOST_TEXT = 1 << 20
DEEPEST = 4
_SIMPLE = frozenset([int, float, complex, bool, type(None), str, bytes])
_NUMBERS = frozenset([int, float, complex])
_SEQUENCES = frozenset([list, tuple])
_SETS = frozenset([set, frozenset])
_ORDER = type.__dict__["__mro__"]
_ATTRIBUTES = type.__dict__["__dict__"]


def fields_of(value: "Any") -> "Dict[str, Any]":
    """The variables of an object, in slots too, without running code of the program's; empty: it has none."""
    found: "Optional[Dict[str, Any]]" = None
    slots: "Dict[str, Any]" = {}
    for kind in _ORDER.__get__(type(value)):
        attributes = _ATTRIBUTES.__get__(kind)
        own = attributes.get("__dict__")
        if own is not None and found is None:
            if type(own) is not types.GetSetDescriptorType:
                return {}
            kept = own.__get__(value)
            found = kept if type(kept) is dict else {}
        if "__slots__" in attributes:
            for name, slot in list(attributes.items()):
                if type(slot) is types.MemberDescriptorType:
                    with contextlib.suppress(AttributeError):  # it has no value yet
                        slots.setdefault(name, slot.__get__(value))
    return dict(slots, **found) if slots and found else found or slots


def mark(value: "Any") -> int:
    """A number that another value has too only by chance, as far as it is looked into.

    Nothing of the program's is run or kept: numbers and texts count as they are, containers and the variables of
    objects with what is in them, anything else only as that very object.
    """
    return _Marking().of(value, DEEPEST)


class _Marking:
    """Marks one value."""

    def __init__(self) -> None:
        self._left = MOST_VISITED

    def of(self, value: "Any", levels: int) -> int:
        self._left -= 1
        kind = type(value)
        if (kind is str or kind is bytes) and len(value) > MOST_TEXT:
            return hash((kind, id(value), len(value)))
        if kind in _SIMPLE:
            return hash((kind, value, kind in _NUMBERS and value == -2))  # which has the hash of -1
        if self._left < 0 or not levels:
            return hash((id(kind), id(value)))
        if kind is bytearray:
            return hash((kind, len(value), bytes(value[:MOST_SIMPLE]), bytes(value[-MOST_SIMPLE:])))
        if kind in _SEQUENCES:
            return hash((kind, len(value), self._all(_ends(value), levels)))
        if kind in _SETS:
            return hash((kind, len(value), self._all(list(value) if len(value) <= MOST_SIMPLE else [], levels)))
        if kind is dict:
            items = value if len(value) <= MOST_SIMPLE else {}
            return hash((kind, len(value), self._all(list(items), levels), self._all(list(items.values()), levels)))
        found = fields_of(value)
        return hash((id(kind), id(value), self._all(list(found.values()), levels), self._all(list(found), levels)))

    def _all(self, values: "Any", levels: int) -> int:
        kinds = list(map(type, values))
        if _SIMPLE.issuperset(kinds):
            self._left -= len(values) // 100
            numbers = values if bytes not in kinds else [one for one in values if type(one) is not bytes]
            return hash((tuple(values), tuple(kinds), numbers.count(-2)))  # `-bb` has bytes equal to no number
        found = []
        for one in values:
            if self._left < 0:
                break
            found.append(self.of(one, levels - 1))
        return hash(tuple(found))


def _ends(values: "Any") -> "Any":
    """A sequence, without the middle of a very long one."""
    return values if len(values) <= MOST_SIMPLE else values[: MOST_SIMPLE // 2] + values[-MOST_SIMPLE // 2 :]
