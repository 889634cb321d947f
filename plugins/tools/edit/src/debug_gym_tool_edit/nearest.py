"""Finding what somebody meant who wrote a text that is not in a file, and saying how it differs."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from debug_gym_core.workspace.edits import edits_between
from debug_gym_core.workspace.lines import encode, escaped
from debug_gym_tool_edit.replacement import common_beginning

PIECES = 60
"""Parts of the text that are looked for; each costs a pass over the file."""

PLACES = 200
"""Places of one part that count."""

CANDIDATES = 5
"""Places in the file that are compared with the text."""

TOKENS = 300
"""Words and signs that are compared."""

ALIKE = 0.5
"""How alike the nearest text must be by its words and signs, from 0 to 1."""

SHORT = range(5, 400)
"""Lengths of texts that are compared by their characters, too: of two words one may be misspelt."""

SPELT_ALIKE = 0.65
"""How alike the nearest text must be by its characters."""

SIDE = 10
"""Lines shown at most on each side of one difference."""

ROWS = 20
"""Lines after which no further difference is shown."""

WIDTH = 200
"""Characters of a line shown at most, around where it differs."""

REMARKS = 5
"""Differences put into words at most."""

_BLANKS = {" ": "space", "\t": "tab", "\r": "carriage return", "\f": "form feed", "\u00a0": "no-break space"}


@dataclass(frozen=True)
class Nearest:
    """The lines of a file that are most like a text.

    Attributes:
        start: number of the first line, from 1
        end: number of the last one
        rows: the difference: lines of the file after `-`, lines of the text after `+`
        remarks: what the difference is where it cannot be seen
        blank: whether it is only in blanks
    """

    start: int
    end: int
    rows: tuple[str, ...]
    remarks: tuple[str, ...]
    blank: bool


def nearest(text: str, old: str) -> Nearest | None:
    r"""Find the lines of a file that are most like a text that is not in it.

    The work is bounded: a few dozen passes over the file, and comparisons of a bounded size.

    Args:
        text: the file's text, lines ending in `\n`
        old: the text

    Returns:
        the lines and how they differ; None: there is nothing like it
    """
    lines, wanted = text.split("\n"), old.removesuffix("\n").split("\n")
    if not lines[-1]:
        lines.pop()
    span = _blankly_equal(lines, wanted)
    blank = span is not None
    if span is None:
        first = _most_alike(text, lines, wanted)
        if first is None:
            return None
        span = first, min(first + len(wanted), len(lines))
    found = lines[span[0] : span[1]]
    if len(found) > 1 < len(wanted):  # it may begin and end within lines
        if found[0].endswith(wanted[0]):
            wanted[0] = found[0]
        if not old.endswith("\n") and found[-1].startswith(wanted[-1]):
            wanted[-1] = found[-1]
    rows, remarks = _difference(found, wanted, span[0] + 1)
    return Nearest(span[0] + 1, span[1], tuple(rows), tuple(remarks), blank)


def _blankly_equal(lines: Sequence[str], wanted: Sequence[str]) -> tuple[int, int] | None:
    """The lines that equal the wanted ones but for blanks and blank lines: the first, and the one behind the last."""
    full = [(number, key) for number, line in enumerate(lines) if (key := "".join(line.split()))]
    keys = [key for line in wanted if (key := "".join(line.split()))]
    if not keys:
        return None
    whole = "\n".join(key for _, key in full)
    start = whole.find("\n".join(keys))
    if start < 0:
        return None
    first = whole.count("\n", 0, start)
    return full[first][0], full[first + len(keys) - 1][0] + 1


def _most_alike(text: str, lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Index of the first of the lines that are most like the wanted ones.

    Each part of these votes for the places at which they would begin if it stood where it does in the file; what is
    long and rare counts more.
    """
    begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
    votes: dict[int, float] = defaultdict(float)
    for piece, index in _pieces(wanted):
        places = list(_places(text, piece))
        for place in places:
            votes[max(0, bisect_right(begins, place) - 1 - index)] += len(piece) / len(places)
    best, most = None, 0.0
    # The smaller number first among equals, so that the answer does not depend on the order of the votes.
    for first, _ in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0]))[:CANDIDATES]:
        likeness = _likeness(lines[first : first + len(wanted)], wanted)
        if likeness > most:
            best, most = first, likeness
    return best


def _likeness(found: Sequence[str], wanted: Sequence[str]) -> float:
    """How alike lines are, from 0 to 1; 0: hardly."""
    words = SequenceMatcher(None, _tokens(found), _tokens(wanted), autojunk=False).ratio()
    words = words if words > ALIKE else 0.0
    one, other = ("\n".join(map(str.strip, lines)) for lines in (found, wanted))
    if len(other) not in SHORT or len(one) > 10 * SHORT.stop:
        return words
    spelling = SequenceMatcher(None, one, other, autojunk=False)
    if len(wanted) == 1:  # it may be a part of a line
        longest = spelling.find_longest_match()
        begin = max(0, longest.a - longest.b)
        spelling.set_seq1(one[begin : begin + len(other)])
    ratio = spelling.ratio()
    return max(words, ratio if ratio > SPELT_ALIKE else 0.0)


def _pieces(wanted: Sequence[str]) -> list[tuple[str, int]]:
    """What to look for, and the indexes of their lines: lines from all over the text, parts of them, words.

    Parts, since any line and any word may be written wrongly; long ones, since they are rare.
    """
    kinds: list[dict[str, int]] = [{} for _ in range(5)]
    for index in range(0, len(wanted), max(1, len(wanted) // PIECES)):
        line = wanted[index].strip()[:2000]
        words = re.findall(r"\w{2,60}", line)
        parts = [word[begin : begin + 4] for word in words for begin in range(0, len(word) - 3, 2)]
        halves, quarters = (
            [line[begin : begin + size] for begin in range(0, len(line), size)]
            for size in (len(line) // 2 + 1, len(line) // 4 + 1)
        )
        for kind, texts in zip(kinds, ([line], halves, quarters, words, parts), strict=True):
            for text in texts:
                if len(text) > 1:
                    kind.setdefault(text, index)
    found: dict[str, int] = {}
    for kind in kinds:
        longest = sorted(kind.items(), key=lambda item: (-len(item[0]), item[1]))
        for text, index in longest[: PIECES // len(kinds)]:
            found.setdefault(text, index)
    return list(found.items())


def _places(text: str, piece: str) -> Iterator[int]:
    place = text.find(piece)
    for _ in range(PLACES):
        if place < 0:
            return
        yield place
        place = text.find(piece, place + len(piece))


def _tokens(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    for line in lines[:TOKENS]:
        found += re.findall(r"[^\W_]+|\S", line[: 4 * TOKENS])
        if len(found) >= TOKENS:
            break
    return found[:TOKENS]


def _difference(found: Sequence[str], wanted: Sequence[str], first: int) -> tuple[list[str], list[str]]:
    """How lines of a file differ from wanted ones: rows to read, and remarks on what cannot be seen in them.

    Args:
        found: the lines of the file
        wanted: the text's
        first: number of the first line of the file
    """
    rows: list[str] = []
    remarks: list[str] = []
    before, after = (b"".join(encode(line) + b"\n" for line in lines) for lines in (found, wanted))
    shift = 0
    for edit in edits_between(before, after):
        old = found[edit.start - 1 : edit.start - 1 + edit.old]
        new = wanted[edit.start - 1 + shift : edit.start - 1 + shift + edit.new]
        shift += edit.new - edit.old
        pairs = list(zip(old, new, strict=False)) if len(old) == len(new) else []
        for offset, (one, other) in enumerate(pairs[:1000]):
            if len(remarks) < REMARKS and (remark := _remark(one, other)):
                remarks.append(f"line {first + edit.start - 1 + offset}: {remark}")
        if pairs:
            cuts = [_cut(one, other) for one, other in pairs[:SIDE]]
            minus, plus = [cut[0] for cut in cuts], [cut[1] for cut in cuts]
        else:
            minus, plus = [_cut(one, "")[0] for one in old[:SIDE]], [_cut("", one)[1] for one in new[:SIDE]]
        for mark, shown, all_of_them in (("-", minus, old), ("+", plus, new)):
            rows += [mark + line for line in shown]
            if len(all_of_them) > SIDE:
                rows.append(f"{mark}[... {len(all_of_them) - SIDE} more lines]")
        if len(rows) >= ROWS:
            return [*rows, "[... more differences]"], remarks
    return rows, remarks


def _remark(one: str, other: str) -> str | None:
    """What is different between a line of a file and a wanted one, where that cannot be seen well."""
    if "".join(one.split()) == "".join(other.split()):
        for what, ours, theirs in (
            ("indentation", one[: len(one) - len(one.lstrip())], other[: len(other) - len(other.lstrip())]),
            ("end of the line", one[len(one.rstrip()) :], other[len(other.rstrip()) :]),
        ):
            if ours != theirs and (one.strip() or what == "indentation"):
                return f"{what}: {_blanks(ours)} in the file, {_blanks(theirs)} in old"
        return "whitespace inside the line differs"
    if one.casefold() == other.casefold():
        return "upper and lower case differ"
    index = common_beginning(one, other)
    if index < min(len(one), len(other)) and not (one[index].isascii() and other[index].isascii()):
        return f"character {index + 1}: U+{ord(one[index]):04X} in the file, U+{ord(other[index]):04X} in old"
    return None


def _blanks(text: str) -> str:
    """Blanks in words, as in `1 tab and 2 spaces`."""
    counts = Counter(_BLANKS.get(character, f"U+{ord(character):04X}") for character in text)
    return " and ".join(f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items()) or "nothing"


def _cut(one: str, other: str) -> tuple[str, str]:
    """Two lines as they can be read, cut around the first difference when they are long."""
    if max(len(one), len(other)) <= WIDTH:
        return escaped(one), escaped(other)
    begin = max(0, common_beginning(one, other) - WIDTH // 2)
    head = "[...] " if begin else ""
    cut = [line[begin : begin + WIDTH] for line in (one, other)]
    tails = ["" if begin + WIDTH >= len(line) else " [...]" for line in (one, other)]
    return head + escaped(cut[0]) + tails[0], head + escaped(cut[1]) + tails[1]
