"""The opposites of expectations: what cannot hold where they do, unless what is compared lies."""

import itertools
from collections import deque
from types import MethodType

from .arrays import COMPARING, NUMERIC, TABULAR, far, is_scalar, nothings
from .asked import Opposites, insist
from .mocks import CALLED_WITH, MOCKS
from .unlike import FEW, LONG, OTHERS, PLAIN, SCALARS, Nobody, far_from, home_of, inexact, is_data, nowhere, unlike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Union

    from .asked import Opposite

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

COMPARED = (
    ("first", "second"), ("list1", "list2"), ("tuple1", "tuple2"), ("set1", "set2"), ("d1", "d2"),
    ("member", "container"), ("actual", "desired"), ("x", "y"), ("left", "right"),
)  # fmt: skip
"""What assertions call what they compare."""

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

_empty = {}  # type: dict[Any, Any]

APPROXIMATE = frozenset(("_pytest.approx", "_pytest.python_api"))
"""Where the types are that compare nearly."""

CONTAINERS = frozenset((
    list, tuple, set, frozenset, dict, range, deque, type({}.keys()), type(_empty.values()), type(_empty.items()),
))  # fmt: skip
"""Types whose elements are compared with what is sought."""

HOLDING = (str, bytes, list, tuple, set, frozenset, dict, deque)
"""Those, and classes made of them, in which what is far from all is not."""

CONTAIN = frozenset(vars(one)["__contains__"] for one in HOLDING)
"""How they say what is in them."""

CONSUMING = frozenset(("assertIn", "assertNotIn", "assertCountEqual"))
"""Methods of unittest that go through what they are given."""


def unequal(left: "Any", right: "Any", changing: str) -> Opposites:
    """What cannot be when two values are equal.

    Args:
        left: one of them
        right: the other
        changing: which of them, `l` and `r`, are not equal any more when something in them is changed
    """
    found = Opposites([_equals(*pair) for pair in _changed(left, right, changing)])
    if not found.apart:
        nobody = Nobody()
        found.apart += [_equals(left, nobody), _equals(nobody, right)]
    if home_of(type(right)) in APPROXIMATE:
        found.apart += _nearly_equals(left, right)
    return found


def _is_near(value: "Any", depth: int = 5) -> bool:
    """Whether something in a value compares nearly, as what is rounded does."""
    kind = type(value)
    if kind in (list, tuple, dict) and depth and not is_data(value):
        some = itertools.islice(value.values() if kind is dict else value, LONG)
        return any(_is_near(one, depth - 1) for one in some)
    return home_of(kind) in APPROXIMATE or is_scalar(value)


def _changed(left: "Any", right: "Any", changing: str, nearly: bool = False) -> "list[tuple[Any, Any]]":
    """Two values of which one is another.

    The second is what is expected, as a rule, and is nearer.

    Args:
        left: one of them
        right: the other
        changing: see `unequal`
        nearly: whether they may be compared nearly
    """
    near, apart = unlike, far_from
    if is_scalar(left) or is_scalar(right):
        near = apart = inexact
    elif nearly or _is_near(left):
        near = far_from
    pairs = []  # type: list[tuple[Any, Any]]
    if "r" in changing:
        pairs += [(left, one) for one in _others(near, right)]
    if "l" in changing:
        pairs += [(one, right) for one in _others(apart, left)]
    return pairs


def _others(values: "Callable[[Any], list[Any]]", value: "Any") -> "list[Any]":
    """Values that are not equal to one of a plain type, or of another of the library's; none of what is of no such."""
    kind = type(value)
    try:
        if is_scalar(value):
            value = value.item()
        if (home_of(kind), kind.__name__) in OTHERS:
            return [OTHERS[home_of(kind), kind.__name__](value)]
        return values(value) if type(value) in PLAIN else []
    except Exception:  # It holds itself, or is no number that can be compared.
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
        return Opposites((), [lambda: insist(right < left)])
    if asked in (">", ">="):
        return Opposites((), [lambda: insist(right > left)])
    if asked == "in":
        return Opposites([_is_in(*pair) for pair in _elsewhere(left, right, free)])
    return Opposites()


def _is_in(one: "Any", container: "Any") -> "Opposite":
    return lambda: insist(one in container)


def _elsewhere(one: "Any", container: "Any", free: bool) -> "list[tuple[Any, Any]]":
    """What is not in a container, with it; of what has to be gone through nothing is asked."""
    found = [(Nobody(), container)] if hasattr(type(container), "__contains__") else []  # type: list[tuple[Any, Any]]
    # A tuple may have made a range of itself, in which there are numbers that nobody has put there.
    holds = isinstance(one, (str, bytes)) or getattr(type(container), "__contains__", None) in CONTAIN
    if type(one) in SCALARS and found and holds:
        found.append((nowhere(one), container))
    if type(container) in CONTAINERS and type(one) not in SCALARS and not free:
        known = [other for other in itertools.islice(container, FEW) if type(other) in SCALARS]
        found.append((one, [Nobody(), *(far_from(other)[0] for other in known)]))
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

    def own(self, function: "Any", name: str) -> "Any":
        """Unittest's own method in the place of another one of that name; that itself where there is none.

        Args:
            function: the method
            name: by which a test asks for it
        """
        owner, inner = getattr(function, "__self__", None), self.methods.get(RENAMED.get(name, name))
        return MethodType(inner, owner) if inner is not None and isinstance(owner, self.case) else function


def turned_call(
    methods: Methods,
    asked: str,
    function: "Any",
    arguments: "tuple[Any, ...]",
    named: "dict[str, Any]",
    free: "Sequence[bool]",
    changing: str,
    inside: "list[tuple[Any, Any]]",
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
        inside: what is compared with each other in the first two
    """
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)

    if isinstance(owner, methods.case):
        name = methods.name_of(function, asked)
        return _of_method(name, function, arguments, named, free, changing, inside) if name else None
    home = str(getattr(function, "__module__", ""))
    if home.partition(".")[0] == "pytest_mock" and name.startswith("wrap_"):
        name = name[len("wrap_") :]
    if name in CALLED_WITH and (home_of(type(owner)) in MOCKS or home in MOCKS):
        others = [_called(function, (*arguments, Nobody()), named)]
        if name.startswith("assert_any"):  # there may be calls with others, too, and with none
            if arguments or named:
                arguments, named = tuple(map(_far, arguments)), {key: _far(value) for key, value in named.items()}
                others.append(_called(function, arguments, named))
            return Opposites(others)
        for place, value in enumerate(arguments):
            others += [
                _called(function, (*arguments[:place], one, *arguments[place + 1 :]), named) for one in _unlike(value)
            ]
        for key, value in named.items():
            others += [_called(function, arguments, dict(named, **{key: one})) for one in _unlike(value)]
        return Opposites(others)
    if home.partition(".")[0] in COMPARING and len(arguments) > 1 and name.startswith("assert") and asked in ("", name):
        one, two, *rest = arguments
        pairs = [(one, nothing) for nothing in nothings(one)]
        if name in NUMERIC or name in TABULAR:
            pairs += [(one, other) for other in far(two, whole=False)]
            pairs += [(other, two) for other in far(one, whole=False)]
        found = Opposites([_called(function, (*pair, *rest), named) for pair in pairs])
        found.apart += [one for pair in inside for one in unequal(pair[0], pair[1], "lr").apart]
        return found
    return None


def _of_method(
    name: str,
    function: "Any",
    arguments: "tuple[Any, ...]",
    named: "dict[str, Any]",
    free: "Sequence[bool]",
    changing: str,
    inside: "list[tuple[Any, Any]]",
) -> Opposites:
    """The same of a method of unittest, by its name."""
    owner = function.__self__
    found = Opposites()
    if name in CONSUMING and any(hasattr(type(one), "__next__") for one in arguments):  # each can be gone through once
        return found
    if OPPOSITES[name] and name != "assertEqual":  # who is equal may not say so of `!=`
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
        nearly = OPPOSITES[name] == "assertNotAlmostEqual"
        pairs = _changed(one, two, changing, nearly) or [(Nobody(), two), (one, Nobody())]
        found.apart += [_called(function, (*pair, *rest), named) for pair in pairs]
        found.apart += [one for pair in inside for one in unequal(pair[0], pair[1], "lr").apart]
    return found


def _called(function: "Any", arguments: "tuple[Any, ...]", named: "dict[str, Any]") -> "Opposite":
    return lambda: function(*arguments, **named)


def _far(value: "Any") -> "Any":
    """Another than an argument that is nowhere near it, and that no other call may have."""
    others = [] if type(value) is bool else _others(far_from, value)
    return others[0] if others else Nobody()


def _unlike(value: "Any") -> "list[Any]":
    """Others than an argument."""
    return _others(unlike, value) or [Nobody()]


def in_order(arguments: "tuple[Any, ...]", named: "dict[str, Any]") -> "tuple[tuple[Any, ...], dict[str, Any]]":
    """Arguments of an assertion, of which the two that it compares may be given by their names."""
    rest = dict(named)
    for names in COMPARED:
        if len(arguments) < 2 and all(one in rest for one in names[len(arguments) :]):
            arguments = (*arguments, *(rest.pop(one) for one in names[len(arguments) :]))
    return arguments, rest


def quietly(function: "Any", given: "tuple[Any, ...]", options: "dict[str, Any]") -> "dict[str, Any]":
    """The options by which numpy's functions do not write down what they compare: that takes longer than comparing.

    Who stands in the place of one has to take them as well when the expectation itself is asked again.
    """
    home, name = str(getattr(function, "__module__", "")), getattr(function, "__name__", "")
    writes = home.partition(".")[0] == "numpy" and name in NUMERIC and len(given) < 4
    return dict(options, verbose=False) if writes else options
