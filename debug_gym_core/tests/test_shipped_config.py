"""What a benchmark ships as config holds wherever its tasks are made, and stands below what the caller says."""

from __future__ import annotations

import dataclasses
import tempfile
import types
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import gymnasium
import pydantic
import pytest

from debug_gym_core import Benchmark, RepoEnv, Task, UsageError, make
from debug_gym_core.components.catalogue import PluginRecord, Plugins
from debug_gym_core.config.loading import load
from debug_gym_core.config.shipped import env_arguments
from debug_gym_core.environment.parts import with_terminal
from debug_gym_core.errors import PluginError
from debug_gym_core.names import nearest
from debug_gym_core.plugins import load_plugins
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.jobs import Watch
from debug_gym_core.runs.parts import EpisodeParts
from debug_gym_core.runs.run import Run
from debug_gym_core.testing import BenchmarkContract, write_sample
from debug_gym_core.testing.sample import ENTRYPOINT
from debug_gym_terminal_local import LocalTerminal

SETUP = ("echo VALUE = 2 > made.py",)
GOLD = b"--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-VALUE = 1\n+VALUE = 2\n"
TEST = "def test_value():\n    import app, made\n    assert app.VALUE == made.VALUE\n"


class Prepared(Benchmark):
    """A bug in a repository that the shipped setup completes."""

    name = "prepared"
    config: ClassVar[dict[str, Any]] = {
        "benchmark": {"mode": "hidden", "tasks": ["a"]},
        "env": {"run_timeout": 60, "end_on_resolved": False},
        "terminal": {"name": "local", "allow_unsandboxed": True, "pids": 300, "setup": list(SETUP)},
        "tools": ["view", {"pdb": {"timeout": 9}}],
        "agent": {"name": "noop_agent", "max_steps": 3},
        "llm": {"name": "nobody"},
        "run": {"task_timeout": 5},
    }
    _directory: ClassVar[tempfile.TemporaryDirectory[str] | None] = None

    def names(self) -> list[str]:
        return ["a", "b"]

    def load(self, name: str) -> Task:
        if name not in self.names():
            raise UsageError(f"no task {name!r}{nearest(name, self.names())}")
        Prepared._directory = Prepared._directory or tempfile.TemporaryDirectory()
        repository = write_sample(Path(Prepared._directory.name) / name, {"app.py": "VALUE = 1\n", "test_app.py": TEST})
        tests = ("test_app.py::test_value",)
        return Task(self.name, name, repository, ENTRYPOINT, tests=tests, gold_patch=GOLD, mode=self.settings.mode)


class TestPrepared(BenchmarkContract):
    """Its gold patch is right where the setup ran."""

    benchmark = Prepared
    registered = False
    validated = ("a",)


class Bare(Prepared):
    """Takes nothing that its base does not, and has one mode."""

    name = "bare"
    config: ClassVar[dict[str, Any]] = {"terminal": {"name": "local", "allow_unsandboxed": True}}

    def load(self, name: str) -> Task:
        return dataclasses.replace(super().load(name), mode="visible")


class Masked(Bare):
    """Has another one."""

    name = "masked"

    def load(self, name: str) -> Task:
        return dataclasses.replace(super().load(name), mode="hidden")


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    loaded = load_plugins()
    record = PluginRecord("prepared", "prepared", "1")
    loaded.add(record, types.ModuleType("prepared_plugin"), {"benchmarks": [Prepared, Bare, Masked]})
    return loaded


@pytest.fixture
def made(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr("debug_gym_core.making.default_plugins", lambda: plugins)
    environments: list[RepoEnv] = []

    def made(task: str = "prepared/a", **settings: Any) -> RepoEnv:
        environments.append(make(task, notify=lambda text: None, **settings))
        return environments[-1]

    yield made
    for env in environments:
        env.close()


def facts(env: RepoEnv) -> tuple[Any, ...]:
    terminal = env._sandbox.backend.check_settings(env._sandbox._settings)
    tools = {name: tool.settings for name, tool in env.tools.items()}
    return env.task, env.settings, tools, env.terminal_name, terminal


def test_the_task_is_the_same_as_in_a_run(made: Any, plugins: Plugins) -> None:
    env = made()
    parts = EpisodeParts.of(load("prepared", ["agent.name=tool_agent", "llm.name=human"], plugins=plugins), plugins)
    backend = plugins.get("terminals", parts.config.terminal.name)
    with closing(RepoEnv(parts.load("a"), **parts.env_arguments(backend))) as of_run:
        assert facts(env) == facts(of_run)
    assert (env.task.mode, env.run_timeout, list(env.tools)) == ("hidden", 60, ["view", "pdb"])
    assert env.max_steps is None and env.max_seconds is None  # those are of the agent and the run
    with closing(gymnasium.make(env.spec)) as again:
        assert facts(again.unwrapped) == facts(env)  # type: ignore[arg-type]


def test_what_the_caller_says_wins_key_by_key(made: Any) -> None:
    env = made(tools=["eval"], terminal={"auto": {"pids": 200}}, run_timeout=7, mode="visible")
    task, settings, tools, name, terminal = facts(env)
    assert (task.mode, settings.run_timeout, settings.end_on_resolved, list(tools)) == ("visible", 7, False, ["eval"])
    assert (name, terminal.pids, terminal.setup) == ("local", 200, SETUP)
    assert facts(made(terminal={"local": {"setup": []}}))[-1].setup == ()


def test_mappings_are_merged_as_in_a_run(plugins: Plugins) -> None:
    class Labelled(Prepared):
        """Ships a mapping."""

        config: ClassVar[dict[str, Any]] = {"terminal": {"name": "docker", "environment": {"A": "1", "B": "1"}}}

    docker = plugins.get("terminals", "docker")
    for given, wanted in (("2", {"A": "1", "B": "2"}), (None, {"A": "1"})):
        terminal = {"auto": {"environment": {"B": given}}}
        made = env_arguments(Labelled, plugins, tools=None, terminal=terminal, settings={})["terminal"]
        assert docker.check_settings(made["docker"]).environment == wanted


def test_another_terminal_takes_what_it_knows_of_what_is_shipped(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[str, dict[str, Any]]] = []

    def taking(task: Task, terminal: Any, *rest: Any, **more: Any) -> Any:
        taken.extend(terminal.items())
        return with_terminal(task, "local", *rest, **more)

    monkeypatch.setattr("debug_gym_core.environment.env.with_terminal", taking)
    monkeypatch.setitem(Prepared.config, "terminal", {"name": "docker", "user": "root", "setup": list(SETUP)})
    for terminal in ("bubblewrap", "auto"):
        make("prepared/a", terminal=terminal, plugins=plugins, allow_unsandboxed=True).close()
    setup = {"setup": list(SETUP)}
    assert taken == [("bubblewrap", setup), ("docker", {"user": "root", **setup})]


NEEDS_DOCKER = {"user": "root", "environment": {"A": "1"}}


def test_what_is_shipped_for_another_terminal_than_the_one_that_is_named_is_left_out(
    made: Any, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Prepared.config, "terminal", {"name": "docker", "pids": 300, **NEEDS_DOCKER})
    config = load("prepared", terminal="local", plugins=plugins)
    assert (config.terminal.name, config.terminal.pids) == ("local", 300)
    assert not {"user", "environment"} & config.terminal.model_dump().keys()
    assert facts(made(terminal="local", allow_unsandboxed=True))[-1].pids == 300
    with pytest.raises(UsageError, match=r"^-p terminal\.user belongs to docker; say terminal\.name: docker"):
        load("prepared", ["terminal.user=root"], terminal="local", plugins=plugins)
    with pytest.raises(UsageError, match=r"terminal\.environment belongs to docker; say"):
        load("prepared", ["terminal.environment.B=1"], terminal="local", plugins=plugins)
    with pytest.raises(UsageError, match=r"^local: unknown key 'user'"):
        made(terminal={"local": {"user": "root"}}, allow_unsandboxed=True)


def test_what_is_set_for_another_terminal_than_auto_takes_is_left_out_and_said(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(Prepared.config, "terminal", NEEDS_DOCKER)
    told: list[str] = []
    with closing(make("prepared/a", plugins=plugins, notify=told.append)) as env:
        assert env.terminal_name == "bubblewrap"
    assert told == [f"terminal.{key} is set, which bubblewrap does not use" for key in ("user", "environment")]
    with pytest.raises(UsageError, match=r"^bubblewrap: unknown key 'usre'"):
        make("prepared/a", terminal={"auto": {"usre": "root"}}, plugins=plugins)
    with pytest.raises(UsageError, match=r"^terminal: environment: say a mapping \(got 5\)$"):
        make("prepared/a", terminal={"auto": {"environment": 5}}, plugins=plugins)
    with pytest.raises(UsageError, match=r"terminal\.environment: say a mapping \(got 5\)$"):
        load("prepared", ["terminal.environment=5"], plugins=plugins)
    config = load("prepared", ["benchmark.tasks=a"], agent="noop_agent", plugins=plugins)
    with Run.create(config, tmp_path / "run", plugins=plugins) as run:
        Experiment(run, plugins, Mock(spec=Watch)).check()
        assert run.notes[-2:] == told


@pytest.mark.parametrize("terminal", ["auto", "local"])
def test_what_is_shipped_for_a_terminal_that_is_not_here_is_left_out_and_said(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, terminal: str
) -> None:
    monkeypatch.setitem(Prepared.config, "terminal", {"flavour": "plain", "allow_unsandboxed": True})
    told: list[str] = []
    make("prepared/a", terminal=terminal, plugins=plugins, notify=told.append).close()
    said = "the config of prepared: terminal.flavour is left out: no terminal here has it"
    assert told[-1] == said
    config = load("prepared", ["benchmark.tasks=a"], agent="noop_agent", terminal=terminal, plugins=plugins)
    with Run.create(config, tmp_path / "run", plugins=plugins) as run:
        Experiment(run, plugins, Mock(spec=Watch))
        assert said in run.notes
    with pytest.raises(UsageError, match=r"terminal\.flavour"):
        load("prepared", ["terminal.flavour=plain"], terminal=terminal, plugins=plugins)


@pytest.mark.parametrize("error", [KeyError("memory"), SystemExit("leaving")])
def test_a_terminal_that_cannot_check_its_settings_is_told_and_keeps_no_other_from_being_taken(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    odd = f"odd_{type(error).__name__}"  # the plugins are those of all tests

    class OddSettings(LocalTerminal.Settings):
        @pydantic.field_validator("memory", mode="before")
        @classmethod
        def check(cls, value: Any) -> Any:
            raise error

    class Odd(LocalTerminal):
        name = odd
        Settings = OddSettings

    plugins.add(PluginRecord(odd, odd, "1"), types.ModuleType("odd_plugin"), {"terminals": [Odd]})
    monkeypatch.setitem(Prepared.config, "terminal", {})
    make("prepared/a", terminal={"auto": {"memory": "1g"}}, plugins=plugins).close()
    with pytest.raises(UsageError, match=r"terminal\.memorry"):
        load("prepared", ["terminal.memorry=1g", "terminal.memory=1g"], plugins=plugins)
    said = rf"^terminal {odd}: plugin {odd} \({odd} 1\) cannot check its settings: "
    said += rf"{type(error).__name__}: {error} \(test_shipped"
    with pytest.raises(PluginError, match=said):
        make("prepared/a", terminal={odd: {"memory": "1g"}}, plugins=plugins)
    with pytest.raises(PluginError, match=said):
        load("prepared", ["terminal.memory=1g"], terminal=odd, plugins=plugins)


@pytest.mark.parametrize("terminal", ["auto", "docker"])
def test_a_terminal_is_not_named_in_its_settings(made: Any, terminal: str) -> None:
    with pytest.raises(UsageError, match=rf"^terminal: '{terminal}' is its name; leave `name` out of its settings$"):
        made(terminal={terminal: {"name": "local"}}, allow_unsandboxed=True)


@pytest.mark.parametrize("choices", [{"terminal": {"auto": {5: 1}}}, {"tools": [{"view": {5: 1}}]}])
def test_a_setting_is_named_by_a_word(made: Any, choices: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"^(auto|view): a setting is named by a word, not 5$"):
        made(**choices)


@pytest.mark.parametrize("key", ["source", "split", "revision", "path"])
def test_what_a_benchmark_has_no_field_for_is_refused(made: Any, plugins: Plugins, key: str) -> None:
    with pytest.raises(UsageError, match=rf"^-p benchmark\.{key}: bare has none; leave it out \(got "):
        load("bare", [f"benchmark.{key}=/x"], plugins=plugins)
    with pytest.raises(UsageError, match=rf"^{key}: bare has none; leave it out \(got '/x'\)$"):
        made("bare/a", **{key: "/x"})
    assert load("bare", [f"benchmark.{key}=null"], plugins=plugins).benchmark.name == "bare"
    assert made("bare/a", **{key: None}).task.benchmark == "bare"


def test_a_mode_that_a_task_has_not_is_refused(made: Any, plugins: Plugins) -> None:
    for mode in ("hidden", "debug"):
        with pytest.raises(UsageError, match=f"bare/a cannot be played in mode {mode}, only visible"):
            made("bare/a", mode=mode)
    assert made("bare/a", mode="visible").task.mode == "visible"
    assert made("masked/a").task.mode == "hidden"
    config = load("masked", ["agent.name=tool_agent", "llm.name=human"], plugins=plugins)
    assert EpisodeParts.of(config, plugins).load("a").mode == "hidden"
