"""What a turned test module asks: whether each expectation holds, and whether its opposite fails.

A test whose expectations hold and whose opposites fail ends with a failure, all others pass: what can make a test pass
that should fail makes it pass here, too, and is seen by that. See `turning`.
"""

import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Union

ASKED = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}  # type: dict[str, Callable[[Any, Any], Any]]

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

CALLED_WITH = frozenset(("assert_called_with", "assert_called_once_with", "assert_any_call"))
"""Assertion methods of mocks: with one argument more they must fail."""

SECOND = frozenset(("numpy", "pandas"))
"""Packages whose assertion functions compare their first two arguments."""

PLAIN = (int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset, type(None))
"""Types that are equal only to what they are."""


class Unmet(AssertionError):
    """An expectation does not hold."""


class Nobody(Exception):
    """What nobody raises, and what equals nothing."""


class Expectations(object):
    """Asked by the test modules of one run.

    Args:
        secret: what the failure says of a test whose expectations hold, and the reason to skip one that has none
        failure: makes that failure of the secret
    """

    Nobody = Nobody

    def __init__(self, secret: str, failure: "Callable[[str], BaseException]" = AssertionError) -> None:
        self.secret = secret
        self.failure = failure
        self.under_way = []  # type: list[_Test]

    def test(self, name: str, certain: int) -> "_Test":
        """Around a test's body.

        Args:
            name: the test's
            certain: how many expectations it asks in every run that passes
        """
        return _Test(self, certain)

    def compare(self, number: int, operator: str, left: "Any", right: "Any") -> None:
        """`assert left operator right`.

        Args:
            number: below zero: it may fail in a test that passes
            operator: as it is written
            left: what is compared
            right: with what
        """
        held = bool(ASKED[operator](left, right))
        self.note(number, held, _unequal(left, right) if held and operator == "==" else [])

    def equal(self, left: "Any", right: "Any") -> "Any":
        """`left == right`, on which an expectation may rest."""
        value = left == right
        if value is True and not all(_fails(one) for one in _unequal(left, right)):
            for test in self.under_way:
                test.survived += 1
        return value

    def holds(self, number: int, value: object, truth: bool) -> None:
        """`assert value`, or `assert not value` where `truth` is False."""
        self.note(number, bool(value) is truth, [])

    def method(self, number: int, owner: "Any", name: str, *arguments: "Any", **named: "Any") -> None:
        """`owner.name(...)`, which asserts something."""
        self.call(number, getattr(owner, name), *arguments, **named)

    def call(self, number: int, function: "Any", *arguments: "Any", **named: "Any") -> None:
        """`function(...)`, which asserts something: known are those of unittest, its mocks, numpy and pandas."""
        turned = _turned_call(function, arguments, named)
        if turned is None:
            function(*arguments, **named)
            return
        try:
            function(*arguments, **named)
        except AssertionError as error:
            self.note(number, False, [], error)
            return
        self.note(number, True, turned)

    def raises(self, number: int, expected: "Any", turned: "Callable[[], Any]") -> "_Raises":
        """`with expected`, which expects an exception; `turned` makes one that expects `Nobody`."""
        return _Raises(self, number, expected, turned)

    def note(
        self,
        number: int,
        held: bool,
        turned: "list[Callable[[], object]]",
        error: "Union[BaseException, None]" = None,
    ) -> None:
        """Keep what an expectation came to.

        Args:
            number: see `compare`
            held: whether it holds
            turned: its opposites, each of which has to raise
            error: what it raised when it does not hold

        Raises:
            Unmet: it does not hold, which the test may take
        """
        believed = held and all(_fails(one) for one in turned)
        for test in self.under_way:
            test.asked += 1
            test.survived += not believed and (held or number > 0)
        if not held and number < 0:
            raise error or Unmet("an expectation does not hold")


class _Test(object):
    """Around the body of one test, or of one run of it."""

    def __init__(self, owner: Expectations, certain: int) -> None:
        self.owner = owner
        self.certain = certain
        self.asked = 0
        self.survived = 0

    def __enter__(self) -> None:
        self.owner.under_way.append(self)

    def __exit__(self, kind: object, error: "Union[BaseException, None]", trace: "Union[TracebackType, None]") -> bool:
        self.owner.under_way.remove(self)
        if self.survived or isinstance(error, Unmet):
            return True
        if error is not None:
            return False
        if self.asked < self.certain:  # What the test asks in every run that passes was not asked.
            return True
        if not self.asked:
            import unittest

            raise unittest.SkipTest(self.owner.secret)
        raise self.owner.failure(self.owner.secret)


class _Raises(object):
    """`pytest.raises` or `assertRaises`, and beside it the same for what nobody raises."""

    def __init__(self, owner: Expectations, number: int, expected: "Any", turned: "Callable[[], Any]") -> None:
        self.owner = owner
        self.number = number
        self.expected = expected
        self.turned = turned

    def __enter__(self) -> "Any":
        return self.expected.__enter__()

    def __exit__(self, kind: "Any", error: "Any", trace: "Any") -> bool:
        try:
            taken = self.expected.__exit__(kind, error, trace)
        except AssertionError as unmet:
            self.owner.note(self.number, False, [], unmet)
            return True
        except BaseException as unmet:
            if unmet is error or type(unmet).__name__ != "Failed":  # which is pytest's, and no AssertionError
                raise
            self.owner.note(self.number, False, [], unmet)
            return True
        if not taken:  # another exception, which goes on
            return False

        def takes_anything() -> None:
            other = self.turned()
            other.__enter__()
            _insist(other.__exit__(kind, error, trace))

        self.owner.note(self.number, True, [takes_anything])
        return True


def _unequal(left: "Any", right: "Any") -> "list[Callable[[], object]]":
    """The opposites of a comparison that holds."""
    if _is_anything(left) or _is_anything(right):
        return []
    if type(right) in PLAIN:
        return [lambda: _insist(left == other(right))]
    if type(left) in PLAIN:
        return [lambda: _insist(other(left) == right)]
    return []


def _turned_call(
    function: "Any", arguments: "tuple[Any, ...]", named: "dict[str, Any]"
) -> "Union[list[Callable[[], object]], None]":
    """The opposites of an assertion's call, each of which has to raise; None: it is not known what it asserts."""
    import unittest

    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    nothing = Nobody()
    if isinstance(owner, unittest.TestCase) and name in OPPOSITES and _is_unittests(function):
        plain = len(arguments) > 1 and type(arguments[1]) in PLAIN and not _is_anything(arguments[0])
        changes = OPPOSITES[name] in ("", "assertNotEqual")
        if changes and plain:
            return [lambda: function(arguments[0], other(arguments[1]), *arguments[2:], **named)]
        return [lambda: getattr(owner, OPPOSITES[name])(*arguments, **named)] if OPPOSITES[name] else []
    if type(owner).__module__ in ("unittest.mock", "mock.mock", "mock") and name in CALLED_WITH:
        return [lambda: function(*arguments, nothing, **named)]
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    if package in SECOND and len(arguments) > 1:
        return [lambda: function(arguments[0], nothing, *arguments[2:], **named)]
    return None


def _is_unittests(function: "Any") -> bool:
    """Whether a method is unittest's own, and not one that a test class put in its place."""
    return str(getattr(function, "__module__", "")).partition(".")[0] == "unittest"


def _is_anything(value: object) -> bool:
    """Whether a value is made to equal any other, as `mock.ANY` is."""
    return type(value).__module__.partition(".")[0] in ("unittest", "mock")


def other(value: "Any") -> "Any":
    """A value of a plain type that is not equal to this one, nor near it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, complex)):
        return -3 * value - 987654321
    if isinstance(value, float):
        return -3 * value - 987654321.5 if abs(value) < 1e300 else 0.5
    if isinstance(value, str):
        return value + "~other"
    if isinstance(value, bytes):
        return value + b"~other"
    if isinstance(value, list):
        return [*value, Nobody()]
    if isinstance(value, tuple):
        return (*value, Nobody())
    if isinstance(value, dict):
        return dict(value, **{"~other": Nobody()}) if all(isinstance(one, str) for one in value) else {"~other": value}
    if isinstance(value, (set, frozenset)):
        return value | {"~other"}
    return Nobody()


def _insist(condition: object) -> None:
    """Raise unless a condition holds."""
    if not condition:
        raise Unmet("the opposite does not hold")


def _fails(opposite: "Callable[[], object]") -> bool:
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
