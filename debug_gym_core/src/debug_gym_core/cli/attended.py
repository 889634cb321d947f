"""Runs that a person plays: nothing is drawn over the prompt, and Ctrl-C is asked about before work is lost."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from debug_gym_core.cli.display import PlainDisplay
from debug_gym_core.cli.steps import error_text
from debug_gym_core.runs.trajectory import Event, EventKind, Result

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.jobs import Job

PATIENCE = 1.0
"""Seconds that a sandbox has to say whether something is stopped, and a program to stop."""

TIMES = 2
"""How often a program that goes on is interrupted again: one that has just begun does not hear it."""


def is_attended(config: Config, plugins: Plugins) -> bool:
    """Whether a person plays; names that are unknown are complained of elsewhere."""
    agent, llm = plugins.agents.get(config.agent.name), plugins.llms.get(config.llm.name)
    return bool(agent and agent.needs_llm and llm and llm.trusted)


class AttendedDisplay(PlainDisplay):
    """Lines for whoever plays, and so has seen each step.

    Attributes:
        happened: how many events there were: whether something was typed, or has ended, since
    """

    def __init__(self, *about: Any, concluded: bool) -> None:
        """Show nothing yet.

        Args:
            about: see `Display`
            concluded: somebody else says how the episode ended
        """
        super().__init__(*about)
        self.verbose, self._concluded, self.happened = 0, concluded, 0

    def event(self, job: Job, event: Event) -> None:
        """Tell why a task starts anew; all else was seen at the prompt."""
        self.happened += 1
        super().event(job, event)
        if event.kind is EventKind.ERROR and event.data["retried"]:
            self.note(f"{error_text(event.data['error'])}; the task starts anew\n")

    def ended(self, job: Job, result: Result | None) -> str:
        """The line that tells how an episode ended."""
        return "" if self._concluded else super().ended(job, result)


Interrupt = Callable[[int | None], int | None]


def asking_twice(display: AttendedDisplay, interrupt: Interrupt) -> Callable[[int, object], None]:
    """A handler of Ctrl-C for a person who plays: it stops what a tool runs, and asks before work is lost, once.

    What it says of the next Ctrl-C holds until something else happens, however much later that comes.

    Args:
        display: where the question is written, and what knows whether something has happened since
        interrupt: stops what a tool runs, in a certain step or whichever; returns in which, None: nothing does
    """
    asked: tuple[int, bool] | None = None
    stopping = False

    def handle(number: int, frame: object) -> None:
        nonlocal asked, stopping
        if stopping:
            raise KeyboardInterrupt
        happened = display.happened  # before what stops: that is an event
        stops = _soon(interrupt) is not None
        if asked == (happened, True) or (asked == (happened, False) and not stops):
            stopping = True
            raise KeyboardInterrupt
        asked = happened, stops
        lost = "stops the run: patch kept, nothing graded"
        if stops:
            display.prose(f"\ninterrupted; if it goes on, Ctrl-C again {lost}")
        else:
            display.prose(f"\nCtrl-C again interrupts the tool, if it can by then, or {lost}; else wait for the tool")

    return handle


def _soon(interrupt: Interrupt) -> int | None:
    """What it returns, or None where a sandbox does not answer soon; what goes on then is interrupted again."""
    found: queue.SimpleQueue[int | None] = queue.SimpleQueue()

    def insist() -> None:
        found.put(step := interrupt(None))
        for _ in range(TIMES):
            time.sleep(PATIENCE)
            step = interrupt(step) if step is not None else None

    threading.Thread(target=insist, daemon=True).start()
    try:
        return found.get(timeout=PATIENCE)
    except queue.Empty:
        return None
