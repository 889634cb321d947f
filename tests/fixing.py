"""What the tests of `debug-gym fix` play: a repository with a bug, its repair, and a person at a terminal."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pexpect
from support import COMMAND

CTRL_C = "\x03"
CALC = "def add(a, b):\n    return a - b\n"

TESTS = """\
from calc import add


def test_add():
    assert add(1, 2) == 3


def test_zero():
    assert add(0, 0) == 0
"""

RIGHT: dict[str, Any] = {
    "name": "rewrite",
    "arguments": {"path": "calc.py", "start": 2, "end": 2, "new_code": "    return a + b\n"},
}

WRONG = {"name": "rewrite", "arguments": {"path": "calc.py", "start": 2, "end": 2, "new_code": "    return a * b\n"}}


def make_project(directory: Path) -> Path:
    """A repository of git that is dirty in every way."""
    directory.mkdir()
    (directory / "calc.py").write_text(CALC)
    (directory / "test_calc.py").write_text(TESTS)
    (directory / "notes.txt").write_text("one\n")
    (directory / ".gitignore").write_text("*.log\n")
    git(directory, "init", "-q")
    git(directory, "add", ".")
    git(directory, "commit", "-q", "-m", "first")
    (directory / "notes.txt").write_text("one\ntwo\n")
    git(directory, "add", "notes.txt")
    (directory / "notes.txt").write_text("one\ntwo\nthree\n")
    (directory / "calc.py").write_text(CALC + "# not committed\n")
    (directory / "new.txt").write_text("not added\n")
    (directory / "some.log").write_text("ignored\n")
    return directory


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=directory, text=True, capture_output=True, check=True)
    return done.stdout


def words(directory: Path, *actions: object, more: tuple[str, ...] = ()) -> list[str]:
    playing = ["--llm", "scripted", "-p", f"llm.actions={json.dumps(actions)}", "--terminal", "bubblewrap"]
    return ["fix", str(directory), *playing, *more]


def state(directory: Path) -> dict[str, bytes]:
    found = {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(directory).parts
    }
    if (directory / ".git").exists():
        found["index"] = git(directory, "ls-files", "-s").encode()
        found["head"] = git(directory, "log", "--oneline", "--all").encode()
    return found


def at_a_terminal(
    cwd: Path, arguments: list[str], columns: int = 100, program: str = str(COMMAND)
) -> pexpect.spawn[str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    return pexpect.spawn(
        program,
        arguments,
        cwd=str(cwd),
        env={**kept, "TERM": "xterm", "NO_COLOR": "1"},
        dimensions=(40, columns),
        encoding="utf-8",
        timeout=120,
    )


def ended(child: pexpect.spawn[str]) -> tuple[str, int | None]:
    child.expect(pexpect.EOF)
    child.close()
    return str(child.before), child.exitstatus


def fixed(before: dict[str, bytes]) -> dict[str, bytes]:
    return {**before, "calc.py": before["calc.py"].replace(b"a - b", b"a + b")}
