"""The counting of what is reached in sandboxes: probes change nothing, and what they mark outlives any end."""

from __future__ import annotations

import marshal
import subprocess
import sys
from pathlib import Path

import guest_coverage
import pytest
from guest_coverage import Probe, Program, probed, ranges

TEXT = '''"""A program."""
import os
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def count(limit):
    """Counts."""
    for number in range(limit):
        if number == 3:
            break
    else:
        return "all"
    while number:
        number -= 1
    return "some"


def end():
    child = os.fork()
    if child == 0:
        try:
            count(10)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.kill(os.getpid(), 9)
    never = 1


print(__doc__, count.__doc__, sorted(set(globals()) - {"_reached"}), count(2))
end()
'''
NEVER = [Probe(29, "")]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(TEXT)
    return path


def left(program: Path, directory: Path) -> list[Probe]:
    read = Program.read(program)
    marks = read.marks(directory).read_bytes()
    return [probe for probe, mark in zip(read.probes, marks, strict=True) if not mark]


@pytest.mark.parametrize("form", ["bytecode", "source"])
def test_marks_of_forked_and_killed_processes_are_kept(program: Path, tmp_path: Path, form: str) -> None:
    compiled, source = probed(program, tmp_path / "marks", "<program>")
    code = "import marshal, sys; exec(marshal.loads(sys.stdin.buffer.read()))"
    command = [sys.executable, "-I", "-S", "-c", code if form == "bytecode" else source.decode()]
    done = subprocess.run(command, input=marshal.dumps(compiled), capture_output=True)
    assert (done.returncode, done.stderr) == (-9, b"")
    assert left(program, tmp_path / "marks") == NEVER


def test_probes_do_not_show(program: Path, tmp_path: Path) -> None:
    compiled, _ = probed(program, tmp_path / "marks", "<program>")
    for code, name in ((compiled, "probed"), (compile(TEXT, "<program>", "exec"), "plain")):
        (tmp_path / name).write_bytes(marshal.dumps(code))

    def run(name: str) -> bytes:
        text = f"import marshal; exec(marshal.loads(open({str(tmp_path / name)!r}, 'rb').read()))"
        return subprocess.run([sys.executable, "-u", "-c", text], capture_output=True).stdout

    assert run("probed") == run("plain") != b""


def test_program_runs_where_its_marks_cannot_be_reached(program: Path, tmp_path: Path) -> None:
    _, source = probed(program, tmp_path / "marks", "<program>")
    elsewhere = source.replace(str(tmp_path).encode(), b"/nonexistent")
    done = subprocess.run([sys.executable, "-u", "-c", elsewhere], capture_output=True)
    assert (done.returncode, done.stderr) == (-9, b"") and b"all" in done.stdout


def test_what_is_missing_is_told(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guest_coverage, "PACKAGES", ("package",))
    monkeypatch.setattr(guest_coverage, "modules", lambda package: [program])
    monkeypatch.setattr(guest_coverage, "HERE", tmp_path)
    _, source = probed(program, tmp_path / "marks", "<program>")
    subprocess.run([sys.executable, "-c", source.replace(b"\nend()", b"\n0")], capture_output=True, check=True)
    total = guest_coverage.report(tmp_path / "marks")
    out = capsys.readouterr().out
    assert "lines not reached: 12, 15-17, 21-29" in out
    assert "branches not taken: 11 to its body" in out
    assert total == pytest.approx(100 * 3 / 8)
    # A program that was changed starts anew.
    program.write_text(TEXT + "\n")
    assert guest_coverage.report(tmp_path / "marks") == 0


def test_ranges() -> None:
    assert ranges([], [1, 2]) == ""
    assert ranges([7, 3, 1, 4], [1, 3, 4, 5, 7]) == "1-4, 7"
