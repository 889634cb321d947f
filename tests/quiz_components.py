"""Components with settings of their own, for configs that are read without any plugin, and how one is refused."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, ClassVar

import pluggy
import pytest

from debug_gym_core.agents.agent import Agent, AgentSettings
from debug_gym_core.components.catalogue import PluginRecord, Plugins
from debug_gym_core.components.component import Settings
from debug_gym_core.config.loading import load
from debug_gym_core.errors import UsageError
from debug_gym_core.models.llm import LLM, Completion, Message
from debug_gym_core.runs.local import LocalExecutor
from debug_gym_core.tasks.task import Benchmark, BenchmarkSettings, Task
from debug_gym_core.tools.tool import Tool


class QuizSettings(BenchmarkSettings):
    """Settings of the quiz.

    Attributes:
        source: where the questions are
        revision: of the questions
        path: where the answers are
        level: how hard it is
        notes: a file with hints
    """

    source: str | None = None
    revision: str | None = None
    path: Path | None = None
    level: int = 1
    notes: Path | None = None


class Quiz(Benchmark):
    """A benchmark."""

    name = "quiz"
    Settings: ClassVar[type[Settings]] = QuizSettings
    config: ClassVar[dict[str, Any]] = {"env": {"run_timeout": 30}, "agent": {"name": "thinker", "max_steps": 20}}

    def names(self) -> list[str]:
        return ["one"]

    def load(self, name: str) -> Task:
        raise NotImplementedError


class Plain(Quiz):
    """A benchmark that ships nothing of its own."""

    name = "mini_nightmare"
    config: ClassVar[dict[str, Any]] = {}


class ThinkerSettings(AgentSettings):
    """Settings of the thinker."""

    memory_size: int = 33
    depth: float = 0.5


class Thinker(Agent):
    """Thinks."""

    name = "thinker"
    Settings: ClassVar[type[Settings]] = ThinkerSettings

    def play(self, env: Any, llm: Any) -> None:
        raise NotImplementedError


class Doer(Thinker):
    """Does."""

    name = "debug_agent"
    Settings: ClassVar[type[Settings]] = AgentSettings


class Rewriter(Doer):
    """Rewrites."""

    name = "rewrite_agent"


class PdbSettings(Settings):
    """Settings of pdb."""

    timeout: float = 60
    persistent_breakpoints: bool = True
    warm: bool = True
    rewind: bool = False


class Pdb(Tool):
    """A debugger."""

    name = "pdb"
    Settings: ClassVar[type[Settings]] = PdbSettings

    def use(self, env: Any, command: str) -> str:
        raise NotImplementedError


class View(Tool):
    """A viewer."""

    name = "view"

    def use(self, env: Any) -> str:
        raise NotImplementedError


class Parrot(LLM):
    """Repeats."""

    name = "human"

    def complete(self, messages: Any, tools: Any) -> Completion:
        return Completion(Message("assistant", ""))


def make_quiz_plugins() -> Plugins:
    """A benchmark, agents, tools and a model whose settings are known."""
    plugins = Plugins(pluggy.PluginManager("debug_gym"))
    plugins.add(
        PluginRecord("test", "test", "1"),
        types.ModuleType("test_plugin"),
        {
            "benchmarks": [Quiz, Plain],
            "agents": [Thinker, Doer, Rewriter],
            "tools": [Pdb, View],
            "llms": [Parrot],
            "executors": [LocalExecutor],
        },
    )
    return plugins


def refused(plugins: Plugins, source: str, *overrides: str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        load(source, overrides, plugins=plugins, **options)
    text = str(caught.value)
    assert len(text.splitlines()) <= 2
    return text
