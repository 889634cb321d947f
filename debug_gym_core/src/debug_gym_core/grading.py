"""Measuring: which tests pass, in place for the agent's information and clean for the record."""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from debug_gym_core.errors import GradingError
from debug_gym_core.infrastructure import Infrastructure
from debug_gym_core.results import Grade, Measurement, TestResult, is_resolved, score
from debug_gym_core.snapshot import MTIME
from debug_gym_core.testrun import collect, measure

if TYPE_CHECKING:
    from debug_gym_core.rules import Rules
    from debug_gym_core.session import Session
    from debug_gym_core.snapshot import FileState, Snapshot
    from debug_gym_core.task import Task

__all__ = ["Grade", "Measurement", "TestResult", "apply_changes", "collect", "grade", "is_resolved", "measure", "score"]


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
    infrastructure (see `debug_gym_core.infrastructure`); then the entrypoint runs once.

    Args:
        task: what was worked on
        snapshot: its pristine repository
        changes: the new state of each changed path, None for a deleted one
        open_session: makes a sandbox with the pristine repository in it
        tests: ids of the tests that count; none: the run as a whole
        max_score: how many count
        timeout: seconds for the run
        rules: which files are read-only or ignored

    Raises:
        GradingError: the changes cannot be written
        SandboxError: there is no sandbox, or it went away
    """
    installed: Sequence[str] = ()
    with open_session() as session:
        if session.spec.interpreter is not None:
            installed = tuple(name.replace("-", "_") for name in session.spec.interpreter.packages)
        infrastructure = Infrastructure(
            snapshot, rules, task.entrypoint, tests=tests, allowed=task.allowed, installed=installed
        )
        filtered = infrastructure.filter(changes)
        try:
            apply_changes(session, snapshot, filtered.kept)
        except OSError as error:
            raise GradingError(f"the changes cannot be written: {error}") from error
        measurement = measure(session, task.entrypoint, timeout=timeout, trusted=infrastructure.trusted(filtered.kept))
        rewritten = _rewritten(session, snapshot, infrastructure.test_files())
    count, outcomes = score(measurement, tests, max_score)
    reason = measurement.reason
    if rewritten:
        count, reason = 0, f"the run wrote to the tests: {rewritten}"
    return Grade(
        resolved=not rewritten and is_resolved(measurement, tests, max_score),
        score=count,
        max_score=max_score,
        tests=outcomes,
        grading="clean" if measurement.kind == "report" else "exit_status",
        reason=reason,
        dropped=filtered.dropped,
    )


def apply_changes(session: Session, snapshot: Snapshot, changes: Mapping[str, FileState | None]) -> None:
    """Write changes over the pristine repository.

    Args:
        session: a sandbox with the pristine repository in it
        snapshot: that repository
        changes: the new state of each changed path, None for a deleted one

    Raises:
        OSError: something cannot be written
        SandboxLost: the sandbox went away
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, state in sorted(changes.items()):
            member = snapshot.members.get(path)
            if state is None or (member is not None and member.kind == "directory"):
                session.remove(path)
            if state is None:
                continue
            entry = tarfile.TarInfo(path)
            entry.mode = state.mode
            entry.mtime = MTIME + 1
            if state.kind == "link":
                entry.type = tarfile.SYMTYPE
                entry.linkname = state.data.decode("utf-8", "surrogateescape")
                tar.addfile(entry)
            else:
                entry.size = len(state.data)
                tar.addfile(entry, io.BytesIO(state.data))
    if any(state is not None for state in changes.values()):
        session.put(archive.getvalue())


def _rewritten(session: Session, snapshot: Snapshot, paths: frozenset[str]) -> str:
    """A test file that is not as it was before the run; empty when all are."""
    for path in sorted(paths):
        try:
            same = session.read(path) == snapshot.read(path)
        except OSError:
            same = False
        if not same:
            return posixpath.normpath(path)
    return ""
