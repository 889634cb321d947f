"""The opposites of expectations: what cannot hold where they do, unless what is compared lies."""

import io
import itertools

from .unlike import PLAIN, SCALARS, Nobody, far_from, is_data, unlike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Union

    Opposite = Callable[[], object]

OPPOSITES = {
    "assertEqual": "assertNotEqual",
    "assertEquals": "assertNotEqual",
    "assertTrue": "assertFalse",
    "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone",
    "assertIn": "assertNotIn",
    "assertIsInstance": "assertNotIsInstance",
    "assertGreater": "assertLessEqual",
    "assertGreaterEqual": "assertLess",
    "assertAlmostEqual": "assertNotAlmostEqual",
    "assertRegex": "assertNotRegex",
}  # type: dict[str, str]
OPPOSITES.update({opposite: name for name, opposite in OPPOSITES.items() if name != "assertEquals"})
OPPOSITES.update(
    assertCountEqual="", assertSequenceEqual="", assertListEqual="", assertTupleEqual="", assertSetEqual="",
    assertDictEqual="", assertMultiLineEqual="",
)  # fmt: skip
"""Of each assertion method of unittest its opposite; empty: another second argument makes one."""

EQUAL = frozenset((
    "assertEqual", "assertListEqual", "assertTupleEqual", "assertSetEqual", "assertDictEqual", "assertMultiLineEqual",
))  # fmt: skip
"""Those that hold exactly where their first two arguments are equal."""

RENAMED = {
    "assertEquals": "assertEqual",
    "assertNotEquals": "assertNotEqual",
    "assertAlmostEquals": "assertAlmostEqual",
    "assertNotAlmostEquals": "assertNotAlmostEqual",
    "assertRegexpMatches": "assertRegex",
    "assertNotRegexpMatches": "assertNotRegex",
    "assertRaisesRegexp": "assertRaisesRegex",
    "assert_": "assertTrue",
}
"""What methods of unittest are called now that had another name too, up to Python 3.11."""

CALLED_WITH = frozenset(("assert_called_with", "assert_called_once_with", "assert_any_call"))
"""Assertion methods of mocks: with one argument more they must fail."""

MOCKS = frozenset(("unittest.mock", "mock.mock", "mock"))

COMPARING = frozenset(("numpy", "pandas"))
"""Packages whose assertion functions compare their first two arguments."""

NUMERIC = frozenset((
    "assert_allclose", "assert_almost_equal", "assert_array_almost_equal", "assert_array_equal", "assert_equal",
))  # fmt: skip
"""Those of numpy by which numbers are equal, or nearly so."""

TABULAR = frozenset(("assert_frame_equal", "assert_series_equal", "assert_index_equal"))
"""Those of pandas by which tables, columns and labels are equal, or nearly so."""

APPROXIMATE = frozenset(("_pytest.approx", "_pytest.python_api"))
"""Where the types are that compare nearly."""

CONTAINERS = frozenset((list, tuple, set, frozenset))

_empty = {}  # type: dict[Any, Any]
ITERATORS = frozenset((
    *(type(iter(kind())) for kind in (list, tuple, dict, set, str, bytes)),
    *(type(iter(one)) for one in (range(0), _empty.values(), _empty.items())),
    *(type(None for _ in ""), map, filter, zip, enumerate, reversed),
    *(one for one in vars(itertools).values() if isinstance(one, type)),
    *(io.StringIO, io.BytesIO, io.TextIOWrapper, io.BufferedReader, io.BufferedRandom, io.FileIO),
))  # type: frozenset[type]  # fmt: skip
"""Types of what can be gone through once: these alone, as any other class may say that it is one of them."""


class Unmet(AssertionError):
    """An expectation does not hold."""


class Opposites(object):
    """What has to raise where an expectation holds.

    Attributes:
        apart: asks for something else than what is expected
        against: asks for the opposite of what is expected, and so tells what that is
    """

    __slots__ = ("against", "apart")

    def __init__(self, apart: "Sequence[Opposite]" = (), against: "Sequence[Opposite]" = ()) -> None:
        self.apart = list(apart)
        self.against = list(against)


def unequal(left: "Any", right: "Any", changing: str) -> Opposites:
    """What cannot be when two values are equal.

    Args:
        left: one of them
        right: the other
        changing: which of them, `l` and `r`, are not equal any more when something in them is changed
    """
    near = far_from if type(left).__module__ in APPROXIMATE else unlike
    found = Opposites([_equals(*pair) for pair in _changed(left, right, changing, near)])
    if not found.apart:
        nobody = Nobody()
        found.apart += [_equals(left, nobody), _equals(nobody, right)]
    if type(right).__module__ in APPROXIMATE:
        found.apart += _nearly_equals(left, right)
    return found


def _changed(left: "Any", right: "Any", changing: str, near: "Callable[[Any], list[Any]]") -> "list[tuple[Any, Any]]":
    """Two values of which one is another; see `unequal`. The second is what is expected, as a rule, and is nearer."""
    pairs = []  # type: list[tuple[Any, Any]]
    if "r" in changing and type(right) in PLAIN:
        pairs += [(left, one) for one in _others(near, right)]
    if "l" in changing and type(left) in PLAIN:
        pairs += [(one, right) for one in _others(far_from, left)]
    return pairs


def _others(values: "Callable[[Any], list[Any]]", value: "Any") -> "list[Any]":
    """Values that are not equal to one of a plain type."""
    try:
        return values(value)
    except RecursionError:  # it holds itself
        return [Nobody()]


def _equals(left: "Any", right: "Any") -> "Opposite":
    return lambda: insist(left == right)


def _nearly_equals(left: "Any", right: "Any") -> "list[Opposite]":
    """That a value is as near to others as it is to what pytest's `approx` was given."""
    given = vars(right)
    if type(given.get("expected")) not in PLAIN:
        return []
    options = {name: given[name] for name in ("rel", "abs", "nan_ok") if name in given}

    def near(value: "Any") -> "Opposite":
        return lambda: insist(left == type(right)(value, **options))

    return [near(one) for one in far_from(given["expected"])]


def unordered(asked: str, left: "Any", right: "Any", free: bool = False) -> Opposites:
    """What cannot be when a comparison holds that is none for equality.

    Args:
        asked: the comparison, as it is written
        left: what is compared
        right: with what
        free: whether the left side may equal anything
    """
    if asked == "!=":
        return Opposites((), [lambda: insist(left == right)])
    if asked in ("<", "<="):
        return Opposites((), [lambda: insist(left > right)])
    if asked in (">", ">="):
        return Opposites((), [lambda: insist(left < right)])
    if asked == "in":
        return Opposites([_is_in(*pair) for pair in _elsewhere(left, right, free)])
    return Opposites()


def _is_in(one: "Any", container: "Any") -> "Opposite":
    return lambda: insist(one in container)


def _elsewhere(one: "Any", container: "Any", free: bool) -> "list[tuple[Any, Any]]":
    """What is not in a container, with it; of what has to be gone through nothing is asked."""
    found = [(Nobody(), container)] if hasattr(type(container), "__contains__") else []  # type: list[tuple[Any, Any]]
    if type(container) in CONTAINERS and type(one) not in SCALARS and not free:
        found.append((one, [Nobody()]))
    return found


class Methods(object):
    """The assertion methods of unittest, as they were before any tested code ran."""

    __slots__ = ("case", "methods")

    def __init__(self) -> None:
        import unittest

        self.case = unittest.TestCase
        names = ("assertRaises", "failureException", "fail", "_baseAssertEqual", "_getAssertEqualityFunc")
        self.methods = {name: vars(self.case).get(name) for name in (*OPPOSITES, *names)}

    def name_of(self, function: "Any", asked: str) -> str:
        """What a method of a test is called now; empty unless it and all that it rests on are unittest's own.

        Args:
            function: the method
            asked: by which name the test asks; empty: by none
        """
        inner = getattr(function, "__func__", None)
        name = next((one for one in OPPOSITES if inner is not None and self.methods[one] is inner), "")
        name = RENAMED.get(name, name)
        if asked in self.methods and RENAMED.get(asked, asked) != name:
            return ""
        space, own = vars(self.case), vars(function.__self__)
        for one, method in self.methods.items():
            there = getattr(own[one], "__func__", None) if one in own else self.methods[RENAMED.get(one, one)]
            now = self.methods[RENAMED.get(one, one)]
            if space.get(one) not in (method, now) or there is not now:
                return ""
        return name


def turned_call(
    methods: Methods,
    asked: str,
    function: "Any",
    arguments: "tuple[Any, ...]",
    named: "dict[str, Any]",
    free: "Sequence[bool]",
    changing: str,
) -> "Union[Opposites, None]":
    """The opposites of an assertion's call; None: it is not known what it asserts.

    Args:
        methods: unittest's
        asked: by which name the test asks for a method; empty: by none
        function: what is called
        arguments: with what
        named: likewise
        free: which of them may equal anything
        changing: see `unequal`
    """
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)

    def with_second(value: "Any") -> "Opposite":
        return lambda: function(arguments[0], value, *arguments[2:], **named)

    if isinstance(owner, methods.case):
        name = methods.name_of(function, asked)
        return _of_method(name, function, arguments, named, free, changing) if name else None
    home = str(getattr(function, "__module__", ""))
    if home.partition(".")[0] == "pytest_mock" and name.startswith("wrap_"):
        name = name[len("wrap_") :]
    if name in CALLED_WITH and (type(owner).__module__ in MOCKS or home in MOCKS):
        others = [_replaced(arguments, place) for place, one in enumerate(arguments[:3]) if type(one) in PLAIN]
        return Opposites([_called(function, one, named) for one in [(*arguments, Nobody()), *others]])
    if home.partition(".")[0] in COMPARING and len(arguments) > 1 and name.startswith("assert") and asked in ("", name):
        alike = [with_second(one) for one in _arrays(arguments[1])] if name in NUMERIC or name in TABULAR else []
        return Opposites([*map(with_second, _nothings(arguments[0])), *alike])
    return None


def _of_method(
    name: str,
    function: "Any",
    arguments: "tuple[Any, ...]",
    named: "dict[str, Any]",
    free: "Sequence[bool]",
    changing: str,
) -> Opposites:
    """The same of a method of unittest, by its name."""
    owner = function.__self__
    found = Opposites()
    if any(type(one) in ITERATORS for one in arguments):  # each can be gone through once
        return found
    if OPPOSITES[name]:
        found.against.append(lambda: getattr(owner, OPPOSITES[name])(*arguments, **named))
    if len(arguments) < 2:
        return found
    one, two, *rest = arguments
    if name == "assertIn":
        found.apart += [_called(function, (*pair, *rest), named) for pair in _elsewhere(one, two, any(free))]
    if any(free):
        return found
    if name in EQUAL and is_data(one) and is_data(two):
        return Opposites() if one == two else Opposites([lambda: None])
    if OPPOSITES[name] in ("", "assertNotEqual", "assertNotAlmostEqual"):
        near = far_from if OPPOSITES[name] == "assertNotAlmostEqual" else unlike
        pairs = _changed(one, two, changing, near) or [(Nobody(), two), (one, Nobody())]
        found.apart += [_called(function, (*pair, *rest), named) for pair in pairs]
    return found


def _called(function: "Any", arguments: "tuple[Any, ...]", named: "dict[str, Any]") -> "Opposite":
    return lambda: function(*arguments, **named)


def _replaced(arguments: "tuple[Any, ...]", place: int) -> "tuple[Any, ...]":
    """Arguments with another one in a place."""
    return (*arguments[:place], unlike(arguments[place])[0], *arguments[place + 1 :])


def _nothings(value: "Any") -> "list[Any]":
    """What nothing equals that functions of numpy compare with; an array without elements equals each single value."""
    kind = type(value)
    empty = kind in (list, tuple) and not value
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        empty = value.size == 0
    return [[Nobody()]] if empty else [Nobody()]


def _arrays(value: "Any") -> "list[Any]":
    """Numbers, a list or an array of them, that are nowhere near these; none of what has no numbers."""
    kind = type(value)
    if kind in (int, float) or (kind in (list, tuple) and value and is_data(value)):
        return far_from(value)[:1]
    if kind.__module__.partition(".")[0] == "pandas":
        return _tables(value)
    if kind.__module__ != "numpy" or kind.__name__ != "ndarray" or not value.size or value.dtype.kind not in "if":
        return []
    if value.dtype.itemsize < 4:  # which have no room for it
        return []
    made = value.copy()
    made.fill(-987654321)
    return [made]


def _tables(value: "Any") -> "list[Any]":
    """The same table, column or labels of pandas with other values; none where there is no other of that kind."""
    if not value.size:
        return []
    columns = [None] if value.ndim == 1 else list(range(value.shape[1]))  # type: list[Union[int, None]]
    for column in columns:
        for other in (_far_apart, _otherwise):
            try:
                if column is None:
                    made = other(value)
                else:
                    made = value.copy()
                    made.isetitem(column, other(value.iloc[:, column]))
                if not made.equals(value):  # as it is where there are no values in it
                    return [made]
            except Exception:  # it holds none of these, or pandas is before 1.5
                continue
    return []


def _far_apart(numbers: "Any") -> "Any":
    return numbers * 3 + 987654321


def _otherwise(texts: "Any") -> "Any":
    return texts + "\0other"


def array_opposites(result: "Any", left: "Any", right: "Any", free: str) -> Opposites:
    """What cannot be where two arrays are compared element by element, and more is asked of the result.

    Args:
        result: of the comparison
        left: one of them
        right: the other
        free: which of them, `l` or `r`, may equal anything
    """
    compares = type(result).__module__.partition(".")[0] in COMPARING
    if not compares or {"l", "r"} & set(free) or not getattr(result, "size", 0):
        return Opposites()
    return Opposites([_is_all(left, one) for one in _arrays(right)] + [_is_all(one, right) for one in _arrays(left)])


def _is_all(left: "Any", right: "Any") -> "Opposite":
    def ask() -> None:
        found = left == right
        while getattr(found, "ndim", 0):  # of a table it is a column
            found = found.all()
        insist(found)

    return ask


def insist(condition: object) -> None:
    """Raise unless a condition holds."""
    if not condition:
        raise Unmet("the opposite does not hold")


def fails(opposite: "Callable[[], object]") -> bool:
    """Whether it raises."""
    try:
        opposite()
    except Exception:
        return True
    except BaseException as error:  # pytest's own are none of these
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        return True
    return False
