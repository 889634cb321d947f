"""Fixtures for the tests of a plugin: `pytest_plugins = ["debug_gym_core.testing.fixtures"]`.

A test of a tool in full:

    pytest_plugins = ["debug_gym_core.testing.fixtures"]

    @pytest.fixture
    def tools():
        return [WordCount()]

    def test_words_are_counted(say):
        assert say("wc hello.txt").text == "5"

Environments are those of the sample task (`debug_gym_core.testing.sample`) unless the fixture `files` or `task` is
overridden, and run in the terminal that the fixture `terminal` names.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.tasks.task import Task
from debug_gym_core.testing.environments import TERMINAL, Environments, unusable
from debug_gym_core.testing.sample import sample_task as task_of
from debug_gym_core.testing.sample import write_sample
from debug_gym_core.testing.scripted import ScriptedLLM
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.observation import Observation

PATIENCE = 2.0
"""Seconds after a test within which what it held must be gone."""


@pytest.fixture
def terminal() -> Any:
    """The terminal that environments run in: `local`. To be overridden: a name or `{name: settings}`."""
    return TERMINAL


@pytest.fixture
def isolating_terminal() -> str:
    """A terminal that isolates: `bubblewrap`. The test is skipped with what to install where it cannot be used."""
    if reason := unusable("bubblewrap"):
        pytest.skip(reason)
    return "bubblewrap"


@pytest.fixture
def sample_repository(tmp_path: Path) -> Path:
    """The sample repository: `shop.py` has a bug that one of two tests shows, `secret/` is ignored."""
    return write_sample(tmp_path / "sample")


@pytest.fixture
def sample_task(sample_repository: Path) -> Task:
    """The sample repository as a task, with its gold patch."""
    return task_of(sample_repository)


@pytest.fixture
def make_env(tmp_path_factory: pytest.TempPathFactory, terminal: Any) -> Iterator[Callable[..., RepoEnv]]:
    """Make environments, already reset: `make_env([WordCount()], max_steps=3)`; see `Environments.make`.

    All are closed at the end of the test, and it is an error when the sandbox of one lives on. The test is skipped with
    what to install where the terminal cannot be used.
    """
    name = terminal if isinstance(terminal, str) else next(iter(terminal))
    if reason := unusable(name):
        pytest.skip(reason)
    with Environments(tmp_path_factory.mktemp("environments"), terminal) as environments:
        yield environments.make


@pytest.fixture(scope="module")
def make_shared_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RepoEnv]]:
    """As `make_env`, in the terminal `local`, for environments that all tests of a module share."""
    if reason := unusable(TERMINAL):
        pytest.skip(reason)
    with Environments(tmp_path_factory.mktemp("environments")) as environments:
        yield environments.make


@pytest.fixture
def tools() -> Sequence[Any]:
    """The tools of the fixture `env`: none. To be overridden."""
    return ()


@pytest.fixture
def files() -> Mapping[str, str | bytes] | None:
    """The repository of the fixture `env`, content by path: None, the sample's. To be overridden.

    With files of one's own the environment's tests run nothing.
    """
    return None


@pytest.fixture
def env(make_env: Callable[..., RepoEnv], tools: Sequence[Any], files: Mapping[str, str | bytes] | None) -> RepoEnv:
    """An environment with the fixture's `tools` over the fixture's `files`."""
    return make_env(tools, files=files)


@pytest.fixture
def say(env: RepoEnv) -> Callable[..., Observation]:
    """Carry out one action in `env` and return what its tool said: `say("wc hello.txt")`, or a ToolCall.

    What other tools said on top, of events, is in `env.last_observations`.
    """

    def say(action: ToolCall | Mapping[str, Any] | str) -> Observation:
        env.step(action)
        return env.last_observations[0]

    return say


@pytest.fixture
def use(env: RepoEnv) -> Callable[..., Observation]:
    """Call the first tool of `env` by its arguments and return what it said: `use(path="hello.txt")`."""

    def use(**arguments: Any) -> Observation:
        env.step(ToolCall(next(iter(env.tools)), arguments))
        return env.last_observations[0]

    return use


@pytest.fixture
def scripted_llm() -> Callable[[Iterable[Any]], ScriptedLLM]:
    """Make a model whose answers are given: `scripted_llm(["wc hello.txt", {"name": "submit"}])`."""
    return ScriptedLLM


@pytest.fixture
def no_leaks() -> Iterator[None]:
    """Fail when the test leaves a thread, a child process or an open descriptor.

    Name it before the fixtures that may leave something, so that it looks when those are done.
    """
    before = _held()
    yield
    deadline = time.monotonic() + PATIENCE
    while left := sorted(_held() - before):
        if time.monotonic() > deadline:
            pytest.fail(f"the test leaves {', '.join(left)}")
        time.sleep(0.01)


def _held() -> set[str]:
    """Threads, children and descriptors of this process."""
    held = {f"thread {one.name} ({one.ident})" for one in threading.enumerate()}
    me = Path(f"/proc/{os.getpid()}")
    for task in me.glob("task/*/children"):
        held |= {f"process {pid}" for pid in task.read_text().split()}
    for descriptor in (me / "fd").iterdir():
        try:
            held.add(f"descriptor {descriptor.name} ({descriptor.readlink()})")
        except OSError:  # that of this listing
            continue
    return held
