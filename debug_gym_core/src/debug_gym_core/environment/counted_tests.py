"""The tests of a task that count: which they are, how they stand, and the grade that they give."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from debug_gym_core.environment.recovery import insist
from debug_gym_core.errors import GradingError, GradingInterrupted, RequirementError, SandboxLost
from debug_gym_core.grading.anyway import forgiven, is_undecided
from debug_gym_core.grading.collect import collect
from debug_gym_core.grading.grade import grade as clean_grade
from debug_gym_core.grading.measure import measure as measure_in_place
from debug_gym_core.grading.reported_run import INTERRUPTED
from debug_gym_core.tasks import results
from debug_gym_core.tasks.results import Measurement

if TYPE_CHECKING:
    from debug_gym_core.environment.sandbox_factory import SandboxFactory
    from debug_gym_core.grading.anyway import Unchanged
    from debug_gym_core.grading.twins import When
    from debug_gym_core.sandbox.interruption import Interruption
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.tasks.judge import Judge
    from debug_gym_core.tasks.results import Grade
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.workspace.changes import Changes
    from debug_gym_core.workspace.files import Workspace


@dataclass(frozen=True)
class Standing:
    """How the tests that count stand after a run of them.

    Attributes:
        score: how many pass; 0 when one failed that passed before
        resolved: whether all of them do, and every one that passed before
        broken: ids of tests that passed before
    """

    score: int
    resolved: bool
    broken: tuple[str, ...]


class CountedTests:
    """The tests of one task that count; found in the pristine repository where the task does not name them.

    Attributes:
        ids: of the tests; none: the run as a whole counts
        notes: what a person should know of them
        unread: files that were to have some and are no Python, and why, by path
        grading: whether a clean grade is under way
    """

    def __init__(self, task: Task, twins: When = "auto") -> None:
        """Know those that the task names.

        Args:
            task: whose
            twins: when a grade runs the twins of the tests that passed
        """
        self._task = task
        self._twins: When = twins
        self.ids: tuple[str, ...] = task.tests
        self.notes: list[str] = []
        self.unread: dict[str, str] = {}
        self.grading = False
        self._found = False
        self._max_score: int | None = task.max_score or len(task.tests) or None

    @property
    def max_score(self) -> int:
        """How many count; 0 as long as nobody looked."""
        return self._max_score or 0

    @property
    def hidden(self) -> bool:
        """Whether the tests that show the bug are kept from the agent."""
        return self._task.hides_tests

    def find(self, session: Session, timeout: float) -> bool:
        """Find the tests, unless they are known; runs something in the sandbox.

        Args:
            session: a sandbox with the pristine repository
            timeout: seconds

        Returns:
            whether anything was run

        Raises:
            TaskError: there is no test that could pass, or the entrypoint cannot be started
            SandboxLost: the sandbox went away
        """
        if self.ids or self._found:
            return False
        self.ids = collect(session, self._task.entrypoint, timeout, self.notes.append, self.unread)
        self._max_score = self._max_score or max(1, len(self.ids))
        self._found = True
        return True

    def measure(
        self, session: Session, workspace: Workspace, timeout: float, interruption: Interruption, *, warm: bool
    ) -> Measurement:
        """Run the tests where the agent works.

        Args:
            session: where
            workspace: the files in it
            timeout: seconds
            interruption: by which another thread may end the run
            warm: the run may start from an interpreter that has installed modules loaded

        Raises:
            SandboxLost: the sandbox went away
        """
        if self._task.judge is not None:
            found = _judged(self._task.judge, session, timeout, interruption)
        else:
            with interruption.beginning():
                ignored = workspace.ignored_files(".py")
                found = measure_in_place(
                    session,
                    self._task.entrypoint,
                    timeout=timeout,
                    warm=warm,
                    ignored=ignored,
                    details=True,
                    interruption=interruption,
                )
        return replace(found, undecided=is_undecided(found, self._twins))

    def standing(self, measurement: Measurement) -> Standing:
        """What a run where the agent works says of the tests; without a score where it is undecided.

        Args:
            measurement: the run
        """
        before = self._task.pass_to_pass
        run = forgiven(measurement) if measurement.undecided else measurement
        resolved = results.is_resolved(run, self.ids, self.max_score, before)
        if not resolved and self._found:  # grading looks whether they are skipped without the change, too
            resolved = bool(results.skipped_only(run, self.ids, self.max_score))
        if self.hidden:
            there = measurement.outcomes
            before = tuple(one for one in before if one in there)  # a test that is not there is not broken
            resolved = False  # what is there under the names of the tests that count is not these tests
        score, _ = results.score(measurement, self.ids, self.max_score, before)
        return Standing(score, resolved, results.broken(run, before))

    def grade(
        self,
        changes: Changes,
        factory: SandboxFactory,
        seed: int,
        timeout: float,
        unchanged: Unchanged | None,
        interruption: Interruption,
    ) -> Grade:
        """Grade an agent's changes in a fresh sandbox, again in another one when that is lost.

        Args:
            changes: of the agent
            factory: makes the sandbox
            seed: of the episode
            timeout: seconds for the run
            unchanged: what another grade with the same seed and timeout knows of the repository as it was
            interruption: by which another thread may end it

        Raises:
            GradingInterrupted: another thread did
            SandboxError: no sandbox could be had for it, or none lasted
        """

        def once() -> Grade:
            return clean_grade(
                self._task,
                factory.graded,
                changes,
                lambda: _ended_by(interruption, factory.fresh(seed)),
                tests=self.ids,
                max_score=self.max_score,
                timeout=timeout,
                rules=factory.rules,
                twins=self._twins,
                unchanged=unchanged,
            )

        self.grading = True
        try:
            with interruption.ending(lambda: True):  # between one sandbox and the next, whose end it will be
                graded = insist(once, factory.wait)
            return replace(graded, dropped={**changes.left_out, **graded.dropped})
        except (SandboxLost, RequirementError) as error:
            raise GradingError(f"no sandbox lasted to the end of the grading: {error}") from error
        finally:
            self.grading = False


@contextlib.contextmanager
def _ended_by(interruption: Interruption, fresh: AbstractContextManager[Session]) -> Iterator[Session]:
    """A sandbox for grading, with which all that is done in it ends where somebody asks for that."""
    with fresh as session:

        def end() -> bool:
            session.close()
            return True

        try:
            with interruption.ending(end) as grading:
                yield session
        except SandboxLost:
            if not grading.ended:
                raise
    if grading.ended:
        raise GradingInterrupted("the grading was interrupted")


def _judged(judge: Judge, session: Session, timeout: float, interruption: Interruption) -> Measurement:
    """What a task's own judge says of the agent's sandbox; whoever asks ends what it runs then, not what comes next.

    It may have to put the files back.
    """
    before = session.running()

    def end() -> bool:
        killed = session.running() - before
        for kill in killed:
            kill()
        return bool(killed)

    found = Measurement((), -signal.SIGKILL, "", kind="log")
    with interruption.ending(end) as judging:
        if not judging.ended:
            found = judge.measure(session, timeout=timeout, clean=False)
    return replace(found, interrupted=True, valid=False, reason=INTERRUPTED) if judging.ended else found
