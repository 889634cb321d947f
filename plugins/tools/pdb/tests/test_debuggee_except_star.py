"""Exceptions that leave an `except*`: the frame has no line then."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from support import repeated, version_of

GROUP = textwrap.dedent(
    """\
    def grp():
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(3)])
        except* ValueError as e:
            a = 1
        return 1
    """
)
HANDLED = textwrap.dedent(
    """\
    try:
        grp()
    except ExceptionGroup as eg:
        print("ok", eg)
    print("end")
    """
)


@pytest.fixture
def debug_new(debug: Any, python: str) -> Any:
    if version_of(python) < (3, 11):
        pytest.skip("except* came with Python 3.11")
    return debug


@pytest.mark.parametrize("command", ["n", "s", *repeated("debugger", "until 6", "r")])
def test_steps_out_of_it_are_none_of_the_programs_errors(debug_new: Any, backends: list[str], command: str) -> None:
    program = debug_new("python app.py", {"app.py": GROUP + HANDLED}, backends=backends)
    program.do("b 3")
    program.do("c")
    for _ in range(30):
        answer = program.do(command)
        if answer["t"] == "exit":
            break
        assert answer["stop"]["thread"] == "MainThread" and isinstance(answer["stop"]["line"], int), answer
        assert "TypeError" not in str(answer)
        command = "n"
    assert answer["t"] == "exit" and answer["status"] == 0
    assert b"ok g (1 sub-exception)" in program.printed and b"end" in program.printed


def test_what_it_left_by_is_the_last_line_before(debug_new: Any) -> None:
    program = debug_new("python app.py", {"app.py": GROUP + "grp()\n"})
    stop = program.do("c")["stop"]
    assert stop["reason"] == "exception" and stop["function"] == "grp" and 3 <= stop["line"] <= 5
    for command in ("l", "l ."):
        listed = program.do(command)
        assert "except* ValueError as e:" in listed["out"] and not listed["failed"]
