"""Calls in tests that pytest runs, on each interpreter."""

from __future__ import annotations

import pytest
from following import Follow
from support import has

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
