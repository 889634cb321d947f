"""What a person sees of a run: a live table on a terminal, plain lines elsewhere, a summary at the end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from debug_gym_core.cli.steps import Steps, error_text, shorten
from debug_gym_core.cli.tables import new_table, show_table
from debug_gym_core.cli.verdicts import about_modes, verdicts
from debug_gym_core.progress import listening
from debug_gym_core.runs.trajectory import Event, EventKind, Result

if TYPE_CHECKING:
    from debug_gym_core.runs.jobs import Job

COLOURS = {
    "resolved": "green",
    "unresolved": "yellow",
    "error": "bold red",
    "stopped": "magenta",
    "broken": "bold red",
    "flaky": "magenta",
    "varies": "magenta",
}
ROWS_OF_SUMMARY = 60
WIDE = 100
"""Columns of a terminal from which on tasks are shown with their benchmark."""

NARROWEST = 16
"""Columns that the names of tasks have at least, before others are left out."""

SPARE = ("tokens", "step", "cost", "pdb", "steps", "seconds", "elapsed")
"""What is left out first on a narrow screen."""

LEAST = {"state": "unresolved", "score": "10/10", "tokens": "10.0k", "cost": "$0.0000"}
"""The least width of columns, as text, so that the table does not jump."""


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
            lines = list(self.steps.lines(job, event)) if self.verbose else []
        with self._writing:
            for line in lines:
                self.line(line)

    def finished(self, job: Job, result: Result | None) -> None:
        """An episode has ended."""
        with self.mutex:
            if job not in self.rows:
                return
            self.rows[job].end(result)
            self.done += 1
            text = self.ended(job, result)
        if text:
            self.line(Text(text))

    def ended(self, job: Job, result: Result | None) -> str:
        """The line that tells that an episode has ended; empty: none."""
        return ""

    def note(self, text: str) -> None:
        """Tell a person something."""
        self.line(Text.assemble(("note: ", "bold yellow"), text))

    def stopping(self) -> None:
        """Tell that the run is being stopped."""
        self.line(Text(f"stopping; finished results are kept{self.hint}", "bold yellow"))

    def line(self, line: RenderableType) -> None:
        """Write a line."""
        with self._writing:
            try:
                self.console.print(line, soft_wrap=True, highlight=False)
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
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._listening.close()

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
        words = [f"{self.done} of {self.total} done", clock(time.monotonic() - self.began), f"{running} under way"]
        words += [f"{states.count(state)} {state}" for state in ("resolved", "unresolved", "error") if state in states]
        cost = sum(row.cost for row in self.rows.values())
        words += [money_text(cost)] if cost else []
        words += [f"({hidden} not shown)"] if hidden else []
        return Text("  ".join(words), style="bold", no_wrap=True, overflow="ellipsis")


def summary(results: Sequence[Result], left: int, seconds: float, directory: str, display: Display) -> None:
    """Write the table and the figures at the end of a run.

    Args:
        results: of all the run's tasks that have one
        left: episodes without a result
        seconds: wall-clock time of this session
        directory: of the run, as a person would type it
        display: where to write, and what it has told already
    """
    console = display.console
    if results:
        show_table(_summary_table(results[:ROWS_OF_SUMMARY], console), console)
    if len(results) > ROWS_OF_SUMMARY:
        console.print(f"... and {len(results) - ROWS_OF_SUMMARY} more in results.jsonl", highlight=False)
    for word, text in verdicts(results, display.told):
        head = (f"{word} ", COLOURS[word]) if word else ""
        console.print(Text.assemble(head, text), soft_wrap=word == "error")
    counted = [result for result in results if result.status != "error"]
    resolved = sum(result.resolved for result in results)
    words = [f"resolved {resolved} of {len(counted)}"]
    if any(result.repeat is not None for result in results):
        words[0] += f" episodes of {_plural(len({result.task for result in results}), 'task')}"
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
    for text in about_modes(results):
        console.print(Text(text, COLOURS["unresolved"]))
    console.print(f"results in {directory}", highlight=False, soft_wrap=True, markup=False)


def _summary_table(results: Sequence[Result], console: Console) -> Table:
    columns = {
        "status": [str(result.status) for result in results],
        "score": [score_text(result.score, result.max_score) for result in results],
        "steps": [str(result.steps) for result in results],
        "pdb": [str(result.tool_calls.get("pdb", 0)) for result in results],
        "tokens": [count_text(result.tokens.prompt + result.tokens.completion) for result in results],
        "cost": [money_text(result.cost) for result in results],
        "seconds": [f"{result.seconds:.1f}" for result in results],
    }
    for name in ("tokens", "cost"):
        if set(columns[name]) == {"-"}:
            del columns[name]
    tasks = [result.task if result.repeat is None else f"{result.task} #{result.repeat}" for result in results]
    return table_of_tasks(tasks, columns, console.width, "status")


def table_of_tasks(tasks: Sequence[str], columns: Mapping[str, Sequence[str]], width: int, coloured: str) -> Table:
    """A table that fits: the names of tasks are cut first, then columns that one can do without are left out.

    Args:
        tasks: names
        columns: cells by the column's name
        width: columns of the screen
        coloured: which column has words of `COLOURS`, and is not aligned as figures are
    """
    benchmarks = {task.partition("/")[0] for task in tasks}
    prefix = f"{benchmarks.pop()}/" if len(benchmarks) == 1 and width < WIDE else ""
    tasks = [task.removeprefix(prefix) for task in tasks]
    widths = {name: max(map(len, [name, LEAST.get(name, ""), *cells])) for name, cells in columns.items()}

    def room() -> int:
        return width - sum(widths.values()) - 2 * len(widths)

    for name in SPARE:
        if name in widths and room() < NARROWEST:
            del widths[name]
    table = new_table()
    table.add_column(
        "task", no_wrap=True, overflow="ellipsis", width=max(4, min(room(), max(map(len, ["task", *tasks]))))
    )
    for name, columns_wide in widths.items():
        table.add_column(name, justify="left" if name == coloured else "right", no_wrap=True, width=columns_wide)
    for number, task in enumerate(tasks):
        cells = [
            Text(columns[name][number], COLOURS.get(columns[name][number], "cyan") if name == coloured else "")
            for name in widths
        ]
        table.add_row(Text(task), *cells)
    return table


def describe(result: Result | None) -> str:
    """How an episode ended, in a line."""
    if result is None:
        return "stopped"
    if result.error is not None:
        return f"error: {shorten(error_text(result.error), 300)}"
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


def make_display(console: Console, max_steps: int, verbose: int, tools: Mapping[str, type[Any]]) -> Display:
    """The display that fits: a live table on a terminal, lines elsewhere."""
    return (LiveDisplay if console.is_terminal else PlainDisplay)(console, max_steps, verbose, tools)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
