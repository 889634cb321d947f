"""`--debug`: a pause after each step of an episode."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console

from debug_gym_core.cli.display import PlainDisplay
from debug_gym_core.runs.trajectory import Event, EventKind

if TYPE_CHECKING:
    from debug_gym_core.runs.jobs import Job

PROMPT = "(debug-gym) "
HELP = "c: go on to the next step    q: stop the run, what is done is kept"


class PausingDisplay(PlainDisplay):
    """Shows each step and waits for a word on standard input: `c` goes on, `q` stops, anything else shows the help.

    Attributes:
        stop: what `q` calls
    """

    stop: Callable[[], None]

    def __init__(self, console: Console, max_steps: int, verbose: int, tools: Mapping[str, type[Any]]) -> None:
        """Show whole steps, whatever `verbose` says; see `Display`."""
        super().__init__(console, max_steps, verbose, tools)
        self.verbose = max(verbose, 1)
        self.steps.whole = True
        self._typed = b""
        self._waiting = False
        self._stopped = False

    def __enter__(self) -> PausingDisplay:
        self._wake_read, self._wake_write = os.pipe()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._wake_read)
        os.close(self._wake_write)

    def event(self, job: Job, event: Event) -> None:
        """Show a step and wait."""
        super().event(job, event)
        if event.kind is EventKind.STEP and event.data["step"] and not self._stopped:
            self._pause()

    def stopping(self) -> None:
        """Wake the pause up."""
        if self._stopped:
            return
        self._stopped = True
        if self._waiting:  # Ctrl-C leaves the cursor behind the prompt.
            sys.stdout.write("\n")
            sys.stdout.flush()
        super().stopping()
        os.write(self._wake_write, b"x")

    def _pause(self) -> None:
        while True:
            sys.stdout.write(PROMPT)
            sys.stdout.flush()
            self._waiting = True
            line = self._line()
            self._waiting = False
            if line is None:
                return
            word = line.strip()
            if word in ("c", "continue"):
                return
            if not line or word in ("q", "quit"):
                self.hint = ""
                self.stop()
                return
            print(HELP)

    def _line(self) -> str | None:
        """The next line of standard input, empty at its end; None when the run is stopped meanwhile."""
        while b"\n" not in self._typed:
            ready, _, _ = select.select([sys.stdin, self._wake_read], [], [])
            if self._wake_read in ready:
                return None
            data = os.read(sys.stdin.fileno(), 4096)
            if not data:
                rest, self._typed = self._typed, b""
                return rest.decode("utf-8", "replace")
            self._typed += data
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace") + "\n"
