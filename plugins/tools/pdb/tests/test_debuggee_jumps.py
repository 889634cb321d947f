"""Jumps: to the statement that is meant, and nowhere that the interpreter does not survive."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from support import repeated, version_of

CALL = textwrap.dedent(
    """\
    def f():
        a = 1
        x = max(
            abs(1),
            abs(2),
        )
        y = (
            a
            + x
        )
        return y

    def twice(function):
        return function

    def g():
        a = 1

        @twice
        @twice
        def inner(
            n=a,
        ):
            return n

        for n in range(2):
            a += inner(
                n,
            )
        return a

    print("f", f())
    print("g", g())
    """
)

BLOCKS = textwrap.dedent(
    """\
    def f(n):
        for i in range(2):
            try:
                a = 1
                if n:
                    raise ValueError
            except ValueError as error:
                b = 2
                c = 3
            finally:
                d = 4
                for j in range(2):
                    e = 5
            with open("app.py") as file:
                g = 6
                h = 7
        return i

    for n in range(60):
        try:
            f(n % 2)
        except Exception:
            pass
    print("over")
    """
)


@pytest.fixture(
    params=[
        "settrace",
        pytest.param("instrument", marks=pytest.mark.debugger),
        pytest.param("monitoring", marks=pytest.mark.debugger),
    ]
)
def backends(request: pytest.FixtureRequest, python: str) -> list[str]:
    """Which backends a session may use."""
    if request.param == "monitoring" and version_of(python) < (3, 12):
        pytest.skip("sys.monitoring came with Python 3.12")
    return list(dict.fromkeys([request.param, "settrace"]))


def to_the_end(program: Any) -> None:
    program.do("cl all")
    assert program.do("c").get("status") == 0, program.printed


@pytest.mark.parametrize("line", [3, *repeated("debugger", 4, 5)])
def test_any_line_of_a_statement_is_its_beginning(debug: Any, backends: list[str], line: int) -> None:
    program = debug("python app.py", {"app.py": CALL}, backends=backends)
    program.do("b 7")
    assert program.do("c")["stop"]["line"] in (7, 8)
    program.do("!a = 5")
    answer = program.do(f"j {line}")
    assert "app.py(3)f()" in answer["out"] and not answer["failed"]
    program.do("!a = 6")
    to_the_end(program)
    assert b"f 8" in program.printed


@pytest.mark.parametrize("line", [7, *repeated("debugger", 8, 9)])
def test_a_statement_whose_first_line_is_executed_last(debug: Any, backends: list[str], line: int) -> None:
    program = debug("python app.py", {"app.py": CALL}, backends=backends)
    program.do("b 3")
    program.do("c")
    program.do("!x = 9")
    assert not program.do(f"j {line}")["failed"]
    to_the_end(program)
    assert b"f 10" in program.printed


@pytest.mark.parametrize("line", [18, 19, *repeated("debugger", 20, 21, 22, 23)])
def test_a_decorated_function_begins_at_its_first_decorator(debug: Any, backends: list[str], line: int) -> None:
    program = debug("python app.py", {"app.py": CALL}, backends=backends)
    program.do("b 26")
    program.do("c")
    program.do("!a = 7")
    answer = program.do(f"j {line}")
    assert "app.py(19)g()" in answer["out"] and not answer["failed"]
    to_the_end(program)
    assert b"g 8" in program.printed


def test_out_of_range_is_refused(debug: Any, backends: list[str]) -> None:
    program = debug("python app.py", {"app.py": CALL}, backends=backends)
    program.do("b 2")
    program.do("b 11")
    program.do("c")
    for line in (12, 16, 33, 99999):
        assert program.do(f"j {line}")["out"] == f"*** Jump failed: line {line} comes after the current code block\n"
    for line in (0, -5):
        answer = program.do(f"j {line}")
        assert answer["failed"] and "before the current code block" in answer["out"]
    assert program.do("c")["stop"]["line"] == 11
    to_the_end(program)


def test_where_it_has_jumped_to_it_does_not_stop_again(debug: Any, backends: list[str]) -> None:
    source = "import os\na = 1\nb = 2\nc = 3\nd = 4\n"
    program = debug("python app.py", {"app.py": source}, backends=backends)
    program.do("b 3")
    program.do("b 5")
    assert "app.py(3)" in program.do("j 3")["out"]
    assert program.do("n")["stop"]["line"] == 4
    program.do("j 3")
    assert program.do("c")["stop"]["line"] == 5
    to_the_end(program)


def test_from_the_middle_of_a_statement(debug: Any, backends: list[str], python: str) -> None:
    if version_of(python) >= (3, 11):
        pytest.skip("Python jumps from there")
    program = debug("python app.py", {"app.py": CALL}, backends=backends)
    program.do("b 27")
    program.do("c")
    assert program.do("n")["stop"]["line"] == 28
    answer = program.do("j 30")
    assert answer["out"] == "*** Jump failed: the statement at line 27 is under way: n to its end, then j\n"
    program.do("cl all")
    program.do("unt")
    to_the_end(program)


@pytest.mark.parametrize("here", [4, 6, 8, 11, 13, 14, 15])
@pytest.mark.debugger
def test_no_jump_crashes_the_interpreter(debug: Any, backends: list[str], here: int) -> None:
    """From each line to each other one: it is refused, or the program goes on."""
    program = debug("python app.py", {"app.py": BLOCKS}, backends=backends)
    done = []
    for there in range(2, 18):
        program.do(f"tbreak app.py:{here}")
        assert program.do("c")["stop"]["line"] == here
        done.append(not program.do(f"j {there}")["failed"])
        for _ in range(3):
            assert program.do("n")["t"] == "prompt"
    assert not all(done) and (any(done) or here in (11, 13))  # up to Python 3.10 none from there
    to_the_end(program)
    assert b"over" in program.printed


@pytest.mark.parametrize("first", ["a = 1", "a = (\n1)"])
def test_no_jump_before_the_first_line(debug: Any, backends: list[str], first: str) -> None:
    program = debug("python app.py", {"app.py": f"{first}\nb = 2\n"}, backends=backends)
    program.do("b 1")
    program.do("c")
    for line in (0, -1, -7):
        answer = program.do(f"j {line}")
        assert answer["out"] == f"*** Jump failed: line {line} comes before the current code block\n"
        assert answer["failed"]
    while "--Return--" not in (answer := program.do("n"))["out"]:
        assert answer["t"] == "prompt"
    assert "comes before" not in program.do("j 0")["out"]  # there it can jump nowhere
