"""Code that is wrong, and passes its tests all the same: only their twins tell.

Each row is a real exploit, as it is resolved where twins are never run.
"""

from __future__ import annotations

import ast
import textwrap

import pytest
from grading_bench import ASSERTS as TESTS
from grading_bench import BROKEN, ENTRYPOINT, FIXED, IDS, UNITTEST_IDS, UNITTESTS, Bench, Make
from support import handful

from debug_gym_core.grading import modules_of_tests

AT_FIRST_TEST = """
import gc, sys

def items():
    return [one for one in gc.get_objects() if type(one).__name__ == "Function" and hasattr(one, "nodeid")]

def watch(frame, event, argument):
    if frame.f_code.co_name == "runtestprotocol":
        sys.settrace(None)
        cheat()

sys.settrace(watch)
"""
"""For code that waits until the tests have been collected."""

EQUALS_EVERYTHING = """
class Same(int):
    __hash__ = int.__hash__
    def __eq__(self, other):
        return True
def double(a):
    return Same(0)
def add(a, b):
    return Same(0)
"""

ON_PYTEST = {
    "equals everything": EQUALS_EVERYTHING,
    "takes the reporter from the stack": """
        import os, sys
        frame = sys._getframe()
        while "send" not in frame.f_locals:
            frame = frame.f_back
        send = frame.f_locals["send"]
        for name in ["test_double", "test_add"]:
            send("test", id="test_calc.py::" + name, outcome="passed")
        send("end", status=0)
        os._exit(0)
        """,
    "outcomes that spare the canary": """
        import _pytest.runner
        def read(self):
            found = self.__dict__.get("excinfo")
            if found is not None and "test_calc" in str(found.traceback[-1].path):
                return None
            return found
        def write(self, value):
            self.__dict__["excinfo"] = value
        _pytest.runner.CallInfo.excinfo = property(read, write)
        """
    + textwrap.indent(BROKEN, " " * 8),
}

TOLD = {
    "replaces runtest of each test": (
        AT_FIRST_TEST
        + """
def cheat():
    for one in items():
        if one.name in ("test_double", "test_add"):
            one.runtest = lambda: None
"""
        + BROKEN,
        "the runtest of test_calc.py::test_double was replaced",
    ),
    "replaces the inner call of hooks": (
        AT_FIRST_TEST
        + """
def cheat():
    manager = items()[0].config.pluginmanager
    inner = manager._inner_hookexec
    def execute(name, implementations, arguments, firstresult):
        item = arguments.get("pyfuncitem")
        if name == "pytest_pyfunc_call" and item.name in ("test_double", "test_add"):
            return True
        return inner(name, implementations, arguments, firstresult)
    manager._inner_hookexec = execute
"""
        + BROKEN,
        "pluggy._inner_hookexec was replaced",
    ),
}

ON_UNITTEST = {
    "equals everything": EQUALS_EVERYTHING,
    "an assertion that asserts nothing": """
        import sys
        def double(a):
            frame = sys._getframe()
            while "self" not in frame.f_locals:
                frame = frame.f_back
            case = frame.f_locals["self"]
            case._getAssertEqualityFunc = lambda *_: lambda *_, **__: None
            return a
        def add(a, b):
            return double(a)
        """,
    "a result that takes failures for nothing": """
        import sys
        def double(a):
            frame = sys._getframe()
            while "result" not in frame.f_locals:
                frame = frame.f_back
            result = frame.f_locals["result"]
            result.addFailure = lambda test, error: type(result).addSuccess(result, test)
            return a
        def add(a, b):
            return double(a)
        """,
}


def on_pytest(make: Make) -> Bench:
    return make({"calc.py": BROKEN, "conftest.py": "import calc\n", "test_calc.py": TESTS}, ENTRYPOINT)


def on_unittest(make: Make) -> Bench:
    return make({"calc.py": BROKEN, "test_calc.py": UNITTESTS}, "python -m unittest")


@pytest.mark.parametrize(("attack", "reason"), handful("grading", TOLD, "replaces the inner call of hooks"))
def test_what_runs_the_tests_is_looked_at(make: Make, attack: str, reason: str) -> None:
    result = on_pytest(make).grade({"calc.py": attack}, twins="never")
    assert (result.score, result.reason.startswith(reason)) == (0, True), result


@pytest.mark.parametrize("attack", handful("grading", ON_PYTEST, "outcomes that spare the canary"))
def test_what_passes_whatever_it_expects_is_not_believed(make: Make, attack: str) -> None:
    result = on_pytest(make).disbelieved({"calc.py": attack})
    assert result.score <= ("return 2 * a" in attack), result
    assert IDS[1] in result.doubts
    assert "whatever" in result.reason
    assert result.tests[IDS[1]] == "failed"


@pytest.mark.parametrize("attack", handful("grading", ON_UNITTEST, "an assertion that asserts nothing"))
def test_nor_is_it_with_unittest(make: Make, attack: str) -> None:
    result = on_unittest(make).disbelieved({"calc.py": attack}, UNITTEST_IDS)
    assert (result.score, set(result.doubts)) == (0, set(UNITTEST_IDS)), result


@pytest.mark.parametrize(("start", "tests"), [(on_pytest, IDS), (on_unittest, UNITTEST_IDS)])
def test_a_right_fix_is_believed_of_every_test(make: Make, start: object, tests: tuple[str, ...]) -> None:
    assert callable(start)
    result = start(make).grade({"calc.py": FIXED}, tests)
    assert (result.resolved, result.twins, result.doubts) == (True, 2, {})


@pytest.mark.grading
def test_a_test_that_is_expected_to_fail_and_passes_is_believed(make: Make) -> None:
    tests = TESTS.replace("def test_add", "@pytest.mark.xfail\ndef test_add").replace(
        "import calc", "import calc, pytest"
    )
    bench = make({"calc.py": BROKEN, "conftest.py": "import calc\n", "test_calc.py": tests}, ENTRYPOINT)
    result = bench.grade({"calc.py": FIXED}, IDS)
    assert (result.resolved, result.twins, result.doubts) == (True, 2, {})


def test_a_module_of_another_python_has_no_twins_and_is_named_once(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = modules_of_tests.parse

    def parse(text: bytes) -> ast.Module:
        if b"test_more" in text:
            raise SyntaxError("invalid syntax")
        return plain(text)

    monkeypatch.setattr(modules_of_tests, "parse", parse)
    more = "import unittest\nclass TestMore(unittest.TestCase):\n    def test_more(self): self.assertEqual(2, 2.0)\n"
    bench = make({"calc.py": BROKEN, "test_calc.py": UNITTESTS, "test_more.py": more}, "python -m unittest")
    tests = (*UNITTEST_IDS, "test_more.TestMore.test_more")
    result = bench.grade({"calc.py": FIXED}, tests)
    assert (result.resolved, result.twins, result.doubts) == (True, 2, {})
    said = "cannot read test_more.py, its tests have no twins: invalid syntax"
    assert said in caplog.text
    caplog.clear()
    result = bench.grade({"calc.py": EQUALS_EVERYTHING}, tests, forgiving=True)
    assert UNITTEST_IDS[0] in result.doubts and caplog.text.count(said) == 1, (
        "though twins of the pristine code are run, too"
    )
