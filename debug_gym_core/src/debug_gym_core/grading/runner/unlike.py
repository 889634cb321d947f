"""Values that are not equal to a given one, near it and far from it."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SCALARS = frozenset((int, float, complex, bool, str, bytes, type(None)))
"""Types whose comparison with each other is Python's own."""

PLAIN = SCALARS | frozenset((list, tuple, dict, set, frozenset))
"""Types that are equal only to what they are."""

FAR = 987654321
FEW = 6
"""Elements of a container for each of which another is asked for; of a long one two that nobody can know."""
LONG = 1000

OTHERS = {
    ("decimal", "Decimal"): lambda one: type(one)(-FAR if one != -FAR else 0),
    ("fractions", "Fraction"): lambda one: type(one)(-FAR if one != -FAR else 0),
    ("datetime", "date"): lambda one: one.replace(1 + (one.year + 4321) % 9998, 1, 1),
    ("datetime", "datetime"): lambda one: one.replace(1 + (one.year + 4321) % 9998, 1, 1),
    ("datetime", "timedelta"): lambda one: -one - type(one)(4321),
    ("uuid", "UUID"): lambda one: type(one)(int=one.int ^ FAR),
}  # type: dict[tuple[str, str], Callable[[Any], Any]]
for _kind in ("PurePosixPath", "PureWindowsPath", "PosixPath", "WindowsPath"):
    OTHERS[("pathlib", _kind)] = OTHERS[("pathlib._local", _kind)] = lambda one: type(one)(one, "~other")
"""Of types of the library's another value than one, by their modules and names."""

_urandom = os.urandom
_home_of = type.__dict__["__module__"].__get__
mro_of = type.__dict__["__mro__"].__get__
"""The classes that one is made of, as it itself has them: not by way of its own class, which may say otherwise."""


class Nobody(Exception):
    """What nobody raises, and what equals nothing; nothing of it is empty, as of others that are equal by that."""

    def __init__(self) -> None:
        Exception.__init__(self, "~nobody")
        self.nobody = "~nobody"


def home_of(kind: type) -> str:
    """The name of a class's module, as the class itself has it; empty where that is no text."""
    home = _home_of(kind)
    return home if type(home) is str else ""


def is_data(value: "Any", depth: int = 5) -> bool:
    """Whether a value is of plain types through and through: its comparison with another is Python's own.

    Args:
        value: it
        depth: of containers in containers
    """
    kind = type(value)
    if kind in SCALARS:
        return True
    if kind not in PLAIN or depth == 0:
        return False
    kinds = set(map(type, value))
    if kind is dict:
        kinds.update(map(type, value.values()))
    if kinds <= SCALARS:
        return True
    inner = [*value, *value.values()] if kind is dict else value
    return kinds <= PLAIN and all(is_data(one, depth - 1) for one in inner)


def unlike(value: "Any") -> "list[Any]":
    """Values, one at least, that are not equal to one of a plain type, near ones first; honest types tell them apart.

    In a container one element is another, wherever that is.
    """
    kind = type(value)
    if kind is int:
        return [value + 1, value - 1, *far_from(value)]
    if kind is float or kind is complex:
        step = max(1.0, abs(value))
        return [one for one in (value + step, value - step) if one != value and one == one] + far_from(value)
    if kind is str:
        return [*([value[:-1] + ("b" if value[-1] == "a" else "a")] if value else []), *far_from(value)]
    if kind is bytes:
        return [*([value[:-1] + (b"b" if value[-1:] == b"a" else b"a")] if value else []), *far_from(value)]
    return _containers(value, unlike) or far_from(value)


def far_from(value: "Any") -> "list[Any]":
    """The same, nowhere near it, which also tells who compares nearly; of a container elements are."""
    kind = type(value)
    if kind is bool:
        return [not value]
    if kind is int or kind is complex:
        return [-3 * value - FAR]
    if kind is float:
        return [-3 * value - FAR - 0.5 if abs(value) < 1e300 else 0.5]
    if kind is str:
        return [value + "~other"]
    if kind is bytes:
        return [value + b"~other"]
    if kind is set or kind is frozenset:
        return [value | {"~other"}]
    return _containers(value, far_from) or [Nobody()]


def nowhere(value: "Any") -> "Any":
    """A value of the same scalar type that is in no container: of a text, one that nobody can know."""
    other = "~" + _urandom(6).hex()
    return other if type(value) is str else other.encode() if type(value) is bytes else far_from(value)[0]


def inexact(value: "Any") -> "list[Any]":
    """Another number than one that numpy has rounded: nowhere near, and with room in each of its types."""
    return [0 if 40 < value < 160 else 100] if type(value) in (int, float) else far_from(value)


def _containers(value: "Any", others: "Callable[[Any], list[Any]]") -> "list[Any]":
    """A list, tuple or dict in which one element is another, in a few places one by one, or one is too many."""
    kind = type(value)
    if kind not in (list, tuple, dict):
        return []
    keys = list(value) if kind is dict else range(len(value))
    made = []  # type: list[Any]
    for place in _places(len(value)):
        changed = dict(value) if kind is dict else list(value)
        changed[keys[place]] = _another(changed[keys[place]], others)
        made.append(changed)
    if kind is dict:
        return [*made, dict(value, **{"~other": Nobody()}) if "~other" not in value else {}]
    made.append([*value, Nobody()])
    return [tuple(one) for one in made] if kind is tuple else made


def _places(length: int) -> "list[int]":
    return list(range(length)) if length <= FEW else [below(length) for _ in range(2 if length > LONG else FEW)]


def below(number: int) -> int:
    """A number from 0 up to another, without it, that nobody can know."""
    return int.from_bytes(_urandom(4), "big") % number


def _another(element: "Any", others: "Callable[[Any], list[Any]]") -> "Any":
    """Another element; of a plain type only where it is nothing else, as a mock's call is a tuple."""
    return others(element)[0] if type(element) in PLAIN else Nobody()
