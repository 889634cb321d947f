"""The agent that knows the solution: where it looks, and the tasks that it finds broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import repeated

from debug_gym_agents.solution import SolutionAgent, first_change
from debug_gym_core.errors import TaskError
from debug_gym_core.testing.environments import Environments

CODE = "def double(a):\n    result = a + a + 1\n    return result\n"
TESTS = """
import unittest
from calc import double

class T(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(2), 4)
"""
PATCH = b"""\
--- a/calc.py
+++ b/calc.py
@@ -1,3 +1,3 @@
 def double(a):
-    result = a + a + 1
+    result = a + a
     return result
"""


@pytest.mark.parametrize(
    ("patch", "place"),
    [
        (PATCH, "calc.py:2"),
        (b"--- a/x y.py\t2024\n+++ b/x y.py\n@@ -7 +7,2 @@\n line\n+more\n", "x y.py:8"),
        (b"--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+new\n" + PATCH, "calc.py:2"),
        (b"diff --git a/calc.py b/calc.py\nindex 1..2 100644\n" + PATCH, "calc.py:2"),
        (b"--- a/all.sql\n+++ b/all.sql\n@@ -3,2 +3 @@\n select 1;\n--- the rest\n", "all.sql:4"),
        (b'--- "a/caf\\303\\251.py"\n+++ "b/caf\\303\\251.py"\n@@ -1 +1 @@\n-a\n+b\n', "café.py:1"),
    ],
)
def test_the_first_line_that_a_patch_changes(patch: bytes, place: str) -> None:
    assert first_change(patch) == place


def test_a_patch_that_only_adds_files_changes_no_line() -> None:
    with pytest.raises(TaskError, match="must name its stops"):
        first_change(b"--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+new\n")


NEW_FILE = b"--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+new\n"


@pytest.fixture
def environments(tmp_path: Path) -> Iterator[Environments]:
    with Environments(tmp_path) as made:
        yield made


def play(environments: Environments, code: str = CODE, *, tools: tuple[str, ...] = ("eval", "pdb"), **task: object):  # type: ignore[no-untyped-def]
    fields = {
        "entrypoint": "python -m unittest -q",
        "tests": ("test_calc.T.test_double",),
        "gold_patch": PATCH,
        "twins": "never",
        **task,
    }
    env = environments.make(tools, files={"calc.py": code, "test_calc.py": TESTS}, **fields)
    SolutionAgent().play(env, None)
    return env


def test_it_stops_at_the_bug_and_resolves(environments: Environments) -> None:
    assert play(environments).resolved


@pytest.mark.parametrize(
    ("code", "task", "said"),
    [
        (CODE, {"gold_patch": None}, "has no gold patch"),
        (CODE, {"stops": ("calc.py:99",)}, "did not stop at calc.py:99 but at none"),
        *repeated(
            "benchmarks",
            (CODE.replace(" + 1", ""), {}, "the tests pass before the gold patch is applied"),
            (
                CODE + "\ndef never():\n    return 1\n",
                {"stops": ("calc.py:6",)},
                "did not stop at calc.py:6 but at none",
            ),
            (CODE, {"max_steps": 2}, "the episode ended early, at step 2"),
        ),
    ],
)
def test_a_task_that_is_broken_is_named(
    environments: Environments, code: str, task: dict[str, object], said: str
) -> None:
    with pytest.raises(TaskError, match=said):
        play(environments, code, **task)


def test_a_tool_that_is_not_there_is_named(environments: Environments) -> None:
    with pytest.raises(TaskError, match=r"pdb {'command': 'b calc\.py:2'}: .*pdb"):
        play(environments, tools=("eval",))


@pytest.mark.benchmarks
def test_where_only_grading_has_the_tests_the_patch_is_all_there_is(environments: Environments) -> None:
    """They pass here before it, and no debugger stops: what is there is not what counts."""
    right = CODE.replace("a + a + 1", "a + a")
    env = play(environments, right, mode="hidden", gold_patch=NEW_FILE)
    assert env.patch.count(b"+new") == 1
    with pytest.raises(TaskError, match="pass before the gold patch"):
        play(environments, right, gold_patch=NEW_FILE)
