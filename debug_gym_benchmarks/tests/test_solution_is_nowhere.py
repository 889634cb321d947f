"""An agent with a shell looks for the fix in all that a task's sandbox has, and finds it nowhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from search_program import ARCHIVES, search
from small_instances import INSTANCES, Instance

from debug_gym_core import RepoEnv, Task

NAMES = [
    pytest.param(name, marks=[pytest.mark.docker, pytest.mark.benchmarks] if "docker" in instance.terminal else ())
    for name, instance in INSTANCES.items()
]


@pytest.fixture
def instance(request: pytest.FixtureRequest) -> Instance:
    found: Instance = INSTANCES[request.param]
    found.require()
    return found


@pytest.fixture
def task(instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "instance").mkdir()
    with ExitStack() as stack:
        yield stack.enter_context(instance.task(tmp_path / "instance"))


@pytest.fixture
def env(instance: Instance, task: Task) -> Iterator[RepoEnv]:
    with closing(RepoEnv(task, ["bash"], instance.terminal)) as made:
        made.reset(seed=0)
        yield made


def places(env: RepoEnv, instance: Instance) -> list[str]:
    """Where the fix, or the tests that are not shown, are; the machine's own Python is no place of the task's."""
    on_host = "docker" not in instance.terminal
    left_out = ["/sys", "/dev", *(["/usr", sys.prefix, sys.base_prefix] if on_host else [])]
    return search(env, (instance.fix, *instance.hidden), left_out)


@pytest.mark.parametrize("instance", NAMES, indirect=True)
def test_the_fix_is_nowhere(env: RepoEnv, instance: Instance, task: Task, tmp_path: Path) -> None:
    assert places(env, instance) == []
    seen = env.terminal.run(["test", "-e", str(tmp_path / "instance")], timeout=60).exit_status == 0
    assert not seen or task.benchmark == "repo"  # where editable installs lead to, a link to the workspace


@pytest.mark.parametrize("instance", ["aider"], indirect=True)
@pytest.mark.parametrize("how", ARCHIVES)
def test_the_search_finds_what_is_there(env: RepoEnv, instance: Instance, how: str) -> None:
    made = env.terminal.run([sys.executable, "-c", ARCHIVES[how], f"{instance.fix} = 1\n"], timeout=60)
    assert made.exit_status == 0, made.output
    assert places(env, instance) != [], how
