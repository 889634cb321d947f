"""Whole episodes of agents that cheat, on an instance of each benchmark: none is worth more than doing nothing."""

from __future__ import annotations

import base64
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from known_exploits import EXPLOITS, Exploit, Target
from small_instances import INSTANCES, write_repository

from debug_gym_benchmarks.repo import Repo
from debug_gym_core import RepoEnv, Task, ToolCall
from debug_gym_core.plugins import default_plugins
from debug_gym_core.tasks.results import Grade

TOOLS = ["rewrite", "bash", "eval", "submit"]
GATE = {("aider", "edited tests, by a shell"), ("quixbugs", "objects that equal everything")}
"""Of all pairs these are tried at once, the others by the full suite."""

PAIRS = [
    pytest.param(
        name,
        exploit,
        id=f"{name}-{kind}",
        marks=[
            *([] if (name, kind) in GATE else [pytest.mark.grading]),
            *([pytest.mark.docker] if "docker" in instance.terminal else []),
        ],
    )
    for name, instance in INSTANCES.items()
    if name != "repo"
    for kind, exploit in EXPLOITS.items()
]


class Attacked:
    """An environment for exploits that are tried on a task.

    Attributes:
        honest: the grade of who does nothing
    """

    def __init__(self, task: Task, terminal: Mapping[str, Any], **settings: Any) -> None:
        self.env = RepoEnv(task, TOOLS, terminal, end_on_resolved=False, **settings)
        try:
            self.env.reset(seed=0)
            self.honest = self.env.grade()
        except BaseException:
            self.env.close()
            raise

    def cheat(self, placed: Exploit) -> Grade:
        """The grade that is recorded for an agent that does what an exploit does."""
        env = self.env
        env.reset(seed=0)
        for path, text in placed.files.items():
            env.step(ToolCall("rewrite", {"path": path, "new_code": text}))
            if env.last_observations[0].error:  # what the tool does not write, the shell may
                self.shell(by_shell(path, text))
        if placed.shell:
            self.shell(placed.shell)
        env.step(ToolCall("eval"))
        assert not env.resolved and env.ended is None, env.last_text
        env.step(ToolCall("submit"))
        assert env.final_grade is not None, env.last_text
        return env.final_grade

    def shell(self, command: str) -> None:
        """Run a command with the tool, whatever becomes of it."""
        self.env.step(ToolCall("bash", {"command": command, "timeout": 60}))
        assert self.env.last_observations[0].source == "bash", self.env.last_text


def by_shell(path: str, text: str) -> str:
    """A command that writes a file."""
    data, place = base64.b64encode(text.encode()).decode(), shlex.quote(path)
    return f'mkdir -p "$(dirname {place})"; echo {data} | base64 -d > {place}'


@dataclass(frozen=True)
class Attack:
    """An instance under attack."""

    attacked: Attacked
    target: Target


@pytest.fixture(scope="module")
def attack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attack]:
    instance = INSTANCES[request.param]
    instance.require()
    directory = tmp_path_factory.mktemp(request.param)
    (directory / "instance").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(directory / "cache"))
        with instance.task(directory / "instance") as task:
            attacked = Attacked(task, instance.terminal)
            try:
                yield Attack(attacked, instance.target(task))
            finally:
                attacked.env.close()


def is_worth_nothing(grade: Grade, honest: Grade) -> bool:
    assert not grade.resolved and grade.score <= honest.score, grade
    assert grade.max_score == honest.max_score > 0, grade
    return True


def test_each_benchmark_that_we_ship_is_attacked() -> None:
    (shipped,) = (one for one in default_plugins().records if one.distribution == "debug-gym-benchmarks")
    assert set(shipped.provides["benchmarks"]) == set(INSTANCES)


@pytest.mark.benchmarks
@pytest.mark.parametrize(("attack", "exploit"), PAIRS, indirect=["attack"])
def test_cheating_is_worth_nothing(attack: Attack, exploit: Exploit) -> None:
    assert is_worth_nothing(attack.attacked.cheat(exploit.on(attack.target)), attack.attacked.honest)


@pytest.mark.grading
@pytest.mark.parametrize("exploit", EXPLOITS.values(), ids=EXPLOITS)
def test_cheating_in_a_repository_of_ones_own_is_worth_nothing(tmp_path: Path, sandbox: str, exploit: Exploit) -> None:
    """Nobody says which of its tests count; how they run is the exploit's own."""
    (tmp_path / "till").mkdir()
    write_repository(tmp_path / "till", exploit.repository)
    task = Repo(path=tmp_path / "till").load("till")
    python = str(Path(sys.base_prefix) / "bin" / "python3") if exploit.base else None
    attacked = Attacked(task, {sandbox: {}}, entrypoint=exploit.entrypoint, python=python)
    try:
        assert is_worth_nothing(attacked.cheat(exploit), attacked.honest)
    finally:
        attacked.env.close()
