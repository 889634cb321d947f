"""What the episodes of a run are made of: what its config names, looked up once, for those who play and who replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from debug_gym_core.components.component import construct
from debug_gym_core.environment.parts import make_tools
from debug_gym_core.tasks.selection import load_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from debug_gym_core.agents.agent import Agent
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.task import Benchmark, Task


@dataclass(frozen=True)
class EpisodeParts:
    """The parts of a run's episodes.

    Attributes:
        config: the run's
        plugins: what is installed
        benchmark: where the tasks are
        agent_class: who plays
        tools: what it plays with: names, or `{name: settings}`
    """

    config: Config
    plugins: Plugins
    benchmark: Benchmark
    agent_class: type[Agent]
    tools: Sequence[str | dict[str, Any]]

    @classmethod
    def of(cls, config: Config, plugins: Plugins) -> EpisodeParts:
        """Look up what a config names.

        Args:
            config: of a run
            plugins: what is installed

        Raises:
            UsageError: a name is unknown, or a setting is wrong
            PluginError: a plugin that is needed failed
        """
        agent_class: type[Agent] = plugins.get("agents", config.agent.name)
        settings = config.tool_settings()
        # Where two plugins provide a tool of an agent's, the config says which: by its distribution.
        listed = {name.rpartition(":")[2]: name for name in settings}
        own = agent_class.tools
        names = list(settings) if own is None else [listed.get(name, name) for name in own]
        tools = [{name: settings[name]} if settings.get(name) else name for name in names]
        make_tools(tools, plugins)  # what is wrong with one is known before anything plays
        return cls(config, plugins, make_benchmark(config, plugins), agent_class, tools)

    def new_agent(self) -> Agent:
        """An agent for one episode."""
        return construct(self.agent_class, **self.config.agent.settings_for(self.agent_class))

    def load(self, name: str) -> Task:
        """Load a task.

        Args:
            name: its name in the benchmark

        Raises:
            UsageError: there is no such task, or it cannot be played in the mode of the run
        """
        return load_task(self.benchmark, name)

    def env_arguments(self, backend: type[Terminal]) -> dict[str, Any]:
        """The arguments of an episode's `RepoEnv` that the config decides: all but its task, and for whom it is.

        Args:
            backend: the sandbox that it is played in
        """
        config = self.config
        ends = config.env.end_on_resolved
        settings = config.terminal.settings_for(backend)
        return {
            **dict(config.env),
            "tools": self.tools,
            "terminal": {backend.name: {key: value for key, value in settings.items() if value is not None}},
            "plugins": self.plugins,
            "max_steps": config.agent.max_steps,
            "max_rewrites": config.agent.max_rewrites,
            "max_seconds": config.run.task_timeout,
            "end_on_resolved": self.agent_class.end_on_resolved if ends is None else ends,
            "notify": lambda _: None,
        }


def make_benchmark(config: Config, plugins: Plugins) -> Benchmark:
    """The benchmark that a config names.

    Raises:
        UsageError: there is none of that name, or a setting is wrong
        PluginError: its plugin failed
    """
    benchmark: type[Benchmark] = plugins.get("benchmarks", config.benchmark.name)
    return construct(benchmark, **config.benchmark.settings_for(benchmark))
