"""Whole tasks, warm and cold: the same reports, the same stops."""

from __future__ import annotations

import dataclasses
import os
import time
from contextlib import closing
from pathlib import Path

import pytest
from support import published, reason_not_to_use
from test_mini_nightmare_run import TASKS

import debug_gym_core
from debug_gym_core import RepoEnv, ToolCall
from debug_gym_core.grading import reported_run

pytestmark = pytest.mark.debugger

TOP = Path(__file__).parents[1]
EXAMPLES = [
    TOP / "docs" / "examples" / "basket",
    TOP / "docs" / "examples" / "word_count",
    *sorted((TOP / "examples" / "benchmark-pocket").glob("src/*/tasks/*/repo")),
]
DEBUGGED = TASKS[:2]
RELEASE = "boltons==26.2.0"
"""A project whose tests need pytest alone."""


def debug(env: RepoEnv) -> list[str]:
    """What a session shows on the way to its end."""
    commands = ["restart", "b 99999", "c", "w", "c", "q"]
    return [str(env.step(ToolCall("pdb", {"command": command}))[0]["text"]) for command in commands]


def terminal() -> str:
    """The best terminal there is."""
    return "bubblewrap" if reason_not_to_use("bubblewrap") is None else "local"


def check(env: RepoEnv, sessions: bool) -> int:
    """Compare warm with cold runs of a task, and sessions of the debugger too; returns how many tests there are.

    Args:
        env: the task
        sessions: whether to compare sessions
    """
    env.reset(seed=0)
    cold = env.measure()
    assert env.session.warm_starts == 0
    end = time.monotonic() + 60
    while not env.session.warm_starts:
        assert time.monotonic() < end, "no run was warm"
        warm = env.measure(warm=True)
    assert env.session.warm_starts == 1 and dataclasses.replace(warm, seconds=0) == dataclasses.replace(cold, seconds=0)
    if sessions:
        first = debug(env)
        before = env.session.warm_starts
        end = time.monotonic() + 60
        while env.session.warm_starts == before:
            assert time.monotonic() < end, "no session was warm"
            again = debug(env)
        assert again == first
    return len(cold.tests)


@pytest.fixture(params=[True, False], ids=["at once", "later"])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the first run is warm, or later ones are, of an interpreter that has loaded what the files import."""
    monkeypatch.setattr(reported_run, "AT_ONCE", request.param)
    return bool(request.param)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.usefixtures("at_once")
def test_warm_equals_cold(task: str) -> None:
    env = debug_gym_core.make(
        f"mini_nightmare/{task}", ["eval", "pdb"], terminal(), allow_unsandboxed=True, max_steps=1000
    )
    with closing(env):
        check(env, sessions=task in DEBUGGED)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.relative_to(TOP).as_posix())
@pytest.mark.usefixtures("at_once")
def test_of_the_examples_too(example: Path) -> None:
    with closing(repository(example)) as env:
        assert check(env, sessions=True)


def test_of_a_real_project_too(tmp_path: Path) -> None:
    path = os.environ.get("DEBUG_GYM_TEST_PROJECT") or published(RELEASE, tmp_path)
    with closing(repository(Path(path))) as env:
        assert check(env, sessions=False) > 50


def repository(path: Path) -> RepoEnv:
    """A repository's tests as a task."""
    entrypoint = "python -m pytest -q -p no:cacheprovider"
    tools = ["eval", "pdb"]
    env = debug_gym_core.make(
        "repo", tools, terminal(), path=str(path), entrypoint=entrypoint, allow_unsandboxed=True, max_steps=1000
    )
    assert isinstance(env, RepoEnv)
    return env
