"""What a benchmark promises."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from debug_gym_core.config import loading
from debug_gym_core.config.shipped import benchmark_settings, env_arguments
from debug_gym_core.errors import UsageError
from debug_gym_core.plugins import default_plugins
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.tasks.task import Benchmark, Task
from debug_gym_core.testing.component import ComponentContract
from debug_gym_core.testing.environments import TERMINAL, Environments, unusable
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import Snapshot

NAMES_TIME = 30.0
"""Seconds that `names()` may take."""


class BenchmarkContract(ComponentContract):
    """The tests that every benchmark must pass.

    Attributes:
        benchmark: the benchmark's class
        sample: names of the tasks that are loaded; None: all
        validated: names of the tasks whose tests are run, before and after the gold patch: they must fail and pass. It
            takes as long as the tests do, so the default is none
        terminal: the terminal to run them in; a name, or `{name: settings}` for a task with an image
    """

    benchmark: ClassVar[type[Benchmark]]
    sample: ClassVar[Sequence[str] | None] = None
    validated: ClassVar[Sequence[str]] = ()
    terminal: ClassVar[Any] = TERMINAL
    _kind: ClassVar[str] = "benchmarks"

    @pytest.fixture
    def made(self) -> Benchmark:
        """The benchmark; to be overridden where it needs a place that only a test knows."""
        return self.benchmark(**benchmark_settings(self.benchmark, self.settings))

    def tasks(self, made: Benchmark) -> list[Task]:
        """The tasks that are looked at."""
        return [made.load(name) for name in (made.names() if self.sample is None else self.sample)]

    def test_names_are_stable_unique_and_cheap(self, made: Benchmark) -> None:
        """Every command asks for them, so they load nothing."""
        started = time.monotonic()
        names = list(made.names())
        assert time.monotonic() - started < NAMES_TIME
        assert names == list(made.names())
        assert names and len(set(names)) == len(names)
        assert all(isinstance(name, str) and name and not name.isspace() and "\n" not in name for name in names)
        assert set(self.sample or ()) <= {*names, *made.excluded()}

    def test_excluded_tasks_have_a_reason(self, made: Benchmark) -> None:
        """They are not among the names, and can be loaded all the same."""
        for name, reason in made.excluded().items():
            assert name not in made.names() and reason.strip()

    def test_titles_are_lines_about_tasks(self, made: Benchmark) -> None:
        """`debug-gym tasks` shows them; a task may have none."""
        for name, title in made.titles().items():
            assert name in (*made.names(), *made.excluded()), f"there is a title of {name}, which is no task"
            assert isinstance(title, str) and title.strip(), f"the title of {name} is empty"

    def test_unknown_tasks_are_refused_with_the_nearest(self, made: Benchmark) -> None:
        """So that who mistyped a name sees the right one."""
        name = next(iter(made.names()))
        for wrong in (f"{name}x", name[:-1] or f"{name}{name}"):
            if wrong not in made.names():
                with pytest.raises(UsageError) as refused:
                    made.load(wrong)
                assert name in str(refused.value), f"{refused.value} does not name {name}"
        for wrong in ("", "..", "/", "no/such/task", "\0"):
            with pytest.raises(UsageError):
                made.load(wrong)

    def test_tasks_are_whole(self, made: Benchmark) -> None:
        """Each has a repository, a command that runs its tests, and patterns that can be read."""
        for task in self.tasks(made):
            assert (task.benchmark, task.id) == (self.benchmark.name, f"{self.benchmark.name}/{task.name}")
            if task.repository is None:
                assert task.image, f"{task.id} names neither a repository nor an image that holds it"
            else:
                assert task.repository.is_dir(), f"{task.id}: there is no directory {task.repository}"
            Entrypoint.parse(task.entrypoint)
            if task.debug_entrypoint is not None:
                parsed = Entrypoint.parse(task.debug_entrypoint)
                assert parsed.debuggable, f"{task.id}: debug_entrypoint {parsed.why_not}"
            measured = (*task.tests, *task.pass_to_pass)
            assert len(set(measured)) == len(measured), f"{task.id} names a test twice"
            assert task.tests or not task.pass_to_pass, f"{task.id}: no test counts beside pass_to_pass"
            assert task.max_score is None or task.max_score > 0
            assert not task.tests or task.max_score in (None, len(task.tests))
            for stop in task.stops:
                file, _, line = stop.rpartition(":")
                if task.repository is None:
                    continue
                text = (task.repository / file).read_bytes()
                assert 0 < int(line) <= text.count(b"\n") + 1, f"{task.id}: {stop} is not in the repository"
            assert task.time_limit is None or task.time_limit > 0
            assert task.gold_patch is None or task.gold_patch.strip()

    def test_loading_twice_gives_the_same(self, made: Benchmark) -> None:
        """And another instance does, too."""
        again = type(made)(**made.settings.model_dump())
        for task in self.tasks(made):
            assert made.load(task.name) == task == again.load(task.name)

    def test_solutions_are_not_in_the_repository(self, made: Benchmark) -> None:
        """What the gold patch adds is nowhere that the agent looks."""
        for task in self.tasks(made):
            if task.gold_patch is None or task.repository is None:
                continue
            snapshot = Snapshot.take(task.repository)
            try:
                rules = Rules.of(snapshot, ignore=task.ignore, readonly=task.readonly)
                for path, member in snapshot.members.items():
                    if member.kind == "file" and not rules.ignored(path):
                        assert task.gold_patch.strip() not in snapshot.read(path), (
                            f"{task.id}: {path} is the gold patch"
                        )
            finally:
                snapshot.close()

    def test_the_shipped_config_is_valid(self, made: Benchmark) -> None:
        """`debug-gym run BENCHMARK` starts from it."""
        if not self.registered:
            pytest.skip("not registered: this contract says `registered = False`")
        path = getattr(made.settings, "path", None)
        config = loading.load(self.benchmark.name, [f"benchmark.path={path}"] if path else [])
        assert config.benchmark.name == self.benchmark.name

    def test_gold_patches_make_the_tests_pass(self, made: Benchmark, tmp_path: Path) -> None:
        """Before them the tests fail, and the user's files are never written. Runs the tasks of `validated`."""
        if not self.validated:
            pytest.skip("runs the tests of the tasks that `validated` names; it names none")
        name = self.terminal if isinstance(self.terminal, str) else next(iter(self.terminal))
        if reason := unusable(name):
            pytest.skip(reason)
        shipped = env_arguments(self.benchmark, default_plugins(), tools=(), terminal=self.terminal, settings={})
        with Environments(tmp_path) as environments:
            for task in map(made.load, self.validated):
                before = state_of(task.repository) if task.repository is not None else {}
                env = environments.make(task=task, **shipped)
                grade = env.grade()
                assert not grade.resolved, f"{task.id}: the tests pass without a fix"
                assert not (task.pass_to_pass and grade.score), f"{task.id}: score {grade.score} without a fix"
                assert task.gold_patch is not None, f"{task.id} has no gold patch"
                env.workspace.apply(task.gold_patch)
                fixed = env.grade()
                failing = [test for test, outcome in fixed.tests.items() if outcome != "passed"]
                assert fixed.resolved, f"{task.id}: after the gold patch {failing} ({fixed.reason})"
                assert fixed.score > grade.score and fixed.score == fixed.max_score == env.max_score
                env.close()
                after = state_of(task.repository) if task.repository is not None else {}
                assert after == before, f"{task.id}: its repository was written"


def state_of(directory: Path) -> dict[str, str]:
    """The content of a directory, by path."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
