"""What a person reads at the end of a run: a table of the tasks, what became of them, the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from debug_gym_core.cli.figures import about_spending, count_text, duration, money_text, plural, score_text
from debug_gym_core.cli.tables import show_prose, show_table
from debug_gym_core.cli.task_table import COLOURS, table_of_tasks
from debug_gym_core.cli.verdicts import about_modes, verdicts
from debug_gym_core.runs.trajectory import Result

if TYPE_CHECKING:
    from debug_gym_core.cli.display import Display

ROWS_OF_SUMMARY = 60
"""Tasks that the table has at most."""


def summary(
    results: Sequence[Result],
    left: int,
    seconds: float,
    spent: float,
    cost: float,
    directory: str | None,
    display: Display,
) -> None:
    """Write the table and the figures at the end of a run.

    Args:
        results: of the tasks that were asked for
        left: episodes without a result
        seconds: wall-clock time of this session
        spent: dollars that the run has spent in all
        cost: dollars of all the run's results, also for other tasks than those
        directory: of the run, as a person would type it; None: it is gone
        display: where to write, and what it has told already
    """
    console = display.console
    rows = len(results) if directory is None else ROWS_OF_SUMMARY
    if results:
        show_table(_summary_table(results[:rows], console), console)
    if len(results) > rows:
        console.print(f"... and {len(results) - rows} more in results.jsonl", highlight=False)
    for word, text in verdicts(results, display.told):
        head = (f"{word} ", COLOURS[word]) if word else ""
        console.print(Text.assemble(head, text), soft_wrap=word == "error")
    counted = [result for result in results if result.status != "error"]
    resolved = sum(result.resolved for result in results)
    words = [f"resolved {resolved} of {len(counted)}"]
    if any(result.repeat is not None for result in results):
        words[0] += f" episodes of {plural(len({result.task for result in results}), 'task')}"
    if len(counted) < len(results):
        words.append(f"{len(results) - len(counted)} could not be run")
    done = {(result.task, result.repeat) for result in results}
    stopped = [row for row in display.rows.values() if row.job.key not in done]
    words += [f"{len(stopped)} not finished"] if stopped else []
    words += [f"{left - len(stopped)} not played"] if left > len(stopped) else []
    tokens = sum(result.tokens.prompt + result.tokens.completion for result in results)
    tokens += sum(row.tokens for row in stopped)
    of_stopped = sum(row.cost for row in stopped)
    shown = sum(result.cost for result in results) + of_stopped
    words += [f"{count_text(tokens)} tokens"] if tokens else []
    words += [money_text(shown)] if shown else []
    words.append(duration(seconds))
    console.print()
    show_prose(Text(", ".join(words), "bold"), console)
    if spending := about_spending(spent, cost + of_stopped):
        show_prose(spending, console)
    for text in about_modes(results):
        console.print(Text(text, COLOURS["unresolved"]))
    if directory is not None:
        show_prose(f"results in {directory}", console)


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
