"""The submit tool: ends the episode and grades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core import Observation, Tool, hookimpl
from debug_gym_core.grading.dropped import about_dropped, listed
from debug_gym_core.tasks.results import about_grade, about_reason

if TYPE_CHECKING:
    from debug_gym_core import Environment


class Submit(Tool):
    """Say that the bug is fixed: ends the episode, and the tests are run on a clean copy of the repository."""

    name = "submit"
    examples = ({"message": "The cache was shared between instances."},)

    def use(self, env: Environment, message: str | None = None) -> Observation:
        """End the episode.

        Args:
            env: the environment
            message: what was wrong and how it was fixed, in a few words
        """
        grade = env.submit(message)
        verdict = "the task is resolved" if grade.resolved else "the task is not resolved"
        hidden = env.task.hides_tests
        found = about_grade(grade, others=bool(env.task.pass_to_pass), hidden=hidden)
        reason = about_reason(grade, hidden=hidden)
        dropped = f"\n{about_dropped(grade.dropped)}." if grade.dropped else ""
        return Observation(
            self.name,
            f"Submitted: {found}; {verdict}.{dropped}",
            {
                "resolved": grade.resolved,
                "score": grade.score,
                "max_score": grade.max_score,
                "grading": grade.grading,
                **({} if hidden else {"tests": grade.tests}),
                **({"reason": reason} if reason else {}),
                **({"dropped": listed(grade.dropped)} if grade.dropped else {}),
            },
        )


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """The tool of this package."""
    return [Submit]
