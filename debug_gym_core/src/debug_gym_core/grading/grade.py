"""Measuring: which tests pass, in place for the agent's information and clean for the record."""

from __future__ import annotations

import dataclasses
import logging
import platform
import posixpath
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from debug_gym_core.errors import ActionError, GradingError
from debug_gym_core.grading.anyway import Unchanged, forgivable, forgiven, is_undecided, passing_newly, throughout
from debug_gym_core.grading.beside import Beside
from debug_gym_core.grading.dropped import infrastructure_of, installed_of
from debug_gym_core.grading.given import given_modules
from debug_gym_core.grading.infrastructure import Filtered, Infrastructure
from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.starting import require_start, why_not_started
from debug_gym_core.grading.twin_run import Asked, TwinRun
from debug_gym_core.grading.twins import Twins, When, have_twins, without
from debug_gym_core.tasks.judge import Twinned
from debug_gym_core.tasks.results import (
    PASSING,
    SKIPPED,
    Grade,
    Measurement,
    Problem,
    about_broken,
    about_doubts,
    broken,
    is_resolved,
    reported,
    score,
    skipped_only,
)
from debug_gym_core.workspace import patch as patches
from debug_gym_core.workspace.changes import apply_changes

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.workspace.rules import Rules
    from debug_gym_core.workspace.snapshot import FileState, Snapshot

log = logging.getLogger("debug_gym")


def grade(
    task: Task,
    snapshot: Snapshot,
    changes: Mapping[str, FileState | None],
    open_session: Callable[[], AbstractContextManager[Session]],
    *,
    tests: Sequence[str],
    max_score: int,
    timeout: float,
    rules: Rules,
    twins: When = "auto",
    unchanged: Unchanged | None = None,
) -> Grade:
    """Grade an agent's changes in a fresh sandbox.

    The changes are written over the pristine repository, but for those to read-only files, tests and test
    infrastructure (see `debug_gym_core.grading.infrastructure`); then the entrypoint runs once, or the task's judge
    does, again when what ran it died.

    Args:
        task: what was worked on
        snapshot: its pristine repository, as it is graded
        changes: the new state of each changed path, None for a deleted one
        open_session: makes a sandbox with the pristine repository in it
        tests: ids of the tests that count; none: the run as a whole
        max_score: how many count
        timeout: seconds for the run
        rules: which files are read-only or ignored
        twins: when the tests that passed are run again with what they expect turned, in a sandbox of their own
        unchanged: keeps what the repository as it was shows, for other grades of the same task in equal sandboxes

    Raises:
        GradingError: the changes cannot be written where they were before
        TaskError: the entrypoint cannot be started, and not in the pristine repository either
        SandboxError: there is no sandbox, or it went away
    """
    clean = _Clean(task, snapshot, changes, open_session, tests, timeout, rules, unchanged or Unchanged())
    run = clean.run()
    if run.measurement.lost:  # once may be anybody's doing, twice it is what the changes do
        run = clean.run()
    if why_not_started(task.entrypoint, run.measurement):
        with open_session() as session:  # the agent's doing, unless it is the same without the agent
            require_start(session, task.entrypoint, timeout)
    measurement, known, new = run.measurement, frozenset[Problem](), frozenset[str]()
    counted = reported(measurement, (*tests, *task.pass_to_pass) if tests else ())
    if is_undecided(measurement, twins):
        before = clean.before(run)
        known = forgivable(before)
        if not measurement.problems <= known and _would_resolve(run, task, tests, max_score):
            known |= clean.added_by_right_fix()
        measurement = measurement.but(known)
        if not measurement.tampered:  # else none is believed
            new = counted & passing_newly(before, measurement)
    skipped = clean.skipped_anyway(run, measurement, max_score)

    def resolves(measurement: Measurement) -> bool:
        return not run.rewritten and is_resolved(measurement, tests, max_score, task.pass_to_pass, skipped)

    found = None
    if twins == "always" or (twins == "auto" and (new or resolves(measurement))):
        found = clean.twins(Asked(measurement, known))
        for path, why in found.unread.items() if found is not None else ():
            log.warning("Python %s cannot read %s, its tests have no twins: %s", platform.python_version(), path, why)
        if new:
            found = (found or Twins()).with_doubts_of(sorted(new))
        if found is not None and found.doubts:
            found = found.but(found.doubts.keys() - counted)
        if found is not None and found.doubts:
            found = found.but(clean.doubted_anyway(run, found, known))
    doubts = found.doubts if found is not None else {}
    measurement = without(measurement, doubts)
    resolved = resolves(measurement)
    lost = broken(measurement, task.pass_to_pass)
    if run.rewritten:  # Only what it scores hangs on that: not what is told of its tests, nor what another run shows.
        measurement = measurement.spoilt(f"the run wrote to the tests: {run.rewritten}")
    count, outcomes = score(measurement, tests, max_score, task.pass_to_pass, skipped if resolved else ())
    return Grade(
        resolved=resolved,
        score=count,
        max_score=max_score,
        tests=outcomes,
        grading="exit_status" if measurement.kind == "exit_status" else "clean",
        reason=measurement.why or about_doubts(tuple(doubts)) or about_broken(lost),
        dropped=run.filtered.dropped,
        broken=lost,
        doubts=doubts,
        twins=found.count if found is not None else None,
        timed_out=run.measurement.timed_out,
    )


@dataclasses.dataclass(frozen=True)
class _Run:
    """A run of the tests over the changes.

    Attributes:
        filtered: which changes were taken over
        measurement: which tests passed
        rewritten: a file with tests that the run wrote to; empty: none
    """

    filtered: Filtered
    measurement: Measurement
    rewritten: str = ""


def _would_resolve(run: _Run, task: Task, tests: Sequence[str], max_score: int) -> bool:
    """Whether only hooks that are added keep a run from being resolved."""
    return not run.rewritten and is_resolved(forgiven(run.measurement), tests, max_score, task.pass_to_pass)


@dataclasses.dataclass(frozen=True)
class _Clean:
    """The changes to a task, and the fresh sandboxes in which its tests run over them; attributes as `grade`."""

    task: Task
    snapshot: Snapshot
    changes: Mapping[str, FileState | None]
    open_session: Callable[[], AbstractContextManager[Session]]
    tests: Sequence[str]
    timeout: float
    rules: Rules
    unchanged: Unchanged

    def run(self) -> _Run:
        """The tests, over the changes."""
        task = self.task
        with self.open_session() as session:
            infrastructure = self._infrastructure(session)
            filtered = infrastructure.filter(self.changes)
            try:
                apply_changes(session, self.snapshot, filtered.kept)
            except OSError as error:  # More than a sandbox takes: the pristine repository was taken.
                return _Run(filtered, _unwritten(task.entrypoint, error))
            if task.judge is not None:  # which may write to the tests itself
                return _Run(filtered, task.judge.measure(session, timeout=self.timeout, clean=True))
            trusted, test_files = infrastructure.trusted(filtered.kept), infrastructure.test_files()
            given = given_modules(self.snapshot.members, infrastructure.test_paths(), filtered.kept)
            measurement = measure(session, task.entrypoint, timeout=self.timeout, trusted=trusted, given=given)
            return _Run(filtered, measurement, _rewritten(session, self.snapshot, test_files, filtered.kept))

    def before(self, run: _Run) -> Measurement:
        """A run of all tests in the repository as it was; that over the changes, where none of them was taken over."""
        if not run.filtered.kept:
            return run.measurement
        return self.unchanged.or_else(self._unchanged_run)

    def _unchanged_run(self) -> Measurement:
        task = dataclasses.replace(self.task, entrypoint=throughout(self.task.entrypoint))
        return dataclasses.replace(self, changes={}, task=task).run().measurement

    def twins(self, asked: Asked) -> Twins | None:
        """The tests that passed, with what they expect turned; None where there is nothing to run again.

        Args:
            asked: which they are
        """
        if asked.passed.tampered or not (self.task.judge is not None or have_twins(self.task.entrypoint)):
            return None
        found = self._twins(asked)
        return self._twins(asked) if found is not None and found.lost else found

    def _twins(self, asked: Asked) -> Twins | None:
        with self.open_session() as session:
            infrastructure = self._infrastructure(session)
            kept = infrastructure.filter(self.changes).kept
            try:
                apply_changes(session, self.snapshot, kept)
            except OSError as error:
                raise GradingError(f"the changes cannot be written a second time: {error}") from error
            run = self._twin_run(session, infrastructure, infrastructure.trusted(kept), asked)
            return run.run() if run is not None else None

    def _twin_run(
        self, session: Session, infrastructure: Infrastructure, trusted: Sequence[str], asked: Asked
    ) -> TwinRun | None:
        """How the tests run once more in a sandbox with the changes; None: they cannot."""
        task, snapshot = self.task, self.snapshot
        if task.judge is not None:
            twinned = task.judge.twinned(session, asked.passed)
            if twinned is None:
                return None
            beside = Beside.of(snapshot, trusted, twinned.sources).reread(session)
            return TwinRun(session, twinned, asked, beside)
        modules = infrastructure.test_modules()
        sources = {path: snapshot.read(end) for path, end in modules.items() if path.endswith(".py")}
        twinned = Twinned(task.entrypoint, sources, frozenset(asked.tests), lambda test: (test,))
        beside, doctests = Beside.of(snapshot, trusted, sources), infrastructure.doctests.expecting()
        return TwinRun(session, twinned, asked, beside, trusted, doctests, infrastructure.elsewhere)

    def doubted_anyway(self, run: _Run, twins: Twins, known: frozenset[Problem]) -> frozenset[str]:
        """The tests whose twins tell nothing: they doubt a right fix as well, or the repository as it was.

        What that replaces of Python's own library is held against no test.

        Args:
            run: of the tests over the changes
            twins: those of the tests, with doubts
            known: problems of the run that are held against nobody
        """
        then = (self.right_run or self.before(run)).but(known)
        passed = [one for one in twins.doubts if then.outcomes.get(one) in PASSING]
        strange = [one for one in twins.doubts if twins.holds(one)]
        # What a test is about to use is looked at whether or not it passes.
        found = self._right().twins(Asked(then, known, strange)) if passed or strange else None
        if found is None:
            return frozenset()
        replaced = frozenset().union(*map(found.strange, found.doubts))
        # Of one that holds there but for what it uses, nothing else is forgiven.
        doubted = [one for one in passed if one in found.doubts and not found.holds(one)]
        return frozenset(one for one in (*doubted, *strange) if twins.strange(one) <= replaced)

    @cached_property
    def right_run(self) -> Measurement | None:
        """A run over what the task's right fix changes, made once; None where that is nothing."""
        right = self._right()
        return right.run().measurement if right.changes else None

    def added_by_right_fix(self) -> frozenset[Problem]:
        """The problems of a run over the right fix that are held against nobody: what a fix adds may belong to it."""
        return forgivable(self.right_run) if self.right_run is not None else frozenset()

    def _right(self) -> _Clean:
        return dataclasses.replace(self, changes=self._gold_changes())

    def _gold_changes(self) -> dict[str, FileState | None]:
        """What the task's right fix changes; nothing where none is known, or it is not for this repository."""
        patch = self.task.gold_patch
        if not patch:
            return {}
        try:
            return patches.apply(patch, {path: self.snapshot.state(path) for path in patches.touched(patch)})
        except ActionError:
            return {}

    def skipped_anyway(self, run: _Run, measurement: Measurement, max_score: int) -> frozenset[str]:
        """The tests that are all that is left, where the pristine repository skips each of them as well.

        Of tests that the task names, that they are skipped may be the bug; of those that were found, another one has to
        show it.

        Args:
            run: of the tests over the changes
            measurement: of it, without what is held against nobody
            max_score: how many tests count
        """
        named = self.task.tests or self.task.judge is not None
        left = () if named else skipped_only(measurement, self.tests, max_score)
        if not left:
            return frozenset()
        pristine = forgiven(self.before(run))
        before = pristine.outcomes
        same = not pristine.tampered and all(
            before.get(one) == SKIPPED == measurement.outcomes.get(one) for one in left
        )
        shown = any(before.get(one) not in PASSING for one in self.tests if one not in left)
        return frozenset(left if same and shown else ())

    def _infrastructure(self, session: Session) -> Infrastructure:
        """The test infrastructure; where it is not known yet what is installed, a sandbox is asked.

        Args:
            session: into which no change was written yet
        """
        unchanged, counted = self.unchanged, (*self.tests, *self.task.pass_to_pass)
        unchanged.installed = unchanged.installed or installed_of(self.task, session)
        files = self.task.test_files
        return infrastructure_of(self.task, self.snapshot, self.rules, unchanged.installed, counted, files)


def _unwritten(entrypoint: str, error: OSError) -> Measurement:
    """What stands for the run of tests for which the changes left no room, or that cannot be put together."""
    reason = f"the changes cannot be written: {error}"
    kind: Literal["report", "exit_status"] = "report" if have_twins(entrypoint) else "exit_status"
    return Measurement((), 1, "", kind=kind, valid=False, reason=reason, lost=True)


def _rewritten(
    session: Session, snapshot: Snapshot, paths: frozenset[str], kept: Mapping[str, FileState | None]
) -> str:
    """A file with tests that is not as it was before the run; empty when all are."""
    for path in sorted(paths):
        before = kept[path] if path in kept else snapshot.state(path)
        try:
            if before is not None and before.kind == "file":
                same = session.read(path, 0, len(before.data) + 1) == before.data
            else:
                found = session.stat(path)
                target = found.target if found is not None else None
                same = target == before.data.decode("utf-8", "surrogateescape") if before else found is None
        except OSError:
            same = False
        if not same:
            return posixpath.normpath(path)
    return ""
