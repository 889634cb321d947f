"""Patches that were made elsewhere are graded by a run like any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import call_debug_gym, changed_lines

from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.sample import ENTRYPOINT


def test_a_prediction_is_graded_by_a_run(sandbox: str, tmp_path: Path) -> None:
    task = default_plugins().get("benchmarks", "mini_nightmare")().load("purr")
    prediction = {"instance_id": "purr", "model_patch": task.gold_patch.decode()}
    (tmp_path / "theirs.jsonl").write_text(json.dumps(prediction) + "\n")
    words = ["run", "mini_nightmare", "--terminal", sandbox, "-p", f"env.entrypoint={ENTRYPOINT} test.py"]
    words += ["--agent", "patch_agent", "--task", "purr", "-p", "agent.patches=theirs.jsonl", "-o", "graded"]
    done = call_debug_gym([*words, "-p", "env.twins=never"], tmp_path)
    assert "resolved 1 of 1" in done.stdout, done.stdout + done.stderr
    kept = (tmp_path / "graded" / "mini_nightmare" / "purr" / "patch.diff").read_text()
    assert "+        if self.hunger > STARVING:\n" in kept


@pytest.mark.benchmarks
def test_predictions_are_graded_by_a_run(sandbox: str, tmp_path: Path) -> None:
    task = default_plugins().get("benchmarks", "mini_nightmare")().load("counter")
    patch = task.gold_patch.decode()
    theirs = [{"instance_id": "counter", "model_patch": patch}, {"instance_id": "purr", "model_patch": patch}]
    (tmp_path / "theirs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in theirs))
    words = ["run", "mini_nightmare", "--terminal", sandbox, "-p", f"env.entrypoint={ENTRYPOINT} test.py"]
    words += ["--agent", "patch_agent", "--task", "counter"]
    done = call_debug_gym([*words, "--task", "purr", "-p", "agent.patches=theirs.jsonl", "-o", "graded"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resolved 1 of 2" in done.stdout and "its patch does not apply" in done.stdout
    assert "mini_nightmare/purr: its patch is not applied: the patch " in done.stdout + done.stderr
    lines = (tmp_path / "graded" / "results.jsonl").read_text().splitlines()
    rows = {row["task"]: row for row in map(json.loads, lines)}
    assert rows["mini_nightmare/counter"]["resolved"] and rows["mini_nightmare/purr"]["ended"] == "unapplied"
    kept = (tmp_path / "graded" / "mini_nightmare" / "counter" / "patch.diff").read_bytes()
    assert changed_lines(kept) == changed_lines(task.gold_patch)
    done = call_debug_gym([*words, "-p", "agent.patches=graded", "-o", "again"], tmp_path)
    assert "resolved 1 of 1" in done.stdout, done.stdout + done.stderr


def test_patches_of_others_need_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "theirs.jsonl").write_text('{"instance_id": "counter", "model_patch": "x"}\n')
    words = ["run", "mini_nightmare", "--task", "counter", "--terminal", "local", "--agent", "patch_agent", "-p"]
    done = call_debug_gym([*words, "agent.patches=theirs.jsonl", "-o", "out"], tmp_path)
    assert done.returncode != 0 and "isolat" in done.stderr and not (tmp_path / "out" / "results.jsonl").exists()


def test_where_the_patches_are_must_be_said(tmp_path: Path) -> None:
    words = ["run", "mini_nightmare", "--task", "counter", "--agent", "patch_agent", "-o", "out"]
    done = call_debug_gym(words, tmp_path)
    assert done.returncode == 2 and "say -p agent.patches=FILE" in done.stderr and "Traceback" not in done.stderr
