"""Tables for people, and the console that they are written to."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from debug_gym_core.cli import drop_output, printable

HANG = 2
"""Columns before what is wrapped of a line that begins at the left edge."""

GAP = 2
"""Columns between the parts of a line that stand side by side."""

UNBOUNDED = 10**4
"""Columns of what is no terminal: a program that reads lines must not find them wrapped."""


class OutputConsole(Console):
    """A console that obeys nothing in the texts, and leaves it to the command what happens when its reader has gone."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The parts of what is written, each without what a terminal would obey but what rich itself tells it."""
        for part in super().render(renderable, options):
            if part.control or part.text.isprintable():
                yield part
            else:
                yield Segment(printable(part.text), part.style)

    def on_broken_pipe(self) -> NoReturn:
        """Write nothing more.

        Raises:
            BrokenPipeError: always
        """
        self.quiet = True
        drop_output()
        raise BrokenPipeError


def make_console(stream: Any = None) -> Console:
    """A console that shows texts as they are, and never wraps what a program reads."""
    plain: dict[str, Any] = {"file": stream, "highlight": False, "markup": False, "emoji": False}
    console = OutputConsole(**plain)
    return console if console.is_terminal else OutputConsole(**plain, width=UNBOUNDED)


def show_prose(text: str | Text, console: Console) -> None:
    """Write a text, wrapped between words on a terminal; a longer word, such as a path, stays whole, to be copied."""
    words = text if isinstance(text, Text) else Text(text)
    if console.is_terminal:
        lines = words.split("\n", allow_blank=True)
        words = Text("\n").join(wrapped(line, console.width) for line in lines)
    console.print(words, soft_wrap=True, highlight=False)


def show_line(line: Text, console: Console) -> None:
    """Write a line of what was done or said, on a terminal as `wrapped_line` makes it."""
    if console.is_terminal and not line.no_wrap:
        parts = line.split("\n", allow_blank=True)
        line = Text("\n").join(wrapped_line(part, console.width) for part in parts)
    console.print(line, soft_wrap=True, highlight=False)


def wrapped_line(line: Text, width: int) -> Text:
    """A line of what was done or said, wrapped between words; what is told to stay whole is left to the terminal.

    Args:
        line: what is wrapped of it stays as far from the left edge as it is, or stands a little further if it is there
        width: columns of the terminal
    """
    if line.no_wrap:
        return line
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    return wrapped(line, width, min(indent or HANG, width // 2))


def wrapped(line: Text, width: int, hang: int = 0) -> Text:
    """A line wrapped between words; a word that is longer than a line stays whole.

    Args:
        line: one line
        width: columns of the terminal
        hang: columns that are left free before what is wrapped
    """
    if "\t" in line.plain:
        line = line.copy()
        line.expand_tabs(8)
    breaks = [0]
    for word in re.finditer(r"\S+", line.plain):
        room = width - (hang if breaks[-1] else 0)
        before = line.plain[breaks[-1] : word.start()]
        if before.strip() and cell_len(line.plain[breaks[-1] : word.end()]) > room:
            breaks.append(word.start())
    parts = list(line.divide(breaks[1:]))
    for part in parts[:-1]:
        part.rstrip()
    return Text("\n" + " " * hang).join(parts)


def without_spared(widths: Mapping[str, int], spared: Iterable[str], width: int) -> dict[str, int]:
    """The parts of a line, such as columns of a table, that have room: what one can spare is left out, one by one.

    Args:
        widths: columns of the screen that each part takes, by its name; two are free before or behind each
        spared: names of parts, the first left out first, as long as there is too little room
        width: columns of the screen that there are
    """
    kept = dict(widths)
    for name in spared:
        if sum(kept.values()) + GAP * len(kept) <= width:
            break
        kept.pop(name, None)
    return kept


def new_table() -> Table:
    """A table without lines, the header bold."""
    return Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))


def show_table(table: Table, console: Console) -> None:
    """Write a table, without blanks at the ends of its lines where it is no terminal."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as caught:
        console.print(table)
    (console.file or sys.stdout).write("".join(f"{line.rstrip()}\n" for line in caught.get().splitlines()))
