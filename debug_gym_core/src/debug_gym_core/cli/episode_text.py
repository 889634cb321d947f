"""An episode that was kept, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from debug_gym_core.cli import printable
from debug_gym_core.cli.episode_parts import Account, Part
from debug_gym_core.cli.figures import plural
from debug_gym_core.cli.shown_paths import shown_path
from debug_gym_core.cli.task_table import COLOURS

HEAD, TAIL = 24, 12
"""Lines at the beginning and at the end of what was said that are shown of more."""

FEW = 8
"""Lines that are not worth leaving out."""

LONGEST = 1_000
"""Characters of a line that are shown of more."""

PATCH = 200
"""Lines of a patch that are shown of more."""

STYLES = {"step": "bold cyan", "call": "magenta", "error": "bold red", "grade": "bold cyan"}
DIFF = {"+": "green", "-": "red", "@": "cyan"}
"""Colours of the lines of a diff, by what they begin with."""


def title(account: Account) -> Text:
    """The episode's name."""
    return Text(printable(str(account.episode)), "bold")


def top(account: Account) -> Iterator[Text]:
    """The facts on top, and what is to be said of the files."""
    yield title(account)
    for word, text in account.facts():
        style = COLOURS.get(account.state, "") if word == "status" else ""
        yield Text.assemble((f"  {word:<8} ", "dim"), (printable(text), style))
    yield from notes(account)


def notes(account: Account) -> Iterator[Text]:
    """What is wrong with the files, and what else there is."""
    for text in account.remarks():
        yield Text.assemble(("note: ", "bold yellow"), printable(text), no_wrap=True)  # with commands to copy


def body(parts: Iterable[Part], *, whole: bool, again: str) -> Iterator[Text]:
    """The parts of an episode.

    Args:
        parts: those that are shown
        whole: whether all of what was said is shown
        again: the command that shows the episode, to say what shows the rest
    """
    for part in parts:
        yield Text()
        yield from _head(part)
        rest = "" if whole or part.number is None else f"{again} --step {part.number}"
        yield from _said(part.body, rest)


def patch(account: Account, *, whole: bool) -> Iterator[Text]:
    """What was changed."""
    text = account.patch()
    yield Text()
    if not text:
        yield Text("nothing was changed" if account.result and account.result.changed is False else "no patch", "dim")
        return
    yield Text("patch", "bold cyan")
    lines = text.rstrip("\n").split("\n")
    shown = lines if whole or len(lines) <= PATCH else lines[: PATCH - 1]
    for line in shown:
        style = DIFF.get(line[:1], "") if line[:3] not in ("+++", "---") else "bold"
        yield Text(printable(_cut(line)), style, no_wrap=True)
    if len(shown) < len(lines):
        place = shown_path(account.episode.directory / "patch.diff")
        yield Text(f"(and {plural(len(lines) - len(shown), 'more line')} in {place})", "dim")


def _head(part: Part) -> Iterator[Text]:
    """What was done; a call's further lines stand at the left edge, so that they can be pasted."""
    first, *further = printable(part.head).split("\n")
    number = f"{part.number}  " if part.kind == "step" else ""
    about = (f"  ({part.about})", "dim") if part.about else ""
    style = "bold" if part.kind == "step" else STYLES[part.kind]
    yield Text.assemble((number, STYLES[part.kind]), (_cut(first), style), about)
    for line in further:
        yield Text(_cut(line), style, no_wrap=True)


def _said(text: str, rest: str) -> Iterator[Text]:
    lines = text.rstrip("\n").split("\n") if text.strip("\n") else []
    if not rest or len(lines) <= HEAD + TAIL + FEW:
        yield from _indented(lines, whole=not rest)
        return
    yield from _indented(lines[:HEAD], whole=False)
    yield Text(f"    (... {len(lines) - HEAD - TAIL} lines are left out; all of them: {rest})", "dim", no_wrap=True)
    yield from _indented(lines[-TAIL:], whole=False)


def _indented(lines: Sequence[str], *, whole: bool) -> Iterator[Text]:
    for line in lines:
        yield Text(f"    {printable(line if whole else _cut(line))}" if line else "")


def _cut(line: str) -> str:
    """A line, at most `LONGEST` characters of it."""
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} (... and {len(line) - LONGEST} more characters)"
