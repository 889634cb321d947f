"""What belongs to the page that a command was copied from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core import ActionError
from debug_gym_tool_pdb.typed import asks_for_help, counted, lines_of, restart


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("p 1", ["p 1"]),
        ("\n\n  p 1  \r\nc\n\n", ["  p 1  ", "c"]),
        ("(Pdb) p 1", ["p 1"]),
        ("(Pdb) b 3\n(Pdb) c", ["b 3", "c"]),
        ("ipdb> n", ["n"]),
        ("pdb> n", ["n"]),
        ("(pdb)  n", ["n"]),
        ("> p 1", ["p 1"]),
        (">>> x = 3", ["x = 3"]),
        ("pdb p 1", ["p 1"]),
        ("pdb is None", ["pdb is None"]),
        ("pdb.x", ["pdb.x"]),
        ("```\np 1\n```", ["p 1"]),
        ("```python\n(Pdb) b 3\n\nc\n```\n", ["b 3", "", "c"]),
        ("```pdb\np 1", ["p 1"]),
        ("`p 1`", ["p 1"]),
        ("```p 1```", ["p 1"]),
        ("x = '''\n> quoted\n'''", ["x = '''", "> quoted", "'''"]),
        ("for i in range(2):\n    print(i)", ["for i in range(2):", "    print(i)"]),
        (">>> for i in range(2):\n...     print(i)\n... ", ["for i in range(2):", "    print(i)"]),
    ],
)
def test_lines(command: str, lines: list[str]) -> None:
    assert lines_of(command) == lines


@pytest.mark.parametrize("command", ["", " \n ", "```\n```", "(Pdb) ", "a\0b"])
def test_what_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(ActionError, match=r"an example: b app\.py:12|NUL"):
        lines_of(command)


@given(st.text())
def test_any_text_has_lines_or_is_refused(command: str) -> None:
    try:
        lines = lines_of(command)
    except ActionError:
        return
    assert lines[0].strip() and lines[-1].strip()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("n 5", ("n", 5)),
        (" step 3 # in", ("s", 3)),
        ("next 0", ("n", 1)),
        ("n", ("n", 1)),
        ("until 5", ("until 5", 1)),
        ("n = 5", ("n = 5", 1)),
        ("n 5 6", ("n 5 6", 1)),
    ],
)
def test_steps_are_counted(line: str, found: tuple[str, int]) -> None:
    assert counted(line) == found


def test_help_without_a_topic() -> None:
    assert all(asks_for_help(line) for line in ("help", "h", "?", " help() ", "help pdb"))
    assert not any(asks_for_help(line) for line in ("help b", "helper", "h n"))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("run", (None,)),
        (" restart ", (None,)),
        ("start", (None,)),
        ("rerun one 'two three'", (["one", "two three"],)),
        ("run -k x=1", (["-k", "x=1"],)),
        ("run ''", ([""],)),
        ("run = 3", ()),
        ("run += 3", ()),
        ("start one", ()),
        ("run 'one", ()),
        ("run one # a comment", ()),
        ("run one ;; b 3", ()),
        ("runner", ()),
    ],
)
def test_a_start_and_its_arguments(line: str, found: tuple[list[str] | None, ...]) -> None:
    assert restart(line) == found
