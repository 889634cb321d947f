"""The example of a training script: its bug, its fix, and the session that finds it, with a real PyTorch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import changed_lines, run_debug_gym

import debug_gym_core
from debug_gym_core.config.loading import load

pytestmark = pytest.mark.documents

PLACE = Path(__file__).parents[1] / "examples" / "pytorch"
FAILING = ["test_train.py::test_the_loss_falls", "test_train.py::test_new_houses_are_guessed_well"]


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter that has PyTorch and pytest."""
    python = os.environ.get("DEBUG_GYM_TEST_TORCH", sys.executable)
    found = subprocess.run([python, "-c", "import torch, pytest"], capture_output=True, text=True)
    if found.returncode != 0:
        reason = found.stderr.strip().splitlines()[-1]
        pytest.skip(f"needs PyTorch: pip install torch, or set DEBUG_GYM_TEST_TORCH to a Python with it ({reason})")
    return python


def test_the_gold_patch_resolves_it_and_nothing_else_does(python: str, sandbox: str) -> None:
    config = load(str(PLACE / "config.yaml"))
    env = debug_gym_core.make(
        "repo", ["eval"], sandbox, path=PLACE / "training", entrypoint=config.env.entrypoint, python=python
    )
    try:
        env.reset(seed=0)
        before = env.grade()
        assert not before.resolved and (before.score, before.max_score) == (3, 5)
        assert sorted(test for test, outcome in before.tests.items() if outcome == "failed") == sorted(FAILING)
        env.workspace.apply((PLACE / "gold.patch").read_bytes())
        after = env.grade()
        assert after.resolved and (after.score, after.max_score) == (5, 5)
    finally:
        env.close()


def test_the_debugger_shows_the_bug(python: str, sandbox: str, tmp_path: Path) -> None:
    arguments = ["run", PLACE / "session.yaml", "--terminal", sandbox, "-p", f"env.python={python}", "-o", "out"]
    done = run_debug_gym(arguments, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = [json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    assert row["status"] == "resolved" and row["ended"] == "submitted"
    text = (tmp_path / "out/repo/training/log.txt").read_text()
    assert "(torch.Size([64, 1]), torch.Size([64]), torch.Size([64, 64]))" in text
    fixed, gold = tmp_path / "out/repo/training/patch.diff", PLACE / "gold.patch"
    assert changed_lines(fixed.read_bytes()) == changed_lines(gold.read_bytes())


def test_the_repository_does_not_hold_the_fix() -> None:
    gold = (PLACE / "gold.patch").read_text()
    (added,) = [line[1:].strip() for line in gold.splitlines() if line.startswith("+ ")]
    texts = [path.read_text() for path in (PLACE / "training").iterdir() if path.is_file()]
    assert len(texts) == 5 and not any(added in text for text in texts)


@pytest.mark.parametrize("name", ["config.yaml", "session.yaml"])
def test_the_configs_are_valid(name: str) -> None:
    config = load(str(PLACE / name))
    assert config.benchmark.path == PLACE / "training" and config.agent.name == "tool_agent"
