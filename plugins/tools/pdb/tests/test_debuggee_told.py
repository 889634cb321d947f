"""What is told of a program without being asked: of its stack, its output, and breakpoints that it never came to."""

from __future__ import annotations

import textwrap
from typing import Any


def test_breakpoints_that_nothing_came_to_are_told_at_the_end(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "def f():\n    return 1\nfor n in range(3):\n    x = n\n"})
    program.do("b 2")
    program.do("b 3")
    program.do("b 4, n > 5")
    program.do("b 4, False")
    program.do("disable 4")
    program.do("c")
    told = program.do("cl 2") and program.do("c")["never"]
    assert [(one["number"], one["file"], one["line"]) for one in told] == [(1, "app.py", 2), (3, "app.py", 4)]
    assert "not reached" in told[0]["why"] and "condition" in told[1]["why"]


def test_the_stack_of_a_recursion_is_folded(debug: Any) -> None:
    source = "def even(n):\n    return not n or odd(n - 1)\ndef odd(n):\n    return n and even(n - 1)\n"
    source += "def down(n):\n    if n:\n        return down(n - 1)\n    return even(40)\ndown(40)\n"
    program = debug("python app.py", {"app.py": source})
    program.do("b 4, n == 1")
    stop = program.do("c")["stop"]
    assert len(program.do("w")["out"].splitlines()) < 25
    assert "more frames like this: w 82]" in program.do("w")["out"]
    assert program.do("w 82")["out"].count("->") == 82
    assert len(stop["stack"]) == 8


def test_frames_of_one_function_are_counted(debug: Any) -> None:
    source = "def down(n):\n    if n:\n        return down(n - 1)\n    return 1\ndown(40)\n"
    program = debug("python app.py", {"app.py": source})
    program.do("b 4")
    stack = program.do("c")["stop"]["stack"]
    assert [(one["line"], one.get("times")) for one in stack] == [(4, None), (3, 40), (5, None)]


def test_a_line_about_standard_output_is_about_the_programs_own(debug: Any) -> None:
    source = """\
        import contextlib, io, sys
        buf = io.StringIO()
        with contextlib.redirect_stdout(buf):
            print("a")
            x = 1
        sys.stdout = None
        x = 2
        """
    program = debug("python app.py", {"app.py": textwrap.dedent(source)})
    program.do("b 5")
    program.do("c")
    assert program.do("p sys.stdout is buf")["out"] == "True\n"
    assert program.do("p sys.stdout.getvalue()")["out"] == "'a\\n'\n"
    assert program.do("print(x if 'x' in vars() else 'seen')")["out"] == "seen\n"
    assert program.do("p buf.getvalue()")["out"] == "'a\\n'\n"
    program.lines("n", "n", "n")
    assert program.do("p sys.stdout")["out"] == "None\n"


def test_a_debugger_of_the_programs_own_that_quits_is_an_error_of_the_program(debug: Any) -> None:
    own = "pdb.Pdb(stdin=io.StringIO(), stdout=io.StringIO())"
    source = f"import io, pdb\ndef f():\n    {own}.set_trace()\n    return 1\nf()\n"
    program = debug("python app.py", {"app.py": source})
    stop = program.do("c")["stop"]
    assert stop["reason"] == "exception" and stop["exceptions"][0]["type"] == "BdbQuit"
    assert program.do("c")["status"] == 1


def test_a_program_has_annotations(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "print(__annotations__)\n"})
    assert program.do("c")["status"] == 0
