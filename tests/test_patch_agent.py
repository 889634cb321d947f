"""Patches that were made elsewhere are graded by a run like any other."""

from __future__ import annotations

import json
from pathlib import Path

from support import run_debug_gym


def test_predictions_are_graded_by_a_run(sandbox: str, tmp_path: Path) -> None:
    words = ["run", "mini_nightmare", "--terminal", sandbox, "--task", "counter", "--task", "purr"]
    done = run_debug_gym([*words, "--agent", "solution_agent", "-o", "gold"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    patch = (tmp_path / "gold" / "mini_nightmare" / "counter" / "patch.diff").read_text()
    theirs = [{"instance_id": "counter", "model_patch": patch}, {"instance_id": "purr", "model_patch": patch}]
    (tmp_path / "theirs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in theirs))
    words += ["--agent", "patch_agent", "-p"]
    done = run_debug_gym([*words, "agent.patches=theirs.jsonl", "-o", "graded"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resolved 1 of 2" in done.stdout and "its patch does not apply" in done.stdout
    assert "mini_nightmare/purr: its patch is not applied: the patch " in done.stdout + done.stderr
    lines = (tmp_path / "graded" / "results.jsonl").read_text().splitlines()
    rows = {row["task"]: row for row in map(json.loads, lines)}
    assert rows["mini_nightmare/counter"]["resolved"] and rows["mini_nightmare/purr"]["ended"] == "unapplied"
    assert (tmp_path / "graded" / "mini_nightmare" / "counter" / "patch.diff").read_text() == patch
    done = run_debug_gym([*words, "agent.patches=gold", "-o", "again"], tmp_path)
    assert "resolved 2 of 2" in done.stdout, done.stdout + done.stderr


def test_patches_of_others_need_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "theirs.jsonl").write_text('{"instance_id": "counter", "model_patch": "x"}\n')
    words = ["run", "mini_nightmare", "--task", "counter", "--terminal", "local", "--agent", "patch_agent", "-p"]
    done = run_debug_gym([*words, "agent.patches=theirs.jsonl", "-o", "out"], tmp_path)
    assert done.returncode != 0 and "isolat" in done.stderr and not (tmp_path / "out" / "results.jsonl").exists()


def test_where_the_patches_are_must_be_said(tmp_path: Path) -> None:
    words = ["run", "mini_nightmare", "--task", "counter", "--agent", "patch_agent", "-o", "out"]
    done = run_debug_gym(words, tmp_path)
    assert done.returncode == 2 and "say -p agent.patches=FILE" in done.stderr and "Traceback" not in done.stderr
