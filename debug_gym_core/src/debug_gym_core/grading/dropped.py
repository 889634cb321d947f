"""What of an agent's changes the clean grading does not take over, and how that is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from debug_gym_core.grading.infrastructure import Infrastructure
from debug_gym_core.grading.installed import installed_modules
from debug_gym_core.names import some
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.workspace.lines import shown

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.workspace.rules import Rules
    from debug_gym_core.workspace.snapshot import Snapshot

TOLD = 10
"""Changes that a line names."""

LISTED = 50
"""Changes that data names."""


def infrastructure_of(
    task: Task,
    snapshot: Snapshot,
    rules: Rules,
    installed: Iterable[str],
    tests: Iterable[str],
    test_files: Iterable[str],
) -> Infrastructure:
    """The test infrastructure of a task.

    Args:
        task: what is worked on
        snapshot: its pristine repository
        rules: which files are read-only or ignored
        installed: names of modules that must not be shadowed, see `installed_of`
        tests: ids of the tests that matter
        test_files: paths of more files that belong to them
    """
    return Infrastructure(
        snapshot,
        rules,
        task.entrypoint,
        tests=tests,
        test_files=test_files,
        allowed=task.allowed,
        installed=installed,
        judged=task.judge is not None,
        gold_patch=task.gold_patch,
    )


def installed_of(task: Task, session: Session) -> frozenset[str]:
    """Names of the top-level modules that are installed for the Python that runs a task's tests.

    Args:
        task: what is worked on
        session: a sandbox of it

    Raises:
        SandboxError: the sandbox, or what was asked in it, was lost
    """
    return installed_modules(session, Entrypoint.parse(task.entrypoint).interpreter)


def about_dropped(dropped: Mapping[str, str]) -> str:
    """What grading drops and why, in a line; empty when it drops nothing.

    Args:
        dropped: why, by path
    """
    if not dropped:
        return ""
    named = [f"{shown(path)} ({why})" for path, why in sorted(dropped.items())]
    what = "the change of" if len(dropped) == 1 else f"{len(dropped)} changes:"
    return f"Grading drops {what} {some(named, TOLD)}"


def listed(dropped: Mapping[str, str]) -> dict[str, str]:
    """The same for programs, bounded: the first paths, and why.

    Args:
        dropped: why, by path
    """
    return dict(islice(sorted(dropped.items()), LISTED))
