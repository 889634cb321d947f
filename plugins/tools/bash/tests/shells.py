"""Environments with a shell, and what is asked of them.

DEBUG_GYM_TEST_IMAGE, DEBUG_GYM_TEST_PYTHON: the image for the tests in docker, and its Python.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.plugins import default_plugins
from debug_gym_core.tasks.task import Task
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.observation import Observation
from debug_gym_core.tools.tool import Tool
from debug_gym_tool_bash import Bash

Say = Callable[..., Observation]

ENDED = "[the shell ended with this command; a new one has its directory, variables, functions and options"


def make(root: Path, terminal: str = "local", *more: Tool) -> RepoEnv:
    (root / "src").mkdir(parents=True)
    (root / "app.py").write_text("x = 1\n")
    task = Task("tests", "bash", root, entrypoint="python -c pass", max_score=1)
    reason = default_plugins().get("terminals", terminal).unavailable()
    image = os.environ.get("DEBUG_GYM_TEST_IMAGE")
    if terminal == "docker" and not image:
        reason = "set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one"
    if reason:
        pytest.skip(reason)
    if terminal == "docker":
        python = os.environ.get("DEBUG_GYM_TEST_PYTHON")
        return RepoEnv(task, [Bash(), *more], {"docker": {"image": image}}, trusted=True, python=python)
    return RepoEnv(task, [Bash(), *more], terminal, trusted=True)


def speaker(env: RepoEnv) -> Say:
    def say(command: str, timeout: float | None = None) -> Observation:
        env.step(ToolCall("bash", {"command": command, "timeout": timeout}))
        return env.last_observations[0]

    return say


def running(name: str) -> list[str]:
    """The processes whose command line names this."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if name.encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


def bash_of(env: RepoEnv) -> Bash:
    tool = env.tools["bash"]
    assert isinstance(tool, Bash)
    return tool
