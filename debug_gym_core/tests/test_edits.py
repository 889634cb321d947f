"""Which lines of a file another content replaces, also of large files, and of files that repeat themselves."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from debug_gym_core.workspace.edits import Edit, edits_between, line_after


def applied(old: bytes, edits: list[Edit], new: bytes) -> bytes:
    """The old content with the edits carried out; what they leave alone must be there in both."""
    before, after = old.splitlines(True), new.splitlines(True)
    made: list[bytes] = []
    at = there = 0
    for edit in edits:
        kept = edit.start - 1 - at
        assert before[at : at + kept] == after[there : there + kept]
        made += [*before[at : at + kept], *after[there + kept : there + kept + edit.new]]
        at, there = at + kept + edit.old, there + kept + edit.new
    assert before[at:] == after[there:]
    return b"".join([*made, *before[at:]])


@pytest.mark.parametrize("lines", [10, 400, 5_000, 50_000])
@pytest.mark.parametrize("kinds", [3, 50, 10**9])
def test_a_dozen_changes_are_a_dozen_edits(lines: int, kinds: int) -> None:
    chance = random.Random(lines)
    old = [b"line %d\n" % chance.randrange(kinds) for _ in range(lines)]
    new = list(old)
    for _ in range(12):
        place = chance.randrange(len(new))
        chance.choice([lambda at: new.insert(at, b"put in\n"), new.pop, lambda at: new.__setitem__(at, b"other\n")])(
            place
        )
    before, after = b"".join(old), b"".join(new)
    edits = edits_between(before, after)
    assert applied(before, edits, after) == after
    assert sum(edit.old + edit.new for edit in edits) <= 40


def test_lines_far_from_all_changes_are_followed() -> None:
    old = b"".join(b"x%d = %d\n" % (number, number) for number in range(6_000))
    new = old.replace(b"x5 = 5\n", b"x5 = 5\nmore = 1\n").replace(b"x5990 = 5990\n", b"x5990 = 0\n")
    edits = edits_between(old, new)
    assert edits == [Edit(7, 0, 1), Edit(5991, 1, 1)]
    assert [line_after(line, edits) for line in (3, 3000, 5991)] == [3, 3001, None]


@pytest.mark.parametrize("lines", [3, 3_000, 60_000])
def test_what_has_nothing_in_common_is_replaced(lines: int) -> None:
    assert edits_between(b"a\n" * lines, b"b\n" * (lines + 1)) == [Edit(1, lines, lines + 1)]


def test_any_two_contents() -> None:
    chance = random.Random(0)
    for _ in range(60):
        old, new = (b"".join(b"%d\n" % chance.randrange(9) for _ in range(chance.randrange(600))) for _ in range(2))
        assert applied(old, edits_between(old, new), new) == new


def test_a_file_of_the_same_line_costs_little_memory() -> None:
    """What is compared are numbers of lines: 550 bytes a line were needed for all that stands in a row."""
    lines, same = 25_000, b"\n" * 25_000
    tracemalloc.start()
    try:
        edits_between(b"x\n" + same + b"y\n", b"z\n" + same + b"w\n")
        assert tracemalloc.get_traced_memory()[1] < 150 * lines
    finally:
        tracemalloc.stop()
