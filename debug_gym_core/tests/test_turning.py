"""Test modules with what they expect turned: what passes for a reason fails, what passes whatever it expects passes."""

import ast
import contextlib
import logging
import textwrap
import unittest
from typing import Any

import numpy as np
import pytest

from debug_gym_core.grading.runner import asked, expectations
from debug_gym_core.grading.runner.expectations import Expectations
from debug_gym_core.grading.runner.literals import blurred, changed
from debug_gym_core.grading.runner.turning import turn
from debug_gym_core.grading.runner.twins import within
from debug_gym_core.grading.runner.unlike import far_from, unlike

SECRET = "0123456789abcdef"

BELIEVED = {
    "assert": "assert value() == 5",
    "literal on the left": "assert 5 == value()",
    "no comparison": "assert value()",
    "not": "assert not value() == 6",
    "both": "assert value() == 5 and value() < 6",
    "chain": "assert 4 < value() < 6",
    "is": "assert value(None) is None",
    "in": "assert value() in (4, 5)",
    "message": "assert value() == 5, 'not five'",
    "message of a failure": "with pytest.raises(AssertionError, match='boom 5'):\n"
    "    assert value() == 6, 'boom %s' % value()\nassert value() == 5",
    "chain of equalities": "assert value() == 5 == value() < 6",
    "a context": "with warnings.catch_warnings():\n    assert value() == 5",
    "a context that takes failures": "with contextlib.suppress(AssertionError):\n    assert value() == 6\n"
    "assert value() == 5",
    "a context by a name": "context = warnings.catch_warnings()\nwith context:\n    assert value() == 5",
    "a context by a name that takes failures": "for context in (contextlib.suppress(AssertionError),):\n"
    "    with context:\n        assert value() == 6\nassert value() == 5",
    "a context that may take failures": "kind = contextlib.suppress if value() else pytest.raises\n"
    "with kind(AssertionError):\n    assert value() == 6\nassert value() == 5",
    "a context of an object that takes failures": "called = mock.Mock()\n"
    "called.context = contextlib.suppress(AssertionError)\nwith called.context:\n    assert value() == 6\n"
    "assert value() == 5",
    "an assertion that is never reached": "with taking():\n    raise OSError\n    assert False, 'never'\n"
    "assert value() == 5",
    "a long number": "assert value(1) < 0x1" + "0" * 4000,
    "approx": "assert value(0.1) + 0.2 == pytest.approx(0.3)",
    "approx on the left": "assert pytest.approx(0.3) == value(0.1) + 0.2",
    "approx of a list": "assert value([0.1, 0.2]) == pytest.approx([0.1, 0.2])",
    "approx of a dict": "assert value({'a': 0.1}) == pytest.approx({'a': 0.1})",
    "approx with much tolerance": "assert value(6) == pytest.approx(5, abs=2) and pytest.approx(5, abs=2) == value(4)",
    "list": "assert value([1, 2]) == [1, 2]",
    "list in a list": "assert value([[1], (2,), {'a': [3]}, set()]) == [[1], (2,), {'a': [3]}, set()]",
    "list with nan": "nan = float('nan')\nassert value([nan]) == [nan]",
    "list with any": "assert value([1, 2]) == [mock.ANY, 2]",
    "long list": "assert value(list(range(2000))) == list(range(2000))",
    "dict": "assert value({1: 2}) == {1: 2}",
    "nan": "assert value(float('nan')) != value(float('nan'))",
    "loop": "for one in (1, 2):\n    assert value(one) == one",
    "branch": "if value() == 5:\n    assert value() == 5\nelse:\n    assert value() == 6",
    "after a return": "if value() == 6:\n    return\nassert value() == 5",
    "polling": """
        for attempt in range(3):
            try:
                assert value(attempt) == 2
            except AssertionError:
                continue
            break
    """,
    "helper": "check(value(), 5)",
    "helper that changes a literal": "def assert_same(wanted, found):\n    wanted.sort()\n    assert wanted == found\n"
    "    wanted.pop()\nfor _ in (1, 2):\n    assert_same([3, 1], value([1, 3]))",
    "helper that changes a variable": "def assert_same(wanted, found):\n    wanted.sort()\n    assert wanted == found\n"
    "expected = [3, 1]\nassert_same(expected, value([1, 3]))\nassert expected == value([1, 3])",
    "helper that compares": "assert same(value(), 5) and not same(value(), 6)",
    "helper that may fail": "try:\n    check(value(), 6)\nexcept AssertionError:\n    pass\nassert value() == 5",
    "inner function": "def inner():\n    assert value() == 5\ninner()",
    "raises": "with pytest.raises(ValueError) as caught:\n    int('x')\nassert 'x' in str(caught.value)",
    "raises with a pattern": "with pytest.raises(ValueError, match='invalid'):\n    int('x')",
    "raises of a call": "pytest.raises(ValueError, int, 'x')",
    "raises of a call with names": "pytest.raises(ValueError, int, 'x', base=16)",
    "raises of one's own": "def raises(kind, function, *given):\n    try: function(*given)\n"
    "    except kind: return\n    raise AssertionError\nraises(ValueError, int, 'x')\nassert value() == 5",
    "raises of an object": "taker = Taker()\ntaker.raises(ValueError, int, 'x')\n"
    "assert taker.taken == (ValueError, int)",
    "raises of code": "taker = Taker()\ntaker.raises(ValueError, 'int(given)')\nassert taker.taken[1] == 'int(given)'",
    "raises of a failure": "with pytest.raises(AssertionError):\n    assert value() == 6\nassert value() == 5",
    "numpy's": "np.testing.assert_allclose(value(0.1) + 0.2, 0.3)\nnpt.assert_array_less([value()], [6])",
    "a function of numpy's": "assert_array_equal(value([1, 2]), np.array([1, 2]), 'a message')",
    "numpy's, and what it takes by name": "npt.assert_allclose(value(0.3), 0.31, rtol=0.1)\n"
    "npt.assert_allclose(actual=value(1), desired=1)",
    "numpy's, of nothing": "npt.assert_array_equal(value(np.array([])), np.array([]))\nnpt.assert_equal(value([]), [])",
    "numpy's, of what is no number": "npt.assert_equal(value(float('nan')), float('nan'))\n"
    "npt.assert_array_equal(value(np.array([np.nan, np.inf])), np.array([np.nan, np.inf]))",
    "numpy's, of small numbers": "npt.assert_array_equal(value(np.array([1], 'u1')), np.array([1], 'u1'))",
    "numpy's assert_raises": "npt.assert_raises(TypeError, int, [])\nassert value() == 5",
    "pandas'": "pd.testing.assert_series_equal(pd.Series([value()]), pd.Series([5]))",
    "any": "assert value() == mock.ANY",
    "any, the other way round": "assert mock.ANY == 5",
    "mock": "called = mock.Mock()\ncalled(5)\ncalled.assert_called_once_with(5)",
    "a mock called with nothing": "called = mock.Mock()\ncalled()\ncalled.assert_called_once_with()",
    "calls of a mock": "called = mock.Mock()\ncalled(1, a=2)\nassert called.call_args == mock.call(1, a=2)\n"
    "assert called.mock_calls == [mock.call(1, a=2)]",
    "what holds itself": "one = {}\none['a'] = one\nassert value(one) == one\nother = [1]\nother.append(other)\n"
    "assert value(other) == other",
    "a mock with arguments of any name": "called = mock.Mock()\nnames = dict(name=1, owner=2, asked=3, function=4)\n"
    "called(**names)\ncalled.assert_called_once_with(name=1, owner=2, asked=3, function=4)",
    "a mock with a signature": "called = mock.create_autospec(value)\ncalled(5)\ncalled.assert_called_once_with(5)",
    "warns": "with pytest.warns(UserWarning):\n    warnings.warn('x')\nassert value() == 5",
    "another test": "test_other()\nassert value() == 5",
    "what is called lives as long as it is asked": "assert id(Anything()) != id(Anything())",
    "equal to what the test made to equal anything": "assert value() == Anything() and Anything() == value(Number(5))",
    "an object": "assert value(Number(5)) == Number(5)",
    "an object without attributes": "assert value(Empty()) == Empty()",
    "unequal": "assert value(Number(5)) != Number(6)",
    "a variable": "expected = 5\nassert value() == expected\nassert value(5) == expected",
    "a variable that changes": "expected = [1]\nexpected.append(2)\nassert value([1, 2]) == expected",
    "a variable with several values": "x = 5\nassert value() == x\nx = 6\nassert value(6) == x",
    "a variable of a loop": "for x in (1, 2):\n    assert value(x) <= x\nassert value(2) == x",
    "another's variable of the same name": """
        expected = 5
        def inner(expected):
            assert value(6) == expected
        inner(6)
        assert value() == expected
    """,
    "nested literals": "assert value([1, ('a', b'b', {1: -2.5})]) == [1, ('a', b'b', {1: -2.5})]",
    "a literal of which some cannot be another": "assert value([None, True, ..., 1]) == [None, True, ..., 1]",
    "parameters": "def inner(a, b=5, *, c=6):\n    assert value() == b\n    assert value(6) == c\ninner(1)",
    "in a set": "assert value() in {4, 5}",
    "in an iterator": "assert value() in iter([4, 5])",
    "order of what is less than everything": "assert value(Less()) < 5 and 4 > value(Less()) <= 6",
    "order of numbers": "assert np.float64(value()) < 6 and value(float('-inf')) < Number(5) <= np.inf",
    "order of what is not plain": "assert np.float64(value()) < 6\nassert np.float64('-inf') <= value()\n"
    "assert Number(5) >= value(Number(5)) > float('-inf')\nassert value(pd.Timestamp(5)) < pd.Timestamp(6)",
    "order": "assert value() < 6 and value() >= 5\nassert value() <= 5",
    "nonlocal": "x = 1\ndef inner():\n    nonlocal x\n    x = 2\ninner()\nassert x == 2",
}

DISBELIEVED = {
    "any, of who is tested": "assert 5 == value(mock.ANY)",
    "any, of who is tested, on the left": "assert value(mock.ANY) == 5",
    "any, of who is tested, by a name": "found = value(mock.ANY)\nassert found == 5",
    "equal to everything": "assert value(Same()) == 5",
    "equal to everything, the other way round": "assert 5 == value(Same())",
    "a literal that no comparison looks at": "assert value(Same()) == [1, 2]",
    "equal to everything, in a helper": "assert same(value(Same()), 5)",
    "equal to everything, in a part": "assert all(value(Same()) == one for one in (1, 2))",
    "equal to everything, in a list": "assert value([1, Same()]) == [1, 2]",
    "equal to everything, in a tuple": "assert value((Same(), 1)) == (2, 1)",
    "equal to everything, in a dict": "assert value({1: 2, 'a': Same()}) == {1: 2, 'a': 3}",
    "equal to everything, deep in a list": "assert value([[], [{'a': (Same(),)}]]) == [[], [{'a': (1,)}]]",
    "any, in a list": "assert value([mock.ANY] * 3) == [1, 2, 3]",
    "equal to everything, in what is near": "assert value([Same(), 2]) == pytest.approx([1, 2])",
    "equal to everything, in a place of many": "assert value([Same()] * 2000) == list(range(2000))",
    "equal to everything, somewhere": "assert value(Same()) in (5, 6)",
    "equal to everything, in a chain": "assert value(Same()) == value() == 5",
    "equal to what it is compared with first": "assert value(Learner()) == 5",
    "equal to what is as long": "assert value(Long('abc')) == 'xyz'",
    "equal to what is near": "assert value(Near(7.5)) == 2.5",
    "less and greater than everything": "assert value(Beyond()) < 5",
    "less and greater than everything, in a chain": "assert 4 > value(Beyond()) <= 6",
    "a mock called with anything": "called = mock.Mock()\ncalled(value(Same()))\ncalled.assert_called_with(5)",
    "numpy's, with any tolerance": "npt.assert_allclose(value(7.0), 0.3, rtol=1e9)\n",
    "numpy's, with any tolerance, of arrays": "npt.assert_allclose(value(np.array([7])), np.array([3]), rtol=1e9)\n",
    "a failure that a context takes": "with taking():\n    assert value() == 6",
    "a failure that a stack of contexts takes": "with contextlib.ExitStack() as stack:\n"
    "    stack.enter_context(taking())\n    assert value() == 6",
    "a failure that a context takes, by a name": "context = taking()\nwith context:\n    assert value() == 6",
    "an error that a context takes, by a name": "context = taking()\nwith context:\n    raise OSError\n"
    "    assert value() == 6",
    "a failure that a context takes, of an object": "called = mock.Mock()\ncalled.context = taking()\n"
    "with called.context:\n    assert value() == 6",
    "an error that a context takes": "with taking():\n    raise OSError\n    assert value() == 6",
    "an exception of any class": "with pytest.raises(Any):\n    raise OSError",
    "an exception of many classes": "with pytest.raises(ValueError):\n    raise Many",
    "not so": "assert value() == 6",
    "not so, in a loop": "for one in (1, 2):\n    assert value(one) == 0",
    "not so, in a helper": "check(value(), 6)",
    "not so, then an error": "assert value() == 6\nraise OSError",
    "nothing raised": "with pytest.raises(ValueError):\n    int('5')",
    "nothing raised in a call": "pytest.raises(ValueError, int, '5')",
    "an exception of many classes, of a call": "def fails(): raise Many\npytest.raises(ValueError, fails)",
    "raises that takes anything": "with Lenient.raises(ValueError):\n    raise OSError",
}

WITHOUT = {
    "no expectation": "value()",
    "only what it is": "'''It is this.'''",
    "only another's": "unknown.assert_something(value())",
    "a branch that is not taken": "if value() == 6:\n    assert value() == 5",
}

HEAD = r"""
import contextlib, logging, pytest, unittest, warnings
from unittest import mock
import numpy as np, pandas as pd
import numpy.testing as npt
from numpy.testing import assert_array_equal

class Anything:
    def __eq__(self, other):
        return True
    __hash__ = None

exec("class Same:\n def __eq__(self, other):\n  return True")

exec('''
class Empty:
    def __eq__(self, other):
        return vars(self) == vars(other) or str(self) == str(other)
    def __str__(self):
        return ""

class Learner(int):
    def __eq__(self, other):
        return vars(self).setdefault("learnt", other) == other

class Less:
    __lt__ = __le__ = lambda self, other: True
    __gt__ = __ge__ = lambda self, other: False

class Beyond:
    __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: True

class Long(str):
    def __eq__(self, other):
        return len(self) == len(other)

class Near(float):
    def __eq__(self, other):
        return abs(self - other) < 100

class Kind(type):
    def __instancecheck__(self, one):
        return True
    __subclasscheck__ = __instancecheck__

class Any(Exception, metaclass=Kind):
    pass

class Many(ValueError, TypeError, KeyError, IndexError, NotImplementedError):
    pass

@contextlib.contextmanager
def taking():
    with contextlib.suppress(Exception):
        yield
''')

class Lenient:
    @staticmethod
    def raises(expected):
        return contextlib.suppress(BaseException)

class Taker:
    def raises(self, kind, function, *given):
        self.taken = kind, function

unknown = mock.MagicMock(unsafe=True)

def value(given=5):
    return given

def check(left, right):
    assert left == right

def same(left, right):
    return left == right

class Number(int):
    __hash__ = int.__hash__
    def __eq__(self, other):
        return type(other) is Number and int(self) == int(other)

def test_other():
    assert value() == 5

def test_it():
    '''What it is.'''
"""


UNITTESTS = {
    "assertEqual": "self.assertEqual(value(), 5)",
    "assertEqual of others": "self.assertEqual(value(), value())",
    "assertNotEqual": "self.assertNotEqual(value(), 6)",
    "assertTrue": "self.assertTrue(value())",
    "assertFalse": "self.assertFalse(value(0), 'a message')",
    "assertIs": "self.assertIsNone(value(None))",
    "assertIn": "self.assertIn(value(), [5])",
    "assertIn of others": "self.assertIn(value(Number(5)), [Number(5)])",
    "assertIn of an iterator": "self.assertIn(2, (one for one in range(5)))\nself.assertIn(2, map(int, '123'))",
    "assertCountEqual of an iterator": "self.assertCountEqual(iter([1, 2]), [2, 1])",
    "assertEqual of any": "self.assertEqual(value(), mock.ANY)",
    "assertGreater": "self.assertGreater(value(), 4)",
    "assertAlmostEqual": "self.assertAlmostEqual(value(0.1) + 0.2, 0.3, places=7)",
    "assertRegex": "self.assertRegex(value('abc'), 'b')",
    "assertCountEqual": "self.assertCountEqual(value([1, 2]), [2, 1])",
    "assertDictEqual": "self.assertDictEqual(value({1: 2}), {1: 2})",
    "assertRaises": "with self.assertRaises(ValueError) as caught:\n    int('x')\n"
    "self.assertIn('x', str(caught.exception))",
    "assertRaises of a call": "self.assertRaises(ValueError, int, 'x')",
    "assertRaisesRegex": "with self.assertRaisesRegex(ValueError, 'invalid'):\n    int('x')",
    "assertRaisesRegex of a call": "self.assertRaisesRegex(ValueError, 'invalid', int, 'x')",
    "a helper that changes a variable": "self.assertSame = lambda wanted, found: wanted.sort()\n"
    "expected = [3, 1]\nself.assertSame(expected, value([1, 3]))\nself.assertEqual(expected, value([1, 3]))",
    "an old name as another": "self.assertEquals = self.assertEqual\nself.assertEquals(value(), 5)",
    "a name of its own": "self.assertSame = self.assertEqual\nself.assertSame(value(), 5)",
    "subTest": "for one in (1, 2):\n    with self.subTest(one=one):\n        self.assertEqual(value(one), one)",
    "assertLogs": "with self.assertLogs('x'):\n    logging.getLogger('x').error('')\nself.assertTrue(value())",
}

if hasattr(unittest.TestCase, "assertEquals"):  # up to Python 3.11
    UNITTESTS["an old name"] = "warnings.simplefilter('ignore')\nself.assertEquals(value(), 5)"

UNITTESTS_DISBELIEVED = {
    "equal to everything, in a list": "self.assertEqual(value([Same()]), [1])",
    "equal to everything, in a dict": "self.assertDictEqual(value({1: Same()}), {1: 2})",
    "equal to everything, somewhere": "self.assertIn(value(Same()), [5, 6])",
    "equal to what it is compared with first": "self.assertEqual(value(Learner()), 5)",
    "equal to what is as long": "self.assertEqual(value(Long('abc')), 'xyz')",
    "a failure that a context takes": "with taking():\n    self.assertEqual(value(), 6)",
    "an old name of another method": "self.assertEquals = self.assertIsNotNone\nself.assertEquals(value(), 6)",
    "a method by another's name": "self.assertEqual = self.assertIsNotNone\nself.assertEqual(value(), 6)",
    "a function by a method's name": "import functools\n"
    "self.assertEqual = functools.partial(print)\nself.assertEqual(value(), 6)",
    "a method that says that it is unittest's": "def own(*arguments): pass\n"
    "own.__name__, own.__module__ = 'assertEqual', 'unittest.case'\n"
    "type(self).assertEqual = own\nself.assertEqual(value(), 6)",
    "equal to everything": "self.assertEqual(value(Same()), 5)",
    "a method that asserts nothing": "self._getAssertEqualityFunc = lambda *_: lambda *_, **__: None\n"
    "self.assertEqual(value(), 6)",
    "not so, in a subTest": "for one in (1, 2):\n    with self.subTest(one=one):\n"
    "        self.assertEqual(value(one), 1)",
}

UNITTEST_HEAD = HEAD.replace("def test_it():", "class Test(unittest.TestCase):\n  def test_it(self):")


def unittests_outcome(body: str) -> str:
    """What a method of a TestCase comes to when it is run turned."""
    text = UNITTEST_HEAD + textwrap.indent(body, "    ") + "\n"
    result = unittest.TestResult()
    turned(text)["Test"]("test_it").run(result)
    assert not result.errors, result.errors
    if result.failures:
        assert all(SECRET in text for _, text in result.failures)
        return "failed"
    return "skipped" if result.skipped else "passed"


def turned(text: str) -> dict[str, Any]:
    """The namespace of a module that is run turned."""
    tree = ast.parse(text)
    made = Expectations(SECRET, keeps=True)
    turn(tree, "_turned", ["test_it", "test_other"], made.literals)
    code = compile(tree, "<test>", "exec")
    made.anything.own = frozenset(map(id, within(code)))
    space: dict[str, Any] = {"_turned": made, "__name__": "turned", "_code": code}
    exec(code, space)
    return space


def outcome(body: str) -> str:
    """What a test with a body comes to when it is run turned."""
    space = turned(HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n")
    try:
        space["test_it"]()
    except AssertionError as error:
        assert str(error) == SECRET
        return "failed"
    except unittest.SkipTest as error:
        assert str(error) == SECRET
        return "skipped"
    return "passed"


@pytest.mark.parametrize("body", BELIEVED.values(), ids=BELIEVED)
def test_what_passes_for_a_reason_fails(body):
    assert outcome(body) == "failed"


@pytest.mark.parametrize("body", DISBELIEVED.values(), ids=DISBELIEVED)
def test_what_passes_whatever_it_expects_passes(body):
    assert outcome(body) == "passed"


SLOW = """
class Slow:
    asked = 0
    def __init__(self, n): self.n = n
    def __eq__(self, other):
        clock.append(clock[-1] + 0.02)
        Slow.asked += 1
        return isinstance(other, Slow) and self.n == other.n
def test_it():
    assert [Slow(n) for n in range(100)] == [Slow(n) for n in range(100)]
"""


def test_what_is_slow_to_compare_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    for module in (asked, expectations):
        monkeypatch.setattr(module, "now", lambda: clock[-1])
    space = turned("clock = []\n" + SLOW)
    space["clock"] = clock
    with pytest.raises(AssertionError, match=SECRET):
        space["test_it"]()
    assert 300 < space["Slow"].asked < 1000  # of 2000 and more


def test_who_guesses_the_order_in_which_it_is_asked_is_seldom_right():
    """Of eight orders that nobody can know, one has it equal to what is expected."""
    found = [outcome("assert value(Learner()) == pytest.approx(5)") for _ in range(200)]
    assert 100 < found.count("passed") < 200


@pytest.mark.parametrize("body", WITHOUT.values(), ids=WITHOUT)
def test_what_expects_nothing_that_is_known_is_skipped(body):
    assert outcome(body) == "skipped"


@pytest.mark.parametrize("body", UNITTESTS.values(), ids=UNITTESTS)
def test_methods_of_unittest_that_pass_for_a_reason_fail(body):
    assert unittests_outcome(body) == "failed"


@pytest.mark.parametrize("body", UNITTESTS_DISBELIEVED.values(), ids=UNITTESTS_DISBELIEVED)
def test_methods_of_unittest_that_pass_whatever_they_expect_pass(body):
    assert unittests_outcome(body) == "passed"


@pytest.mark.parametrize("instead", [np.isclose, logging.debug, lambda *sides: None], ids=["its", "Python's", "ours"])
def test_a_function_of_numpy_that_is_another_passes(monkeypatch, instead):
    monkeypatch.setattr(np.testing, "assert_allclose", instead)
    assert outcome("np.testing.assert_allclose(value(), 6)") == "passed"


def test_a_function_that_says_that_it_is_numpy_s_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def assert_allclose(actual: object, desired: object) -> None:
        pass

    assert_allclose.__module__ = "numpy.testing"
    monkeypatch.setattr(np.testing, "assert_allclose", assert_allclose)
    assert outcome("np.testing.assert_allclose(value(), 6)") == "passed"


def test_functions_of_numpy_hardly_write_down_what_they_compare_and_are_not_asked_for_ever() -> None:
    space = turned(
        "import numpy as np\n"
        "shown, compared = [], []\n"
        "class Number(int):\n"
        "    def __repr__(self): shown.append(1); return ''\n"
        "    def __eq__(self, other): compared.append(1); return int(self) == other\n"
        "def test_it():\n"
        "    for _ in range(1000):\n"
        "        np.testing.assert_array_equal(np.array([Number(5)], object), [5])\n"
    )
    with pytest.raises(AssertionError, match=SECRET):
        space["test_it"]()
    assert len(space["shown"]) < len(space["compared"]) < 8000  # of 12,000, were not most of them only counted


def test_a_test_that_is_left_before_it_asks_passes():
    with Expectations(SECRET).test(1):
        pass


def test_every_line_keeps_its_number():
    text = textwrap.dedent(
        """
        def test_it():
            'What it is.'

            x = 5

            assert x == 5, (
                'not five'
            )
            raise KeyError(x)
        """
    )
    before, after = ast.parse(text), ast.parse(text)
    assert turn(after, "_turned", ["test_it"], []) == {"test_it": 1}
    lines = [{node.lineno for node in ast.walk(one) if isinstance(node, ast.stmt)} for one in (before, after)]
    assert lines[0] == lines[1]


def test_what_is_expected_stands_nowhere_in_the_code() -> None:
    """In no constants nor names of it, but for what the tests only call with."""
    space = turned(
        "import math, re, pytest, unittest\nfrom unittest import mock\n"
        "def value(given): return given\n"
        "class T(unittest.TestCase):\n"
        "    def test_other(self):\n"
        "        self.assertIn('one', value('a one'))\n"
        "        self.assertRegex(value('two'), 'tw')\n"
        "        self.assertRaises(KeyError, {}.pop, 2)\n"
        "def test_it():\n"
        "    assert 'one' in value('a one')\n"
        "    assert value('one').startswith('on') and not value('two') < 'o'\n"
        "    assert re.search('tw.', value('two')) and f'on{value(1)}' == value('on1')\n"
        "    assert abs(value(6.5) - 6.25) < 0.5 < value(1)\n"
        "    assert value({'a': [6.5]})['a'][0] == 6.5\n"
        "    with pytest.raises((ZeroDivisionError, KeyError), match='by z'):\n"
        "        value(9) / 0\n"
        "    with pytest.raises(ZeroDivisionError):\n"
        "        value(9) / 0\n"
    )
    with pytest.raises(AssertionError, match=SECRET):
        space["test_it"]()
    result = unittest.TestResult()
    space["T"]("test_other").run(result)
    assert SECRET in result.failures[0][1]
    for code in (space["test_it"].__code__, space["T"].test_other.__code__):
        codes = list(within(code))
        names = {name for one in codes for name in one.co_names}
        constants = [constant for one in codes for constant in one.co_consts]
        assert not names & {"KeyError"} and "KeyError" not in constants
        for told in ("one", "on", "o", "two", "tw", "tw.", "by z", 6.25, 0.5, 6.5):
            assert told not in constants, told


def test_what_a_test_calls_with_arrives_as_it_is() -> None:
    """A new list each time, and the same number or text that the code of others has."""
    space = turned(
        "def value(given): seen.append(given); return given\n"
        "seen = []\nTEXT = 'text'\n"
        "def test_it():\n"
        "    for _ in range(2):\n"
        "        assert value([1, 'a']) == [1, 'a']\n"
        "        assert value('text') and value((1, 2)) and value(b'x') and value(True) is True\n"
    )
    with pytest.raises(AssertionError, match=SECRET):
        space["test_it"]()
    first, second = space["seen"][:5], space["seen"][5:]
    assert first == second == [[1, "a"], "text", (1, 2), b"x", True]
    assert first[0] is not second[0] and first[1] is second[1] is space["TEXT"]


@pytest.mark.parametrize("literal", ["[3, 1]", "{3, 1}", "{3: 1}", "[[3], {1: 2}]", "{'a': [3]}", "([3], {1})"])
def test_who_changes_what_is_expected_changes_it_once(literal: str) -> None:
    """Whether it is called with it, or compared."""
    space = turned(
        "seen = []\n"
        "def spoil(given):\n"
        "    inner = given.values() if type(given) is dict else given\n"
        "    for one in [*inner, given]:\n"
        "        getattr(one, 'clear', list)()\n"
        "def value(given):\n"
        "    seen.append([repr(given)])\n"
        "    return spoil(given) is None\n"
        "class Spoiling:\n"
        "    def __init__(self):\n"
        "        self.seen = []\n"
        "        seen.append(self.seen)\n"
        "    def __eq__(self, other):\n"
        "        self.seen.append(repr(other))\n"
        "        return spoil(other) is None\n"
        "def test_it():\n"
        "    for _ in range(2):\n"
        f"        assert value({literal})\n"
        f"        assert Spoiling() == {literal}\n"
    )
    with pytest.raises(AssertionError, match=SECRET):
        space["test_it"]()
    assert len(space["seen"]) == 4
    assert all(repr(eval(literal)) in one for one in space["seen"])


CONTEXTS = """
import contextlib, pytest
from unittest import mock
parameterized = mock.MagicMock()

def value(given): return given

@pytest.fixture(params=[contextlib.nullcontext(), pytest.raises(AssertionError)])
def chosen(request): return request.param

@pytest.fixture
def wrapped(): return pytest.raises(AssertionError)

@parameterized.expand([(5, contextlib.nullcontext()), (6, pytest.raises(AssertionError))])
def expanded(given, context): pass

@pytest.mark.parametrize("given, marked", [(5, contextlib.nullcontext()), (6, pytest.raises(AssertionError))])
def test_it({0}):
    with {0}:
        assert value(6) == 5
    assert value(5) == 5
"""


@pytest.mark.parametrize("name", ["chosen", "wrapped", "context", "marked"])
def test_what_a_test_is_given_to_enter_may_take_failures(name: str) -> None:
    space = turned(CONTEXTS.format(name))
    with pytest.raises(AssertionError, match=SECRET):
        space["test_it"](contextlib.suppress(AssertionError))


def test_what_a_test_is_given_to_enter_is_seen_when_it_takes_failures() -> None:
    space = turned(CONTEXTS.format("client"))
    space["test_it"](contextlib.suppress(AssertionError))


def test_parameters_are_not_seen_by_what_is_called() -> None:
    space = turned(
        "import sys\n"
        "def value(): seen.append(dict(sys._getframe(1).f_locals)); return 5\n"
        "seen = []\n"
        "def test_it(given, expected, *, named=6):\n"
        "    assert value() == expected\n"
        "    assert value() + given == named\n"
        "    other = 5\n"
        "    assert value() == other\n"
        "    found = value()\n"
        "    assert found == 5\n"
        "    assert found + 0 == expected\n"
    )
    with pytest.raises(AssertionError, match=SECRET):
        space["test_it"](1, 5)
    assert len(space["seen"]) > 2
    for seen in space["seen"]:
        assert 5 not in seen.values() and 6 not in seen.values()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            b"def f():\n    assert g() == 5  # 5\n    assert 5 == 5\n",
            b"def f():\n    assert g() == 12  # 5\n    assert 5 == 5\n",
        ),
        (b"def f():\r\n    assert 'x' == g()\r\n", b"def f():\r\n    assert 'y' == g()\r\n"),
        (
            "def f():\n    assert g('ä') == 'ö' 'ü'\n".encode(),
            b"def f():\n    assert g('7') == '77'\n",
        ),
        (
            b"def f():\n    assert g() == [1,\n        2]  # 2\n    assert g() == 5\n",
            b"def f():\n    assert g() == ([8, 9]\n)  # 2\n    assert g() == 12\n",
        ),
        (
            b"def f():\n    assert g('''a\n''') == '''b\n\n''' and g() == {1:\n 2} and g() == 3\n",
            b"def f():\n    assert g(('b\\n'\n)) == ('c\\n\\n'\n\n) and g() == ({1: 9}\n) and g() == 10\n",
        ),
        (b"def f():\n    assert g() == 'a' \\\n 'b'\n", b"def f():\n    assert g() == ('bc'\n)\n"),
        (b"def f(self):\n    self.assertEqual(g(), -5, 6)\n", b"def f(self):\n    self.assertEqual(g(), 2, 13)\n"),
        (b"def f():\n    assert 'x' in g()\n", b"def f():\n    assert 'y' in g()\n"),
        (b"def f():\n    assert 3 < abs(g() - 4)\n", b"def f():\n    assert 10 < abs(g() - 11)\n"),
        (
            b"def f():\n    with pytest.raises((A, b.C), match='x'):\n        g(5)\n",
            b"def f():\n    with pytest.raises((A7, b.C7), match='y'):\n        g(5)\n",
        ),
        (b"def f(A):\n    self.assertRaises(A, g, 5)\n", b"def f(A):\n    self.assertRaises(A, g, 5)\n"),
        (b"def f():\n    raises(A, g, 'x', match='y')\n", b"def f():\n    raises(A7, g, 'x', match='y')\n"),
        (b"def f():\n    def h():\n        assert g() == 5\n", b"def f():\n    def h():\n        assert g() == 12\n"),
        (b"def f():\n    x = g()\n    assert x == 5\n", b"def f():\n    x = g()\n    assert x == 12\n"),
        (b"def f():\n    assert g() == None\n", b"def f():\n    assert g() == None\n"),
    ],
)
def test_the_text_of_a_test_module_tells_something_else(before: bytes, after: bytes) -> None:
    assert blurred(before, ast.parse(before), ["f"]) == after
    assert blurred(before, ast.parse(before), ["g"]) == before
    assert len(after.splitlines()) == len(before.splitlines())


@pytest.mark.parametrize("found", ["g()" + ".a()" * 600, "g()" + " + h()" * 600, "(" * 90 + "g()" + ")" * 90])
def test_the_text_of_a_deep_expectation_tells_something_else(found: str) -> None:
    text = f"def f():\n    assert {found} == 5\n".encode()
    assert blurred(text, ast.parse(text), ["f"]) == text.replace(b"5", b"12")


@pytest.mark.parametrize("text", ["hello", "z9", "wor.*", ".*x", "-", "", "ü"])
def test_what_stands_in_the_place_of_a_text_has_it_not_inside(text: str) -> None:
    other = changed(text)
    assert text not in other or not text
    assert other not in text and changed(text.encode("latin-1")) == other.encode("latin-1")


@pytest.mark.parametrize(
    "value",
    [
        0,
        1,
        -246913580,
        1 << 80,
        1.5,
        1e308,
        float("inf"),
        2j,
        True,
        None,
        "",
        "x",
        b"",
        [],
        [1],
        (),
        {},
        {1: 2},
        {"a": 1},
        set(),
        frozenset((1,)),
    ],
    ids=repr,
)
def test_another_value_is_equal_to_no_other(value):
    for others in (unlike, far_from):
        assert others(value)
        assert all(one != value for one in others(value))
