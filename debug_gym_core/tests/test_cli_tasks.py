"""`debug-gym tasks`."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.cli.tasks import _left_out

TOY = Path(__file__).parent / "toy_plugin.py"
PROGRAM = [sys.executable, "-c", "from debug_gym_core.cli import main; main()"]


def test_tasks(inside: Any) -> None:
    done = inside("tasks", "toy")
    assert done.out == "toy/a\ntoy/b\ntoy/c\n"
    assert "note: toy/hopeless is left out of `all`: its tests pass before the fix" in done.err


def test_some_tasks(inside: Any) -> None:
    assert inside("tasks", "toy/[ac]").out == "toy/a\ntoy/c\n"
    assert inside("tasks", "toy/b").out == "toy/b\n"
    done = inside("tasks", "toy/d")
    assert done.status == 2 and done.err.startswith("error: toy has no task 'd'; known: a, b, c")


def test_no_terminal_is_needed(inside: Any, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("benchmark: {name: toy}\nterminal: {name: nowhere, memory: 1g, image: python:3.12}\n")
    assert inside("tasks", str(config)).out == "toy/a\ntoy/b\ntoy/c\n"


def test_long_shows_a_sentence(inside: Any) -> None:
    done = inside("tasks", "toy", "--long", "-p", "benchmark.extra_tasks=10")
    assert done.out.splitlines()[0] == "toy/a   The answer is wrong."
    assert len(done.out.splitlines()) == 13


def test_json(inside: Any) -> None:
    data = json.loads(inside("tasks", "toy/a", "--json", "--long").out)
    assert data == [
        {"task": "toy/a", "description": "The answer is wrong.", "excluded": None},
        {"task": "toy/hopeless", "excluded": "its tests pass before the fix"},
    ]


def test_titles_are_shown_whole_where_a_program_reads_them(inside: Any) -> None:
    done = inside("tasks", "toy", "-p", "benchmark.titled=true")
    assert done.out == "toy/a  Answers the question of life, the universe and everything else\ntoy/b\ntoy/c\n"
    (first, *_) = json.loads(inside("tasks", "toy", "-p", "benchmark.titled=true", "--json").out)
    title = "Answers the question of life, the universe and everything else"
    assert first == {"task": "toy/a", "title": title, "excluded": None}


@pytest.mark.parametrize(
    ("columns", "first"),
    [
        (40, ["toy/a  Answers the question of life,…"]),
        (30, ["toy/a", "  Answers the question of", "  life, the universe and", "  everything else"]),
        (14, ["toy/a", "  Answers the", "  question of", "  life, the", "  universe and", "  everything", "  else"]),
    ],
)
def test_lines_fit_a_terminal(tmp_path: Path, environment: dict[str, str], columns: int, first: list[str]) -> None:
    command = shlex.join([*PROGRAM, "tasks", "toy", "-p", "benchmark.titled=true", "--plugin-file", str(TOY)])
    done = subprocess.run(
        ["script", "-qec", f"stty cols {columns}; {command}", "/dev/null"],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = done.stdout.replace("\r", "").splitlines()
    assert lines[: len(first) + 2] == [*first, "toy/b", "toy/c"]


def test_names_alone_are_a_file_of_tasks(inside: Any, tmp_path: Path) -> None:
    done = inside("tasks", "toy", "--task", "!b", "--names", "-p", "benchmark.titled=true")
    assert (done.out, done.err) == ("a\nc\n", "")
    (tmp_path / "names.txt").write_text(done.out)
    assert inside("run", "toy", "--list", "--task", "@names.txt").out == "toy/a\ntoy/c\n"


def test_data_options_are_settings_of_the_benchmark(inside: Any) -> None:
    done = inside("tasks", "toy", "--mode", "hiden")
    assert done.status == 2 and done.err.startswith("error: --mode: ") and "did you mean 'hidden'?" in done.err
    done = inside("tasks", "toy", "--mode", "hiden", "-p", "benchmark.mode=hidn")
    assert done.status == 2 and done.err.startswith("error: -p benchmark.mode: ")
    options = ["--mode", "debug", "--split", "123", "--source", "./x", "--revision", "1.0"]
    for command in ("tasks", "run"):
        done = inside(command, "toy", *options, *(["-o", "out", "--task", "a"] if command == "run" else []))
        assert done.status == 0, done.err
    record = json.loads(Path("out/run.json").read_text())["config"]["benchmark"]
    assert (record["mode"], record["split"], record["revision"]) == ("debug", "123", "1.0")
    assert record["source"] == str(Path("x").absolute())


def test_what_is_left_out_for_the_same_reason_is_one_line() -> None:
    excluded = {"a": "withdrawn", "b": "needs a network", "c": "withdrawn"}
    assert list(_left_out("toy", excluded)) == [
        "toy/a, toy/c are left out of `all`: withdrawn",
        "toy/b is left out of `all`: needs a network",
    ]
    (line,) = _left_out("toy", {f"t{number}": "withdrawn" for number in range(900)})
    assert line.startswith("toy/t0, ") and line.endswith(
        "toy/t4 and 895 more (--json has all) are left out of `all`: withdrawn"
    )
