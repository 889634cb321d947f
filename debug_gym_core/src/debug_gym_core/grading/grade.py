"""Measuring: which tests pass, in place for the agent's information and clean for the record."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from debug_gym_core.errors import GradingError
from debug_gym_core.grading.dropped import infrastructure_of
from debug_gym_core.grading.infrastructure import Filtered
from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.starting import require_start, why_not_started
from debug_gym_core.tasks.results import Grade, Measurement, about_broken, broken, is_resolved, score
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

    Raises:
        GradingError: the changes cannot be written
        TaskError: the entrypoint cannot be started, and not in the pristine repository either
        SandboxError: there is no sandbox, or it went away
    """

    def run() -> tuple[Filtered, Measurement, str]:
        with open_session() as session:
            infrastructure = infrastructure_of(
                task, snapshot, rules, session, (*tests, *task.pass_to_pass), task.test_files
            )
            filtered = infrastructure.filter(changes)
            try:
                apply_changes(session, snapshot, filtered.kept)
            except OSError as error:
                raise GradingError(f"the changes cannot be written: {error}") from error
            if task.judge is not None:  # which may write to the tests itself
                return filtered, task.judge.measure(session, timeout=timeout, clean=True), ""
            trusted = infrastructure.trusted(filtered.kept)
            measurement = measure(session, task.entrypoint, timeout=timeout, trusted=trusted)
            return filtered, measurement, _rewritten(session, snapshot, infrastructure.test_files())

    filtered, measurement, rewritten = run()
    if measurement.lost:  # once may be anybody's doing, twice it is what the run does
        filtered, measurement, rewritten = run()
    if why_not_started(task.entrypoint, measurement):
        with open_session() as session:  # the agent's doing, unless it is the same without the agent
            require_start(session, task.entrypoint, timeout)
    count, outcomes = score(measurement, tests, max_score, task.pass_to_pass)
    lost = broken(measurement, task.pass_to_pass)
    reason = measurement.reason or about_broken(lost)
    if rewritten:
        count, reason = 0, f"the run wrote to the tests: {rewritten}"
    return Grade(
        resolved=not rewritten and is_resolved(measurement, tests, max_score, task.pass_to_pass),
        score=count,
        max_score=max_score,
        tests=outcomes,
        grading="exit_status" if measurement.kind == "exit_status" else "clean",
        reason=reason,
        dropped=filtered.dropped,
        broken=lost,
    )


def _rewritten(session: Session, snapshot: Snapshot, paths: frozenset[str]) -> str:
    """A test file that is not as it was before the run; empty when all are."""
    for path in sorted(paths):
        try:
            same = session.read(path, 0, snapshot.members[path].size + 1) == snapshot.read(path)
        except OSError:
            same = False
        if not same:
            return posixpath.normpath(path)
    return ""
