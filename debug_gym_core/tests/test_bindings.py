"""What the text of a test module says of its names, and how many expectations a test asks in every run that passes."""

import ast
import sys
import textwrap

import pytest

from debug_gym_core.grading.runner import bindings
from debug_gym_core.grading.runner.bindings import Bindings, parameters
from debug_gym_core.grading.runner.expectations import Expectations
from debug_gym_core.grading.runner.turning import turn

MODULE = """
import cases
from unittest import mock
from unittest.mock import ANY
CASES = [(1, 2), (2, 4)]
TABLE = {{"a": 1}}
NONE = []
MADE = make()
TWICE = [1]
TWICE = []
EMPTIED = [1]
LOCAL = [1]
WHATEVER = mock.ANY
ONCE, OTHER = ANY, 3
CHANGED = ANY

def fill():
    EMPTIED.clear()
    CHANGED = 5

def test_it(LOCAL):
{body}
"""


def certain(body: str) -> int:
    tree = ast.parse(MODULE.format(body=textwrap.indent(body, "    ")))
    return turn(tree, "E", ["test_it"], Expectations(""))["test_it"]


@pytest.mark.parametrize(
    "loop",
    [
        "for a, b in CASES:",
        "for number, (a, b) in enumerate(CASES):",
        "for a, b in zip(CASES, [1]):",
        "for a in sorted(reversed(CASES)):",
        "for key, value in TABLE.items():",
        "for a in range(3):",
        "for a in range(1, 5, 2):",
        "for a in (1, 2):",
        "for a in [*cases.all, 3]:",
        "for a in {1: 2}:",
    ],
)
def test_a_loop_over_what_is_written_there_goes_round(loop: str) -> None:
    assert certain(f"{loop}\n    assert f(a) == 1\n    assert a") == 2
    assert certain(f"{loop}\n    with self.subTest(a=a):\n        self.assertEqual(f(a), 1)") == 1
    assert certain(f"{loop}\n    for b in (1, 2):\n        assert f(a, b)\nelse:\n    assert f(0)") == 1


@pytest.mark.parametrize(
    "loop",
    [
        *(
            "for a in f():",
            "for a in NONE:",
            "for a in MADE:",
            "for a in TWICE:",
            "for a in EMPTIED:",
            "for a in LOCAL:",
        ),
        *("for a in cases.all:", "for a in []:", "for a in [*cases.all]:", "for a in range(0):", "for a in range(n):"),
        *("for a in zip(CASES, f()):", "for a in filter(None, CASES):", "for a in range(10 ** 20):", "while f():"),
        "for a in range('a'):",
    ],
)
def test_a_loop_over_anything_else_may_not(loop: str) -> None:
    assert certain(f"{loop}\n    assert f(a) == 1") == 0


@pytest.mark.parametrize("leave", ["continue", "break", "return"])
def test_what_comes_after_one_that_may_leave_a_loop_is_not_certain(leave: str) -> None:
    assert certain(f"for a in CASES:\n    if f(a): {leave}\n    assert a\nassert f(3)") == (leave != "return")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (MODULE.format(body="    pass"), {"WHATEVER"}),
        ("for given, expected in [(3, 6), (4, ANY)]: pass", {"given", "expected"}),
        ("result = ANY\nresult, more = f(), 1", set()),
        ("result = ANY\nfor result in f(): pass", set()),
        ("result = ANY\nwith f() as result: pass", set()),
        ("result = ANY\ndef g(result): pass", set()),
        ("result = ANY\nimport result", set()),
        ("for result in [1]: pass\nresult = f()", set()),
        ("result = ANY\n(result := f())", set()),
        ("from helpers import *\nTABLE['x'] = ANY", set()),
        ("result = f()\nresult.x = ANY", set()),
    ],
)
def test_names_of_what_equals_anything(text: str, names: set[str]) -> None:
    assert Bindings(ast.parse(text)).anything == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("d = c.x\nc = list(b)[0]\nb = a\na = f(1)", set("abcd")),
        ("a = b\nb = a", set()),
        ("a = f()\nb = a\na = 1", set()),
        ("a = f()\na = f(a)\nb = g.a()", {"a"}),
        ("a = f\nb = sorted(f)\nc = f.x()\nd = f().x", {"c", "d"}),
        ("a = helpers()\nb = sys()\nc = 1", set()),
    ],
)
def test_names_of_what_functions_return_that_are_imported(text: str, names: set[str]) -> None:
    assert Bindings(ast.parse(f"import f, sys\nfrom tests import helpers\n{text}")).answers == names


def test_a_chain_of_names_is_gone_through_once() -> None:
    def calls(count: int) -> int:
        made = 0

        def watch(frame, event, _):
            nonlocal made
            made += event == "call" and frame.f_code.co_filename == bindings.__file__

        tree = ast.parse("import f\na0 = f()\n" + "".join(f"a{one + 1} = a{one}\n" for one in range(count)))
        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            names = Bindings(tree).answers
        finally:
            sys.setprofile(before)
        assert len(names) == count + 1
        return made

    assert calls(200) < 3 * calls(100)


@pytest.mark.parametrize(
    ("decorator", "body", "names"),
    [
        ("parametrize('a, b', [])", "pass", {"a", "b"}),
        ("parametrize(['a', 'b'], [])", "pass", {"a", "b"}),
        ("parametrize(argnames=('a', 'b'), argvalues=[])", "pass", {"a", "b"}),
        ("parametrize('a, b', [])", "a = f(a)", {"b"}),
        ("skipif('a', 'b')", "pass", set()),
    ],
)
def test_names_of_parameters(decorator: str, body: str, names: set[str]) -> None:
    (function,) = ast.parse(f"@pytest.mark.{decorator}\ndef test_it(a, b):\n    {body}").body
    assert isinstance(function, ast.FunctionDef)
    assert parameters(function) - {""} == names
