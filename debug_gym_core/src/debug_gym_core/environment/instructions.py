"""What an agent is told of its task before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from debug_gym_core.tools.tool import usage

if TYPE_CHECKING:
    from debug_gym_core.environment.counted_tests import CountedTests
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.tools.tool import Tool


def instructions(task: Task, tests: CountedTests, tools: Mapping[str, Tool]) -> str:
    """Say what is to be done, how it is run, and with what.

    Args:
        task: what is worked on
        tests: those that count
        tools: by name
    """
    lines = [f"Task {task.id}"]
    if task.description:
        lines += ["", task.description.strip()]
    lines += [
        "",
        f"The repository is in /testbed. Its tests run with: {task.entrypoint}",
        "1 test counts; it must pass." if tests.max_score == 1 else f"{tests.max_score} tests count; all must pass.",
        *([_must_still_pass(len(task.pass_to_pass))] if task.pass_to_pass else []),
        *(["The tests that show the bug are not there: the grading has them."] if tests.hidden else []),
        "",
        "Tools:",
    ]
    for name, made in tools.items():
        about = type(made).help()
        lines.append(f"- {usage(type(made))}: {about.splitlines()[0] if about else name}")
    return "\n".join(lines)


def _must_still_pass(count: int) -> str:
    """What the agent is told of tests that pass before it changes anything."""
    what = (
        "1 other test passes already and must still pass"
        if count == 1
        else f"{count} other tests pass already and must still pass"
    )
    return f"{what}; else the score is 0."
