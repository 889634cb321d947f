"""Where no sandbox can be had: code of ours runs without one and says so, a model's does not run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import COMMAND, run_debug_gym

import debug_gym_core
from debug_gym_core import UsageError
from debug_gym_core.testing.sample import ENTRYPOINT

SCRIPTED = ["--agent", "tool_agent", "--llm", "scripted", "-p", "llm.actions=[eval]"]


@pytest.fixture
def without_bubblewrap(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has git and a shell, and no bwrap."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh", "bash"):
        (programs / name).symlink_to(shutil.which(name) or name)
    return {"PATH": str(programs)}


def test_a_trusted_agent_runs_on_local_with_one_line_that_says_so(
    without_bubblewrap: dict[str, str], tmp_path: Path
) -> None:
    arguments = ["run", "mini_nightmare", "--agent", "noop_agent", "--task", "purr", "-o", "out"]
    arguments += ["-p", f"env.entrypoint={ENTRYPOINT} test.py"]
    result = run_debug_gym(arguments, tmp_path, without_bubblewrap)
    assert result.returncode == 0, result.stderr
    lines = [line for line in (result.stdout + result.stderr).splitlines() if "without isolation" in line]
    assert len(lines) == 1, result.stdout + result.stderr
    assert "bubblewrap" in lines[0]
    row = json.loads((tmp_path / "out/results.jsonl").read_text())
    assert (row["status"], row["grading"]) == ("unresolved", "clean")


def test_an_agent_that_a_model_drives_refuses_and_says_what_to_install(
    without_bubblewrap: dict[str, str], tmp_path: Path
) -> None:
    result = run_debug_gym(["run", "mini_nightmare", *SCRIPTED, "-o", "out"], tmp_path, without_bubblewrap)
    assert result.returncode == 4, result.stderr
    assert "install bubblewrap" in result.stderr.lower()
    assert "or say -p terminal.allow_unsandboxed=true (allow_unsandboxed=True in Python)" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.people
def test_a_bubblewrap_that_may_not_make_namespaces_counts_as_none(sandbox: str, tmp_path: Path) -> None:
    outer = ["bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--chdir", str(tmp_path)]
    arguments = [*outer, str(COMMAND), "run", "mini_nightmare", *SCRIPTED, "-o", "out"]
    env = {**os.environ, "COLUMNS": "120"}
    result = subprocess.run(arguments, cwd=tmp_path, env=env, text=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert result.returncode == 4, result.stderr
    assert "namespace" in result.stderr


def test_local_is_refused_for_a_model_by_name_too() -> None:
    with pytest.raises(UsageError, match="isolates nothing"):
        debug_gym_core.make("mini_nightmare/purr", terminal="local")
