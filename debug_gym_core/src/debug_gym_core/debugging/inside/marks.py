"""Whether a value is what it was: a number for all of it, of which only a part is shown."""

import collections
import contextlib
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Dict, List, Optional, Set, Tuple

MOST_SIMPLE = 20000
MOST_VISITED = 500
MOST_TEXT = 1 << 20
MOST_BYTES = 1 << 20
"""Bytes of arrays that are looked at."""

DEEPEST = 4
_SIMPLE = frozenset([int, float, complex, bool, type(None), str, bytes])
_NUMBERS = frozenset([int, float, complex])
_DICTS = (dict, collections.OrderedDict)
_SEQUENCES = (list, tuple)
_OTHERS = (set, frozenset, collections.deque)
_CONTAINERS = {id(kind): kind for kind in (*_DICTS, *_SEQUENCES, *_OTHERS, bytearray)}
_ARRAYS = (("array", "array"), ("numpy", "ndarray"))
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


def parts_of(value: "Any") -> "Dict[str, Any]":
    """The variables of an object, or the fields of a named tuple; see `fields_of`."""
    kind = type(value)
    if container_of(kind) is not tuple:
        return fields_of(value)
    for one in _ORDER.__get__(kind):
        names = _ATTRIBUTES.__get__(one).get("_fields")
        if type(names) is tuple and all(type(name) is str for name in names):
            return {name: value for name, value in zip(names, tuple.__iter__(value))}  # noqa: B905
    return fields_of(value)


def has_plain_repr(kind: type) -> bool:
    """Whether objects of a type have no repr of their own, without asking its metaclass, which is the program's."""
    own = (
        attributes["__repr__"]
        for attributes in map(_ATTRIBUTES.__get__, _ORDER.__get__(kind))
        if "__repr__" in attributes
    )
    return next(own, None) is object.__repr__


def container_of(kind: type) -> "Any":
    """The container of Python's, or the array of numpy's, that a type is or derives from; None: it is none."""
    if id(kind) in _CONTAINERS:
        return kind
    modules = [(sys.modules.get(module), name) for module, name in _ARRAYS]
    arrays = [id(one.__dict__.get(name)) for one, name in modules if type(one) is types.ModuleType]
    for one in _ORDER.__get__(kind):
        if id(one) in _CONTAINERS or id(one) in arrays:
            return one
    return None


def items_of(value: "Any", most_bytes: int = MOST_BYTES) -> "List[List[Any]]":
    """What is in a container: keys and values, elements, or a number for the bytes of an array.

    No code of the program's is run, also where its class derives from a builtin one. Of what is very long there is
    only a part, or nothing.
    """
    base = container_of(type(value))
    if base is None:
        return []
    if base in _DICTS:
        few = base.__len__(value) <= MOST_SIMPLE
        return [list(base.keys(value)), list(base.values(value))] if few else [[base.__len__(value)]]
    if base in _SEQUENCES:
        size = base.__len__(value)
        if size <= MOST_SIMPLE:
            return [list(base.__iter__(value))]
        ends = slice(None, MOST_SIMPLE // 2), slice(-MOST_SIMPLE // 2, None)
        return [[size], *(list(base.__getitem__(value, one)) for one in ends)]
    if base in _OTHERS:
        size = base.__len__(value)
        return [list(base.__iter__(value))] if size <= MOST_SIMPLE else [[size]]
    return [[_bytes_in(value, base, most_bytes)]]


def _bytes_in(value: "Any", base: "Any", most: int) -> int:
    """A number for the bytes of an array; how many there are, when they are too many, or the program has no memory."""
    size = _size_of(value, base)
    if size <= most:
        with contextlib.suppress(MemoryError):
            # Of a copy: while its own memory is lent, another thread could not change its size.
            return hash(bytes(base.__getitem__(value, slice(None))) if base is bytearray else base.tobytes(value))
    return size


def _size_of(value: "Any", base: "Any") -> int:
    """How many bytes are in an array; 0: it is another container."""
    if base is bytearray:
        return int(base.__len__(value))
    if base is None or id(base) in _CONTAINERS:
        return 0
    attributes = _ATTRIBUTES.__get__(base)
    if "nbytes" in attributes:
        return int(attributes["nbytes"].__get__(value))
    return int(base.__len__(value) * attributes["itemsize"].__get__(value))


def mark(value: "Any", levels: int = DEEPEST, most_bytes: int = MOST_BYTES) -> int:
    """A number that another value has too only by chance, as far as it is looked into.

    Nothing of the program's is run or kept: numbers and texts count as they are, containers and the variables of
    objects with what is in them, anything else only as that very object.

    Args:
        value: which
        levels: how deep it is looked into
        most_bytes: of the arrays that are looked into
    """
    marking = _Marking(most_bytes)
    return marking.whole(marking.of(value, levels))


def mark_within(value: "Any", variables: bool, levels: int = DEEPEST, most_bytes: int = MOST_BYTES) -> int:
    """The same of what is in a container, whichever it is, and of an object's variables, where `variables` asks."""
    marking = _Marking(most_bytes)
    return marking.whole(marking.within(value, fields_of(value) if variables else {}, levels))


class _Marking:
    """Marks one value: its containers at once, the objects in them later, each once, the nearest first."""

    def __init__(self, most_bytes: int) -> None:
        self._left = MOST_VISITED
        self._most_bytes = most_bytes
        self._seen: "Set[int]" = set()
        self._waiting: "Deque[Tuple[Dict[str, Any], int]]" = collections.deque()

    def whole(self, marked: int) -> int:
        """The mark with those of the objects that were come to."""
        found = [marked]
        while self._waiting and self._left >= 0:
            fields, levels = self._waiting.popleft()
            found.append(self._variables(fields, levels))
        return hash(tuple(found))

    def within(self, value: "Any", fields: "Dict[str, Any]", levels: int) -> int:
        inside = tuple(self._all(one, levels) for one in items_of(value, self._most_bytes))
        size = _size_of(value, container_of(type(value)))
        self._most_bytes -= size if size <= self._most_bytes else 0
        return hash((inside, self._variables(fields, levels)))

    def _variables(self, fields: "Dict[str, Any]", levels: int) -> int:
        return hash((self._all(list(fields.values()), levels), self._all(list(fields), levels)))

    def of(self, value: "Any", levels: int) -> int:
        self._left -= 1
        kind = type(value)
        if (kind is str or kind is bytes) and len(value) > MOST_TEXT:
            return hash((kind, id(value), len(value)))
        if kind in _SIMPLE:
            return hash((kind, value, kind in _NUMBERS and value == -2))  # which has the hash of -1
        if self._left < 0 or not levels or issubclass(kind, types.ModuleType):
            return hash((id(kind), id(value)))
        base = container_of(kind)
        fields = fields_of(value) if base is not kind else {}
        inside = self.within(value, {}, levels) if base is not None else 0
        if base is not None and not fields:
            return hash((id(kind), inside))
        if fields and id(value) not in self._seen:
            self._seen.add(id(value))
            self._waiting.append((fields, levels))
        return hash((id(kind), id(value), inside))

    def _all(self, values: "List[Any]", levels: int) -> int:
        kinds = list(map(type, values))
        if _SIMPLE.issuperset(kinds):
            self._left -= len(values) // 100
            numbers = values if bytes not in kinds else [one for one in values if type(one) is not bytes]
            return hash((tuple(values), tuple(kinds), numbers.count(-2)))  # `-bb` has bytes equal to no number
        found = [len(values)]
        for one in values:
            if self._left < 0:
                break
            found.append(self.of(one, levels - 1))
        return hash(tuple(found))
