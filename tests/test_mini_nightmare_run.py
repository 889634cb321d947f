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
from support import reason_not_to_use, run_debug_gym

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


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run of the reference episodes in a terminal, by the same interpreter and packages in all."""
    python = os.environ.get("DEBUG_GYM_TEST_PYTHON", sys.executable)

    @functools.cache
    def reference(terminal: str) -> Path:
        more = [] if terminal == "docker" and "DEBUG_GYM_TEST_PYTHON" not in os.environ else [f"env.python={python}"]
        options = [word for setting in more for word in ("-p", setting)]
        return run(tmp_path_factory.mktemp(terminal), "solution_agent", terminal, *options)

    return reference


@pytest.mark.parametrize("terminal", ["local", "bubblewrap", "docker"])
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


def test_the_noop_agent_resolves_none(sandbox: str, tmp_path: Path) -> None:
    rows = played(run(tmp_path, "noop_agent", sandbox))
    assert len(rows) == 10
    assert not any(row["resolved"] for row in rows)
    assert all(row["status"] == "unresolved" and row["steps"] == 0 and row["tool_calls"] == {} for row in rows)
    assert all(len(row["failed"]) == row["max_score"] - row["score"] and row["changed"] is False for row in rows)


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
