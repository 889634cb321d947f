"""The opposites of comparisons by numpy and pandas, element by element."""

import os

from .asked import Opposites, insist
from .unlike import FEW, Nobody, far_from, home_of, is_data, mro_of

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

ARRAYS = frozenset(("ndarray", "NDFrame", "Index"))
"""Classes of those packages that are compared element by element, with all that are made of them."""

LARGEST = 100000
"""Elements of an array that are looked at one by one."""

WIDEST = 100
"""Columns of a table of which another is made."""

_name_of = type.__dict__["__name__"].__get__
_urandom = os.urandom


def array_opposites(left: "Any", right: "Any", free: str) -> Opposites:
    """What cannot be where two arrays are compared element by element, whatever is asked of the result.

    Args:
        left: one of them
        right: the other
        free: which of them, `l` or `r`, may equal anything; see `Bindings.free`
    """
    if {"l", "r"} & set(free):
        return Opposites()
    others = [((left, right), (left, one)) for one in far(right)] + [((left, right), (one, right)) for one in far(left)]
    return Opposites([_is_both(*pairs) for pairs in others])


def is_by_elements(*values: "Any") -> bool:
    """Whether one of some values is an array or a table, which compare by elements."""
    return any(kind_of(one) for one in values)


def kind_of(value: "Any") -> str:
    """Which of `ARRAYS` a value's class is made of; empty: none."""
    for base in mro_of(type(value)):
        name = str(_name_of(base))
        if name in ARRAYS and home_of(base).partition(".")[0] in COMPARING:
            return name
    return ""


def is_scalar(value: "Any") -> bool:
    """Whether a value is one of numpy's numbers, texts or flags, or an array that is but one."""
    bases = mro_of(type(value))
    if any(_name_of(base) == "generic" and home_of(base) == "numpy" for base in bases):
        return True
    return kind_of(value) == "ndarray" and value.ndim == 0


def _is_both(pair: "tuple[Any, Any]", other: "tuple[Any, Any]") -> "Opposite":
    """That in one place two arrays are equal, and one of them is equal to what is nowhere what the other is."""

    def ask() -> None:
        # Who answers by turns would know which comes first, and after how many.
        chance = _urandom(1)[0]
        first, second = (pair, other) if chance & 1 else (other, pair)
        one = first[0] == first[1]
        for _ in range(1 + (chance >> 1 & 1)):
            two = second[0] == second[1]
        found = one & two if is_by_elements(one, two) else one and two  # of what the tested code makes of it
        while getattr(found, "ndim", 0):  # of a table it is a column
            found = found.any()
        insist(found)

    return ask


def insist_on(value: "Any", left: "Any", right: "Any") -> None:
    """Raise unless two arrays compare once more as they did."""
    found = left == right
    if hasattr(value, "equals"):
        insist(value.equals(found))
    elif hasattr(value, "tobytes"):
        insist(found.tobytes() == value.tobytes())


def listed(*values: "Any") -> "list[Any]":
    """What is in arrays and tables, as lists of Python's own; anything else as it is, and arrays of mere numbers."""
    objects = [one for one in values if not kind_of(one) or _dtypes(one) & set("OV")]
    return [_listed(one) for one in values] if objects else list(values)


def _listed(value: "Any") -> "Any":
    kind = kind_of(value)
    if not kind or not 0 < value.size <= LARGEST:
        return value
    if value.ndim > 1 and kind == "NDFrame":
        return [value.iloc[:, one].tolist() for one in range(value.shape[1])] if value.shape[1] <= WIDEST else []
    return value.tolist()


def _dtypes(value: "Any") -> "set[str]":
    """The kinds of what is in an array or a table."""
    several = value.dtypes if kind_of(value) == "NDFrame" and value.ndim > 1 else [value.dtype]
    return {one.kind for one in several}


def nothings(value: "Any") -> "list[Any]":
    """What nothing equals that functions of numpy compare with; an array without elements equals each single value."""
    empty = type(value) in (list, tuple) and not value
    if kind_of(value) == "ndarray":
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
    if kind_of(value) in ("NDFrame", "Index"):
        return _tables(value, whole)
    if _name_of(kind) != "ndarray" or home_of(kind) != "numpy" or not value.size:
        return []
    code, size = value.dtype.kind, value.dtype.itemsize
    if code == "b":
        return [~value]
    if code in "iufc":
        most = -987654321 if size >= 4 and code != "u" else (120 if size == 1 else 30000)
        made = value.copy()
        made.fill(most)
        numbers = value.real
        made[(numbers > most - 60) & (numbers < most + 60)] = 0
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
    if not value.size or (value.ndim > 1 and value.shape[1] > WIDEST):
        return []
    if value.ndim == 1:
        return _column(value)
    made, changed = value.copy(), 0
    for number in range(value.shape[1]):
        for column in _column(value.iloc[:, number]):
            changed += _set_column(made, number, column)
        if changed == FEW and not whole:
            break
    return [made] if changed == value.shape[1] or (changed and not whole) else []


def _set_column(table: "Any", number: int, column: "Any") -> bool:
    """Put another column in a place of a table, if this pandas can."""
    try:
        if hasattr(table, "isetitem"):
            table.isetitem(number, column)
        else:  # before pandas 1.5
            table.iloc[:, number] = column
    except Exception:  # It does not fit there.
        return False
    return True


def _column(value: "Any") -> "list[Any]":
    for other in (_far_apart, _otherwise):
        try:
            made = other(value)
            made = made.where(made != value, 0)  # there is nothing far from an infinity
            if not (made == value).any() and not made.equals(value):  # as it is where there are no values in it
                return [made]
        except Exception:  # it holds none of these
            continue
    return []


def _far_apart(numbers: "Any") -> "Any":
    return numbers * 3 + 987654321


def _otherwise(texts: "Any") -> "Any":
    return texts + "\0other"
