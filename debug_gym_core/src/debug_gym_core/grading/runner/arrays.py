"""The opposites of comparisons by numpy and pandas, element by element."""

from .asked import Opposites, insist
from .unlike import Nobody, far_from, is_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .asked import Opposite

COMPARING = frozenset(("numpy", "pandas"))
"""Packages whose assertion functions compare their first two arguments."""

NUMERIC = frozenset((
    "assert_allclose", "assert_almost_equal", "assert_array_almost_equal", "assert_array_equal", "assert_equal",
))  # fmt: skip
"""Those of numpy by which numbers are equal, or nearly so."""

TABULAR = frozenset(("assert_frame_equal", "assert_series_equal", "assert_index_equal"))
"""Those of pandas by which tables, columns and labels are equal, or nearly so."""

LARGEST = 100000
"""Elements of an array that are looked at one by one."""


def array_opposites(left: "Any", right: "Any", free: str) -> Opposites:
    """What cannot be where two arrays are compared element by element, whatever is asked of the result.

    Args:
        left: one of them
        right: the other
        free: which of them, `l` or `r`, may equal anything
    """
    if {"l", "r"} & set(free):
        return Opposites()
    return Opposites([_is_any(left, one) for one in far(right)] + [_is_any(one, right) for one in far(left)])


def is_by_elements(*values: "Any") -> bool:
    """Whether one of some values is numpy's or pandas', which compare by elements."""
    bases = [base for one in values for base in type.__dict__["__mro__"].__get__(type(one))]
    return any(str(base.__module__).partition(".")[0] in COMPARING for base in bases)


def _is_any(left: "Any", right: "Any") -> "Opposite":
    def ask() -> None:
        found = left == right
        while getattr(found, "ndim", 0):  # of a table it is a column
            found = found.any()
        insist(found)

    return ask


def listed(value: "Any") -> "Any":
    """What is in an array or a table, as a list of Python's own; anything else as it is."""
    kind = type(value)
    home = kind.__module__.partition(".")[0]
    if home not in COMPARING or not 0 < getattr(value, "size", 0) <= LARGEST:
        return value
    if kind.__name__ == "DataFrame":
        return [value.iloc[:, column].tolist() for column in range(value.shape[1])]
    return value.tolist() if kind.__name__ in ("ndarray", "Series", "Index") else value


def nothings(value: "Any") -> "list[Any]":
    """What nothing equals that functions of numpy compare with; an array without elements equals each single value."""
    kind = type(value)
    empty = kind in (list, tuple) and not value
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        empty = value.size == 0
    return [[Nobody()]] if empty else [Nobody()]


def far(value: "Any", whole: bool = True) -> "list[Any]":
    """The same numbers, texts or flags, or an array of them, of which each is another one, and nowhere near.

    Args:
        value: number, list, array, table, column or labels
        whole: of a table each column has to be another one, not just one

    Returns:
        one such, or none where nothing is known of what is in it
    """
    kind = type(value)
    if kind in (int, float):
        return far_from(value)
    if kind in (list, tuple):
        return [kind(_elements(value))] if value and is_data(value) else []
    if kind.__module__.partition(".")[0] == "pandas":
        return _tables(value, whole)
    if kind.__module__ != "numpy" or kind.__name__ != "ndarray" or not value.size:
        return []
    code, size = value.dtype.kind, value.dtype.itemsize
    if code == "b":
        return [~value]
    if code in "iufc":
        most = -987654321 if size >= 4 and code != "u" else (120 if size == 1 else 30000)
        made = value.copy()
        made.fill(most)
        made[abs(value.astype(complex) - most) < 60] = 0  # of few bytes numbers begin anew
        return [made]
    if code in "US":
        return [value.astype(object) + ("~other" if code == "U" else b"~other")]
    if code == "O" and value.size <= LARGEST and is_data(value.tolist()):
        made = value.copy()
        made.fill(Nobody())
        return [made]
    return []


def _elements(values: "Any") -> "list[Any]":
    """Those of a list or tuple, each another one."""
    return [type(one)(_elements(one)) if type(one) in (list, tuple) else far_from(one)[0] for one in values]


def _tables(value: "Any", whole: bool) -> "list[Any]":
    """The same table, column or labels of pandas with other values; none where there is no other of that kind."""
    if not value.size:
        return []
    if value.ndim == 1:
        return _column(value)
    made, changed = value.copy(), 0
    for number in range(value.shape[1]):
        for column in _column(value.iloc[:, number]):
            made.isetitem(number, column)
            changed += 1
    return [made] if changed == value.shape[1] or (changed and not whole) else []


def _column(value: "Any") -> "list[Any]":
    for other in (_far_apart, _otherwise):
        try:
            made = other(value)
            if not made.equals(value):  # as it is where there are no values in it
                return [made]
        except Exception:  # it holds none of these
            continue
    return []


def _far_apart(numbers: "Any") -> "Any":
    return numbers * 3 + 987654321


def _otherwise(texts: "Any") -> "Any":
    return texts + "\0other"
