"""Every hook and every event, implemented by a plugin and used in a run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config import loading
from debug_gym_core.plugins import load_plugins
from debug_gym_core.runs.experiment import Experiment
from debug_gym_core.runs.jobs import Job
from debug_gym_core.runs.run import Run
from debug_gym_core.runs.trajectory import read_journal

PLUGIN = Path(__file__).parent / "hooks_plugin.py"


class Onlooker:
    """Looks on, and says nothing."""

    def started(self, job: Job) -> None: ...
    def event(self, job: Job, event: Any) -> None: ...
    def finished(self, job: Job, result: Any) -> None: ...
    def note(self, text: str) -> None: ...
    def stopping(self) -> None: ...


@pytest.fixture
def plugins() -> Plugins:
    return load_plugins(files=[PLUGIN])


@pytest.fixture
def plugin(plugins: Plugins) -> Iterator[ModuleType]:
    with module_of(plugins) as module:
        yield module


@contextlib.contextmanager
def module_of(plugins: Plugins) -> Iterator[ModuleType]:
    """The plugin's module, which leaves nothing."""
    module = sys.modules[plugins.get("tools", "mend").__module__]
    yield module
    if module.Hooked._directory is not None:
        module.Hooked._directory.cleanup()
        module.Hooked._directory = None


def play(plugins: Plugins, directory: Path, *overrides: str) -> Path:
    config = loading.load("hooked", ["env.twins=never", *overrides], plugins=plugins)
    run = Run.create(config, directory / "run", plugins=plugins)
    try:
        Experiment(run, plugins, Onlooker()).play()
    finally:
        run.close()
    return run.directory


def told(plugin: ModuleType, *hooks: str) -> list[tuple[Any, ...]]:
    return [facts for facts in plugin.TOLD if facts[0] in hooks]


def test_components_of_every_kind_play_together(plugins: Plugins, plugin: ModuleType, tmp_path: Path) -> None:
    """A run in which benchmark, tools, terminal, agent, model and executor are all the plugin's."""
    directory = play(plugins, tmp_path, "benchmark.tasks=[one,two]")
    finished = told(plugin, "episode_finished")
    assert finished == [("episode_finished", f"hooked/{name}", "resolved") for name in ("two", "one")]
    plugins.get("exporters", "names")().export(directory, tmp_path / "names")
    assert (tmp_path / "names").read_text() == "hooked/two\nhooked/one\n"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModuleType, Path]]:
    """What a run of one task told the plugin, and its directory."""
    plugins = load_plugins(files=[PLUGIN])
    with module_of(plugins) as module:
        yield module, play(plugins, tmp_path_factory.mktemp("played"), "benchmark.tasks=[two]")


def test_observers_are_told_in_order(played: tuple[ModuleType, Path]) -> None:
    plugin, _ = played
    observers = [facts for facts in plugin.TOLD if not facts[0].startswith("on_")]
    steps = [facts for facts in observers if facts[0] == "episode_stepped" and facts[1] == "step"]
    assert observers[0] == ("run_started", True, 0)
    assert told(plugin, "episode_started") == [("episode_started", "hooked/two", 0, "live\n")]
    assert [facts[2] for facts in steps] == [0, 1, 2, 3]
    assert observers.index(("episode_started", "hooked/two", 0, "live\n")) < observers.index(steps[0])
    assert ("episode_stepped", "grade", None) in observers
    assert observers[-2:] == [("episode_finished", "hooked/two", "resolved"), ("run_finished", 1, 1)]


def test_events_are_told_in_order_and_their_answers_are_read(played: tuple[ModuleType, Path]) -> None:
    plugin, directory = played
    assert [facts for facts in plugin.TOLD if facts[0].startswith("on_")] == [
        ("on_reset", "hooked/two"),
        ("on_evaluated", ["failed", "passed"], 1),
        ("on_step", "listen"),
        ("on_file_changed", "shop.py", [(6, 1, 1)]),
        ("on_step", "mend"),
        ("on_submitted", "mended it"),
        ("on_step", "listen"),
    ]
    seen = [
        event.data["observation"]["text"]
        for event in read_journal(directory / "hooked" / "two" / "trajectory.jsonl")
        if event.kind == "step"
    ]
    assert "[listen]\nheard of the reset" in seen[0]
    assert seen[1] == "2 tests\n\n[listen]\nheard of the tests\n\n[listen]\nheard of the step"
    assert seen[2] == "mended\n\n[listen]\nheard of the change\n\n[listen]\nheard of the step"
    assert seen[3] == "submitted\n\n[listen]\nheard of the submission\n\n[listen]\nheard of the step"


def test_hooks_and_events_that_fail_stop_nobody(
    plugins: Plugins, plugin: ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What failed of an event is read by the agent."""
    hooks = ("run_started", "episode_started", "episode_stepped", "episode_finished", "run_finished")
    plugin.FAILING.update({*hooks, "on_file_changed"})
    directory = play(plugins, tmp_path, "benchmark.tasks=[two]")
    assert told(plugin, "episode_finished") == [("episode_finished", "hooked/two", "resolved")]
    complaints = [record.getMessage() for record in caplog.records if "fails" in record.getMessage()]
    failed = "debug_gym_{0} of plugin hooks_plugin.py failed: RuntimeError: {0} fails"
    assert sorted(complaints) == sorted(failed.format(hook) for hook in hooks)
    text = (directory / "hooked" / "two" / "trajectory.jsonl").read_text()
    assert "listen's on_file_changed failed: RuntimeError: on_file_changed fails" in text
