"""How a run is shown that hangs, dies or is ended, and how names that are drawn are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support import repeated

from debug_gym_core import RepoEnv, Tool
from debug_gym_core.environment import counted_tests
from debug_gym_core.tasks.results import Measurement, TestResult
from debug_gym_core.testing.sample import ENTRYPOINT
from debug_gym_tool_eval import (
    MORE,
    Eval,
    render,
)

pytest_plugins = ["debug_gym_core.testing.fixtures"]


def test_a_run_that_hangs_names_the_test() -> None:
    found = ("t.py::a", "t.py::b", "t.py::c")
    done = (TestResult("t.py::a", "passed"),)
    text = render(Measurement(done, -9, ".", timed_out=True, collected=found), 1, 3)
    assert "The run reached its time limit and was ended in t.py::b.\n" in text


KILL = "os.kill(os.getpid(), 9)"

ENDS = """
import os, unittest
from shop import total

class TestEnd(unittest.TestCase):
    def test_ends(self):
        {end}

    def test_other(self):
        assert total([]) == 0
"""


@pytest.mark.parametrize(
    ("entrypoint", "end", "how"),
    [
        (ENTRYPOINT, "os._exit(3)", "ended with status 3"),
        *repeated("faults", ("python -m unittest test_shop", "os._exit(3)", "ended with status 3")),
        (ENTRYPOINT, KILL, "was killed by SIGKILL (out of memory?)"),
        *repeated("faults", ("python -m unittest test_shop", KILL, "was killed by SIGKILL (out of memory?)")),
    ],
)
def test_a_process_that_ends_in_the_first_test_names_it(
    evaluating: Callable[..., RepoEnv], entrypoint: str, end: str, how: str
) -> None:
    text = evaluating(entrypoint, tests=ENDS.format(end=end), allow_passing=True).step("eval")[0]["text"]
    name = "test_shop.py::TestEnd::test_ends" if entrypoint == ENTRYPOINT else "test_shop.TestEnd.test_ends"
    assert (
        f"\nThis run would not count: it {how} before its report was complete.\n\n"
        f"2 collected but not reported, first {name}\n\n"
    ) in text


def test_of_a_process_that_ends_late_the_test_is_named_that_was_not_reported() -> None:
    found = ("t.py::a", "t.py::b", "t.py::c", "t.py::d")
    done = (TestResult("t.py::a", "passed"),)
    run = Measurement(done, 3, "", unsure=frozenset(["t.py::b"]), collected=found, valid=False, reason="it ended")
    text = render(run, 1, 4)
    assert "\n1 PASSED\n1 that passed do not count: the run ended before this was confirmed\n" in text
    assert "\n2 collected but not reported, first t.py::c\n" in text


HANGS = """
import os, tempfile, threading, time
from shop import total

def test_nothing():
    assert total([]) == 0

def test_hangs():
    print("it begins", flush=True)
    print("in", tempfile.mkdtemp(), flush=True)
    print("out", "/data/tmp_" + os.environ.get("KIND", "outputs"), "/data/tmp_results", flush=True)
    wait()

def wait():
    open("begun", "w").close()
    while True:
        time.sleep(0.01)
"""
HANGS_IN_C = """
import unittest

class Slow(unittest.TestCase):
    def test_power(self):
        print("it begins")
        wait()

def wait():
    return 9 ** (10 ** 9)
"""


@pytest.fixture(scope="module")
def hung(evaluating_once: Callable[..., RepoEnv]) -> str:
    """What is told of a run that reached its time limit."""
    env = evaluating_once(tests=HANGS, run_timeout=3, allow_passing=True)
    return str(env.step("eval")[0]["text"])


def test_a_run_that_hangs_says_where_and_what_it_had_printed(hung: str) -> None:
    assert "The run reached its time limit and was ended in test_shop.py::test_hangs.\n" in hung
    stack = hung[hung.index("It was here:\n") :].splitlines()
    assert [line.partition(" in ")[2] for line in stack[2:4]] == ["wait", "test_hangs"]
    assert stack[2].startswith('  File "/testbed/test_shop.py", line 17')
    assert re.fullmatch(r"  \(\d+ frames that called these\)", stack[4])
    assert "The test that was running had printed:\nit begins\n" in hung
    assert "0x" not in hung


@pytest.mark.parametrize("entrypoint", [ENTRYPOINT, "python -c 'import test_shop; test_shop.test_hangs()'"])
def test_a_person_ends_a_run_that_hangs(evaluating: Callable[..., RepoEnv], entrypoint: str) -> None:
    env = evaluating(entrypoint, tests=HANGS, allow_passing=True)
    assert not env.interrupt()
    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(env.step, "eval")
        while env.session.stat("begun") is None:
            assert not told.done()
        assert env.interrupt()
        text = told.result(60)[0]["text"]
    by_name = entrypoint == ENTRYPOINT
    assert f"The run was interrupted{' in test_shop.py::test_hangs' if by_name else ''}.\n" in text
    assert "ended with" not in text and "(interrupted):\n" in text and "it begins" in text
    assert (" in wait\n" in text) == by_name
    assert not env.interrupt() and not env.resolved


@pytest.mark.parametrize("entrypoint", [ENTRYPOINT, "python -c 'import test_shop; test_shop.test_hangs()'"])
def test_a_person_ends_a_run_before_it_has_begun(
    evaluating: Callable[..., RepoEnv], monkeypatch: pytest.MonkeyPatch, entrypoint: str
) -> None:
    env = evaluating(entrypoint, tests=HANGS, allow_passing=True)
    measure = counted_tests.measure_in_place

    def interrupted(*arguments: Any, **named: Any) -> Measurement:
        assert env.interrupt()
        return measure(*arguments, **named)

    monkeypatch.setattr(counted_tests, "measure_in_place", interrupted)
    assert "The run was interrupted.\n" in env.step("eval")[0]["text"]
    assert not env.interrupt()


@pytest.mark.faults
def test_a_run_that_hangs_in_c_code_says_where(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating("python -m unittest test_shop", tests=HANGS_IN_C, run_timeout=5)
    text = env.step("eval")[0]["text"]
    assert 'It was here:\nthread (most recent call first):\n  File "/testbed/test_shop.py", line 10 in wait\n' in text
    assert "it begins" in text


DRAWN = """
import tempfile

def test_made():
    one, other = tempfile.mkdtemp(), tempfile.mkdtemp()
    assert not other
"""


def test_temporary_names_that_the_tests_draw_are_the_same_in_each_run(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating(tests=DRAWN)
    text = env.step("eval")[0]["text"]
    assert "    one = '/tmp/tmp00000001'\n    other = '/tmp/tmp00000002'\n" in text
    assert env.step("eval")[0]["text"] == text


WRITTEN = """
import os, tempfile, time

def out_dir():
    {doc}
    return "/data/tmp_" + os.environ.get("KIND", "outputs")

def test_out():
    made = tempfile.mkdtemp()
    print("see", made, file=open("report.xml", "a"))
    print("in", made, flush=True)
    assert [out_dir(), made] == "/data/tmp_results"
"""


@pytest.mark.parametrize(
    ("doc", "data"),
    [("'It is /data/tmp_outputs.'", ""), *repeated("faults", ("", f'{{"{"x" * 9000}": 1, "out": "tmp_outputs"}}'))],
)
def test_a_name_that_the_repository_has_is_shown_as_it_is_beside_one_that_was_drawn(
    evaluating: Callable[..., RepoEnv], doc: str, data: str
) -> None:
    env = evaluating(tests=WRITTEN.format(doc=doc))
    env.workspace.write_bytes("data.json", data.encode())
    observation = env.step("eval")[0]
    text = observation["text"]
    assert "assert ['/data/tmp_outputs', '/tmp/tmp00000001'] == '/data/tmp_results'" in text
    assert "\n    made = '/tmp/tmp00000001'\n" in text and "/data/tmp0" not in text
    # What the run itself wrote tells nothing.
    assert re.fullmatch(r"see \S*/tmp/tmp[a-z0-9_]{8}\n", env.workspace.read_text("report.xml"))
    assert json.loads(env.step("eval")[0]["json"])[0]["data"] == json.loads(observation["json"])[0]["data"]


def test_a_name_that_no_file_has_is_taken_for_drawn(evaluating: Callable[..., RepoEnv]) -> None:
    text = evaluating(tests=WRITTEN.format(doc="")).step("eval")[0]["text"]
    assert "assert ['/data/tmp00000002', '/tmp/tmp00000001'] == '/data/tmp_results'" in text


def test_a_run_that_hangs_shows_written_names_as_they_are(hung: str) -> None:
    assert "had printed:\nit begins\nin /tmp/tmp00000001\nout /data/tmp00000002 /data/tmp_results\n" in hung


def test_the_output_of_what_does_not_report_shows_written_names_as_they_are(
    evaluating: Callable[..., RepoEnv],
) -> None:
    shown = evaluating(f"{ENTRYPOINT} -p no:cacheprovider || exit 1", tests=WRITTEN.format(doc=""))
    text = shown.step("eval")[0]["text"]
    assert "assert ['/data/tmp00000001', '/tmp/tmp00000002'] == '/data/tmp_results'" in text


NAMED = """
import pathlib, tempfile

def test_made(tmp_path):
    tmpfilename = pathlib.Path("/tmp/tmpfilename")
    inner = tempfile.mkdtemp(dir=tmp_path)
    assert inner == str(tmpfilename)
"""


def test_names_are_numbered_below_any_directory_and_not_in_the_source(evaluating: Callable[..., RepoEnv]) -> None:
    text = evaluating(tests=NAMED).step("eval")[0]["text"]
    assert "    inner = '/tmp/pytest-of-user/pytest-0/test_made0/tmp0000000" in text and "str(tmpfilename)" in text


@pytest.mark.parametrize(("name", "more"), [("bash", f"; {MORE['bash']}"), ("pdb", f"; {MORE['pdb']}"), ("none", "")])
def test_how_to_see_what_is_left_out_is_told_where_a_tool_can_show_it(
    make_env: Callable[..., RepoEnv], name: str, more: str
) -> None:
    other = type("Other", (Tool,), {"name": name, "use": lambda self, env: "", "__doc__": "Do nothing."})()
    env = make_env([Eval(), other], entrypoint="seq 9000; exit 1", max_score=None, time_limit=None)
    assert re.search(rf"\d characters left out{more} \.\.\.\]\n", env.step("eval")[0]["text"])
