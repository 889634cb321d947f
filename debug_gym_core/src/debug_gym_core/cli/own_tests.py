"""The tests of a person's own repository: how they stand as it is, how with a change, and what grading takes of one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from debug_gym_core.cli import say
from debug_gym_core.cli.figures import plural
from debug_gym_core.cli.steps import shorten
from debug_gym_core.environment.backend import choose_terminal
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.grading.dropped import infrastructure_of, installed_of
from debug_gym_core.grading.starting import why_not_started
from debug_gym_core.names import some
from debug_gym_core.runs.parts import make_benchmark
from debug_gym_core.tasks.results import MISSING, score
from debug_gym_core.tasks.results import PASSING as PASSED
from debug_gym_core.workspace import patch

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.tasks.results import Grade, Measurement

PASSING = ("passed", "skipped", "xfailed", "xpassed")
"""Outcomes that a person does not call a failure."""

NAMED = 8
"""Tests, or files, that a line names."""

LENGTH = 300
"""Characters of why a run does not count as it stands."""


@dataclass(frozen=True)
class Standing:
    """How the tests stand after a run of them.

    Attributes:
        entrypoint: the command that ran them
        resolved: whether all that count pass
        count: how many count
        tests: the outcome of each by its name; none where the exit status is all that there is
        by_status: whether it is
        exit_status: of the command; None: not known
        reason: why the run does not count as it stands; empty: it does
    """

    entrypoint: str
    resolved: bool
    count: int
    tests: Mapping[str, str] = field(default_factory=dict)
    by_status: bool = False
    exit_status: int | None = None
    reason: str = ""

    @classmethod
    def of_grade(cls, entrypoint: str, grade: Grade) -> Standing:
        """How they stand on a clean copy.

        Args:
            entrypoint: the command that ran them
            grade: what it gave
        """
        by_status = grade.grading == "exit_status"
        return cls(entrypoint, grade.resolved, grade.max_score, grade.tests, by_status, reason=grade.reason)

    @property
    def passes(self) -> bool:
        """Whether nothing fails: tests that were skipped do not, even where they count."""
        if self.resolved or self.by_status or self.reason:
            return self.resolved
        return all(outcome in PASSING for outcome in self.tests.values())

    def about_passing(self, of: str = "", with_it: str = "") -> str:
        """That all pass, such as `the 2 tests of project pass`.

        Args:
            of: what follows the tests
            with_it: what follows the verb
        """
        if self.by_status:
            return f"`{self.entrypoint}` passes{with_it}"
        if self.count == 1:
            return f"the test{of} passes{with_it}"
        return f"{'the' if of else 'all'} {self.count} tests{of} pass{with_it}"

    def about_failing(self, of: str = "", with_it: str = "") -> str:
        """What fails and why the run does not count, such as `1 of 2 tests of project fail: test_calc.py::test_add`.

        Args:
            of: what follows the tests
            with_it: what follows the verb
        """
        if self.by_status:
            status = f" (exit status {self.exit_status})" if self.exit_status is not None and not self.reason else ""
            parts = [f"`{self.entrypoint}` fails{with_it}{status}"]
        else:
            failing = [name for name, outcome in self.tests.items() if outcome not in (*PASSING, MISSING)]
            missing = [name for name, outcome in self.tests.items() if outcome == MISSING]
            verb = "fails" if len(self.tests) == 1 or not failing else "fail"
            which = f"{len(failing)} of {plural(len(self.tests), 'test')}" if failing else "no test"
            parts = [f"{which}{of} {verb}{with_it}" + (f": {some(failing, NAMED)}" if failing else "")]
            if missing:
                parts.append(
                    f"{len(missing)} {'has' if len(missing) == 1 else 'have'} no result: {some(missing, NAMED)}"
                )
            elif not failing and not self.reason:  # and yet it is not resolved
                others = [name for name, outcome in self.tests.items() if outcome not in PASSED]
                parts.append(f"skipped or failing as expected, which is not passing: {some(others, NAMED)}")
        return "; ".join([*parts, *([shorten(self.reason, LENGTH)] if self.reason else [])])


class OwnTests:
    """Runs the tests of a repository in sandboxes of their own, and never in the repository.

    Attributes:
        entrypoint: the command that runs them
    """

    def __init__(self, config: Config, plugins: Plugins) -> None:
        """Start nothing yet.

        Args:
            config: of the run
            plugins: what is installed
        """
        self._config, self._plugins = config, plugins
        benchmark = make_benchmark(config, plugins)
        self._task = benchmark.load(benchmark.names()[0])
        self.entrypoint = config.env.entrypoint or self._task.entrypoint

    def as_they_are(self) -> Standing:
        """How they stand before anything is changed; says what runs.

        Raises:
            UsageError, RequirementError, TaskError: they cannot be run
        """
        with self._started(f"running the tests of {self._task.name} as they are: {self.entrypoint}") as env:
            found = env.measure()
            if env.unconfirmed or why_not_started(self.entrypoint, found):  # a grade says it, or that it cannot start
                return Standing.of_grade(self.entrypoint, env.grade())
            limit = f"the run reached its timeout of {env.run_timeout:g} s (env.run_timeout)"
            return Standing(
                self.entrypoint,
                env.resolved,
                env.max_score,
                env.outcomes(found),
                by_status=found.kind == "exit_status",
                exit_status=found.exit_status,
                reason=limit if found.timed_out else "" if found.undecided else found.reason,
            )

    def with_change(self, change: bytes) -> Standing:
        """How they stand with a change, on a clean copy.

        Args:
            change: a patch

        Raises:
            ActionError: it does not fit the repository any more
            UsageError, RequirementError, TaskError: the tests cannot be run
        """
        with self._started() as env:
            env.workspace.apply(change)
            return Standing.of_grade(self.entrypoint, env.grade())

    def as_graded(self, change: bytes) -> bytes:
        """What grading takes of a change: without what it drops, and files of which it restores a part as it has them.

        Args:
            change: a patch

        Raises:
            ActionError: it does not fit the repository any more
            UsageError, RequirementError, TaskError: the tests cannot be found
        """
        with self._started() as env:
            return env.as_graded(change)

    @contextlib.contextmanager
    def _started(self, announcement: str = "") -> Iterator[_OwnEnv]:
        """The environment, reset; what is announced is said when nothing is missing."""
        config, task = self._config, self._task
        section = config.terminal
        free = {"image": section.image, "allow_unsandboxed": section.allow_unsandboxed}
        backend, _ = choose_terminal(section.name, task, False, self._plugins, free)
        settings = {key: value for key, value in section.settings_for(backend).items() if value is not None}
        env = _OwnEnv(
            task,
            [],
            {backend.name: settings},
            plugins=self._plugins,
            allow_unsandboxed=section.allow_unsandboxed,
            **{**dict(config.env), "end_on_resolved": False},
        )
        try:
            if announcement:
                say(announcement, err=True)
            env.reset(seed=config.run.seed)
            yield env
        finally:
            env.close()


class _OwnEnv(RepoEnv):
    """The environment of a repository in which nobody plays."""

    def outcomes(self, measurement: Measurement) -> dict[str, str]:
        """The outcome of each test by its name, also of those that count and were not reported."""
        return score(measurement, self._tests.ids, self.max_score)[1]

    def as_graded(self, change: bytes) -> bytes:
        """See `OwnTests.as_graded`."""
        factory, task = self._sandbox.factory, self.task
        snapshot = factory.graded
        changes = patch.apply(change, {path: snapshot.state(path) for path in patch.touched(change)})
        files = task.test_files
        installed = installed_of(task, self.session)
        infrastructure = infrastructure_of(task, snapshot, factory.rules, installed, self._tests.ids, files)
        kept = infrastructure.filter(changes).kept
        return patch.make({path: snapshot.state(path) for path in kept}, kept)
