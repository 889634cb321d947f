"""`debug-gym report`: what runs come to, side by side where they can be compared."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from debug_gym_core.cli import Command, say
from debug_gym_core.cli.shown_paths import shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from debug_gym_core.runs.report import Line, Pair, Section

PAIRS = 6
"""Comparisons of two runs that are shown at most; `--format json` has all."""

DOUBTED = 10
"""Tasks whose passes were not believed that are named for each run at most; `--format json` has all."""

CELL = 6
"""Columns of a cell of the table of tasks, at least."""


@click.command(
    "report",
    cls=Command,
    epilog="""
    debug-gym report exps                        every run below exps
    debug-gym report exps/one exps/two --tasks   which tasks each of them resolved
    debug-gym report exps --format markdown > results.md
    """,
)
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--tasks", "each_task", is_flag=True, help="Show what became of each task in each run.")
@click.option(
    "--format",
    "as_what",
    metavar="FORMAT",
    type=click.Choice(["text", "markdown", "csv", "json"]),
    default="text",
    help="text, markdown, csv or json.",
)
@click.option("-v", "--verbose", count=True, help="-vv shows tracebacks of errors.")
def command(directories: tuple[Path, ...], each_task: bool, as_what: str, verbose: int) -> None:
    """Put the results of runs side by side: DIR is a run, or has runs below it.

    Only runs that can be compared share a table: of the same benchmark, the same version of its data and the same mode,
    so that results of a debug mode never stand beside standard ones. Tasks that infrastructure failed do not count.
    The interval holds the share of resolved tasks with 95 % confidence (Wilson), were the tasks drawn at random. Two
    runs that played the same tasks are compared task by task, p by McNemar's exact test.
    """
    from debug_gym_core.runs.report import find_runs, pairs, read_sections

    sections = read_sections(find_runs(directories))
    if as_what == "json":
        found = [_section_data(section, lines, pairs(lines), each_task) for section, lines in sections.items()]
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    elif as_what == "csv":
        _write_csv(sections, each_task)
    elif as_what == "markdown":
        for number, (section, lines) in enumerate(sections.items()):
            say(("\n" if number else "") + "\n".join(_markdown(section, lines, pairs(lines), each_task)))
    else:
        from debug_gym_core.cli.tables import make_console

        console = make_console()
        for number, (section, lines) in enumerate(sections.items()):
            if number:
                console.print()
            _show(section, lines, pairs(lines), each_task, console)


def _show(section: Section, lines: Sequence[Line], compared: Sequence[Pair], each_task: bool, console: Console) -> None:
    """Write a section as tables that fit the screen, and what is to be said of it."""
    from rich.text import Text

    from debug_gym_core.cli.tables import show_prose, show_table
    from debug_gym_core.cli.task_table import fitted_table

    show_prose(Text(_title(section), "bold"), console)
    names = [f"{number} {shown_path(line.directory)}" for number, line in enumerate(lines, 1)]
    show_table(fitted_table("run", names, _columns(lines), console.width, ("agent", "llm")), console)
    if each_task:
        tasks = _tasks(lines)
        longest = max((len(task) for task in tasks), default=0)
        fit = max(1, (console.width - min(longest, console.width // 2)) // (CELL + 2))
        for first in range(0, len(lines), fit):
            columns = {
                str(number): [_became(line, task) for task in tasks]
                for number, line in enumerate(lines[first : first + fit], first + 1)
            }
            console.print()
            show_table(fitted_table("task", tasks, columns, console.width, columns), console)
    for text in _remarks(section, lines, compared):
        show_prose(text, console)


def _title(section: Section) -> str:
    words = [section.benchmark, *(f"{key} {value}" for key, value in section.data), f"mode {section.mode}"]
    return ", ".join(words)


def _columns(lines: Sequence[Line]) -> dict[str, list[str]]:
    """The figures of runs, as cells by column; columns that say nothing are left out."""
    from debug_gym_core.cli.figures import count_text, money_text
    from debug_gym_core.runs.model_record import titled

    columns = {
        "agent": [line.agent for line in lines],
        "llm": [titled(line.llm, line.model) if line.llm else "-" for line in lines],
        "resolved": [f"{line.resolved}/{line.counted}" for line in lines],
        "rate": [_percent(line.rate) for line in lines],
        "95 %": [_interval(line) for line in lines],
        "ever": [f"{line.ever}/{len(line.by_task)}" for line in lines],
        "always": [f"{line.always}/{len(line.by_task)}" for line in lines],
        "score": [_percent(line.score) for line in lines],
        "errors": [str(line.errors) for line in lines],
        "steps": [str(line.steps) for line in lines],
        "pdb": [str(line.tool_calls.get("pdb", 0)) for line in lines],
        "tokens": [count_text(line.tokens) for line in lines],
        "cost": [money_text(line.cost) for line in lines],
        "seconds": [f"{line.seconds:.0f}" for line in lines],
    }
    if not any(line.repeated for line in lines):
        del columns["ever"], columns["always"]
    for name, nothing in (("llm", "-"), ("errors", "0"), ("tokens", "-"), ("cost", "-")):
        if set(columns[name]) == {nothing}:
            del columns[name]
    return columns


def _remarks(section: Section, lines: Sequence[Line], compared: Sequence[Pair]) -> Iterator[str]:
    """What a reader of the figures should know, runs by their number."""
    from debug_gym_core.cli.figures import about_spending, plural
    from debug_gym_core.cli.verdicts import MODES

    if section.mode in MODES:
        yield f"mode {section.mode}: {MODES[section.mode]}"
    several = len(lines) > 1
    for number, line in enumerate(lines, 1):
        head = f"{number}: " if several else ""
        if line.missing:
            yield f"{head}{line.missing} of {line.missing + len(line.results)} episodes have no result yet"
        if spending := about_spending(line.spent, line.cost):
            yield f"{head}{spending}"
        others = {way: count for way, count in line.gradings.items() if way != "clean"}
        for way, count in others.items():
            yield f"{head}{count} of {line.counted} graded {way}, not by a report of the tests"
        yield from (head + text for text in _doubts(line))
        for note in line.notes:
            yield f"{head}{note}"
    for pair in compared[:PAIRS]:
        one, other = pair.first + 1, pair.second + 1
        yield (
            f"runs {one} and {other}, {plural(pair.both + pair.only_first + pair.only_second + pair.neither, 'task')}: "
            f"{pair.both} resolved by both, {pair.only_first} by run {one} alone, "
            f"{pair.only_second} by run {other} alone, {pair.neither} by neither (McNemar's p = {pair.p:.2g})"
        )
    if len(compared) > PAIRS:
        yield f"... and {len(compared) - PAIRS} more comparisons in --format json"


def _doubts(line: Line) -> Iterator[str]:
    """Whose passes were not believed."""
    from debug_gym_core.tasks.results import about_doubts

    for task, tests in list(line.doubts.items())[:DOUBTED]:
        yield f"{task}: {about_doubts(tuple(tests))}"
    if len(line.doubts) > DOUBTED:
        yield f"... and {len(line.doubts) - DOUBTED} more tasks with passes that are not believed, in --format json"


def _markdown(section: Section, lines: Sequence[Line], compared: Sequence[Pair], each_task: bool) -> Iterator[str]:
    yield f"## {_title(section)}"
    yield ""
    columns = {"": [str(number) for number in range(1, len(lines) + 1)], **_columns(lines)}
    columns["run"] = [f"`{shown_path(line.directory)}`" for line in lines]
    yield from _markdown_table(columns)
    if each_task:
        tasks = _tasks(lines)
        yield ""
        words = {str(number): [_became(line, task) for task in tasks] for number, line in enumerate(lines, 1)}
        yield from _markdown_table({"task": tasks, **words})
    remarks = list(_remarks(section, lines, compared))
    yield from ["", *(f"- {text}" for text in remarks)] if remarks else []


def _markdown_table(columns: Mapping[str, Sequence[str]]) -> Iterator[str]:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    yield row(list(columns))
    yield row(["---"] * len(columns))
    for cells in zip(*columns.values(), strict=True):
        yield row(cells)


def _write_csv(sections: Mapping[Section, Sequence[Line]], each_task: bool) -> None:
    """Write a line a run, or a line a run and task."""
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    for number, row in enumerate(_rows(sections, each_task)):
        if number == 0:
            writer.writerow(row)
        writer.writerow(row.values())


def _rows(sections: Mapping[Section, Sequence[Line]], each_task: bool) -> Iterator[dict[str, Any]]:
    for section, lines in sections.items():
        data = "; ".join(f"{key}={value}" for key, value in section.data)
        for line in lines:
            about = {"benchmark": section.benchmark, "data": data, "mode": section.mode}
            if not each_task:
                facts = _line_data(line)
                calls, interval = facts.pop("tool_calls"), facts.pop("interval") or (None, None)
                facts["doubts"] = len(facts["doubts"])
                del facts["notes"], facts["gradings"], facts["pass_at"]
                facts |= {"least": interval[0], "most": interval[1], "pdb": calls.get("pdb", 0)}
                yield about | facts
                continue
            for task, counts in _task_data(line).items():
                yield about | {"run": line.run, "agent": line.agent, "llm": line.llm, "task": task, **counts}


def _section_data(section: Section, lines: Sequence[Line], compared: Sequence[Pair], each_task: bool) -> dict[str, Any]:
    return {
        "benchmark": section.benchmark,
        "data": dict(section.data),
        "mode": section.mode,
        "runs": [_line_data(line) | ({"tasks": _task_data(line)} if each_task else {}) for line in lines],
        "pairs": [
            {
                "runs": [lines[pair.first].run, lines[pair.second].run],
                "both": pair.both,
                "only_first": pair.only_first,
                "only_second": pair.only_second,
                "neither": pair.neither,
                "p": pair.p,
            }
            for pair in compared
        ],
    }


def _line_data(line: Line) -> dict[str, Any]:
    return {
        "run": line.run,
        "directory": str(line.directory),
        "agent": line.agent,
        "llm": line.llm,
        "model": line.model,
        "tasks_counted": len(line.by_task),
        "episodes": len(line.results),
        "counted": line.counted,
        "resolved": line.resolved,
        "rate": line.rate,
        "interval": line.interval,
        "ever": line.ever,
        "always": line.always,
        "pass_at": list(line.pass_at),
        "score": line.score,
        "errors": line.errors,
        "missing": line.missing,
        "gradings": dict(line.gradings),
        "doubts": {task: dict(tests) for task, tests in line.doubts.items()},
        "steps": line.steps,
        "tool_calls": dict(line.tool_calls),
        "tokens": line.tokens,
        "cost": line.cost,
        "spent": line.spent,
        "seconds": round(line.seconds, 3),
        "notes": list(line.notes),
    }


def _task_data(line: Line) -> dict[str, dict[str, int]]:
    """How many episodes of each task there are, how many of them resolved it and how many could not be run."""
    found: dict[str, dict[str, int]] = {}
    for one in line.results:
        counts = found.setdefault(one.task, {"episodes": 0, "resolved": 0, "errors": 0})
        counts["episodes"] += 1
        counts["resolved"] += one.resolved
        counts["errors"] += one.status == "error"
    return found


def _tasks(lines: Sequence[Line]) -> list[str]:
    return sorted({one.task for line in lines for one in line.results})


def _became(line: Line, task: str) -> str:
    """What became of a task in a run, in a word: `yes`, `no`, `3/5`, `error`, or a dash when it was not played."""
    if task not in line.by_task:
        return "error" if any(one.task == task for one in line.results) else "-"
    each = line.by_task[task]
    count = sum(one.resolved for one in each)
    return f"{count}/{len(each)}" if len(each) > 1 else "yes" if count else "no"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _interval(line: Line) -> str:
    return "-" if line.interval is None else f"{100 * line.interval[0]:.0f}-{100 * line.interval[1]:.0f}"
