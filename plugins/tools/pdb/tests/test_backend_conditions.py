"""Conditions of breakpoints, by each way in which breakpoints are found."""

from __future__ import annotations

import subprocess
from textwrap import dedent
from typing import Any

import pytest
from support import repeated


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i == 2", [2]),
        ("i > 5", []),
        ("False", []),
        ("i % 2", [1, 3]),
        ("limit == i", [3]),
        ("helper(i)", [2]),
        *repeated(
            "debugger",
            ("any(i == other for other in [1])", [1]),
            ("(lambda: i == 2)()", [2]),
            ("[n for n in range(4) if n == i == 3]", [3]),
            ("self._Thing__private == i", [2]),
            ("locals().get('i') == 1", [1]),
            ("undefined", [0, 1, 2, 3]),
            ("i / (i - 1) and False", [1]),
            ("later == 1", [0, 1, 2, 3]),
            ("i == 1 or i == 2", [1, 2]),
            ("i == 1 # a comment", [1]),
            ("  i == 1", [1]),
        ),
    ],
)
def test_conditions(debug: Any, backends: list[str], condition: str, expected: list[int]) -> None:
    source = """\
    limit = 3

    def helper(n):
        return n == 2

    class Thing(object):
        def __init__(self):
            self.__private = 2

        def run(self):
            for i in range(4):
                doubled = 2 * i
                if i == 0:
                    later = 1
                elif i == 2:
                    del later
            return doubled

    Thing().run()
    """
    program = debug("python app.py", {"app.py": dedent(source)}, backends=backends)
    program.do("b 4")  # inside of what a condition calls nothing stops
    program.do("b 12, " + condition)
    seen = []
    message = program.do("c")
    while message["t"] == "prompt":
        assert message["stop"]["line"] == 12
        seen.append(int(program.do("p i")["out"]))
        message = program.do("c")
    assert seen == expected


def test_a_condition_that_raises_stops_and_says_so(debug: Any, backends: list[str]) -> None:
    program = debug("python app.py", {"app.py": "def f(n):\n    x = n\n    return x\nf(0)\n"}, backends=backends)
    program.do("b 2, 1 / n")
    stop = program.do("c")["stop"]
    assert (stop["line"], stop["note"]) == (2, "its condition raised ZeroDivisionError: division by zero")
    assert program.lines("n", "n", "c") == [3, 3, 0]


@pytest.mark.parametrize("condition", ["sys.exit(n)", "asked(n)", *repeated("debugger", "[sys.exit(n) for _ in [1]]")])
def test_a_condition_that_would_end_the_program_stops_instead(debug: Any, backends: list[str], condition: str) -> None:
    source = "import sys\nclass Asked(BaseException):\n    pass\ndef asked(n):\n    raise Asked(n)\n"
    source += "def f(n):\n    x = n\n    return x\nf(3)\n"
    program = debug("python app.py", {"app.py": source}, backends=backends)
    program.do(f"b 7, {condition}")
    stop = program.do("c")["stop"]
    raised = "Asked" if "asked" in condition else "SystemExit"
    assert (stop["line"], stop["note"]) == (7, f"its condition raised {raised}: 3")
    assert program.lines("n", "n") == [8, 8]
    assert program.do("c")["status"] == 0


def test_an_interrupt_from_the_keyboard_reaches_the_program_from_a_condition(debug: Any, backends: list[str]) -> None:
    source = "import os, signal\ndef f(n):\n    x = n\n    return x\n"
    source += "try:\n    f(3)\nexcept KeyboardInterrupt:\n    print('caught')\n"
    program = debug("python app.py", {"app.py": source}, backends=backends)
    program.do("b 3, os.kill(os.getpid(), signal.SIGINT)")
    assert program.do("c")["status"] == 0
    assert b"caught" in program.printed


def test_a_step_does_not_go_into_a_condition(debug: Any, backends: list[str]) -> None:
    source = "def held(n):\n    return n == 3\ndef f():\n    for n in range(3):\n        x = n\n    return x\nf()\n"
    program = debug("python app.py", {"app.py": source}, backends=backends)
    program.do("b 5, held(n)")
    program.do("b 4")
    assert program.lines("c", "s", "s", "s", "n", "s") == [4, 5, 4, 5, 4, 5]


def test_a_condition_in_a_file_that_was_loaded_meanwhile(debug: Any, backends: list[str]) -> None:
    program = debug(
        "python app.py",
        {"app.py": "def f(n):\n    x = n\n    return x\nfor n in range(4):\n    f(n)\n"},
        backends=backends,
    )
    program.do("b 2")
    assert program.lines("c") == [2]
    program.do("cl 1")
    program.do("b 3, n == 2")
    assert program.lines("c") == [3]
    assert program.do("p n")["out"] == "2\n"


@pytest.mark.parametrize(
    "entrypoint", ["python app.py", *repeated("debugger", "python -m pytest -q -p no:cacheprovider test_app.py")]
)
def test_a_condition_that_cannot_be_compiled_in(debug: Any, backends: list[str], python: str, entrypoint: str) -> None:
    """It names a variable that is declared global further down: as it stands there, it is no Python."""
    if "pytest" in entrypoint and subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode:
        pytest.skip(f"needs pytest in {python}: pip install pytest")
    source = "x = 1\ndef test_f():\n    y = 1\n    global x\n    x = y + 1\ntest_f()\n"
    program = debug(entrypoint, {"app.py": source, "test_app.py": source}, backends=backends)
    program.do(f"b {entrypoint.split()[-1]}:3, x == 1")
    assert program.lines("c") == [3]
    assert program.do("p x")["out"] == "1\n"


def test_conditions_that_change_while_the_program_runs(debug: Any, backends: list[str]) -> None:
    source = "def f(n):\n    x = n\n    return x\nfor n in range(9):\n    f(n)\n"
    program = debug("python app.py", {"app.py": source}, backends=backends)
    program.do("b 2, n == 1")
    seen = []
    for command in ["c", "condition 1 n > 3", "c", "condition 1", "c", "ignore 1 1", "c", "disable 1", "c"]:
        message = program.do(command)
        if command == "c":
            seen.append(int(program.do("p n")["out"]) if message["t"] == "prompt" else -1)
    assert seen == [1, 4, 5, 7, -1]


@pytest.mark.parametrize(
    "condition", ["sum(1 for i in iter(int, 1))", *repeated("debugger", "endless()", "[1 for i in iter(int, 1)]")]
)
def test_an_interrupted_condition_stops_where_it_stands(debug: Any, backends: list[str], condition: str) -> None:
    source = "def endless():\n    while True: pass\nx = 1\ny = 2\nz = 3\n"
    program = debug("python app.py", {"app.py": source}, backends=backends)
    program.do(f"b 4, {condition}")
    program.send({"cmd": "c", "rest": [], "for": 0})
    with pytest.raises(TimeoutError):
        program.receive(0.2)
    stop = program.interrupt()["stop"]
    assert (stop["reason"], stop["line"]) == ("breakpoint", 4)
    assert stop["note"] == "its condition was interrupted: it takes too long"
    assert program.do("n")["stop"]["line"] == 5
    assert program.do("c")["status"] == 0
