"""Edits: which lines of a file another content replaces, and how that reads."""

from __future__ import annotations

import bisect
import codecs
import difflib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from debug_gym_core.workspace.lines import body_of, end_of, show, shown_encoding, split

_EXACT = 100_000
"""Product of line counts up to which regions are compared as they are; larger ones are divided first."""

_LARGEST_COMPARISON = 4_000_000
"""Product beyond which a region that cannot be divided is not compared line by line (it would take seconds)."""

_STEPS = (0, 1, 3, 9)
"""How far three of a kind stand apart that are taken together: so 1, 3, 9 and 27 lines in a row divide a region."""

_MOST_LINES = 500_000
"""Of a region that is divided by more than one line in a row (it would take seconds)."""

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
    old, new = _numbered(split(before or b""), split(after or b""))
    return list(_compare(old, new, 1, _DEEPEST))


def _numbered(*rows: Iterable[Hashable]) -> list[list[int]]:
    """Rows with a number for each thing in them, the same for what is equal: quickly compared, and small."""
    numbers: dict[Hashable, int] = {}
    return [[numbers.setdefault(one, len(numbers)) for one in row] for row in rows]


def _compare(old: Sequence[int], new: Sequence[int], first: int, deepest: int) -> Iterator[Edit]:
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
    common = _dividing(old, new) if product > _EXACT and deepest else []
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


def _dividing(old: Sequence[int], new: Sequence[int]) -> list[tuple[int, int]]:
    """Places of lines that both have once, else of several in a row that they have once."""
    few = len(old) + len(new) <= _MOST_LINES
    for step in _STEPS if few else _STEPS[:1]:
        if step:
            old, new = _numbered(*(zip(one, one[step:], one[2 * step :], strict=False) for one in (old, new)))
        if common := _common(old, new):
            return common
    return []


def _common(old: Sequence[int], new: Sequence[int]) -> list[tuple[int, int]]:
    """Places of what both have once, as much as stands in the same order (as patience diff does)."""
    once, counts, there = Counter(old), Counter(new), {line: place for place, line in enumerate(new)}
    pairs = [(at, there[line]) for at, line in enumerate(old) if once[line] == 1 and counts[line] == 1]
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


def diff(path: str, old: bytes | None, new: bytes | None, context: int = 3, *, python: bool = False) -> Iterator[str]:
    """The unified diff of a file as text to read; characters that cannot be seen are escaped, so not to apply.

    Args:
        path: what the file is called
        old: content before; None: there was no file
        new: content after; None: there is no file any more
        context: how many unchanged lines are shown around a change
        python: whether the file is Python source, which is shown in the encoding that it declares

    Yields:
        lines without ends; none when nothing changed
    """
    if old is not None and new is not None and old.startswith(codecs.BOM_UTF8) and new.startswith(codecs.BOM_UTF8):
        old, new = old.removeprefix(codecs.BOM_UTF8), new.removeprefix(codecs.BOM_UTF8)
    edits = edits_between(old, new)
    if not edits and (old is None) == (new is None):
        return
    yield "--- /dev/null" if old is None else f"--- a/{path}"
    yield "+++ /dev/null" if new is None else f"+++ b/{path}"
    before, after = split(old or b""), split(new or b"")
    was, now = (shown_encoding(data or b"") if python else "utf-8" for data in (old, new))
    hunks = [edits[:1]] if edits else []
    for edit in edits[1:]:
        last = hunks[-1][-1]
        if edit.start - (last.start + last.old) <= 2 * context:
            hunks[-1].append(edit)
        else:
            hunks.append([edit])
    shift = 0
    for hunk in hunks:
        low = max(hunk[0].start - context, 1)
        high = min(hunk[-1].start + hunk[-1].old - 1 + context, len(before))
        growth = sum(edit.new - edit.old for edit in hunk)
        yield f"@@ -{_range(low, high - low + 1)} +{_range(low + shift, high - low + 1 + growth)} @@"
        line = low
        for edit in hunk:
            yield from _marked(" ", before[line - 1 : edit.start - 1], was)
            yield from _marked("-", before[edit.start - 1 : edit.start - 1 + edit.old], was)
            first = edit.start - 1 + shift
            yield from _marked("+", after[first : first + edit.new], now)
            shift += edit.new - edit.old
            line = edit.start + edit.old
        yield from _marked(" ", before[line - 1 : high], was)


def _range(start: int, count: int) -> str:
    """A hunk's range as diff writes it: an empty one is named by the line before it."""
    if count == 1:
        return str(start)
    return f"{start if count else start - 1},{count}"


def _marked(mark: str, lines: Sequence[bytes], encoding: str) -> Iterator[str]:
    for line in lines:
        yield mark + show(body_of(line), encoding)[0]
        if not end_of(line):
            yield "\\ No newline at end of file"
