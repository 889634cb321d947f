"""What the runner in the sandbox reports: outcomes, failures and their frames, and runs without any.

DEBUG_GYM_TEST_PYTHONS names interpreters to try, separated by colons; without it the one that runs the tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from reported_tests import ALL_OUTCOMES, QUICK, RunTests
from support import has, repeated, version_of

from debug_gym_core.grading.collect import collect
from debug_gym_core.grading.measure import measure
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.sample import ENTRYPOINT


def test_every_outcome_is_reported(run_tests: RunTests) -> None:
    result = run_tests(test_all=ALL_OUTCOMES)
    assert {name.partition("::")[2]: outcome for name, outcome in result.outcomes.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_raises": "failed",
        "test_skipped": "skipped",
        "test_fails_as_expected": "xfailed",
        "test_passes_unexpectedly": "xpassed",
        "test_must_fail": "failed",
        "test_set_up": "error",
        "test_torn_down": "error",
        "TestUnit::test_fails": "failed",
        "TestUnit::test_passes": "passed",
        "TestClass::test_number[1]": "passed",
        "TestClass::test_number[2]": "failed",
    }
    assert (result.valid, result.reason, result.exit_status) == (True, "", 1)
    assert set(result.collected) == set(result.outcomes)
    messages = {test.id.partition("::")[2]: test.message for test in result.tests}
    assert messages["test_raises"] == "KeyError: 'missing'"
    assert messages["test_fails"] == "AssertionError: assert (1 + 1) == 3"
    assert messages["test_set_up"] == "ValueError: two lines"
    assert messages["test_torn_down"] == "OSError: not removed"
    assert messages["test_passes"] == ""


def test_unittest_outcomes_are_reported(run_tests: RunTests) -> None:
    result = run_tests(
        "python -m unittest -v",
        test_all="""
        import unittest

        class TestAll(unittest.TestCase):
            def test_passes(self): print("heard")
            def test_fails(self): self.assertEqual(1, 2)
            def test_raises(self): {}["missing"]
            @unittest.skip("later")
            def test_skipped(self): pass
            @unittest.expectedFailure
            def test_fails_as_expected(self): self.fail()
            @unittest.expectedFailure
            def test_must_fail(self): pass
            def test_parts(self):
                for number in range(3):
                    with self.subTest(number=number):
                        self.assertNotEqual(number, 1)

        class TestSetUp(unittest.TestCase):
            @classmethod
            def setUpClass(cls): raise OSError("no room")
            def test_never(self): pass
        """,
        test_import="import nothing_of_this_name",
    )
    assert {name.replace("test_all.TestAll.", ""): outcome for name, outcome in result.outcomes.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_raises": "error",
        "test_skipped": "skipped",
        "test_fails_as_expected": "xfailed",
        "test_must_fail": "failed",
        "test_parts": "failed",
        "setUpClass (test_all.TestSetUp)": "error",
        "test_import.py": "error",
    }
    assert (result.valid, result.exit_status) == (True, 1)
    assert "nothing_of_this_name" in next(test.message for test in result.tests if test.id == "test_import.py")
    assert "heard" in result.output
    assert "in <time>" in result.output


def test_a_failure_shows_the_repositorys_frames(run_tests: RunTests) -> None:
    result = run_tests(
        shop="""
        class Item:
            def __init__(self, price):
                self.price = price

        def total(items):
            import json
            result = 0
            for item in items:
                result += item.price / len(items[1:])
            return result
        """,
        test_shop="""
        import shop
        thing = object()

        def check(items):
            marker = thing
            return shop.total(items)

        def test_total():
            assert check([shop.Item(3)]) == 3
        """,
    )
    [failure] = result.failures
    assert failure.message == "ZeroDivisionError: division by zero"
    assert [(frame["file"], frame["line"], frame["function"]) for frame in failure.frames] == [
        ("test_shop.py", 10, "test_total"),
        ("test_shop.py", 7, "check"),
        ("shop.py", 10, "total"),
    ]
    assert failure.frames[1]["locals"] == {"items": "[<Item price=3>]", "marker": "<object object>"}
    assert failure.frames[2]["locals"] == {"items": "[<Item price=3>]", "result": "0", "item": "<Item price=3>"}


def test_a_group_of_exceptions_tells_what_is_in_it(run_tests: RunTests, python: str) -> None:
    if version_of(python) < (3, 11):
        pytest.skip("exception groups came with Python 3.11")
    result = run_tests(
        shop="""
        import asyncio

        def price(key):
            if key == "odd":
                raise ExceptionGroup("odd", [KeyError(n) for n in range(5)])
            raise LookupError(key)

        async def buy(key): price(key)

        async def shop(*keys):
            async with asyncio.TaskGroup() as group:
                for key in keys:
                    group.create_task(buy(key))
        """,
        test_all="""
        import asyncio, shop

        def test_one(): asyncio.run(shop.shop("tea"))
        def test_many(): asyncio.run(shop.shop("tea", "odd"))
        """,
    )
    one, many = result.failures
    group = "ExceptionGroup: unhandled errors in a TaskGroup"
    assert one.message == f"{group} (1 sub-exception): LookupError: tea (at shop.py:7 in price)"
    places = [(frame["file"], frame["line"], frame["function"]) for frame in one.frames]
    assert places == [
        ("test_all.py", 4, "test_one"),
        ("shop.py", 12, "shop"),
        ("shop.py", 9, "buy"),
        ("shop.py", 7, "price"),
    ]
    assert one.frames[-1]["locals"] == {"key": "'tea'"}
    inside = "LookupError: tea (at shop.py:7 in price); KeyError: 0; KeyError: 1; ..."
    assert many.message == f"{group} (2 sub-exceptions): {inside}"


def test_values_are_bounded_whatever_they_are(run_tests: RunTests) -> None:
    result = run_tests(
        test_values="""
        import time

        class Slow:
            def __repr__(self):
                while True:
                    pass

        class Broken:
            def __repr__(self): raise SystemExit(3)

        class Liar:
            def __repr__(self): return 5

        def test_values():
            slow, broken, liar = Slow(), Broken(), Liar()
            many = list(range(10 ** 6))
            text = "x" * 10 ** 7
            number = 7 ** 100000
            nested = []
            nested.append(nested)
            surrogate = "\\ud800"
            assert False
        """
    )
    [failure] = result.failures
    values = failure.frames[-1]["locals"]
    assert isinstance(values, dict)
    assert (values["slow"], values["broken"], values["liar"]) == ("<Slow>", "<Broken>", "<Liar>")
    assert values["many"].endswith("1000000 in all]")
    assert all(len(value) <= 160 for value in values.values())
    assert values["nested"] == "[[[[...]]]]"
    assert result.seconds < 30


def test_deep_recursion_shows_its_ends(run_tests: RunTests) -> None:
    result = run_tests(test_deep="def down(number): return down(number + 1)\ndef test_deep(): down(0)\n")
    [failure] = result.failures
    assert len(failure.frames) == 12
    assert failure.frames[0]["function"] == "test_deep"
    left_out = [frame.get("left_out", 0) for frame in failure.frames]
    depth = failure.frames[-2]["locals"]["number"]  # type: ignore[index]
    assert left_out == [0] * 4 + [int(depth) - 9] + [0] * 7
    assert failure.message.startswith("RecursionError: maximum recursion depth exceeded")


def test_the_cause_of_an_exception_is_named(run_tests: RunTests) -> None:
    result = run_tests(
        test_cause="""
        def test_cause():
            try:
                {}["key"]
            except KeyError as error:
                raise ValueError("no such row") from error
        """
    )
    assert result.failures[0].message == "ValueError: no such row (from KeyError: 'key')"


def test_where_the_cause_was_raised_is_told(run_tests: RunTests) -> None:
    result = run_tests(
        test_cause="""
        def root(number):
            bad = number * 2
            return {}[bad]

        def middle(number):
            try:
                return root(number)
            except KeyError as error:
                raise RuntimeError("wrapped") from error

        def test_cause(): middle(4)
        """
    )
    [failure] = result.failures
    told = [(frame["function"], frame["line"], frame.get("of")) for frame in failure.frames]
    assert told == [("test_cause", 12, None), ("middle", 10, None), ("root", 4, "KeyError: 8")]
    assert failure.frames[-1]["locals"] == {"number": "4", "bad": "8"}


def test_a_file_that_cannot_be_collected_is_one_error(run_tests: RunTests) -> None:
    result = run_tests(test_bad="import nothing_of_this_name\n", test_good="def test_fine(): pass\n")
    [failure] = result.failures
    assert (failure.id, failure.outcome) == ("test_bad.py", "error")
    assert "nothing_of_this_name" in failure.message
    assert result.exit_status == 2
    assert result.valid
    assert result.collected == ("test_good.py::test_fine",)


def test_subtests_that_fail_fail_their_test(run_tests: RunTests) -> None:
    result = run_tests(
        test_parts="""
        import unittest
        class TestParts(unittest.TestCase):
            def setUp(self):
                self.addCleanup(self.clean)
            def clean(self):
                with self.subTest("at the end"):
                    pass
            tearDown = clean
            def test_parts(self):
                with self.subTest("first"):
                    self.assertEqual(1, 2)
                with self.subTest("second"):
                    pass
            def test_fine(self):
                with self.subTest("only"):
                    pass
            @unittest.expectedFailure
            def test_fails_as_expected(self):
                with self.subTest("only"):
                    self.fail()
                {}["missing"]
        """
    )
    outcomes = {"test_parts": "failed", "test_fine": "passed", "test_fails_as_expected": "xfailed"}
    assert result.outcomes == {f"test_parts.py::TestParts::{name}": outcome for name, outcome in outcomes.items()}
    assert result.valid
    result = run_tests("python -m unittest -f")
    assert result.outcomes == {f"test_parts.TestParts.{name}": outcome for name, outcome in outcomes.items()}
    assert result.valid and "AssertionError: 1 != 2" in result.failures[0].message and len(result.failures) == 1


@pytest.mark.parametrize(
    ("entrypoint", "status"),
    [
        (f"python -m pytest -q {QUICK} -k nothing", 5),
        *repeated(
            "grading",
            (f"python -m pytest -q {QUICK} no_such_file.py", 4),
            (f"python -m pytest -q {QUICK} --no-such-option", 4),
        ),
    ],
)
def test_runs_without_tests_say_what_pytest_says(run_tests: RunTests, entrypoint: str, status: int) -> None:
    result = run_tests(entrypoint, test_fine="def test_fine(): pass\n")
    assert (result.tests, result.exit_status) == ((), status)


def test_an_internal_error_of_pytest_is_said(run_tests: RunTests) -> None:
    hook = "def pytest_runtest_logreport(report):\n    if report.when == 'call': raise OSError('no more')\n"
    result = run_tests(conftest=hook, test_fine="def test_fine(): pass\n")
    why = "it ended with an internal error of pytest: OSError: no more"
    assert (result.valid, result.tampered, result.exit_status, result.reason) == (False, False, 3, why)
    result = run_tests(test_end="import pytest\ndef test_end(): pytest.exit('INTERNALERROR> none', 3)\n")
    assert (result.exit_status, result.reason) == (3, "")


def test_a_missing_module_is_said_as_python_says_it(local_session: Session, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    result = measure(local_session, "python -m pytest", timeout=60, python=str(bare / "bin/python"))
    assert "No module named pytest" in result.output
    assert (result.exit_status, result.valid) == (1, False)


def test_collecting_runs_nothing(local_session: Session, python: str) -> None:
    if not has(python, "pytest"):
        pytest.skip(f"{python} has no pytest")
    text = "def test_a(): open('ran', 'w')\nclass TestB:\n    def test_c(self): open('ran', 'w')\n"
    local_session.write("test_all.py", text.encode())
    ids = collect(local_session, f"{python} -m pytest -q {QUICK}", 60)
    assert ids == ("test_all.py::test_a", "test_all.py::TestB::test_c")
    assert local_session.stat("ran") is None


@pytest.mark.parametrize("entrypoint", [ENTRYPOINT, "python -m unittest -q"])
def test_a_run_that_ends_late_loses_a_twentieth_at_most(run_tests: RunTests, entrypoint: str) -> None:
    many = """
    import os, unittest

    class TestMany(unittest.TestCase): pass

    for number in range(99):
        setattr(TestMany, "test_{:02}".format(number), lambda self: None)
    TestMany.test_99 = lambda self: os._exit(3)
    """
    result = run_tests(entrypoint, test_many=many)
    assert result.exit_status == 3 and set(result.outcomes.values()) == {"passed"}, result.output
    assert 0 < len(result.unsure) <= 99 // 20 and len(result.outcomes) + len(result.unsure) == 99


def test_a_channel_that_is_closed_is_no_report(run_tests: RunTests) -> None:
    result = run_tests(shop="import os\nos.closerange(3, 1100)\n", test_shop="import shop\ndef test_a(): pass\n")
    assert not result.valid
    assert result.tests == ()


@pytest.mark.parametrize("options", ["--showlocals", *repeated("grading", "", "--tb=short", "--tb=long --showlocals")])
def test_ignored_files_are_not_in_tracebacks(local_session: Session, python: str, options: str) -> None:
    if not has(python, "pytest"):
        pytest.skip(f"{python} has no pytest")
    local_session.write(
        "secret.py", b"def check(value):\n    hidden = value + 4700\n    if value:\n        raise KeyError('no')\n"
    )
    local_session.write("test_it.py", b"from secret import check\ndef test_it():\n    mine = 11\n    check(mine)\n")
    entrypoint = f"python -m pytest -q {QUICK} {options}"
    shown, hidden = (
        measure(local_session, entrypoint, timeout=60, python=python, ignored=ignored).output
        for ignored in ([], ["secret.py"])
    )
    assert "raise KeyError" in shown and "raise KeyError" not in hidden
    assert "KeyError: 'no'" in hidden and "check(mine)" in hidden and "secret.py:4: " in hidden
    if "showlocals" in options:
        assert "4711" in shown and "mine" in hidden
    assert "4711" not in hidden and "def check" not in hidden and "value = 11" not in hidden


def test_what_ends_a_warm_run_is_not_run_again(local_session: Session) -> None:
    """A fork that ends before it says anything is started again; before the repository's code runs, it does."""
    local_session.write("conftest.py", b"import os\nprint(file=open('ran', 'a'))\nos._exit(3)\n")
    found = measure(local_session, f"python -m pytest {QUICK}", timeout=60, python=sys.executable, warm=True)
    assert local_session.warm_starts and found.exit_status == 3 and not found.valid
    assert local_session.read("ran") == b"\n"
