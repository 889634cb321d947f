"""`debug-gym report`: what runs come to, and that only what can be compared is."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from debug_gym_core.cli import main
from debug_gym_core.cli.report import _show
from debug_gym_core.errors import UsageError
from debug_gym_core.runs.report import Line, find_runs, pairs, read_sections, wilson
from debug_gym_core.runs.trajectory import Result, Tokens

PROGRAM = [sys.executable, "-c", "from debug_gym_core.cli import main; main()"]
FAILED = {"kind": "SandboxLost", "message": "the container is gone"}

Report = Callable[..., str]


def result(task: str, resolved: bool | None, **more: Any) -> Result:
    """The result of an episode; None: it could not be run."""
    if resolved is None:
        return Result(f"toy/{task}", "tool_agent", "gpt", "error", error=FAILED, **more)
    facts = {"score": 2 * resolved, "max_score": 2, "grading": "clean", "steps": 3, "tool_calls": {"pdb": 2}, **more}
    status = "resolved" if resolved else "unresolved"
    return Result(f"toy/{task}", "tool_agent", "gpt", status, resolved, **facts)  # type: ignore[arg-type]


def outcomes(**tasks: bool | None) -> list[Result]:
    return [result(task, resolved) for task, resolved in tasks.items()]


def write(directory: Path, results: list[Result], benchmark: dict[str, Any] | None = None, **record: Any) -> Path:
    """A run on disk."""
    directory.mkdir(parents=True)
    config = {"benchmark": {"name": "toy", "tasks": "all", **(benchmark or {})}, "agent": {"name": "tool_agent"}}
    facts = {"schema_version": 1, "id": directory.name, "config": config, "notes": [], **record}
    (directory / "run.json").write_text(json.dumps(facts))
    (directory / "results.jsonl").write_text("".join(f"{json.dumps(one.as_json())}\n" for one in results))
    return directory


def only_line(directory: Path) -> Line:
    ((line,),) = read_sections(find_runs([directory])).values()
    return line


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Report:
    """The command's output; what it says on standard error when it fails."""
    monkeypatch.chdir(tmp_path)

    def report(*arguments: str, status: int = 0) -> str:
        with pytest.raises(SystemExit) as caught:
            main(["report", *arguments])
        done = capsys.readouterr()
        assert caught.value.code == status, done
        return done.err if status else done.out

    return report


# Figures


@pytest.mark.parametrize(
    ("rate", "count", "least", "most"),
    [(0.0, 10, 0.0, 0.2775), (1.0, 10, 0.7225, 1.0), (0.5, 10, 0.2366, 0.7634), (0.81, 263, 0.7583, 0.8529)],
)
def test_the_interval_is_that_of_the_literature(rate: float, count: int, least: float, most: float) -> None:
    assert wilson(rate, count) == pytest.approx((least, most), abs=6e-4)


def test_what_infrastructure_failed_does_not_count(tmp_path: Path) -> None:
    line = only_line(write(tmp_path / "run", outcomes(a=True, b=False, c=None)))
    assert (line.resolved, line.counted, line.errors) == (1, 2, 1)
    assert line.rate == 0.5 and line.score == 0.5 and line.tool_calls == {"pdb": 4}


def test_a_task_counts_once_however_often_it_was_played(tmp_path: Path) -> None:
    repeats = [result("a", resolved, repeat=number) for number, resolved in enumerate([True, False, False, False], 1)]
    line = only_line(write(tmp_path / "run", [*repeats, *outcomes(b=True)]))
    assert line.rate == (0.25 + 1) / 2
    assert line.interval == wilson(0.625, 2)
    assert (line.ever, line.always, len(line.by_task)) == (2, 1, 2)


def test_pass_at_k_is_what_drawing_k_episodes_comes_to(tmp_path: Path) -> None:
    """Against all ways to draw k episodes of each task; what infrastructure failed is not drawn."""
    played = {"a": [True, False, False, True], "b": [False] * 3 + [None], "c": [True, False, True]}
    results = [result(task, one, repeat=n) for task, each in played.items() for n, one in enumerate(each, 1)]
    line = only_line(write(tmp_path / "run", results))
    drawn = []
    for k in (1, 2, 3):
        counted = [[one for one in each if one is not None] for each in played.values()]
        drawn.append([statistics.mean(map(any, combinations(each, k))) for each in counted])
    assert line.pass_at == pytest.approx([statistics.mean(each) for each in drawn])
    assert line.pass_at[0] == pytest.approx(line.rate)
    assert only_line(write(tmp_path / "none", outcomes(a=None))).pass_at == []


def test_a_run_without_results_has_no_figures(tmp_path: Path) -> None:
    line = only_line(write(tmp_path / "run", [], episodes=3))
    assert (line.rate, line.interval, line.score, line.counted, line.missing) == (None, None, None, 0, 3)


def test_tokens_money_and_time_are_those_of_all_episodes(tmp_path: Path) -> None:
    dear = replace(result("a", None), tokens=Tokens(100, 20, 50), cost=0.25, seconds=2.0)
    line = only_line(write(tmp_path / "run", [dear, replace(result("b", True), tokens=Tokens(1, 2), seconds=0.5)]))
    assert (line.tokens, line.cost, line.seconds) == (123, 0.25, 2.5)


def test_a_model_is_shown_as_its_service_calls_it(tmp_path: Path, report: Report) -> None:
    run = write(tmp_path / "run", outcomes(a=True), model={"backend": "openai", "model": "gpt-9-2031"})
    assert "gpt (gpt-9-2031)" in report(str(run), "--format", "markdown")
    assert only_line(write(tmp_path / "older", outcomes(a=True))).model is None


def test_what_a_run_has_spent_on_more_than_its_results_is_told(tmp_path: Path, report: Report) -> None:
    run = write(tmp_path / "run", [result("a", True, cost=0.25)])
    assert "has spent" not in report(str(run))
    lines = [
        {"call": number, "prompt": 1, "completion": 1, "cost": cost} for number, cost in ((1, 9), (1, 0.25), (2, 1))
    ]
    (run / "spending.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert "the run has spent $1.25: also on what has no result or was played again" in report(str(run))
    assert only_line(run).spent == 1.25


def test_the_last_result_of_a_task_is_the_one(tmp_path: Path) -> None:
    line = only_line(write(tmp_path / "run", [result("a", None), result("a", True)]))
    assert (line.resolved, line.counted, line.errors) == (1, 1, 0)


def test_two_runs_are_compared_task_by_task(tmp_path: Path) -> None:
    first = dict.fromkeys("abcdefghijkl", True)
    second = {**dict.fromkeys("abcdefghij", False), "k": True, "m": True, "l": None}
    write(tmp_path / "runs/1", outcomes(**first))
    write(tmp_path / "runs/2", outcomes(**second))
    (lines,) = read_sections(find_runs([tmp_path / "runs"])).values()
    (pair,) = pairs(lines)
    assert (pair.both, pair.only_first, pair.only_second, pair.neither) == (1, 10, 0, 0)
    assert pair.p == pytest.approx(2 / 2**10)


def test_a_difference_by_chance_is_no_difference(tmp_path: Path) -> None:
    write(tmp_path / "runs/1", outcomes(a=True, b=False, c=False))
    write(tmp_path / "runs/2", outcomes(a=False, b=True, c=False))
    (lines,) = read_sections(find_runs([tmp_path / "runs"])).values()
    assert [pair.p for pair in pairs(lines)] == [1.0]


def test_repeated_tasks_are_not_compared_one_by_one(tmp_path: Path) -> None:
    write(tmp_path / "runs/1", [result("a", True, repeat=1), result("a", False, repeat=2)])
    write(tmp_path / "runs/2", outcomes(a=True))
    (lines,) = read_sections(find_runs([tmp_path / "runs"])).values()
    assert pairs(lines) == []


# What shares a table


@pytest.mark.parametrize(
    "other",
    [
        ({"name": "other"}, {}),
        ({"split": "verified"}, {}),
        ({"revision": "abc"}, {}),
        ({"dataset_of_a_plugin": "x"}, {}),
        ({}, {"mode": "debug"}),
        ({}, {"mode": "hidden"}),
    ],
    ids=str,
)
def test_what_cannot_be_compared_shares_no_table(
    tmp_path: Path, report: Report, other: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    benchmark, facts = other
    write(tmp_path / "runs/1", outcomes(a=True, b=True))
    write(tmp_path / "runs/2", [result("a", False, **facts), result("b", False, **facts)], benchmark)
    sections = read_sections(find_runs([tmp_path / "runs"]))
    assert [[line.run for line in lines] for lines in sections.values()] == [["1"], ["2"]]
    first, second = report("runs").split("\n\n")
    assert "runs/1" in first and "runs/2" not in first and "runs/2" in second
    assert "only 1" not in first + second


def test_tasks_of_one_run_with_modes_of_their_own_are_kept_apart(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "run", [result("a", True, mode="debug"), result("b", False)])
    assert [section["mode"] for section in json.loads(report("run", "--format", "json"))] == ["debug", "visible"]
    text = report("run")
    assert "1/1" in text and "0/1" in text and "/2" not in text


def test_the_same_run_named_twice_is_there_once(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "runs/1", outcomes(a=True))
    (section,) = json.loads(report("runs", "runs/1", str(tmp_path / "runs"), "--format", "json"))
    assert len(section["runs"]) == 1


def test_runs_are_found_at_any_depth_but_not_within_a_run(tmp_path: Path) -> None:
    inner = write(tmp_path / "exps/monday/1", outcomes(a=True))
    write(inner / "toy/a/exps/agents-own", outcomes(a=True))
    assert find_runs([tmp_path / "exps"]) == [inner]


# What a person reads


def test_the_table(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "runs/1", outcomes(a=True, b=False), episodes=5, notes=["network is granted"])
    write(tmp_path / "runs/2", [*outcomes(a=None), result("b", True, grading="exit_status")])
    assert report("runs").splitlines() == [
        "toy, mode visible",
        "run       agent       llm  resolved   rate    95 %  score  errors  steps  pdb  seconds",
        "1 runs/1  tool_agent  gpt       1/2   50 %    9-91   50 %       0      6    4        0",
        "2 runs/2  tool_agent  gpt       1/1  100 %  21-100  100 %       1      3    2        0",
        "1: 3 of 5 episodes have no result yet",
        "1: network is granted",
        "2: 1 of 1 graded exit_status, not by a report of the tests",
        "runs 1 and 2, 1 task: 0 resolved by both, 0 by run 1 alone, 1 by run 2 alone, 0 by neither (McNemar's p = 1)",
    ]


def test_tasks_by_run(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "runs/1", outcomes(a=True, b=False, c=None))
    write(tmp_path / "runs/2", [result("a", True, repeat=1), result("a", False, repeat=2)])
    assert [line.split() for line in report("runs", "--tasks").splitlines()[5:9]] == [
        ["task", "1", "2"], ["toy/a", "yes", "1/2"], ["toy/b", "no", "-"], ["toy/c", "error", "-"],
    ]  # fmt: skip


def test_debug_mode_is_explained(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "run", [result("a", True, mode="debug")])
    assert "mode debug: the agent had the tests, which the benchmark publishes hidden" in report("run")


def test_markdown(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "runs/a|b", outcomes(a=True))
    lines = report("runs", "--format", "markdown", "--tasks").splitlines()
    assert lines[0] == "## toy, mode visible"
    assert lines[2].startswith("|  | agent | llm | resolved | rate |") and set(lines[3]) <= set("| -")
    assert r"a\|b" in lines[4] and "| toy/a | yes |" in lines


def test_csv_has_a_line_a_run_or_a_line_a_task(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "runs/1", outcomes(a=True, b=False))
    write(tmp_path / "runs/2", [result("a", False, mode="debug")])
    first, second = csv.DictReader(io.StringIO(report("runs", "--format", "csv")))
    assert (first["mode"], first["resolved"], first["rate"], first["pdb"]) == ("visible", "1", "0.5", "4")
    assert (second["mode"], second["resolved"]) == ("debug", "0")
    tasks = list(csv.DictReader(io.StringIO(report("runs", "--format", "csv", "--tasks"))))
    assert [(row["run"], row["task"], row["resolved"]) for row in tasks] == [
        ("1", "toy/a", "1"), ("1", "toy/b", "0"), ("2", "toy/a", "0"),
    ]  # fmt: skip


def test_a_narrow_terminal(tmp_path: Path, environment: dict[str, str]) -> None:
    for number in range(12):
        write(tmp_path / f"runs/20261123-190126-tool_agent-toy-{number:04}", outcomes(a=True, b=False))
    command = shlex.join([*PROGRAM, "report", "runs", "--tasks"])
    done = subprocess.run(
        ["script", "-qec", f"stty cols 60; {command}", "/dev/null"],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    plain = re.sub(r"\x1b\[[0-9;]*m|\r", "", done.stdout)
    tables, _, remarks = plain.partition("\nruns 1 and 2")
    assert remarks and "... and 60 more comparisons in --format json" in remarks
    assert all(len(line) <= 60 for line in tables.splitlines()), tables
    numbers = [word for line in tables.splitlines() if line.startswith("task") for word in line.split()[1:]]
    assert numbers == [str(number) for number in range(1, 13)]
    assert re.search(r"^12 \S*…\S*-0011 ", tables, re.MULTILINE), tables


@pytest.mark.parametrize(
    ("width", "header", "row"),
    [
        (
            120,
            "run agent llm resolved rate 95 % ever always score errors steps pdb seconds",
            "1/3 25 % 3-80 1/2 0/2 33 % 1 9 6 0",
        ),
        (80, "run agent llm resolved rate 95 % ever score errors", "1/3 25 % 3-80 1/2 33 % 1"),
        (50, "run agent llm resolved errors", "1/3 1"),
    ],
)
def test_figures_are_whole_or_left_out(tmp_path: Path, width: int, header: str, row: str) -> None:
    for name in ("one", "two"):
        played = [result("a", True, repeat=1), result("a", False, repeat=2), result("b", False), result("c", None)]
        write(tmp_path / name, [replace(one, agent="solution_agent", llm="a-model") for one in played])
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False)
    ((section, lines),) = read_sections(find_runs([tmp_path])).items()
    _show(section, lines, [], False, console)
    _, heading, first, second, *_ = stream.getvalue().splitlines()
    assert heading.split() == header.split()
    assert first.split()[-len(row.split()) :] == second.split()[-len(row.split()) :] == row.split()
    assert first.startswith("1 ") and second.startswith("2 ")


# What is wrong


def test_what_is_no_run_is_refused(tmp_path: Path, report: Report) -> None:
    (tmp_path / "empty").mkdir()
    assert report("nowhere", status=2) == "error: nowhere: there is no such directory\n"
    assert report("empty", status=2) == "error: empty holds no run (no run.json); debug-gym run makes one\n"
    write(tmp_path / "runs/1", outcomes(a=True))
    (tmp_path / "runs/1/results.jsonl").write_text("{}\n[")
    assert "results.jsonl:1: not a result of a run: it has no task" in report("runs", status=2)
    (tmp_path / "runs/1/run.json").write_text('{"schema_version": 99, "config": {}}')
    with pytest.raises(UsageError, match="written by a newer debug-gym"):
        read_sections(find_runs([tmp_path / "runs"]))


def test_a_run_that_is_being_played_is_read_as_it_stands(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "run", outcomes(a=True), episodes=2)
    with (tmp_path / "run/results.jsonl").open("a") as file:
        file.write('{"task": "toy/b", "ag')
    assert "1 of 2 episodes have no result yet" in report("run")


def test_a_name_steers_no_terminal(tmp_path: Path, report: Report) -> None:
    write(tmp_path / "run", [replace(result("a", True), task="toy/\x1b[2J")], notes=["\x1b]0;title\x07"])
    for way in ("text", "markdown", "json"):
        assert "\x1b" not in report("run", "--tasks", "--format", way)


def test_passes_that_are_not_believed_are_named(tmp_path: Path, report: Report) -> None:
    doubts = {"test_a.py::test_one": "it passes whatever it expects", "test_a.py::test_two": "its twin did not run"}
    cheated = [result(f"t{number:02}", False, doubts=doubts) for number in range(12)]
    write(tmp_path / "run", [*cheated, result("honest", True, twins=2)])
    text = report("run")
    both = "test_a.py::test_one, test_a.py::test_two"
    assert f"toy/t00: 2 tests pass whatever they expect, or cannot be tried: {both}" in text
    assert "toy/t09:" in text
    assert "toy/t10:" not in text
    assert "... and 2 more tasks with passes that are not believed, in --format json" in text
    assert "honest:" not in text
    ((line,),) = (section["runs"] for section in json.loads(report("run", "--format", "json")))
    assert line["doubts"] == {f"toy/t{number:02}": doubts for number in range(12)}
    (row,) = csv.DictReader(io.StringIO(report("run", "--format", "csv")))
    assert row["doubts"] == "12"
    assert "- toy/t00: 2 tests pass" in report("run", "--format", "markdown")
