"""`debug-gym tasks`: what a benchmark has."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import click

from debug_gym_core.cli import Command, say, say_note
from debug_gym_core.cli.options import common, data, override
from debug_gym_core.cli.options import tasks as choose_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.layers import Overrides
    from debug_gym_core.tasks.task import Benchmark

NAMED = 5
"""Tasks that are named of those that are left out for the same reason."""

LEAST = 24
"""Columns that are left for words about a task, at least: on a narrower terminal they stand below it."""


@click.command(
    "tasks",
    cls=Command,
    epilog="""
    debug-gym tasks mini_nightmare
    debug-gym tasks 'mini_nightmare/c*' --long
    debug-gym tasks mini_nightmare --task '!c*' --names > names.txt
    debug-gym tasks repo -p benchmark.path=~/my/repository
    """,
)
@click.argument("source", metavar="BENCHMARK[/GLOB]|CONFIG.yaml")
@choose_tasks
@click.option("-l", "--long", "long", is_flag=True, help="Show the first sentence of each task's description.")
@click.option("--names", "only_names", is_flag=True, help="Write the names alone, as a file for --task @FILE.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON array, an object per task.")
@data
@override
@common()
def command(
    source: str,
    tasks: tuple[str, ...],
    long: bool,
    only_names: bool,
    as_json: bool,
    overrides: Overrides,
    plugins: Plugins,
    verbose: int,
) -> None:
    """List the tasks of a benchmark (or of a config file), one a line, with what each is about.

    Tasks that cannot be solved as published are named at the end, on standard error, with the reason.
    """
    from debug_gym_core.components.component import blamed
    from debug_gym_core.config.loading import load
    from debug_gym_core.runs.parts import make_benchmark
    from debug_gym_core.tasks.selection import excluded_tasks, load_task, select_tasks

    # The agent and the terminal that the config would play with need not be there.
    anyone = next(iter(plugins.agents), None)
    config = load(source, overrides, agent=anyone, terminal="auto", tasks=tasks or None, plugins=plugins)
    benchmark = make_benchmark(config, plugins)
    names = select_tasks(benchmark, config.benchmark.tasks)
    if only_names:
        for name in names:
            say(name)
        return
    with blamed(type(benchmark), "give its tasks' titles"):
        titles = {name: " ".join(title.split()) for name, title in benchmark.titles().items()}
    words = {name: _first_sentence(load_task(benchmark, name).description) for name in names} if long else {}
    excluded = excluded_tasks(benchmark)
    if as_json:
        _show_json(benchmark, names, titles, words, excluded)
        return
    _show_lines({f"{benchmark.name}/{name}": words.get(name) or titles.get(name, "") for name in names})
    for text in _left_out(benchmark.name, excluded):
        say_note(text)


def _show_lines(words: Mapping[str, str]) -> None:
    """Write a line a task; on a terminal one that fits."""
    width = max((len(task) for task in words), default=0)
    fits = sys.stdout.isatty() and any(words.values())
    columns = shutil.get_terminal_size().columns
    room = columns - width - 2
    for task, text in words.items():
        if fits and text and room < LEAST:  # below, whole
            say(task)
            say(_below(text, columns))
        else:
            say(f"{task.ljust(width)}  {_cut(text, room if fits else None)}" if text else task)


def _below(text: str, columns: int) -> str:
    """A text as it stands below its task."""
    from rich.text import Text

    from debug_gym_core.cli.tables import HANG, wrapped_line

    return wrapped_line(Text(" " * HANG + text), columns).plain


def _left_out(benchmark: str, excluded: Mapping[str, str]) -> Iterator[str]:
    """A line a reason: which tasks are not part of `all`, a few of them by name."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in excluded.items():
        by_reason.setdefault(reason, []).append(f"{benchmark}/{name}")
    for reason, tasks in by_reason.items():
        more = f" and {len(tasks) - NAMED} more (--json has all)" if len(tasks) > NAMED else ""
        verb = "is" if len(tasks) == 1 else "are"
        yield f"{', '.join(tasks[:NAMED])}{more} {verb} left out of `all`: {reason}"


def _cut(text: str, columns: int | None) -> str:
    """A text in that many columns, at the end of a word where it is cut."""
    from rich.cells import cell_len, set_cell_size

    if columns is None or cell_len(text) <= columns:
        return text
    cut = set_cell_size(text, columns - 1).rstrip()
    whole = cut.rpartition(" ")[0] if text[len(cut) : len(cut) + 1].strip() else cut
    return f"{whole if len(whole) > columns // 2 else cut}…"


def _show_json(
    benchmark: Benchmark,
    names: Sequence[str],
    titles: Mapping[str, str],
    words: Mapping[str, str],
    excluded: Mapping[str, str],
) -> None:
    found = [
        {
            "task": f"{benchmark.name}/{name}",
            **({"title": titles[name]} if name in titles else {}),
            **({"description": words[name]} if name in words else {}),
            "excluded": excluded.get(name),
        }
        for name in [*names, *(name for name in excluded if name not in names)]
    ]
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))


def _first_sentence(text: str) -> str:
    sentence, dot, _ = " ".join(text.split()).partition(". ")
    return f"{sentence}." if dot else sentence
