"""Breakpoints on the debuggee itself: where they may be, what they stop for, and what is kept of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from debugged_programs import LOOP, place
from support import repeated


def test_false_condition_never_stops(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4, n > 100")
    assert program.do("c")["t"] == "exit"


def test_condition_and_ignore_count(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4, n % 2 == 0")
    program.do("ignore 1 1")
    assert program.do("c")["stop"]["locals"]["changed"]["n"] == "2"
    assert program.breakpoints["list"][0]["ignore"] == 1  # as each run begins
    assert program.do("c")["stop"]["locals"]["changed"]["n"] == "4"


def test_condition_that_raises_stops_and_says_so(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("tbreak 4, unknown > 1")
    stop = program.do("c")["stop"]
    assert "NameError" in stop["note"]
    assert [one["number"] for one in program.breakpoints["list"]] == [1]


def test_temporary_breakpoint_is_gone_after_its_stop(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("tbreak 4")
    stopped = program.do("c")
    assert stopped["stop"]["breakpoint"] == 1
    assert "Deleted breakpoint 1" in stopped["out"]
    assert program.breakpoints["list"] == []
    assert program.do("c")["t"] == "exit"


def test_disabled_breakpoint_does_not_stop(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    program.do("disable 1")
    program.do("b 11")
    assert place(program.do("c")) == "app.py:11 main"


def test_function_breakpoint_stops_at_its_first_line_only(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("tbreak 11")
    program.do("b add")
    for n in range(5):
        stopped = program.do("c")
        assert place(stopped) == "app.py:4 add", n
    assert place(program.do("c")) == "app.py:11 main"


def test_commands_of_a_breakpoint(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    defined = program.do("commands 1", "silent", "p n * 100", "c", "end", "p 'next'")
    assert defined["used"] == 4 and defined["out"] == ""
    program.do("b 11")
    stopped = program.do("c")
    assert stopped["out"].startswith("0\n100\n200\n300\n400\n> ")
    assert place(stopped) == "app.py:11 main"
    assert program.breakpoints["list"][0]["commands"] == ["silent", "p n * 100", "c"]


def test_commands_without_end_take_all_lines(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    assert program.do("commands", "p n", "p total")["used"] == 2
    stopped = program.do("c")
    assert stopped["out"].startswith("0\n0\n> ")
    assert stopped["stop"]["breakpoint"] == 1


def test_breakpoints_are_restored_as_they_were(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 11")
    program.do("b 4, n > 1")
    program.do("commands 2", "silent", "p n", "end")
    program.do("ignore 2 1")
    program.do("tbreak 12")
    program.do("b main")
    program.do("disable 4")
    program.do("cl 1")
    state = program.breakpoints
    again = debug("python app.py", breakpoints=state)
    assert again.hello["lost"] == []
    assert again.breakpoints == state
    stopped = again.do("c")
    assert stopped["out"] == "3\n" and stopped["stop"]["breakpoint"] == 2
    assert again.do("b 9")["out"].startswith("Breakpoint 5 at")


def test_breakpoint_on_a_line_that_is_gone_is_reported(debug: Any) -> None:
    state = {"list": [dict(BREAKPOINT, line=99)], "next": 2}
    program = debug("python app.py", {"app.py": LOOP}, breakpoints=state)
    assert [one["line"] for one in program.hello["lost"]] == [99]
    assert program.do("b 4")["out"].startswith("Breakpoint 2 at")


def test_the_breakpoints_that_a_line_has_already_are_named(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    said = [program.do("b 4")["out"].partition("\n")[2] for _ in range(4)]
    assert said == [
        "",
        "note: at this line there is breakpoint 1 too\n",
        "note: at this line there are breakpoints 1 and 2 too\n",
        "note: at this line there are breakpoints 1, 2 and 3 too\n",
    ]


BREAKPOINT = {
    "number": 1,
    "file": "app.py",
    "line": 4,
    "condition": None,
    "temporary": False,
    "ignore": 0,
    "enabled": True,
    "commands": [],
    "function": None,
}


@pytest.mark.parametrize(
    "name",
    ["pkg/mod.py", "/testbed/pkg/mod.py", "{root}/pkg/mod.py", *repeated("debugger", "pkg.mod", "mod", "mod.py")],
)
def test_names_of_files(debug: Any, name: str) -> None:
    files = {
        "app.py": "from pkg import mod\nmod.f()\n",
        "pkg/__init__.py": "",
        "pkg/mod.py": "def f():\n    return 1\n",
    }
    program = debug("python app.py", files)
    set_ = program.do(f"b {name.format(root=program.root)}:2")
    assert set_["out"] == f"Breakpoint 1 at {program.root}/pkg/mod.py:2\n"
    assert place(program.do("c")) == "pkg/mod.py:2 f"
    assert not program.do(f"cl {name.format(root=program.root)}:2")["failed"]
    assert program.breakpoints["list"] == []


def test_errors_are_pdbs_own(debug: Any) -> None:
    app = "x = 1\n\n# no\n@staticmethod\n# between\ndef f():\n    # inside\n    return 1\n"
    program = debug("python app.py", {"app.py": app})
    for command, text in [
        ("b 2", "*** Blank or comment\n"),
        ("b 3", "*** Blank or comment\n"),
        ("b 5", "*** Blank or comment\n"),
        ("b 99", "*** End of file"),
        ("p nosuch", "*** NameError: name 'nosuch' is not defined\n"),
    ]:
        answer = program.do(command)
        assert answer["out"].startswith(text) and answer["failed"]
    assert "Breakpoint 1 at " in program.do("b 7")["out"]


def test_a_function_on_the_last_line_of_a_decorated_header(debug: Any) -> None:
    """Its line belongs to the definition and to the function; both are stopped at, as in pdb."""
    app = "def d(n):\n    return lambda f: f\n@d(\n    2,\n)\ndef f(a, b=2): return a + b\nf(1)\n"
    program = debug("python app.py", {"app.py": app})
    program.do("b 6")
    stops = [place(program.do("c"))]
    if place(answer := program.do("c")) == "app.py:6 <module>":  # newer versions come back from the decorator
        answer = program.do("c")
    assert [*stops, place(answer)] == ["app.py:6 <module>", "app.py:6 f"]


def test_breakpoint_added_to_a_live_frame(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    program.do("c")
    program.do("cl 1")
    program.do("b 11")
    assert place(program.do("c")) == "app.py:11 main"


def test_clear_all_needs_no_confirmation(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    program.do("b 5")
    assert program.do("cl")["out"].count("Deleted breakpoint") == 2
    assert program.breakpoints["list"] == []


DOCUMENTED = '''\
"""A module
of two lines."""
class A:
    """A class."""
    def one(self):
        """One line."""
        return 1

    def several(self):
        """Several lines,

        # and this is no comment.
        """
        return 2

    def none(self):
        """Nothing but this."""

    def same(self): "doc"; return 3
    def mixed(self):
        """Two
        lines."""; return 4


a = A()
a.one(), a.several(), a.none(), a.same(), a.mixed()
'''


def test_a_docstring_in_a_function_stands_for_the_next_line_with_code(debug: Any) -> None:
    program = debug("python app.py", {"app.py": DOCUMENTED})
    for line, stands_for in {6: 7, 10: 14, 11: 14, 12: 14, 13: 14, 19: 19, 21: 22, 22: 22}.items():
        answer = program.do(f"tbreak {line}")
        assert not answer["failed"] and program.breakpoints["list"][-1]["line"] == stands_for, line
        said = f"Line {line} is of a docstring: the next line with code is taken.\n"
        assert answer["out"].startswith(said) == (line != stands_for), line
        program.do("cl")
    program.do("b 12")
    assert place(program.do("c")) == "app.py:14 several"


def test_a_docstring_elsewhere_has_the_lines_near_it_named(debug: Any) -> None:
    program = debug("python app.py", {"app.py": DOCUMENTED})
    for line, near in {
        1: "3 `class A:`",
        2: "3 `class A:`",
        4: "3 `class A:` and 5 `def one(self):`",
        17: '16 `def none(self):` and 19 `def same(self): "doc"; return 3`',
    }.items():
        answer = program.do(f"b {line}")
        assert answer["failed"], line
        assert answer["out"] == f"*** Docstring\nhint: near it there is code at {near}\n"


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        (["b 2", "b 2, n == 2"], {2: "breakpoint 1 stopped there first"}),
        (["b 2, n == 9", "b 2"], {1: "its condition did not hold"}),
        *repeated(
            "debugger",
            (["tbreak 2", "b 2", "c", "disable 2"], {}),
            (["tbreak 5", "c", "b 6", "n"], {2: "a step stopped there first"}),
            (["b 2", "b f"], {2: "breakpoint 1 stopped there first"}),
        ),
    ],
)
def test_a_breakpoint_where_something_else_stopped_was_reached(
    debug: Any, commands: list[str], told: dict[int, str]
) -> None:
    app = "def f(n):\n    return n\n\n\nx = f(1)\ny = f(2)\n"
    program = debug("python app.py", {"app.py": app})
    for command in commands:
        assert not program.do(command)["failed"]
    while (answer := program.do("c"))["t"] == "prompt":
        pass
    assert {one["number"]: one["why"] for one in answer["never"]} == told


@pytest.mark.parametrize("link", ["a.py", "sl.py", "old/calc.py"])
@pytest.mark.parametrize("typed", ["add", "calc.add", *repeated("debugger", "calc.py:add", "{link}:add", "{link}:2")])
def test_a_file_under_two_names_is_one(debug: Any, tmp_path: Path, link: str, typed: str) -> None:
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "src/calc.py")
    files = {
        "app.py": "import sys\nsys.path.append('src')\nimport calc\ncalc.add(1)\n",
        "src/calc.py": "def add(n):\n    return n\n",
    }
    program = debug("python app.py", files)
    assert program.do("b " + typed.format(link=link))["out"] == f"Breakpoint 1 at {tmp_path}/src/calc.py:2\n"
    assert place(program.do("c")) == "src/calc.py:2 add"


@pytest.mark.parametrize(
    "typed",
    ['"cal c.py":2', "'cal c.py' : 2", *repeated("debugger", "`cal c.py`:f", '"cal c.py:2"', '"cal c.py":2, x > 1')],
)
def test_quotes_around_the_name_of_a_file(debug: Any, typed: str) -> None:
    program = debug("python app.py", {"app.py": "x = 1\n", "cal c.py": "def f():\n    return 1\n"})
    assert program.do(f"b {typed}")["out"] == f"Breakpoint 1 at {program.root}/cal c.py:2\n"
    assert program.breakpoints["list"][0]["condition"] == ("x > 1" if "," in typed else None)
