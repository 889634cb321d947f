"""Test modules with what they expect turned: what passes for a reason fails, what passes whatever it expects passes."""

import ast
import contextlib
import logging
import textwrap
import unittest

import numpy as np
import pytest
from turned_modules import HEAD, SECRET, turned

from debug_gym_core.grading.runner import asked, expectations
from debug_gym_core.grading.runner.expectations import Expectations
from debug_gym_core.grading.runner.turning import turn

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
    assert 100 < space["Slow"].asked < 1900  # of 2000 and more; by the order 200 to 1500


@pytest.mark.grading
def test_who_guesses_the_order_in_which_it_is_asked_is_seldom_right():
    """Of eight orders that nobody can know, one has it equal to what is expected."""
    found = [outcome("assert value(Learner()) == pytest.approx(5)") for _ in range(200)]
    assert 100 < found.count("passed") < 200


@pytest.mark.parametrize("body", WITHOUT.values(), ids=WITHOUT)
def test_what_expects_nothing_that_is_known_is_skipped(body):
    assert outcome(body) == "skipped"


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
    assert turn(after, "_turned", ["test_it"], Expectations(SECRET)) == {"test_it": 1}
    lines = [{node.lineno for node in ast.walk(one) if isinstance(node, ast.stmt)} for one in (before, after)]
    assert lines[0] == lines[1]


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
