from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.debugging.breakpoints import Breakpoint, Breakpoints
from debug_gym_core.workspace.edits import Edit, edits_between, line_after

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"\x0c\n", b"a\rb\n"]), max_size=12)


def test_numbers_are_never_used_twice() -> None:
    breakpoints = Breakpoints()
    assert [breakpoints.add("a.py", line).number for line in (1, 2)] == [1, 2]
    breakpoints.remove(2)
    assert breakpoints.add("a.py", 3).number == 3
    breakpoints.clear()
    assert breakpoints.add("a.py", 3).number == 4


def test_replace_takes_over_a_debuggers_state() -> None:
    breakpoints = Breakpoints([Breakpoint(3, "b.py", 1), Breakpoint(1, "a.py", 1)])
    assert [one.number for one in breakpoints] == [1, 3]
    assert breakpoints.next_number == 4
    breakpoints.replace([Breakpoint(2, "a.py", 5)], next_number=7)
    assert [str(one) for one in breakpoints] == ["2 at a.py:5"]
    assert breakpoints.next_number == 7


def test_json_and_back() -> None:
    one = Breakpoint(1, "a.py", 2, "x > 1", True, 3, False, ("p x", "c"), "f")
    assert Breakpoint.from_json(one.as_json()) == one
    assert str(one) == "1 at a.py:2, if x > 1, temporary, ignored the first 3 times, disabled, with commands"


def test_lines_of_a_file() -> None:
    breakpoints = Breakpoints()
    breakpoints.add("a.py", 1)
    breakpoints.add("b.py", 2)
    breakpoints.add("a.py", 3, enabled=False)
    assert breakpoints.lines("a.py") == {1, 3}


def test_moves_keep_everything_but_the_line() -> None:
    breakpoints = Breakpoints()
    before = breakpoints.add("a.py", 5, condition="x", ignore=2, commands=("c",))
    other = breakpoints.add("b.py", 5)
    gone = breakpoints.add("a.py", 3)
    moves = breakpoints.moved("a.py", [Edit(3, 1, 4)])
    assert moves.moved == ((before, replace(before, line=8)),)
    assert moves.dropped == (gone,)
    assert list(breakpoints) == [replace(before, line=8), other]
    assert not breakpoints.moved("a.py", [Edit(100, 1, 1)])


def test_two_breakpoints_of_one_line_move_together() -> None:
    breakpoints = Breakpoints()
    breakpoints.add("a.py", 2)
    breakpoints.add("a.py", 2, condition="x")
    breakpoints.moved("a.py", [Edit(1, 0, 1)])
    assert [one.line for one in breakpoints] == [3, 3]


@pytest.mark.parametrize(
    ("edits", "line", "after"),
    [
        ([Edit(3, 0, 2)], 2, 2),
        ([Edit(3, 0, 2)], 3, 5),
        ([Edit(3, 2, 0)], 3, None),
        ([Edit(3, 2, 0)], 4, None),
        ([Edit(3, 2, 0)], 5, 3),
        ([Edit(1, 1, 0), Edit(5, 0, 3)], 5, 7),
    ],
)
def test_line_after(edits: list[Edit], line: int, after: int | None) -> None:
    assert line_after(line, edits) == after


@pytest.mark.parametrize(
    ("before", "after", "edits"),
    [
        (b"a\nb\nc\n", b"a\nb\nc\n", []),
        (b"a\nb\nc\n", b"a\nX\nY\nc\n", [Edit(2, 1, 2)]),
        (b"a\nb\nc\n", b"a\nc\n", [Edit(2, 1, 0)]),
        (b"a\nc\n", b"a\nb\nc\n", [Edit(2, 0, 1)]),
        (b"a\nb", b"a\nb\n", [Edit(2, 1, 1)]),
        (b"a\r\nb\r\n", b"a\nb\n", [Edit(1, 2, 2)]),
        (b"a\rb\x0c\x0bc\n", b"a\rb\x0c\x0bc\nd\n", [Edit(2, 0, 1)]),
        (None, b"a\nb\n", [Edit(1, 0, 2)]),
        (b"a\nb\n", None, [Edit(1, 2, 0)]),
        (None, None, []),
        (None, b"", []),
        (b"a\nb\nc\nd\ne\n", b"A\nb\nc\nD\ne\n", [Edit(1, 1, 1), Edit(4, 1, 1)]),
    ],
)
def test_edits_between(before: bytes | None, after: bytes | None, edits: list[Edit]) -> None:
    assert edits_between(before, after) == edits


@given(LINES, LINES)
def test_edits_lead_from_one_to_the_other(old: list[bytes], new: list[bytes]) -> None:
    edits = edits_between(b"".join(old), b"".join(new))
    result: list[bytes] = []
    here = new_here = 0
    for edit in edits:
        kept = old[here : edit.start - 1]
        result += kept
        new_here += len(kept)
        result += new[new_here : new_here + edit.new]
        new_here += edit.new
        here = edit.start - 1 + edit.old
    assert result + old[here:] == new


@given(LINES, LINES)
def test_a_line_that_moves_is_the_same_line(old: list[bytes], new: list[bytes]) -> None:
    edits = edits_between(b"".join(old), b"".join(new))
    for number, line in enumerate(old, start=1):
        after = line_after(number, edits)
        assert after is None or new[after - 1] == line


def test_large_changes_are_quick() -> None:
    before = b"".join(b"%d\n" % (n % 7) for n in range(20000))
    after = b"".join(b"%d\n" % (n % 5) for n in range(20000))
    assert edits_between(before, after)


def test_a_large_change_is_compared_in_little_time() -> None:
    before = "".join(f"old {n}\n\n" for n in range(1000)).encode()
    after = "".join(f"new {n}\n\n" for n in range(1000)).encode()
    started = time.process_time()
    edits = edits_between(before, after)
    assert time.process_time() - started < 2
    assert sum(edit.old for edit in edits) >= 1000
