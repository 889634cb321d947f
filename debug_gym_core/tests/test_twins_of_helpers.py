"""What modules beside the tests assert for them is asked as what the tests assert themselves."""

from __future__ import annotations

import dataclasses

import pytest
from grading_bench import BROKEN, ENTRYPOINT, FIXED, Make

from debug_gym_core.grading.measure import measure
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.judge import Judge, Twinned
from debug_gym_core.tasks.results import Measurement

PARTS = """
def same(one, other):
    assert one == other, "they differ"
"""
HELPERS = """
import sys
from .parts import same

class Checks:
    def same(self, one, other):
        self.assertEqual(one, other)

def refused(call):
    try:
        call()
        assert False, "it was not refused"
    except TypeError:
        pass
"""
TESTS = """
import calc
from tests.helpers import refused, same

def test_add():
    same(calc.add(2, 3), 5)

def test_refused():
    refused(lambda: calc.add(1, None))
"""
UNITTESTS = """
import unittest
import calc
from .helpers import Checks

class TestCalc(Checks, unittest.TestCase):
    def test_add(self):
        self.same(calc.add(2, 3), 5)
"""
FILES = {
    "calc.py": BROKEN,
    "tests/__init__.py": "",
    "tests/helpers.py": HELPERS,
    "tests/parts.py": PARTS,
    "tests/test_calc.py": TESTS,
    "tests/test_unittest.py": UNITTESTS,
}
IDS = (
    "tests/test_calc.py::test_add",
    "tests/test_calc.py::test_refused",
    "tests/test_unittest.py::TestCalc::test_add",
)
ANYTHING = BROKEN.replace("return a - b", "return Anything() if b else a + b") + (
    "\nclass Anything:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n"
)


def test_helpers_that_hold_are_believed(make: Make) -> None:
    bench = make(FILES, ENTRYPOINT)
    result = bench.grade({"calc.py": FIXED}, IDS)
    assert (result.resolved, dict(result.doubts), result.twins) == (True, {}, 2)


def test_what_equals_anything_is_found_out_by_a_helper(make: Make) -> None:
    tests = [IDS[0], IDS[2]]
    result = make(FILES, ENTRYPOINT).grade({"calc.py": ANYTHING}, tests)
    assert (result.resolved, list(result.doubts)) == (False, tests)


def test_programs_in_a_directory_of_tests_are_no_helpers(make: Make) -> None:
    many = {f"tests/app{number}.py": "raise RuntimeError\n" for number in range(101)}
    named = "".join(f"# app{number}\n" for number in range(101))
    result = make({**FILES, **many, "tests/test_calc.py": TESTS + named}, ENTRYPOINT).grade({"calc.py": FIXED}, IDS)
    assert (result.resolved, result.twins) == (True, 0)


class Reads(Judge):
    """Runs the tests as pytest does."""

    def measure(self, session: Session, *, timeout: float, clean: bool) -> Measurement:
        return dataclasses.replace(measure(session, ENTRYPOINT, timeout=timeout), kind="log")

    def twinned(self, session: Session, measured: Measurement) -> Twinned:
        path = "tests/test_calc.py"
        return Twinned(ENTRYPOINT, {path: session.read(path)}, frozenset(IDS[:1]), lambda test: (test,))


ASLEEP = TESTS.replace("    same(", "    time.sleep(9)\n    same(").replace("import calc", "import time\nimport calc")
SLEEPING = """
import pytest, time
import calc

@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("time.sleep", calc.double)
"""


@pytest.mark.grading
def test_tests_that_a_judge_reads_have_helpers_and_mocks_too(make: Make) -> None:
    bench = make({**FILES, "tests/conftest.py": SLEEPING, "tests/test_calc.py": ASLEEP}, ENTRYPOINT)
    bench.task = dataclasses.replace(bench.task, judge=Reads())
    found = bench.grade({"calc.py": ANYTHING}, IDS[:1])
    assert (found.resolved, dict(found.doubts)) == (False, {IDS[0]: "it passes whatever it expects"}), found
    found = bench.grade({"calc.py": FIXED}, IDS[:1])
    assert (found.resolved, dict(found.doubts), found.twins) == (True, {}, 1), found


@pytest.mark.grading
@pytest.mark.parametrize("judge", [None, Reads()])
def test_what_a_repository_replaces_is_held_against_no_test_that_failed(make: Make, judge: Judge | None) -> None:
    replacing = "import time\ntime.sleep = lambda seconds: None\n"
    bench = make({**FILES, "calc.py": replacing + BROKEN, "tests/test_calc.py": ASLEEP}, ENTRYPOINT)
    bench.task = dataclasses.replace(bench.task, judge=judge)
    found = bench.grade({"calc.py": replacing + FIXED}, IDS[:1], forgiving=True)
    assert (found.resolved, dict(found.doubts)) == (True, {}), found
