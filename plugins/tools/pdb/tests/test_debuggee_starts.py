"""How programs start under the debugger: stopped before their first line, and with what they would find without it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from debugged_programs import LOOP, dedent, place
from support import repeated


def test_first_stop_is_before_the_first_line(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    assert program.first["stop"]["reason"] == "entry"
    assert place(program.first) == "app.py:1 <module>"
    assert "-> import sys" in program.first["out"]


@pytest.mark.parametrize(
    ("command", "stopped"),
    [("n", 2), ("s", 2), ("unt", 2), ("unt 3", 3), *repeated("debugger", ("j 3", 3), ("j 1", 1), ("r", 3))],
)
def test_commands_before_the_first_line_are_given_at_it(debug: Any, command: str, stopped: int) -> None:
    program = debug("python app.py", {"app.py": '"""Doc."""\nx = 1\ny = 2\n'})
    message = program.do(command)
    assert place(message) == f"app.py:{stopped} <module>"
    assert message["out"].count("app.py(") == 1
    assert message["stop"]["reason"] == ("return" if command == "r" else "step")
    assert program.do("p 'x' in globals()")["out"] == f"{command in ('unt 3', 'r')}\n"


def test_commands_after_a_jump_before_the_first_line_come_after_it(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "x = 1\ny = 2\nz = 3\n"})
    message = program.do("j 2 ;; n")
    assert place(message) == "app.py:3 <module>"
    assert program.do("p 'x' in globals(), y")["out"] == "(False, 2)\n"


def test_a_jump_before_the_first_line_is_refused_where_it_leads_nowhere(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "x = 1\ny = 2\n"})
    assert program.do("j there")["failed"]
    refused = program.do("j -1")
    assert refused["failed"] and place(refused) == "app.py:1 <module>"
    assert refused["out"] == "*** Jump failed: line -1 comes before the current code block\n"
    assert place(program.do("n")) == "app.py:2 <module>"


def test_before_unittest_runs_nothing_of_it_is_shown(debug: Any) -> None:
    program = debug("python -m unittest", {"test_it.py": "import unittest\n\ndef helps():\n    return 1\n"})
    assert "file" not in program.first["stop"] and program.first["out"] == ""
    for command in ("n", "s", "r", "unt", "j 2", "l", "b 2"):
        answer = program.do(command)
        assert answer["failed"] and "the program is a runner of tests" in answer["out"], command
    assert program.do("b helps")["out"].endswith("test_it.py:4\n")


def test_package_code_runs_after_the_first_stop(debug: Any) -> None:
    files = {"pkg/__init__.py": "flag = 1\nvalue = 2\n", "pkg/__main__.py": "x = 1\n"}
    program = debug("python -m pkg", files)
    program.do("b pkg/__init__.py:2")
    stop = program.do("c")["stop"]
    assert (stop["file"], stop["line"]) == ("pkg/__init__.py", 2)


@pytest.mark.parametrize("files", [{"pkg/__init__.py": ""}, *repeated("debugger", {})])
def test_a_module_in_a_package_without_init_is_debugged(debug: Any, files: dict[str, str]) -> None:
    program = debug("python -m pkg.sub.m", {**files, "pkg/sub/m.py": "x = 1\ny = 2\n"})
    stop = program.do("n")["stop"]
    assert (stop["file"], stop["line"]) == ("pkg/sub/m.py", 2)


def test_breakpoint_in_a_package_is_not_missed_by_a_step_from_entry(debug: Any) -> None:
    files = {"pkg/__init__.py": "flag = 1\nvalue = 2\n", "pkg/__main__.py": "x = 1\n"}
    program = debug("python -m pkg", files)
    program.do("b pkg/__init__.py:2")
    stop = program.do("n")["stop"]
    assert (stop["file"], stop["line"], stop["reason"]) == ("pkg/__init__.py", 2, "breakpoint")


def test_restart_is_left_to_the_host(debug: Any) -> None:
    program = debug("python app.py", dedent("x = 1\n"))
    program.do("b 1")
    answer = program.do("run a 'b c'")
    assert (answer["t"], answer["args"]) == ("restart", ["a", "b c"])


@pytest.mark.parametrize(
    ("entrypoint", "files", "why"),
    [
        ("python nosuch.py", {}, "there is no file nosuch.py"),
        ("python -m nosuch", {}, "there is no module nosuch"),
        ("python -m pkg.nosuch", {"pkg/__init__.py": "1/0"}, "there is no module pkg.nosuch"),
        ("python -m pkg", {"pkg/__init__.py": "1/0"}, "pkg is a package without __main__"),
        *repeated(
            "debugger",
            ("python .", {}, ". is a directory"),
            ("python data.txt", {"data.txt": "not python at all"}, "data.txt is not Python"),
            ("python -m bad", {"bad.py": "def f(:\n"}, "bad is not Python"),
            ("python data.bin", {"data.bin": "x\0y"}, "data.bin is not Python"),
            ("python app.pyz", {"app.pyz": "PK\5\6" + 18 * "\0"}, "app.pyz is a zip archive, not a Python file"),
        ),
    ],
)
def test_bad_target_is_told_at_once(debug: Any, entrypoint: str, files: dict[str, str], why: str) -> None:
    program = debug(entrypoint, files)
    assert program.first["t"] == "error"
    assert why in program.first["message"]


def test_options_of_the_program_are_its_own(debug: Any) -> None:
    """Python 3.13.0's pdb takes some of them for its own: `python -m pdb -m pytest --tb=no -s`."""
    program = debug("python -m tool --tb=no -s -c x", {"tool.py": "import sys\ngiven = sys.argv[1:]\nx = 1\n"})
    program.do("b tool.py:3")
    assert place(program.do("c")) == "tool.py:3 <module>"
    assert program.do("p given")["out"] == "['--tb=no', '-s', '-c', 'x']\n"


ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}


SEEN = """\
import __main__, json, os, sys
seen = {
    "argv": sys.argv,
    "orig_argv": getattr(sys, "orig_argv", []),
    "path": sys.path[:2],
    "main": sorted(set(vars(__main__)) - {"seen", "json", "os", "sys", "__main__"}),
    "file": __file__,
    "name": __name__,
    "package": __package__,
    "spec": __spec__ and __spec__.name,
    "is_main": vars(__main__) is globals(),
    "stdin": sys.stdin.isatty(),
    "code": __import__("code").__file__.endswith("/code.py") and hasattr(__import__("code"), "ours"),
}
del seen["stdin"]
open(os.environ["SEEN"], "w").write(json.dumps(seen))
"""


@pytest.mark.parametrize(
    "entrypoint",
    [
        "sub/app.py a -b",
        "-m pkg a",
        *repeated("debugger", "-m pkg.sub a", "-m flat", "./flat.py x", "-u -X dev flat.py"),
    ],
)
def test_program_sees_what_it_sees_without_debugger(debug: Any, python: str, tmp_path: Path, entrypoint: str) -> None:
    files = {
        "sub/app.py": SEEN,
        "sub/code.py": "ours = 1\n",
        "code.py": "ours = 1\n",
        "pkg/__init__.py": "",
        "pkg/__main__.py": SEEN,
        "pkg/sub.py": SEEN,
        "flat.py": SEEN,
    }
    plain, debugged = tmp_path / "plain.json", tmp_path / "debugged.json"
    program = debug(f"SEEN={debugged} python {entrypoint}", files)
    assert program.do("c")["status"] == 0, program.printed
    environment = {**ENVIRONMENT, "SEEN": str(plain)}
    subprocess.run([python, *entrypoint.split()], cwd=tmp_path, env=environment, check=True)
    expected, found = json.loads(plain.read_text()), json.loads(debugged.read_text())
    assert found["code"]
    found["main"] = [name for name in found["main"] if name != "__pdb_convenience_variables"]
    assert found == expected
