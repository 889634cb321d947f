"""pytest under the debugger, with its capture on."""

from __future__ import annotations

import re
import subprocess
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from support import handful, repeated, version_of

from debug_gym_core.testing.sample import ENTRYPOINT

CODE = """\
def add(a, b):
    result = a + b
    return result
"""

TESTS = """\
import pytest

from code_under_test import add


@pytest.fixture
def three():
    value = 3
    yield value
    print("torn down")


def test_with_fixture(three):
    print("captured")
    assert add(three, 1) == 4


@pytest.mark.parametrize("n", [1, 2, 3])
def test_parametrized(n):
    assert add(n, n) == 2 * n


def test_late_import():
    import late

    assert late.late() == "late"


def test_fails():
    found = add(1, 1)
    assert found == 3


def test_raises():
    with pytest.raises(KeyError):
        add(1, 2)


def test_input_is_refused_by_capture():
    with pytest.raises(OSError):
        input()
"""

FILES = {"code_under_test.py": CODE, "test_it.py": TESTS, "late.py": "def late():\n    return 'late'\n"}
PLAIN = f"{ENTRYPOINT} -p no:cacheprovider"


def until_end(program: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Continue to the end; the stops on the way and the last message."""
    stops = []
    while (answer := program.do("c"))["t"] == "prompt":
        stops.append(answer["stop"])
    return stops, answer


@pytest.mark.parametrize("capture", ["", " --capture=sys", *repeated("debugger", " -s", " --capture=tee-sys")])
def test_breakpoint_with_capture(debug_tests: Any, capture: str) -> None:
    program = debug_tests(PLAIN + capture + " test_it.py", FILES)
    assert program.first["stop"] == {"reason": "entry"}
    program.do("b code_under_test.py:3")
    stop = program.do("c")["stop"]
    assert stop["reason"] == "breakpoint"
    assert stop["locals"]["changed"] == {"a": "3", "b": "1", "result": "4"}
    assert [one["function"] for one in stop["stack"]] == ["add", "test_with_fixture"]
    assert program.do("p result * 2")["out"] == "8\n"
    assert program.do("n")["stop"]["reason"] == "return"
    assert program.do("n")["stop"]["function"] == "test_with_fixture"


def test_stepping_at_entry_says_what_to_do(debug_tests: Any) -> None:
    program = debug_tests(PLAIN, FILES)
    for command in ("n", "s", "r", "until"):
        answer = program.do(command)
        assert answer["failed"] and "set a breakpoint" in answer["out"]
    assert program.do("b test_it.py:14")["failed"] is False


@pytest.mark.parametrize(
    ("line", "function", "value"),
    [
        (9, "three", ("value", "3")),
        (14, "test_with_fixture", ("three", "3")),
        *repeated(
            "debugger",
            (20, "test_parametrized", ("n", "1")),
        ),
    ],
)
def test_breakpoints_in_tests_and_fixtures(debug_tests: Any, line: int, function: str, value: tuple[str, str]) -> None:
    program = debug_tests(PLAIN, FILES)
    program.do(f"b test_it.py:{line}")
    stop = program.do("c")["stop"]
    assert (stop["line"], stop["function"]) == (line, function)
    assert stop["locals"]["changed"][value[0]] == value[1]


def test_condition_picks_a_parameter(debug_tests: Any) -> None:
    program = debug_tests(PLAIN, FILES)
    program.do("b test_it.py:20, n == 3")
    assert program.do("c")["stop"]["locals"]["changed"]["n"] == "3"


def test_breakpoint_in_a_late_import(debug_tests: Any) -> None:
    program = debug_tests(PLAIN, FILES)
    program.do("b late.py:2")
    assert program.do("c")["stop"]["file"] == "late.py"


def test_each_failing_test_stops(debug_tests: Any) -> None:
    program = debug_tests(PLAIN, FILES)
    stops, end = until_end(program)
    assert [(stop["reason"], stop["test"], stop["function"]) for stop in stops] == [
        ("test failed", "test_it.py::test_fails", "test_fails"),
        ("test failed", "test_it.py::test_raises", "test_raises"),
    ]
    assert stops[0]["line"] == 31
    assert stops[0]["exceptions"][0]["type"] == "AssertionError"
    assert stops[0]["locals"]["changed"] == {"found": "2"}
    assert stops[1]["exceptions"][0]["message"].startswith("DID NOT RAISE")
    assert end["status"] == 1
    assert b"2 failed, 6 passed" in program.printed


def test_results_are_those_without_debugger(debug_tests: Any) -> None:
    program = debug_tests(PLAIN + " -rA", FILES)
    program.do("b 1000")
    program.do("b code_under_test.py:2, a > 100")
    _, end = until_end(program)
    assert end["status"] == 1
    assert b"2 failed, 6 passed" in program.printed and b"assert 2 == 3" in program.printed


def test_breakpoints_stop_after_a_failed_test(debug_tests: Any) -> None:
    program = debug_tests(PLAIN, FILES)
    assert program.do("c")["stop"]["test"] == "test_it.py::test_fails"
    program.do("b code_under_test.py:3")
    assert program.do("c")["stop"]["reason"] == "breakpoint"


def test_error_in_fixture_and_in_collection(debug_tests: Any) -> None:
    files = {
        "test_fixture.py": "import pytest\n@pytest.fixture\ndef f():\n    1 / 0\ndef test_it(f):\n    pass\n",
        "test_import.py": "import nosuch_module\n",
    }
    stops, end = until_end(debug_tests(PLAIN + " --continue-on-collection-errors", files))
    assert [(stop["test"], stop["file"], stop["exceptions"][0]["type"]) for stop in stops] == [
        ("test_import.py", "test_import.py", "ModuleNotFoundError"),
        ("test_fixture.py::test_it", "test_fixture.py", "ZeroDivisionError"),
    ]
    assert stops[1]["when"] == "setup"
    assert end["status"] == 1


@pytest.mark.parametrize("call", ["breakpoint()", "pdb.set_trace()", *repeated("debugger", "pytest.set_trace()")])
def test_breakpoint_function_in_a_test(debug_tests: Any, python: str, call: str) -> None:
    if call == "breakpoint()" and version_of(python) < (3, 7):
        pytest.skip("breakpoint() is new in Python 3.7")
    program = debug_tests(
        PLAIN, {"test_it.py": f"import pdb, pytest\ndef test_it():\n    x = 1\n    {call}\n    y = 2\n"}
    )
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["line"], stop["function"]) == ("breakpoint", 4, "test_it")
    assert program.do("n")["stop"]["line"] == 5


@pytest.mark.parametrize("line", [3, *repeated("debugger", 7)])
def test_quit_at_a_breakpoint_runs_no_more_tests(debug_tests: Any, tmp_path: Path, line: int) -> None:
    tests = """\
import pytest
def test_before():
    pass
@pytest.fixture
def made():
    yield 1
    open("cleaned", "w").close()
def test_it(made):
    pass
def test_after():
    open("ran", "w").close()
"""
    program = debug_tests(PLAIN, {"test_it.py": tests})
    program.do(f"b {'test_it.py'}:{line}")
    program.do("c")
    assert program.do("q")["t"] == "quit"
    assert program.receive()["t"] == "exit"
    assert not (tmp_path / "ran").exists()
    assert b"INTERNALERROR" not in program.printed


def test_quit_from_a_failed_test_is_clean(debug_tests: Any) -> None:
    program = debug_tests(PLAIN, FILES)
    program.do("c")
    assert program.do("q")["t"] == "quit"
    assert program.receive()["t"] == "exit"
    assert b"INTERNALERROR" not in program.printed


def test_options_that_would_take_over_are_harmless(debug_tests: Any) -> None:
    program = debug_tests(PLAIN + " --pdb", FILES)
    assert program.do("c")["stop"]["reason"] == "test failed"


def test_missing_test_file_is_told_at_once(debug_tests: Any) -> None:
    program = debug_tests("pytest -q test_nosuch.py::test_x", {})
    assert program.first == {"t": "error", "message": "there is no file test_nosuch.py"}


def test_conftest_with_monkeypatched_world(debug_tests: Any) -> None:
    source = """\
    import builtins, json, os, time
    from unittest import mock

    def test_it():
        with mock.patch("builtins.open"), mock.patch("os.getpid"), mock.patch("time.time"), mock.patch("json.dumps"):
            with mock.patch("os.path.realpath"), mock.patch("sys.stdout"), mock.patch("signal.setitimer"):
                x = 1
                y = 2
        assert y == 3
    """
    program = debug_tests(PLAIN, {"test_it.py": textwrap.dedent(source)})
    program.do("b test_it.py:8")
    stop = program.do("c")["stop"]
    assert stop["locals"]["changed"] == {"x": "1"} and stop["source"]
    assert program.do("p x")["out"] == "1\n"
    assert program.do("c")["stop"]["reason"] == "test failed"


def test_unittest_cases_under_pytest(debug_tests: Any) -> None:
    source = """\
    import unittest

    class TestIt(unittest.TestCase):
        def test_fails(self):
            value = 1
            self.assertEqual(value, 2)
    """
    program = debug_tests(PLAIN, {"test_it.py": textwrap.dedent(source)})
    stop = program.do("c")["stop"]
    assert (stop["test"], stop["line"]) == ("test_it.py::TestIt::test_fails", 6)
    assert program.do("c")["status"] == 1


def test_assertions_stay_rewritten_where_breakpoints_are_compiled_in(debug_tests: Any) -> None:
    tests = "def test_it():\n    found = [1, 2]\n    expected = [1, 3]\n    assert found == expected\n"
    program = debug_tests(PLAIN, {"test_it.py": tests})
    program.do("b test_it.py:3")
    program.do("b test_it.py:4")
    assert [program.do("c")["stop"]["line"] for _ in range(2)] == [3, 4]
    stop = program.do("c")["stop"]
    assert stop["reason"] == "test failed"
    assert "At index 1 diff: 2 != 3" in stop["exceptions"][0]["message"]


def test_what_pytest_has_in_its_cache_does_not_hide_breakpoints(
    python: str, debug_tests: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "test_it.py").write_text("def test_it():\n    x = 1\n    assert x\n")
    subprocess.run([python, "-m", "pytest", "-q"], cwd=tmp_path, check=True, capture_output=True)
    cached = {path: path.read_bytes() for path in (tmp_path / "__pycache__").iterdir()}
    assert cached
    program = debug_tests("PYTHONDONTWRITEBYTECODE= " + PLAIN)
    program.do("b test_it.py:2")
    assert program.do("c")["stop"]["line"] == 2
    assert program.do("c")["status"] == 0
    assert {path: path.read_bytes() for path in (tmp_path / "__pycache__").iterdir()} == cached


OPTIONS = {
    "xdist": "-n auto",
    "pytest_timeout": "--timeout 1",
    "pytest_cov": "--cov=. --cov-branch",
}


@pytest.mark.parametrize("plugin", handful("debugger", list(OPTIONS), "pytest_cov"))
def test_options_of_the_repository_s_own(python: str, debug_tests: Any, plugin: str) -> None:
    if subprocess.run([python, "-c", f"import {plugin}"], capture_output=True).returncode:
        pytest.skip(f"needs {plugin} in {python}: pip install pytest-{plugin.replace('pytest_', '')}")
    files = {**FILES, "pytest.ini": f"[pytest]\naddopts = {OPTIONS[plugin]}\n"}
    program = debug_tests("PYTEST_DISABLE_PLUGIN_AUTOLOAD= python -m pytest -q -k with_fixture", files)
    program.do("b code_under_test.py:3")
    stop = program.do("c")["stop"]
    assert (stop["line"], stop["function"]) == (3, "add")
    time.sleep(1.5 if plugin == "pytest_timeout" else 0)  # as long as someone thinks
    assert program.do("p result")["out"] == "4\n"
    assert program.do("c")["status"] == 0


@pytest.mark.parametrize("core", ["ctrace", *repeated("debugger", "pytrace", "sysmon")])
def test_coverage_beside_the_debugger(python: str, debug: Any, core: str) -> None:
    if subprocess.run([python, "-c", "import coverage"], capture_output=True).returncode:
        pytest.skip(f"needs coverage in {python}: pip install coverage")
    if core == "sysmon" and version_of(python) < (3, 12):
        pytest.skip("sys.monitoring came with Python 3.12")
    main = (
        "import coverage\nmeasured = coverage.Coverage(data_file=None)\nmeasured.start()\nimport code_under_test\n"
        "total = code_under_test.add(1, 2)\nmeasured.stop()\n"
        "print('lines', sorted(measured.get_data().lines(code_under_test.__file__)))\n"
    )
    program = debug(f"COVERAGE_CORE={core} python app.py", {"app.py": main, **FILES})
    program.do("b code_under_test.py:3")
    stop = program.do("c")["stop"]
    assert (stop["line"], stop["function"]) == (3, "add")
    assert program.do("c")["status"] == 0
    [measured] = re.findall(rb"lines \[(.*)\]", program.printed)
    # What is compiled in has a line of its own, which no source has.
    assert {1, 2, 3} <= {int(line) for line in measured.split(b",")}


def test_ignored_files_are_not_in_tracebacks(debug_tests: Any) -> None:
    files = {
        "secret.py": "def check(value):\n    hidden = value + 4700\n    if value:\n        raise KeyError('no')\n",
        "test_it.py": "from secret import check\ndef test_it():\n    mine = 11\n    check(mine)\n",
    }
    program = debug_tests(PLAIN + " --showlocals", files, ignored=["secret.py"])
    assert program.do("c")["stop"]["reason"] == "test failed"
    assert program.do("c")["status"] == 1
    printed = program.printed.decode()
    assert "check(mine)" in printed and "KeyError: 'no'" in printed
    assert "raise KeyError" not in printed and "4711" not in printed and "value = 11" not in printed


@pytest.mark.parametrize("option", ["", *repeated("debugger", "--doctest-continue-on-failure")])
def test_a_failing_doctest_tells_what_was_wanted_and_what_was_printed(debug_tests: Any, option: str) -> None:
    source = (
        "def double(n):\n    '''Double.\n\n    >>> double(1)\n    2\n    >>> double(2)\n    5\n    >>> double(n=3)\n"
    )
    source += "    7\n    '''\n    return 2 * n\n"
    program = debug_tests(
        f"python -m pytest -q -p no:cacheprovider --doctest-modules {option} app.py", {"app.py": source}
    )
    stop = program.do("c")["stop"]
    assert stop["test"] == "app.py::app.double"
    assert stop["note"].startswith("line 6: double(2) should print '5', printed '4'")
    assert stop["note"].endswith("; line 8: double(n=3) should print '7', printed '6'") == bool(option)
    assert program.do("c")["t"] == "exit"
