"""Runs that a person plays: nothing is drawn over the prompt, and Ctrl-C is asked about before work is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from debug_gym_core.cli.display import Display, PlainDisplay
from debug_gym_core.cli.steps import error_text
from debug_gym_core.runs.trajectory import Event, EventKind, Result

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.jobs import Job

SECOND_THOUGHT = 5.0
"""Seconds within which a second Ctrl-C of a person who plays counts as one."""


def is_attended(config: Config, plugins: Plugins) -> bool:
    """Whether a person plays; names that are unknown are complained of elsewhere."""
    agent, llm = plugins.agents.get(config.agent.name), plugins.llms.get(config.llm.name)
    return bool(agent and agent.needs_llm and llm and llm.trusted)


class AttendedDisplay(PlainDisplay):
    """Lines for whoever plays, and so has seen each step."""

    def __init__(self, *about: Any, concluded: bool) -> None:
        """Show nothing yet.

        Args:
            about: see `Display`
            concluded: somebody else says how the episode ended
        """
        super().__init__(*about)
        self.verbose, self._concluded = 0, concluded

    def event(self, job: Job, event: Event) -> None:
        """Tell why a task starts anew; all else was seen at the prompt."""
        super().event(job, event)
        if event.kind is EventKind.ERROR and event.data["retried"]:
            self.note(f"{error_text(event.data['error'])}; the task starts anew\n")

    def ended(self, job: Job, result: Result | None) -> str:
        """The line that tells how an episode ended."""
        return "" if self._concluded else super().ended(job, result)


def asking_twice(display: Display) -> Callable[[int, object], None]:
    """A handler of Ctrl-C for a person who plays: what they did so far is worth a second thought.

    Args:
        display: where the question is written
    """
    asked: list[float] = []

    def interrupt(number: int, frame: object) -> None:
        if asked and time.monotonic() - asked[-1] < SECOND_THOUGHT:
            raise KeyboardInterrupt
        asked.append(time.monotonic())
        display.line("\nCtrl-C again stops the run: patch kept, nothing graded; else wait for the tool")

    return interrupt
