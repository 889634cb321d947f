"""A small repository, its changes, and real sandboxes to grade them in: what the tests of the grading share."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

from debug_gym_core.grading.anyway import Unchanged
from debug_gym_core.grading.collect import collect
from debug_gym_core.grading.grade import _Clean, grade
from debug_gym_core.grading.twins import UNASKED, When
from debug_gym_core.plugins import default_plugins
from debug_gym_core.sandbox.interpreter import probe
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec, Terminal
from debug_gym_core.tasks.results import Grade
from debug_gym_core.tasks.task import Task
from debug_gym_core.testing.sample import ENTRYPOINT
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import FileState, Snapshot

BROKEN = """
def double(a):
    return 2 * a

def add(a, b):
    return a - b
"""
FIXED = BROKEN.replace("a - b", "a + b")
TESTS = """
import calc

def same(one, other):
    return one == other

def test_double():
    assert same(calc.double(3), 6)

def test_add():
    assert same(calc.add(2, 3), 5)
"""
UNITTESTS = """
import unittest
import calc

class TestCalc(unittest.TestCase):
    def test_double(self):
        self.assertEqual(calc.double(3), 6)

    def test_add(self):
        self.assertEqual(calc.add(2, 3), 5)
"""
ASSERTS = """
import calc

def test_double():
    assert calc.double(3) == 6

def test_add():
    assert calc.add(2, 3) == 5
"""
RAISES = """
import calc
import pytest

def test_double():
    with pytest.raises(TypeError):
        calc.double(None)

def test_add():
    with pytest.raises(OverflowError):
        calc.add(2, float("inf"))
"""
REPOSITORY = {"calc.py": BROKEN, "test_calc.py": TESTS}
IDS = ("test_calc.py::test_double", "test_calc.py::test_add")


class Bench:
    """Grades changes of a small repository in real sandboxes."""

    def __init__(
        self,
        directory: Path,
        files: Mapping[str, str],
        entrypoint: str,
        allowed: Sequence[str] = (),
        terminal: str = "local",
        python: str = sys.executable,
    ) -> None:
        """Take a repository.

        Args:
            directory: where it is
            files: that are written there first
            entrypoint: runs its tests
            allowed: patterns of what may be changed all the same
            terminal: where it is graded
            python: by which, where the terminal runs no images
        """
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
            if path.suffix == ".sh":
                path.chmod(0o755)
        self.terminal: type[Terminal] = default_plugins().get("terminals", terminal)
        self.settings: dict[str, Any] = {}
        self.spec = SandboxSpec("test", probe(python))
        if self.terminal.runs_images:
            self.settings = {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]}
            self.spec = SandboxSpec("test", python=os.environ.get("DEBUG_GYM_TEST_PYTHON"))
        self.snapshot = Snapshot.take(directory)
        self.task = Task("bench", "mark", directory, entrypoint, allowed=tuple(allowed))
        self.unchanged = Unchanged()

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        session = Session.start(self.terminal(**self.settings), self.spec)
        try:
            session.put(self.snapshot.archive())
            yield session
        finally:
            session.close()

    def tests(self) -> tuple[str, ...]:
        with self.session() as session:
            return collect(session, self.task.entrypoint, 60)

    def grade(
        self,
        changes: Mapping[str, str | FileState | None],
        tests: Sequence[str] = IDS,
        max_score: int | None = None,
        timeout: float = 60,
        twins: When = "auto",
        *,
        forgiving: bool = False,
    ) -> Grade:
        """Grade changes.

        Args:
            changes: of the repository
            tests: that count
            max_score: how many do
            timeout: seconds for the run
            twins: when tests have any
            forgiving: as a task's own: a test that is doubted whatever the changes are is not doubted
        """
        states = {
            path: FileState(textwrap.dedent(one).encode()) if isinstance(one, str) else one
            for path, one in changes.items()
        }
        with contextlib.ExitStack() as stack:
            if not forgiving:
                stack.enter_context(mock.patch.object(_Clean, "doubted_anyway", return_value=frozenset()))
            return grade(
                self.task,
                self.snapshot,
                states,
                self.session,
                tests=tests,
                max_score=len(tests) if max_score is None else max_score,
                timeout=timeout,
                rules=Rules.of(self.snapshot),
                twins=twins,
                unchanged=self.unchanged,
            )

    def disbelieved(self, changes: Mapping[str, str], tests: Sequence[str] = IDS) -> Grade:
        """The grade of changes that only twins tell to be wrong: of what would not be resolved, none are run."""
        result = self.grade(changes, tests)
        assert not result.resolved and result.doubts and UNASKED not in result.doubts.values(), result
        return result


class Make(Protocol):
    def __call__(
        self, files: Mapping[str, str] = ..., entrypoint: str = ..., allowed: Sequence[str] = ...
    ) -> Bench: ...


def instead(statement: str) -> str:
    """The broken code with another statement where the bug is."""
    return BROKEN.replace("return a - b", statement)


UNITTEST_IDS = ("test_calc.TestCalc.test_add", "test_calc.TestCalc.test_double")


def unittest_bench(make: Make) -> Bench:
    return make({"calc.py": BROKEN, "test_calc.py": UNITTESTS}, "python -m unittest")


def told_of(make: Make, lies: Mapping[str, tuple[str, str, object]], head: str) -> dict[str, str]:
    """What is told of tests whose code lies to them, each in a module of its own.

    Args:
        make: makes the bench
        lies: the body of a test, the code `calc` that it is of, and anything else, by names of the cases
        head: what stands at the beginning of each module of tests, `calc as` among it
    """
    files, changes = {}, {}
    for number, (body, code, _) in enumerate(lies.values()):
        given = "text" if "def text(" in body else "tmp_path"
        imports = head.replace("calc as", f"calc_{number} as")
        written = body.replace("from calc ", f"from calc_{number} ")
        files[f"test_{number}.py"] = f"{imports}\ndef test_x({given}):\n{written}\n"
        files[f"calc_{number}.py"] = "f = save = lambda *_: None\n"
        changes[f"calc_{number}.py"] = textwrap.dedent(code)
    ids = [f"test_{number}.py::test_x" for number in range(len(lies))]
    found = make(files, ENTRYPOINT).grade(changes, ids)
    failed = [one for one, outcome in found.tests.items() if outcome != "passed" and one not in found.doubts]
    assert failed == [], "none is asked whether it lies before all have passed"
    return {name: found.doubts.get(one, "") for name, one in zip(lies, ids, strict=True)}


def bench_of(make: Make, tests: str) -> tuple[Bench, tuple[str, ...]]:
    """The broken code with tests of pytest or unittest, and their ids."""
    by_unittest = "import unittest" in tests
    bench = make({"calc.py": BROKEN, "test_calc.py": tests}, "python -m unittest" if by_unittest else ENTRYPOINT)
    return bench, UNITTEST_IDS if by_unittest else IDS
