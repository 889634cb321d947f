"""The whole extension contract: what a plugin may implement, on one page.

A plugin is a module, named by an entry point of the group `debug_gym`, with functions of these names marked
`@hookimpl`. Registration hooks take nothing and return classes; they run when the plugins are loaded, so they must be
quick and import no SDK. Observers are called while a run goes on; what they raise is reported and does not stop it.
Commands are entry points of the group `debug_gym.commands`: the name is the command's, the value a click command.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core.components.markers import hookspec

if TYPE_CHECKING:
    from debug_gym_core.agents.agent import Agent
    from debug_gym_core.environment.env import RepoEnv
    from debug_gym_core.models.llm import LLM
    from debug_gym_core.runs.jobs import Executor, Exporter
    from debug_gym_core.runs.run import Run
    from debug_gym_core.runs.trajectory import Event, Result
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.task import Benchmark
    from debug_gym_core.tools.tool import Tool


@hookspec
def debug_gym_register_tools() -> Sequence[type[Tool]]:  # type: ignore[empty-body]
    """Tools that an agent can use, chosen by a config's `tools`."""


@hookspec
def debug_gym_register_terminals() -> Sequence[type[Terminal]]:  # type: ignore[empty-body]
    """Sandbox backends, chosen by `terminal.name`."""


@hookspec
def debug_gym_register_benchmarks() -> Sequence[type[Benchmark]]:  # type: ignore[empty-body]
    """Named sources of tasks, chosen by `benchmark.name`."""


@hookspec
def debug_gym_register_agents() -> Sequence[type[Agent]]:  # type: ignore[empty-body]
    """Players of episodes, chosen by `agent.name`."""


@hookspec
def debug_gym_register_llms() -> Sequence[type[LLM]]:  # type: ignore[empty-body]
    """Language model backends, or what stands in for a model, chosen by `llm.name`."""


@hookspec
def debug_gym_register_executors() -> Sequence[type[Executor]]:  # type: ignore[empty-body]
    """Ways to spread the tasks of a run over workers, chosen by `run.executor`."""


@hookspec
def debug_gym_register_exporters() -> Sequence[type[Exporter]]:  # type: ignore[empty-body]
    """Formats that a finished run can be exported to."""


@hookspec
def debug_gym_episode_started(env: RepoEnv) -> None:
    """An environment was reset; `env` is live and must not be stepped from here."""


@hookspec
def debug_gym_episode_stepped(env: RepoEnv, event: Event) -> None:
    """An event was written to the episode's trajectory: its beginning, a step, a call of the model, a grade, its end.

    The beginning is written while `env` is reset, before `debug_gym_episode_started`; from then on `env` is live.
    Episodes of several workers are told of from several threads.
    """


@hookspec
def debug_gym_episode_finished(result: Result) -> None:
    """An episode ended, graded or with an error; `result` is its line of results.jsonl."""


@hookspec
def debug_gym_run_started(run: Run) -> None:
    """A run begins; its directory exists, no task was started."""


@hookspec
def debug_gym_run_finished(run: Run) -> None:
    """A run ended, also by Ctrl-C; all results that there will be are written."""
