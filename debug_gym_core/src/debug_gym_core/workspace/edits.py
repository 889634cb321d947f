"""Edits: which lines of a file another content replaces."""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_EXACT = 100_000
"""Product of line counts up to which regions are compared as they are; larger ones are divided first."""

_LARGEST_COMPARISON = 4_000_000
"""Product beyond which a region that cannot be divided is not compared line by line (it would take seconds)."""

_WINDOWS = (1, 3, 9, 27)
"""Lines in a row by which regions are divided, where both have them once."""

_DEEPEST = 10
"""Times that a region is divided."""


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
    return list(_compare(_lines(before), _lines(after), 1, _DEEPEST))


def _compare(old: Sequence[bytes], new: Sequence[bytes], first: int, deepest: int) -> Iterator[Edit]:
    """The edits of a region, which begins at line `first` of the old file and may be divided so many times."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old, new, first = old[head : len(old) - tail], new[head : len(new) - tail], first + head
    if not old or not new:
        if old or new:
            yield Edit(first, len(old), len(new))
        return
    product = len(old) * len(new)
    windows = _WINDOWS if product > _EXACT and deepest else ()
    common = next(filter(None, (_common(old, new, rows) for rows in windows)), [])
    if common:
        start = new_start = 0
        for stop, new_stop in [*common, (len(old), len(new))]:
            yield from _compare(old[start:stop], new[new_start:new_stop], first + start, deepest - 1)
            start, new_start = stop + 1, new_stop + 1
    elif product > _LARGEST_COMPARISON:
        yield Edit(first, len(old), len(new))
    else:
        coarse = product > _EXACT  # else lines that occur often cost cubic time
        for tag, start, stop, new_start, new_stop in difflib.SequenceMatcher(None, old, new, coarse).get_opcodes():
            if tag != "equal":
                yield Edit(first + start, stop - start, new_stop - new_start)


def _common(old: Sequence[bytes], new: Sequence[bytes], rows: int) -> list[tuple[int, int]]:
    """Lines that both have once, with those that follow, as many as stand in the same order (as patience diff does).

    Args:
        old: lines
        new: others
        rows: how many lines in a row are asked about

    Returns:
        their places
    """
    olds, news = ([tuple(one[at : at + rows]) for at in range(len(one) - rows + 1)] for one in (old, new))
    once, counts, there = Counter(olds), Counter(news), {line: place for place, line in enumerate(news)}
    pairs = [(at, there[line]) for at, line in enumerate(olds) if once[line] == 1 and counts[line] == 1]
    # The longest rising row: of each length the one that ends lowest, and what each pair comes after.
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect.bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    row: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]


def _lines(content: bytes | None) -> list[bytes]:
    """Lines with their ends; a last line without an end counts, an empty one does not."""
    lines = (content or b"").split(b"\n")
    ends = [line + b"\n" for line in lines[:-1]]
    return [*ends, lines[-1]] if lines[-1] else ends
