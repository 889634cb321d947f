"""The main job: ten buggy repositories, fixed in a sandbox from one command."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import reason_not_to_use, run_debug_gym, terminals

TASKS = [
    "config", "counter", "grader", "pandas_dataframe", "patcher", "purr", "scientific_calculator", "shopping_cart",
    "sum_tree", "tomorrow_date",
]  # fmt: skip


def played(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "results.jsonl").read_text().splitlines()]


def events(directory: Path, task: str) -> list[dict[str, Any]]:
    text = (directory / "mini_nightmare" / task / "trajectory.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def run(directory: Path, agent: str, terminal: str, *more: str) -> Path:
    """Run all tasks, and give the run's directory."""
    reason = reason_not_to_use(terminal)
    if reason:
        pytest.skip(reason)
    arguments = ["run", "mini_nightmare", "--agent", agent, "--terminal", terminal, "-o", "run", "-n", "2", *more]
    if terminal == "docker":
        arguments += ["-p", f"terminal.image={os.environ['DEBUG_GYM_TEST_IMAGE']}"]
    directory.mkdir(exist_ok=True)
    result = run_debug_gym(arguments, directory)
    assert result.returncode == 0, result.stdout + result.stderr
    return directory / "run"


def same_python(terminal: str) -> list[str]:
    """Options to have the same interpreter and packages on all terminals; none where that cannot be."""
    python = os.environ.get("DEBUG_GYM_TEST_PYTHON")
    if terminal == "docker" and python is None:
        return []
    return ["-p", f"env.python={python or sys.executable}"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run of the reference episodes in a terminal."""

    @functools.cache
    def reference(terminal: str) -> Path:
        return run(tmp_path_factory.mktemp(terminal), "solution_agent", terminal, *same_python(terminal))

    return reference


@pytest.mark.smoke
@pytest.mark.parametrize("terminal", terminals("bubblewrap", "docker"))
def test_the_solution_agent_resolves_one(terminal: str, tmp_path: Path) -> None:
    """The gate's handful: `.ci/bare-machine` runs them all, and so do the tests below."""
    directory = run(tmp_path, "solution_agent", terminal, "--task", "counter", *same_python(terminal))
    (row,) = played(directory)
    assert (row["task"], row["status"], row["grading"]) == ("mini_nightmare/counter", "resolved", "clean")
    assert row["tool_calls"]["pdb"] >= 2 and (directory / "mini_nightmare" / "counter" / "patch.diff").stat().st_size


@pytest.mark.benchmarks
@pytest.mark.parametrize("terminal", terminals())
def test_the_solution_agent_resolves_all(terminal: str, reference: Callable[[str], Path]) -> None:
    directory = reference(terminal)
    rows = {row["task"]: row for row in played(directory)}
    assert sorted(rows) == [f"mini_nightmare/{task}" for task in TASKS]
    for task in TASKS:
        row = rows[f"mini_nightmare/{task}"]
        assert row["status"] == "resolved" and row["resolved"] is True, row
        assert row["score"] == row["max_score"] > 0
        assert (row["grading"], row["mode"]) == ("clean", "visible")
        assert row["changed"] is True and row["failed"] == [] and row["reason"] == ""
        assert row["doubts"] == {} and row["twins"] >= row["max_score"]
        assert row["tool_calls"]["pdb"] >= 2 and row["tool_calls"]["eval"] == 2
        assert row["error"] is None and row["llm"] is None and row["cost"] == 0
        stops = [
            part["data"]["stop"]
            for event in events(directory, task)
            if event["kind"] == "step"
            for part in event["observation"]["json"]
            if part["source"] == "pdb" and part["data"].get("stop")
        ]
        assert any(stop["reason"] == "breakpoint" for stop in stops), stops
        place = directory / "mini_nightmare" / task
        assert (place / "patch.diff").read_bytes().startswith(b"diff --git a/")
        assert (place / "log.txt").is_file()
    facts = json.loads((directory / "run.json").read_text())
    assert facts["config"]["agent"]["name"] == "solution_agent"


@pytest.mark.benchmarks
def test_the_noop_agent_resolves_none(sandbox: str, tmp_path: Path) -> None:
    rows = played(run(tmp_path, "noop_agent", sandbox))
    assert len(rows) == 10
    assert not any(row["resolved"] for row in rows)
    assert all(row["status"] == "unresolved" and row["steps"] == 0 and row["tool_calls"] == {} for row in rows)
    assert all(len(row["failed"]) == row["max_score"] - row["score"] and row["changed"] is False for row in rows)


@pytest.mark.terminals
def test_reference_episodes_are_equal_to_the_byte_on_every_backend(reference: Callable[[str], Path]) -> None:
    """Where there is no image, local and bubblewrap are compared."""
    terminals = ["local", "bubblewrap"]
    if reason_not_to_use("docker") is None and "DEBUG_GYM_TEST_PYTHON" in os.environ:
        terminals.append("docker")
    seen = {}
    for terminal in terminals:
        directory = reference(terminal)
        seen[terminal] = {
            task: [event["observation"] for event in events(directory, task) if event["kind"] == "step"]
            for task in TASKS
        }
    for terminal in terminals[1:]:
        for task in TASKS:
            assert seen[terminal][task] == seen["local"][task], f"{task} on {terminal}"
