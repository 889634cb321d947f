"""Calls in tests that pytest runs, on each interpreter."""

from __future__ import annotations

import pytest
from following import Follow
from support import has, repeated

TESTS = """\
import hidden
from app import f

def test_first():
    assert f(1) == 1

def test_second():
    assert f(2) == 3

class TestMore:
    def test_third(self):
        hidden.check(3)
"""
HIDDEN = "def check(x):\n    secret = 'nobody sees it'\n    assert x == 4, 'three'\n"
APP = "def f(x):\n    y = x\n    return y\n\n\ndef never(): pass\n"
FILES = {"test_app.py": TESTS, "hidden.py": HIDDEN}
WITH_PLUGINS = "python -m pytest -q -p no:cacheprovider"
PYTEST = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {WITH_PLUGINS}"


def test_the_test_is_told_and_how_it_ends(trace_tests: Follow) -> None:
    found = trace_tests(APP, entrypoint=PYTEST, files=FILES, call=2)
    assert found.lines == ["  x = 2", "2  y = x  | y = 2", "3  return y", "returned 2 (line 3)"]
    assert found.story.test == "test_app.py::test_second"
    told = [one for one in found.messages if one["t"] == "test"]
    assert [(one["test"], one["outcome"]) for one in told] == [("test_app.py::test_second", "failed")]
    assert told[0]["message"].startswith("assert 2 == 3")
    assert found.last["tests"] == {"passed": 1, "failed": 2}
    assert found.last["end"]["status"] == 1


def test_a_test_itself_is_followed_and_nothing_of_the_machinery_is_told(trace_tests: Follow) -> None:
    found = trace_tests(APP, "test_app.py:test_second", entrypoint=PYTEST, files=FILES)
    assert found.lines[:2] == ["8  assert f(2) == 3", "       > f(x=2) -> 2"]
    assert "@py" not in str(found.last)
    assert found.story.caller is None


def test_what_is_hidden_is_not_in_what_pytest_prints(trace_tests: Follow) -> None:
    shown = trace_tests(APP, "never", entrypoint=PYTEST, files=FILES)
    assert shown.last["story"] is None and "nobody sees it" in shown.printed
    hidden = trace_tests(APP, "never", entrypoint=PYTEST, files=FILES, ignored=["hidden.py"])
    assert "nobody sees it" not in hidden.printed and "three" in hidden.printed


@pytest.mark.debugger
@pytest.mark.parametrize(
    ("plugin", "options"),
    [
        ("xdist", "-n 2"),
        ("pytest_cov", "--cov=app --cov-branch"),
        ("pytest_timeout", "--timeout 1"),
        ("pytest", "-s --pdb"),
    ],
)
def test_other_plugins_are_kept_out_of_the_way(plugin: str, options: str, python: str, trace_tests: Follow) -> None:
    if not has(python, plugin):
        pytest.skip(f"this interpreter has no {plugin}")
    found = trace_tests(APP, entrypoint=f"{WITH_PLUGINS} {options}", files=FILES, call=2)
    assert found.lines[-1] == "returned 2 (line 3)"
    assert found.last["tests"] == {"passed": 1, "failed": 2}


HYPOTHESIS = """\
import app
from hypothesis import given, settings, strategies as st
@settings(max_examples=5, database=None)
@given(st.integers(101, 103))
def test_hyp(x):
    y = x + 1
    assert app.f(y) == x + 1
@given(st.integers(101, 103))
def test_short(x): assert app.f(x) == x
"""


@pytest.mark.parametrize("test", ["test_hyp", *repeated("debugger", "test_short")])
def test_of_a_hypothesis_test_what_is_written_is_followed(test: str, python: str, trace_tests: Follow) -> None:
    if not has(python, "hypothesis"):
        pytest.skip("this interpreter has no hypothesis")
    files = {"test_h.py": HYPOTHESIS}
    entrypoint = f"{PYTEST} -p _hypothesis_pytestplugin test_h.py::{test}"
    for call in (1, 2):
        found = trace_tests(APP, f"test_h.py:{test}", entrypoint=entrypoint, files=files, call=call)
        assert dict(found.story.arguments)["x"][:2] == "10" and found.story.caller is None, found.text
        assert any("> f(x=10" in line for line in found.lines), found.text


WRAPPED = """\
import types
def wrap(function):
    def wrapper(x):
        return function(x)
    code, own = wrapper.__code__, function.__code__
    made = [own.co_filename, own.co_name, own.co_firstlineno]
    def replaced(code, filename, name, line):
        parts = [code.co_argcount, *([code.co_posonlyargcount] if hasattr(code, "co_posonlyargcount") else [])]
        return types.CodeType(*parts, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize, code.co_flags,
            code.co_code, code.co_consts, code.co_names, code.co_varnames, filename, name, line, code.co_lnotab,
            code.co_freevars, code.co_cellvars)
    if hasattr(code, "replace"):
        wrapper.__code__ = code.replace(co_filename=made[0], co_name=made[1], co_firstlineno=made[2])
    else:
        wrapper.__code__ = replaced(code, *made)
    return wrapper
@wrap
def f(x):
    y = x + 1
    return y
@wrap
def g(x): return x + 1
def main():
    return f(1) + g(2)
main()
"""


@pytest.mark.parametrize(("target", "returned"), [("f", 2), ("g", 3)])
def test_a_wrapper_with_the_place_of_what_it_wraps_is_not_followed(target: str, returned: int, trace: Follow) -> None:
    found = trace(WRAPPED, target)
    assert found.last["calls"] == 1 and found.lines[-1].startswith(f"returned {returned} (line")
    assert found.story.caller is not None and found.story.caller.function == "main"
    again = trace(WRAPPED, target, call=2).last
    assert again["calls"] == 1 and again["story"] is None
    assert sum(f"> {target}(" in line for line in trace(WRAPPED, "main").lines) == 1


CASES = """\
import pytest
@pytest.mark.parametrize("v", [1, 2, "é", "a::b[2]"])
def test_p(v):
    assert v
class TestC:
    @pytest.mark.parametrize("v", [1, 2])
    def test_p(self, v): assert v
"""


@pytest.mark.parametrize(
    ("target", "case", "value"),
    [
        ("test_p", "[2]", "2"),
        ("test_p", "[é]", "'é'"),
        *repeated(
            "debugger",
            ("test_p", "[\\xe9]", "'é'"),
            ("test_p", "[a::b[2]]", "'a::b[2]'"),
            ("TestC.test_p", "[2]", "2"),
        ),
    ],
)
def test_a_case_that_is_named_is_run_alone(target: str, case: str, value: str, trace_tests: Follow) -> None:
    entrypoint = f"{PYTEST} test_c.py test_app.py"
    files = {**FILES, "test_c.py": CASES}
    found = trace_tests(APP, f"test_c.py:{target}", entrypoint=entrypoint, files=files, case=case)
    assert dict(found.story.arguments)["v"] == value and found.last["tests"] == {"passed": 1}


def test_a_case_that_is_not_there_is_said_to(trace_tests: Follow) -> None:
    entrypoint, files = f"{PYTEST} test_c.py", {"test_c.py": CASES}
    found = trace_tests(APP, "test_c.py:TestC.test_p", entrypoint=entrypoint, files=files, case="[5]")
    assert found.last["story"] is None and "TestC::test_p has no case [5]; it has [1], [2]" in found.printed
    found = trace_tests(APP, "f", entrypoint=PYTEST, files=FILES, case="[5]")
    assert found.story.call == 1
