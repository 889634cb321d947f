"""Edits: which lines of a file another content replaces."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

_LARGEST_COMPARISON = 4_000_000
"""Product of line counts beyond which changed regions are not compared line by line (it would take seconds)."""


_EXACT = 100_000
"""Product of line counts up to which lines that occur often take part in the comparison."""


@dataclass(frozen=True)
class Edit:
    """Lines of a file that were replaced.

    Attributes:
        start: number of the first old line, from 1
        old: how many old lines; 0: the new ones were inserted before `start`
        new: how many new lines
    """

    start: int
    old: int
    new: int


def line_after(line: int, edits: Sequence[Edit]) -> int | None:
    """Where a line is after edits.

    Args:
        line: old number, from 1
        edits: from the top, in the old numbering

    Returns:
        its new number, or None when it was replaced or removed
    """
    moved = line
    for edit in edits:
        if line < edit.start:
            break
        if line < edit.start + edit.old:
            return None
        moved += edit.new - edit.old
    return moved


def edits_between(before: bytes | None, after: bytes | None) -> list[Edit]:
    r"""Find which lines of a file were replaced.

    Args:
        before: the old content; None: there was no file
        after: the new content; None: there is no file any more

    Returns:
        the replaced ranges from the top, in the old numbering; lines end at `\n` (so `\r\n` too) and nowhere else
    """
    old, new = _lines(before), _lines(after)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old_part, new_part = old[head : len(old) - tail], new[head : len(new) - tail]
    if not old_part and not new_part:
        return []
    if not old_part or not new_part or len(old_part) * len(new_part) > _LARGEST_COMPARISON:
        return [Edit(head + 1, len(old_part), len(new_part))]
    coarse = len(old_part) * len(new_part) > _EXACT  # else lines that occur often cost cubic time
    matcher = difflib.SequenceMatcher(None, old_part, new_part, autojunk=coarse)
    return [
        Edit(head + start + 1, stop - start, new_stop - new_start)
        for tag, start, stop, new_start, new_stop in matcher.get_opcodes()
        if tag != "equal"
    ]


def _lines(content: bytes | None) -> list[bytes]:
    """Lines with their ends; a last line without an end counts, an empty one does not."""
    lines = (content or b"").split(b"\n")
    ends = [line + b"\n" for line in lines[:-1]]
    return [*ends, lines[-1]] if lines[-1] else ends
