"""The opposites of expectations: what cannot hold where they do, unless what is compared lies."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Union

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

COMPARING = frozenset(("numpy", "pandas"))
"""Packages whose assertion functions compare their first two arguments."""

SCALARS = frozenset((int, float, complex, bool, str, bytes, type(None)))
"""Types whose comparison with each other is Python's own: there is nothing to ask."""

PLAIN = SCALARS | frozenset((list, tuple, dict, set, frozenset))
"""Types that are equal only to what they are."""


class Unmet(AssertionError):
    """An expectation does not hold."""


class Nobody(Exception):
    """What nobody raises, and what equals nothing."""


def unordered(operator: str, left: "Any", right: "Any") -> "list[Callable[[], object]]":
    """What cannot be when a comparison holds that is none for equality."""
    if operator == "!=":
        return [lambda: insist(left == right)]
    if operator in ("<", "<="):
        return [lambda: insist(left > right)]
    if operator in (">", ">="):
        return [lambda: insist(left < right)]
    if operator == "in":
        return _without(right)
    return []


def _without(container: "Any") -> "list[Callable[[], object]]":
    """That something is in a container which is in none; of what has to be gone through nothing is asked."""
    return [lambda: insist(Nobody() in container)] if hasattr(type(container), "__contains__") else []


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
            if space.get(one) is not method or there is not self.methods[RENAMED.get(one, one)]:
                return ""
        return name


def turned_call(
    methods: Methods,
    asked: str,
    function: "Any",
    arguments: "tuple[Any, ...]",
    named: "dict[str, Any]",
    anything: bool,
) -> "Union[list[Callable[[], object]], None]":
    """The opposites of an assertion's call, each of which has to raise; None: it is not known what it asserts.

    Args:
        methods: unittest's
        asked: by which name the test asks for a method; empty: by none
        function: what is called
        arguments: with what
        named: likewise
        anything: whether one of them may equal anything
    """
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    nothing = Nobody()
    if isinstance(owner, methods.case):
        name = methods.name_of(function, asked)
        if not name:
            return None
        found = [lambda: getattr(owner, OPPOSITES[name])(*arguments, **named)] if OPPOSITES[name] else []
        if len(arguments) < 2 or anything:
            return found
        one, two, *rest = arguments
        if name == "assertEqual" and type(one) in SCALARS and type(two) in SCALARS:
            return [] if one == two else [lambda: None]
        if OPPOSITES[name] in ("", "assertNotEqual", "assertNotAlmostEqual"):
            if type(two) in PLAIN:
                return [lambda: function(one, other(two), *rest, **named)]
            return [lambda: function(other(one) if type(one) in PLAIN else nothing, two, *rest, **named)]
        if name == "assertIn" and hasattr(type(two), "__contains__"):
            found.append(lambda: function(nothing, two, *rest, **named))
        return found
    if type(owner).__module__ in ("unittest.mock", "mock.mock", "mock") and name in CALLED_WITH:
        return [lambda: function(*arguments, nothing, **named)]
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    if package in COMPARING and len(arguments) > 1 and name.startswith("assert") and asked in ("", name):
        return [lambda: function(arguments[0], nothing, *arguments[2:], **named)]
    return None


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
