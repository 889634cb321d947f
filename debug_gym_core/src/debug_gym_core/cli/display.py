"""What a person sees of a run while it goes on: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from debug_gym_core.cli.figures import clock, count_text, money_text, plural, score_text
from debug_gym_core.cli.options import echoed_by
from debug_gym_core.cli.steps import Steps, error_line
from debug_gym_core.cli.tables import GAP, show_line, show_prose, without_spared
from debug_gym_core.cli.task_table import table_of_tasks
from debug_gym_core.progress import listening
from debug_gym_core.runs.trajectory import Event, EventKind, Result

if TYPE_CHECKING:
    from debug_gym_core.runs.jobs import Job

SPARED = ("elapsed", "running", "hidden", "cost", "ended")
"""What the last line of the live table leaves out first where there is little room."""


@dataclass
class Row:
    """What is known of one episode while it is played."""

    job: Job
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    state: str = "starting"
    step: int = 0
    score: int | None = None
    max_score: int | None = None
    tokens: int = 0
    cost: float = 0.0

    def take(self, event: Event) -> None:
        """Look at an event."""
        data = event.data
        if event.kind is EventKind.EPISODE_STARTED:
            self.state = "starting" if data["attempt"] == 1 else f"retry {data['attempt'] - 1}"
            self.step = 0
        elif event.kind is EventKind.STEP:
            self.step, self.score, self.max_score = data["step"], data["score"], data["max_score"]
            self.state = "grading" if data["terminated"] or data["truncated"] else "playing"
        elif event.kind is EventKind.LLM_CALL:
            self.tokens += data["tokens"]["prompt"] + data["tokens"]["completion"]
            self.cost += data["cost"]
        elif event.kind is EventKind.GRADE:
            self.score, self.max_score = data["score"], data["max_score"]

    def end(self, result: Result | None) -> None:
        """The episode is over."""
        self.ended = time.monotonic()
        self.state = result.status if result else "stopped"

    @property
    def seconds(self) -> float:
        """How long it is or was played."""
        return (self.ended or time.monotonic()) - self.began


class Display:
    """Looks on and writes lines; what is common to all ways of showing a run.

    Attributes:
        console: where it is shown
        done: how many episodes have ended
        told: errors that were shown, and the episode that each was shown for
        total: how many will be played
        stop: stops the run, when nobody reads what it says
        reader_gone: whether nobody reads it any more
        hint: what a person who stops the run is told beside that: how to end it at once
    """

    hint = " (Ctrl-C again ends at once)"

    def __init__(
        self, console: Console, max_steps: int, verbose: int, tools: Mapping[str, type[Any]] | None = None
    ) -> None:
        """Show nothing yet.

        Args:
            console: where to write
            max_steps: bound on an episode's steps
            verbose: 0 a line an episode, 1 the steps, 2 prompts and whole output
            tools: those that actions may name
        """
        self.console, self.max_steps, self.verbose = console, max_steps, verbose
        self.steps = Steps(max_steps, tools or {}, whole=verbose > 1)
        self.total = 0
        self.stop: Callable[[], None] = lambda: None
        self.reader_gone = False
        self.told: dict[str, str] = {}
        self.rows: dict[Job, Row] = {}
        self.done = 0
        self.began = time.monotonic()
        self.mutex = threading.RLock()
        """Held to look at and change what is known; never while something is written, which may draw the table."""
        self._writing = threading.RLock()

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def started(self, job: Job) -> None:
        """An episode is about to start."""
        with self.mutex:
            self.rows[job] = Row(job)

    def event(self, job: Job, event: Event) -> None:
        """Something happened in an episode."""
        with self.mutex:
            self.rows[job].take(event)
        with self._writing:  # what plugins' tools log as their calls are told is written, too
            for line in list(self.steps.lines(job, event)) if self.verbose else []:
                self._write(functools.partial(show_line, line, self.console))

    def finished(self, job: Job, result: Result | None) -> None:
        """An episode has ended."""
        with self.mutex:
            if job not in self.rows:
                return
            self.rows[job].end(result)
            self.done += 1
            text = self.ended(job, result)
        if text:
            self.prose(Text(text))

    def ended(self, job: Job, result: Result | None) -> str:
        """The line that tells that an episode has ended; empty: none."""
        return ""

    def note(self, text: str) -> None:
        """Tell a person something."""
        self.prose(Text.assemble(("note: ", "bold yellow"), text))

    def stopping(self) -> None:
        """Tell that the run is being stopped."""
        self.prose(Text(f"stopping; finished results are kept{self.hint}", "bold yellow"))

    def line(self, line: RenderableType) -> None:
        """Write a line, which a terminal wraps where it ends."""
        self._write(lambda: self.console.print(line, soft_wrap=True, highlight=False))

    def prose(self, text: str | Text) -> None:
        """Write a text, wrapped between words on a terminal."""
        self._write(lambda: show_prose(text, self.console))

    def _write(self, write: Callable[[], None]) -> None:
        with self._writing:
            try:
                write()
            except BrokenPipeError:
                self.reader_gone = True
                self.stop()


class PlainDisplay(Display):
    """Lines, for a pipe or a log file."""

    def started(self, job: Job) -> None:
        """A line when an episode starts."""
        super().started(job)
        if self.verbose:
            self.line(Text(f"{job}: starting"))

    def ended(self, job: Job, result: Result | None) -> str:
        """A line when it ends."""
        text = describe(result)
        if result is not None and result.error is not None:
            first = self.told.setdefault(text, str(job))
            text = text if first == str(job) else f"error: as {first}"
        return f"[{self.done:>{len(str(self.total))}}/{self.total}] {job}: {text}"


class LiveDisplay(Display):
    """A table that is drawn anew, on a terminal."""

    def __init__(
        self, console: Console, max_steps: int, verbose: int, tools: Mapping[str, type[Any]] | None = None
    ) -> None:
        """Show nothing yet; see `Display`."""
        super().__init__(console, max_steps, verbose, tools)
        self._under_way: dict[str, str] = {}
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=8, transient=True)
        self._listening = contextlib.ExitStack()

    def __enter__(self) -> Display:
        self._listening.enter_context(listening(self._progress))
        if sys.stderr is not None and sys.stderr.isatty():
            # There the table is drawn over what it does not know of. What rich puts in the place of standard error does
            # not help: click finds the file behind it.
            self._listening.enter_context(echoed_by(self._warned))
        try:
            self._live.start()
        except BaseException:
            self._listening.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._listening.close()

    def _warned(self, text: str) -> None:
        """Show what is logged above the table."""
        self.prose(Text.from_ansi(text))

    def _progress(self, what: str, line: str | None) -> None:
        """Show below the table how far something is; its last line stays above it."""
        with self.mutex:
            last = self._under_way.pop(what, None)
            if line is not None:
                self._under_way[what] = line
        if line is None and last is not None:
            self.line(Text(last))

    def _draw(self) -> RenderableType:
        with self.mutex:
            room = max(1, self.console.height - 4)
            running = [row for row in self.rows.values() if row.ended is None]
            ended = sorted((row for row in self.rows.values() if row.ended is not None), key=lambda row: row.ended or 0)
            kept = ended[-max(0, room - len(running)) :] if room > len(running) else []
            shown = [*kept, *running[:room]]
            lines = [Text(line, no_wrap=True, overflow="ellipsis") for line in self._under_way.values()]
            return Group(self._table(shown), self._status(len(running), len(self.rows) - len(shown)), *lines)

    def _table(self, rows: Sequence[Row]) -> Table:
        columns = {
            "step": [f"{row.step}/{self.max_steps}" for row in rows],
            "score": [score_text(row.score, row.max_score) for row in rows],
            "state": [row.state for row in rows],
            "tokens": [count_text(row.tokens) for row in rows],
            "cost": [money_text(row.cost) for row in rows],
            "elapsed": [clock(row.seconds) for row in rows],
        }
        return table_of_tasks([str(row.job) for row in rows], columns, self.console.width, "state")

    def _status(self, running: int, hidden: int) -> Text:
        """The last line: how far the run is."""
        states = [row.state for row in self.rows.values() if row.ended is not None]
        ended = [f"{states.count(state)} {state}" for state in ("resolved", "unresolved", "error") if state in states]
        cost = sum(row.cost for row in self.rows.values())
        done = f"{self.done} of {self.total} done"
        others = {
            "elapsed": clock(time.monotonic() - self.began),
            "running": f"{running} under way",
            "ended": "  ".join(ended),
            "cost": money_text(cost) if cost else "",
            "hidden": f"({hidden} not shown)" if hidden else "",
        }
        widths = {name: len(text) for name, text in others.items() if text}
        shown = without_spared(widths, SPARED, self.console.width - len(done))
        line = (" " * GAP).join([done, *(others[name] for name in shown)])
        return Text(line, style="bold", no_wrap=True, overflow="ellipsis")


def describe(result: Result | None) -> str:
    """How an episode ended, in a line."""
    if result is None:
        return "stopped"
    if result.error is not None:
        return f"error: {error_line(result.error)}"
    parts = [
        result.status,
        f"score {score_text(result.score, result.max_score)}",
        plural(result.steps, "step"),
        f"{result.tool_calls.get('pdb', 0)} pdb",
        f"{result.seconds:.1f} s",
    ]
    if result.cost:
        parts.append(money_text(result.cost))
    return ", ".join(parts)


def make_display(console: Console, max_steps: int, verbose: int, tools: Mapping[str, type[Any]]) -> Display:
    """The display that fits: a live table on a terminal, lines elsewhere."""
    return (LiveDisplay if console.is_terminal else PlainDisplay)(console, max_steps, verbose, tools)
