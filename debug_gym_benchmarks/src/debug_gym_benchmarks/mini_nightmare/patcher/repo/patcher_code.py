"""A line editor for scripts: applies a list of edits to a text.

An edit script is a sequence of blocks, each a heading with a range of lines and the lines that replace them:

    @ 3:5
    new third line
    @ 9
    new ninth line

All numbers refer to the text as it was before the script. A block without lines deletes its range.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HEADING = re.compile(r"@ ?(.*)")
RANGE = re.compile(r"(-?\d+)(?::(-?\d+))?")


class Edit(NamedTuple):
    """Lines `head` to `tail`, both inclusive and counted from 1, and what comes in their place."""

    head: int
    tail: int
    lines: list[str]


class ScriptError(Exception):
    """An edit script that cannot be applied; the message is meant for its author."""


def parse_range(text: str) -> tuple[int, int]:
    """Return first and last line of a range like `7` or `7:9`.

    Raises:
        ScriptError: The text is no range.
    """
    found = RANGE.fullmatch(text.strip())
    if found is None:
        raise ScriptError(f"syntax error: {text.strip()!r} is not a range of lines")
    head = int(found.group(1))
    tail = int(found.group(2)) if found.group(2) else head
    return head, tail


def parse_script(script: str) -> list[Edit]:
    """Return the edits of a script in the order they are written.

    Raises:
        ScriptError: Text before the first heading, or a heading without a range.
    """
    edits: list[Edit] = []
    for line in script.splitlines():
        heading = HEADING.fullmatch(line)
        if heading:
            edits.append(Edit(*parse_range(heading.group(1)), []))
        elif edits:
            edits[-1].lines.append(line)
        else:
            raise ScriptError("syntax error: a script starts with a heading")
    return edits


def check_overlap(edits: list[Edit]) -> None:
    """Make sure that no line is edited twice.

    Raises:
        ScriptError: Two edits share a line.
    """
    ordered = sorted(edits, key=lambda edit: edit.head)
    for before, after in zip(ordered, ordered[1:]):
        if after.head <= before.tail:
            raise ScriptError(f"conflict: line {after.head} is edited twice")


def apply_edits(text: str, edits: list[Edit]) -> str:
    """Return the text with all edits made; ranges that reach past the end stop there."""
    lines = text.splitlines()
    # From the bottom up, so that the numbers of the edits still to come stay right.
    for edit in sorted(edits, key=lambda edit: edit.head, reverse=True):
        lines[edit.head - 1 : edit.tail] = edit.lines
    return "".join(line + "\n" for line in lines)


def run(text: str, script: str) -> str:
    """Return the edited text, or where the script cannot be applied the message that says why."""
    try:
        edits = parse_script(script)
        check_overlap(edits)
    except ScriptError as problem:
        return str(problem)
    return apply_edits(text, edits)


def run_many(text: str, scripts: list[str]) -> tuple[str, list[str]]:
    """Apply scripts one after the other, leaving out the ones that cannot be applied.

    Returns:
        The text in the end, and the messages of the scripts that were left out.
    """
    messages = []
    for script in scripts:
        outcome = run(text, script)
        if outcome.startswith(("syntax error: ", "conflict: ")):
            messages.append(outcome)
        else:
            text = outcome
    return text, messages
