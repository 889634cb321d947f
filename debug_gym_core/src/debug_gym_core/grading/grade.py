"""Measuring: which tests pass, in place for the agent's information and clean for the record."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

from debug_gym_core.errors import GradingError
from debug_gym_core.grading.dropped import infrastructure_of
from debug_gym_core.grading.given import given_modules
from debug_gym_core.grading.infrastructure import Filtered, Infrastructure
from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.starting import require_start, why_not_started
from debug_gym_core.grading.twins import Twins, When, have_twins, helpers_of, run_judged_twins, run_twins, without
from debug_gym_core.tasks.results import (
    PASSING,
    SKIPPED,
    Grade,
    Measurement,
    about_broken,
    about_doubts,
    broken,
    is_resolved,
    score,
    skipped_only,
)
from debug_gym_core.workspace.changes import apply_changes

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.workspace.rules import Rules
    from debug_gym_core.workspace.snapshot import FileState, Snapshot


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

    Raises:
        GradingError: the changes cannot be written where they were before
        TaskError: the entrypoint cannot be started, and not in the pristine repository either
        SandboxError: there is no sandbox, or it went away
    """

    def taken_over(session: Session) -> tuple[Infrastructure, Filtered]:
        """What is taken over of the changes."""
        counted = (*tests, *task.pass_to_pass)
        infrastructure = infrastructure_of(task, snapshot, rules, session, counted, task.test_files)
        return infrastructure, infrastructure.filter(changes)

    def run() -> tuple[Filtered, Measurement, str]:
        with open_session() as session:
            infrastructure, filtered = taken_over(session)
            try:
                apply_changes(session, snapshot, filtered.kept)
            except OSError as error:  # More than a sandbox takes: the pristine repository was taken.
                return filtered, _unwritten(task.entrypoint, error), ""
            if task.judge is not None:  # which may write to the tests itself
                return filtered, task.judge.measure(session, timeout=timeout, clean=True), ""
            trusted = infrastructure.trusted(filtered.kept)
            given = given_modules(snapshot.members, infrastructure.test_files(), filtered.kept)
            measurement = measure(session, task.entrypoint, timeout=timeout, trusted=trusted, given=given)
            return filtered, measurement, _rewritten(session, snapshot, infrastructure.test_files(), filtered.kept)

    def run_again() -> Twins | None:
        with open_session() as session:
            infrastructure, filtered = taken_over(session)
            try:
                apply_changes(session, snapshot, filtered.kept)
            except OSError as error:
                raise GradingError(f"the changes cannot be written a second time: {error}") from error
            if task.judge is not None:
                return run_judged_twins(session, task.judge, measurement)
            sources = {path: snapshot.read(path) for path in infrastructure.test_modules() if path.endswith(".py")}
            trusted, doctests = infrastructure.trusted(filtered.kept), infrastructure.doctests.expecting()
            helpers = helpers_of(snapshot, trusted, sources)
            return run_twins(session, task.entrypoint, sources, doctests, helpers, trusted, measurement)

    def skipped_anyway() -> frozenset[str]:
        """The tests that are all that is left, where the pristine repository skips each of them as well.

        Of tests that the task names, that they are skipped may be the bug; of those that were found, another one has to
        show it.
        """
        left = () if task.tests or task.judge is not None else skipped_only(measurement, tests, max_score)
        if not left:
            return frozenset()
        with open_session() as session:
            pristine = measure(session, task.entrypoint, timeout=timeout)
        before = pristine.outcomes
        same = pristine.valid and all(before.get(one) == SKIPPED == measurement.outcomes.get(one) for one in left)
        shown = any(before.get(one) not in PASSING for one in tests if one not in left)
        return frozenset(left if same and shown else ())

    def resolves(measurement: Measurement) -> bool:
        return not rewritten and is_resolved(measurement, counted, max_score - len(skipped), task.pass_to_pass)

    filtered, measurement, rewritten = run()
    if measurement.lost:  # once may be anybody's doing, twice it is what the changes do
        filtered, measurement, rewritten = run()
    if why_not_started(task.entrypoint, measurement):
        with open_session() as session:  # the agent's doing, unless it is the same without the agent
            require_start(session, task.entrypoint, timeout)
    skipped = skipped_anyway()
    counted = [one for one in tests if one not in skipped]
    found = None
    asked = twins == "always" or (twins == "auto" and resolves(measurement))
    if asked and (task.judge is not None or have_twins(task.entrypoint)) and not measurement.tampered:
        found = run_again()
        if found is not None and found.lost:
            found = run_again()
        measurement = without(measurement, found.doubts if found is not None else {})
    count, outcomes = score(measurement, counted, max_score - len(skipped), task.pass_to_pass)
    count += len(skipped)
    lost = broken(measurement, task.pass_to_pass)
    doubts = found.doubts if found is not None else {}
    reason = measurement.reason or about_doubts(tuple(doubts)) or about_broken(lost)
    if rewritten:
        count, reason = 0, f"the run wrote to the tests: {rewritten}"
    return Grade(
        resolved=resolves(measurement),
        score=count,
        max_score=max_score,
        tests=outcomes,
        grading="exit_status" if measurement.kind == "exit_status" else "clean",
        reason=reason,
        dropped=filtered.dropped,
        broken=lost,
        doubts=doubts,
        twins=found.count if found is not None else None,
    )


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
