"""`--debug`: a pause after each step of an episode."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from debug_gym_core.cli.display import PlainDisplay
from debug_gym_core.cli.steps import event_lines
from debug_gym_core.trajectory import Event, EventKind

if TYPE_CHECKING:
    from debug_gym_core.experiment import Job

PROMPT = "(debug-gym) "
HELP = "c: go on to the next step    q: stop the run, what is done is kept"


class PausingDisplay(PlainDisplay):
    """Shows each step and waits for a word on standard input: `c` goes on, `q` stops, anything else shows the help.

    Attributes:
        stop: what `q` calls
    """

    stop: Callable[[], None]

    def __enter__(self) -> PausingDisplay:
        self._wake_read, self._wake_write = os.pipe()
        self._stopped = False
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._wake_read)
        os.close(self._wake_write)

    def event(self, job: Job, event: Event) -> None:
        """Show a step and wait."""
        if not self.verbose:
            for line in event_lines(job, event, self.max_steps, whole=True):
                self.line(line)
        super().event(job, event)
        if event.kind is EventKind.STEP and event.data["step"] and not self._stopped:
            self._pause()

    def stopping(self) -> None:
        """Wake the pause up."""
        super().stopping()
        self._stopped = True
        os.write(self._wake_write, b"x")

    def _pause(self) -> None:
        while True:
            sys.stdout.write(PROMPT)
            sys.stdout.flush()
            ready, _, _ = select.select([sys.stdin, self._wake_read], [], [])
            if self._wake_read in ready:
                return
            word = sys.stdin.readline()
            if word.strip() in ("c", "continue"):
                return
            if word == "" or word.strip() in ("q", "quit"):
                self.stop()
                return
            print(HELP)
