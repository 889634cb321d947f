"""Runs that are killed at random moments leave nothing: no container, process, mount, control group, directory.

DEBUG_GYM_TEST_KILLS: how many runs are killed, 100 unless it is set; DEBUG_GYM_TEST_SEED: which moments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import COMMAND, reason_not_to_use

pytestmark = pytest.mark.faults

DRIVER = Path(__file__).parent / "killed_runs.py"
KILLS = int(os.environ.get("DEBUG_GYM_TEST_KILLS") or 100)
SEED = int(os.environ.get("DEBUG_GYM_TEST_SEED") or 1)


def test_runs_that_are_killed_leave_nothing(tmp_path: Path) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    plan = {
        "runs": KILLS,
        "seed": SEED,
        "terminals": [name for name in ("local", "bubblewrap", "docker") if reason_not_to_use(name) is None],
        "command": str(COMMAND),
        "tmp": str(tmp),
        "image": os.environ.get("DEBUG_GYM_TEST_IMAGE"),
        "python": os.environ.get("DEBUG_GYM_TEST_PYTHON"),
    }
    done = subprocess.run(
        [sys.executable, str(DRIVER), json.dumps(plan)], cwd=tmp_path, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    runs = "\n".join(found["runs"])
    assert found["left"] == [], f"seed {SEED}, {found['seconds']:.0f} s after the last of these was killed:\n{runs}"
    assert found["live"] >= KILLS // 2, f"too few had a sandbox:\n{runs}"
    print(f"nothing is left {found['seconds']:.0f} s after the last of these was killed:\n{runs}")
