"""What a person sees of a run: a live table on a terminal, plain lines elsewhere, a summary at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from debug_gym_core.cli.steps import event_lines, shorten
from debug_gym_core.trajectory import Event, EventKind, Result

if TYPE_CHECKING:
    from debug_gym_core.experiment import Job

COLOURS = {"resolved": "green", "unresolved": "yellow", "error": "bold red", "stopped": "magenta"}
ROWS_OF_SUMMARY = 60


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
        total: how many will be played
    """

    def __init__(self, console: Console, max_steps: int, verbose: int) -> None:
        """Show nothing yet.

        Args:
            console: where to write
            max_steps: bound on an episode's steps
            verbose: 0 a line an episode, 1 the steps, 2 prompts and whole output
        """
        self.console, self.max_steps, self.verbose = console, max_steps, verbose
        self.total = 0
        self.rows: dict[Job, Row] = {}
        self.done = 0
        self.began = time.monotonic()
        self.mutex = threading.RLock()

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
            if self.verbose:
                for line in event_lines(job, event, self.max_steps, whole=self.verbose > 1):
                    self.line(line)

    def finished(self, job: Job, result: Result | None) -> None:
        """An episode has ended."""
        with self.mutex:
            if job not in self.rows:
                return
            self.rows[job].end(result)
            self.done += 1
            self.ended(self.rows[job], result)

    def ended(self, row: Row, result: Result | None) -> None:
        """Tell that an episode has ended."""

    def note(self, text: str) -> None:
        """Tell a person something."""
        self.line(Text.assemble(("note: ", "bold yellow"), text))

    def stopping(self) -> None:
        """Tell that the run is being stopped."""
        self.line(
            Text(
                "stopping: what is under way is given up, finished results are kept; once more to end at once",
                "bold yellow",
            )
        )

    def line(self, line: RenderableType) -> None:
        """Write a line."""
        with self.mutex:
            self.console.print(line, soft_wrap=True, highlight=False)


class PlainDisplay(Display):
    """Lines, for a pipe or a log file."""

    def started(self, job: Job) -> None:
        """A line when an episode starts."""
        super().started(job)
        if self.verbose:
            self.line(Text(f"{job}: starting"))

    def ended(self, row: Row, result: Result | None) -> None:
        """A line when it ends."""
        head = f"[{self.done:>{len(str(self.total))}}/{self.total}] {row.job}"
        self.line(Text(f"{head}: {describe(result, row)}"))


class LiveDisplay(Display):
    """A table that is drawn anew, on a terminal."""

    def __init__(self, console: Console, max_steps: int, verbose: int) -> None:
        """Show nothing yet; see `Display`."""
        super().__init__(console, max_steps, verbose)
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=8, transient=True)

    def __enter__(self) -> Display:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _draw(self) -> RenderableType:
        with self.mutex:
            room = max(1, self.console.height - 4)
            running = [row for row in self.rows.values() if row.ended is None]
            ended = sorted((row for row in self.rows.values() if row.ended is not None), key=lambda row: row.ended or 0)
            kept = ended[-max(0, room - len(running)) :] if room > len(running) else []
            shown = [*kept, *running[:room]]
            table = self._table(shown)
            return Group(table, self._status(len(running)))

    def _table(self, rows: Sequence[Row]) -> Table:
        wide = self.console.width >= 100
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        table.add_column("task", no_wrap=True, overflow="ellipsis", min_width=20, max_width=60 if wide else 34)
        for name in ("step", "score"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("state", no_wrap=True, min_width=10)
        for name in ("tokens", "cost", "elapsed"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(
                Text(str(row.job)),
                f"{row.step}/{self.max_steps}",
                score_text(row.score, row.max_score),
                Text(row.state, COLOURS.get(row.state, "cyan")),
                count_text(row.tokens),
                money_text(row.cost),
                clock(row.seconds),
            )
        return table

    def _status(self, running: int) -> Text:
        """The last line: how far the run is."""
        states = [row.state for row in self.rows.values() if row.ended is not None]
        words = [f"{self.done} of {self.total} done", f"{running} under way"]
        words += [f"{states.count(state)} {state}" for state in ("resolved", "unresolved", "error") if state in states]
        cost = sum(row.cost for row in self.rows.values())
        words += [money_text(cost)] if cost else []
        words.append(clock(time.monotonic() - self.began))
        return Text("  ".join(words), style="bold", no_wrap=True, overflow="ellipsis")


def summary(results: Sequence[Result], left: int, seconds: float, directory: str, console: Console) -> None:
    """Write the table and the figures at the end of a run.

    Args:
        results: of all the run's tasks that have one
        left: episodes without a result
        seconds: wall-clock time of this session
        directory: of the run, as a person would type it
        console: where to write
    """
    if results:
        console.print(_summary_table(results[:ROWS_OF_SUMMARY], console))
    if len(results) > ROWS_OF_SUMMARY:
        console.print(f"... and {len(results) - ROWS_OF_SUMMARY} more in results.jsonl", highlight=False)
    for text, tasks in _errors(results).items():
        where = tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks ({tasks[0]}, ...)"
        console.print(Text.assemble(("error ", "bold red"), f"{where}: {text}"), soft_wrap=True)
    counted = [result for result in results if result.status != "error"]
    resolved = sum(result.resolved for result in results)
    words = [f"resolved {resolved} of {len(counted)}"]
    if len(counted) < len(results):
        words.append(f"{len(results) - len(counted)} could not be run")
    if left:
        words.append(f"{left} not played")
    tokens = sum(result.tokens.prompt + result.tokens.completion for result in results)
    cost = sum(result.cost for result in results)
    words += [f"{count_text(tokens)} tokens"] if tokens else []
    words += [money_text(cost)] if cost else []
    words.append(duration(seconds))
    console.print()
    console.print(Text(", ".join(words), style="bold"), soft_wrap=True)
    console.print(f"results in {directory}", highlight=False, soft_wrap=True, markup=False)


def _summary_table(results: Sequence[Result], console: Console) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("task", no_wrap=console.is_terminal, overflow="ellipsis")
    table.add_column("status", no_wrap=True)
    for name in ("score", "steps", "pdb", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        name = result.task if result.repeat is None else f"{result.task} #{result.repeat}"
        table.add_row(
            Text(name),
            Text(result.status, COLOURS[result.status]),
            score_text(result.score if result.max_score is not None else None, result.max_score),
            str(result.steps),
            str(result.tool_calls.get("pdb", 0)),
            f"{result.seconds:.1f}",
        )
    return table


def _errors(results: Sequence[Result]) -> dict[str, list[str]]:
    """What failed, and for which tasks: one cause often fails many."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.error is not None:
            found.setdefault(shorten(f"{result.error['kind']}: {result.error['message']}", 300), []).append(result.task)
    return found


def describe(result: Result | None, row: Row) -> str:
    """How an episode ended, in a line."""
    if result is None:
        return "stopped"
    if result.error is not None:
        return f"error: {result.error['kind']}: {shorten(result.error['message'], 200)}"
    parts = [
        result.status,
        f"score {score_text(result.score, result.max_score)}",
        _plural(result.steps, "step"),
        f"{result.tool_calls.get('pdb', 0)} pdb",
        f"{result.seconds:.1f} s",
    ]
    if result.cost:
        parts.append(money_text(result.cost))
    return ", ".join(parts)


def score_text(score: int | None, max_score: int | None) -> str:
    """`3/4`, or a dash when nothing was measured."""
    return "-" if score is None or max_score is None else f"{score}/{max_score}"


def count_text(count: int) -> str:
    """A number of tokens in few characters."""
    if not count:
        return "-"
    for limit, unit in ((10**6, "M"), (10**3, "k")):
        if count >= limit:
            return f"{count / limit:.1f}{unit}"
    return str(count)


def money_text(dollars: float) -> str:
    """Dollars, with more digits when they are few."""
    if not dollars:
        return "-"
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"


def clock(seconds: float) -> str:
    """`1:05`, `2:03:04`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def duration(seconds: float) -> str:
    """`3.2 s`, `1:05`."""
    return f"{seconds:.1f} s" if seconds < 60 else clock(seconds)


def make_display(console: Console, max_steps: int, verbose: int) -> Display:
    """The display that fits: a live table on a terminal, lines elsewhere."""
    return (LiveDisplay if console.is_terminal else PlainDisplay)(console, max_steps, verbose)


def make_console(stream: Any = None) -> Console:
    """A console that never wraps what a program reads."""
    console = Console(file=stream, highlight=False)
    return console if console.is_terminal else Console(file=stream, highlight=False, width=10**4)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
