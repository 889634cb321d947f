"""A table with a line a task, which fits the screen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from debug_gym_core.cli.tables import GAP, new_table, without_spared

COLOURS = {
    "resolved": "green",
    "unresolved": "yellow",
    "error": "bold red",
    "stopped": "magenta",
    "broken": "bold red",
    "flaky": "magenta",
    "varies": "magenta",
}

WIDE = 100
"""Columns of a terminal from which on tasks are shown with their benchmark."""

NARROWEST = 16
"""Columns that the names of tasks have at least, before others are left out."""

SHORTEST = 8
"""Columns that words have at least where they are cut, before figures that matter are left out."""

SPARE = ("tokens", "step", "cost", "pdb", "steps", "seconds", "elapsed", "always", "ever")
"""What is left out first on a narrow screen."""

DEARER = ("score", "95 %", "rate")
"""What is left out where the screen is too narrow for words that are cut: a figure that is cut would be another one."""

LEAST = {"state": "unresolved", "score": "10/10", "tokens": "10.0k", "cost": "$0.0000"}
"""The least width of columns, as text, so that the table does not jump."""


def table_of_tasks(tasks: Sequence[str], columns: Mapping[str, Sequence[str]], width: int, coloured: str) -> Table:
    """A table with a line a task that fits; on a narrow screen tasks of one benchmark are shown without its name.

    Args:
        tasks: names
        columns: cells by the column's name
        width: columns of the screen
        coloured: which column has words of `COLOURS`, and is not aligned as figures are
    """
    benchmarks = {task.partition("/")[0] for task in tasks}
    prefix = f"{benchmarks.pop()}/" if len(benchmarks) == 1 and width < WIDE else ""
    return fitted_table("task", [task.removeprefix(prefix) for task in tasks], columns, width, (coloured,))


def fitted_table(
    heading: str, names: Sequence[str], columns: Mapping[str, Sequence[str]], width: int, words: Collection[str]
) -> Table:
    """A table that fits: names are cut first, then columns that one can do without are left out, then words are cut.

    Names and words are cut in their middle, figures never are.

    Args:
        heading: of the first column
        names: what the lines are about
        columns: cells by the column's name
        width: columns of the screen
        words: columns that have no figures: aligned at the left, words of `COLOURS` in their colour
    """
    widths = {name: max(map(len, [name, LEAST.get(name, ""), *cells])) for name, cells in columns.items()}

    def room() -> int:
        return width - sum(widths.values()) - GAP * len(widths)

    widths = without_spared(widths, SPARE, width - NARROWEST)
    longest = max(map(len, [heading, *names]))
    least = min(longest, SHORTEST)
    for name in words:
        if name in widths and room() < least:
            widths[name] = max(min(widths[name], SHORTEST), widths[name] - (least - room()))
    widths = without_spared(widths, DEARER, width - least)
    table = new_table()
    wide = max(4, min(room(), longest))
    names = [_cut(name, wide) for name in names]
    table.add_column(heading, no_wrap=True, overflow="ellipsis", width=wide)
    for name, columns_wide in widths.items():
        table.add_column(name, justify="left" if name in words else "right", no_wrap=True, width=columns_wide)
    for number, name_of_line in enumerate(names):
        cells = [
            Text(_cut(columns[name][number], columns_wide), COLOURS.get(columns[name][number], "cyan"))
            if name in words
            else Text(columns[name][number])
            for name, columns_wide in widths.items()
        ]
        table.add_row(Text(name_of_line), *cells)
    return table


def _cut(name: str, wide: int) -> str:
    """A name in that many columns: what tells names apart stands at their end, as a rule."""
    if len(name) <= wide:
        return name
    first = wide // 3
    return f"{name[:first]}…{name[len(name) - (wide - first - 1) :]}"
