"""What a test expects stands nowhere in its code, variables and text; and who is given it gets it as it is."""

import ast
import copy
import unittest

import pytest
from turned_modules import SECRET, turned

from debug_gym_core.grading.runner.literals import blurred, changed
from debug_gym_core.grading.runner.twins import within
from debug_gym_core.grading.runner.unlike import far_from, unlike


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


def test_nobody_else_makes_what_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    space = turned("def value(): return [[6]]\ndef test_it():\n    assert value() == [[6]]\n")
    monkeypatch.setitem(copy._deepcopy_dispatch, list, lambda *_: [])  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match=SECRET):
        space["test_it"]()


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
        "    another = 5\n"
        "    same = value() == another\n"
        "    assert same and [one for one in [0] if one + value() == another] == [0]\n"
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
    "asked",
    [
        "is_wanted(5)",
        "str(inspect.signature(lambda found, *, wanted=5: found == wanted)) == '(found, *, wanted=5)'",
        "(lambda given: given(*copy.deepcopy(given.__defaults__)))(lambda wanted=5: wanted == 5)",
        "(lambda given: given(*[type(one)('5') for one in given.__defaults__]))(lambda wanted=6: wanted == 5)",
    ],
)
def test_what_a_lambda_has_by_default_is_as_it_is_written(asked: str) -> None:
    """It may be made before a test and live after it, and whoever is given it may look at it, copy or convert it."""
    space = turned(
        "import copy, inspect\n"
        "def make(): return lambda found, wanted=5: found == wanted\n"
        "is_wanted = make()\n"
        f"def test_it():\n    assert {asked}\n"
        f"def test_other():\n    assert {asked}\n"
    )
    for test in ("test_it", "test_other"):
        with pytest.raises(AssertionError, match=SECRET):
            space[test]()


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
        (b"def f():\n    x = g(4) == 5\n    assert x\n", b"def f():\n    x = g(11) == 12\n    assert x\n"),
        (b"def f():\n    assert h(lambda: g() == 5)\n", b"def f():\n    assert h(lambda: g() == 12)\n"),
        (b"def f():\n    h(lambda x, y=5: x == y)\n", b"def f():\n    h(lambda x, y=5: x == y)\n"),
        (b"def f():\n    y = 5\n    x = g() == y\n", b"def f():\n    y = 12\n    x = g() == y\n"),
        (b"def f():\n    x = f'{g() == 5}'\n", b"def f():\n    x = f'{g() == 5}'\n"),
        *(
            (f"def f():\n    assert {found} == 5\n".encode(), f"def f():\n    assert {found} == 12\n".encode())
            for found in ("g()" + ".a()" * 600, "g()" + " + h()" * 600, "(" * 90 + "g()" + ")" * 90)
        ),
    ],
)
def test_the_text_of_a_test_module_tells_something_else(before: bytes, after: bytes) -> None:
    assert blurred(before, ast.parse(before), ["f"]) == after
    assert blurred(before, ast.parse(before), ["g"]) == before
    assert len(after.splitlines()) == len(before.splitlines())


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
