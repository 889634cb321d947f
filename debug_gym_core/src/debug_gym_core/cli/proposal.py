"""What a person is asked to apply: of what an agent changed, that which the tests passed with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from debug_gym_core.cli.byproducts import NAME, without_byproducts
from debug_gym_core.cli.own_tests import NAMED, OwnTests, Standing
from debug_gym_core.cli.shown_paths import shown_path
from debug_gym_core.errors import ActionError, DebugGymError
from debug_gym_core.names import some
from debug_gym_core.runs.trajectory import EventKind, read_journal
from debug_gym_core.tasks.results import Grade
from debug_gym_core.workspace.lines import shown

if TYPE_CHECKING:
    from debug_gym_core.runs.trajectory import Event


class Proposal(NamedTuple):
    """A change, and how the tests stand with it.

    Attributes:
        patch: its file
        standing: how they stand with what is in it, and nothing else
        left_out: what of the agent's changes is not in it and why, a line for each cause
        passed_with_it: whether they pass with what git ignores, and do not without
    """

    patch: Path
    standing: Standing
    left_out: list[str]
    passed_with_it: bool


def propose(episode: Path, repository: Path, tests: OwnTests) -> Proposal:
    """Leave out of an agent's change what grading dropped, and what git ignores.

    Args:
        episode: the directory of what the agent played, which was graded
        repository: what the change is for
        tests: of the repository; run again where they were graded with what is left out

    Raises:
        DebugGymError: the repository has changed meanwhile
        UsageError, RequirementError, TaskError: the tests cannot be run
    """
    whole = episode / "patch.diff"
    grade = _last_grade(read_journal(episode / "trajectory.jsonl"))
    standing = Standing.of_grade(tests.entrypoint, grade)
    left_out = []
    change = whole
    try:
        if grade.dropped:
            left_out.append(f"left out, as the tests ran without it: {some(_with_causes(grade.dropped), NAMED)}")
            change = whole.with_name(NAME)
            change.write_bytes(tests.as_graded(whole.read_bytes()))
        change, ignored = without_byproducts(change, repository)
        if ignored:
            left_out.append(f"left out, as git ignores it: {some(ignored, NAMED)}")
        if ignored and standing.resolved:
            standing = tests.with_change(change.read_bytes())
    except ActionError as error:
        raise DebugGymError(
            f"nothing was applied, {repository} has changed meanwhile: {error}\nThe change is kept: {shown_path(whole)}"
        ) from error
    return Proposal(change, standing, left_out, grade.resolved and not standing.resolved)


def _last_grade(events: list[Event]) -> Grade:
    return Grade(**[event.data for event in events if event.kind is EventKind.GRADE][-1])


def _with_causes(dropped: Mapping[str, str]) -> list[str]:
    return [f"{shown(path)} ({why})" for path, why in sorted(dropped.items())]
