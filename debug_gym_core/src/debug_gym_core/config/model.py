"""The typed config of a run: one model a section, every key checked.

Values come, each over the one before, from the defaults below, what the benchmark ships, the file, the file's section
of the playing agent's name, `-p key.path=value`, and the options of the command line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import Field

from debug_gym_core.agents.agent import LateDebuggerSettings
from debug_gym_core.components.values import Count, Dollars, Positive, Seconds
from debug_gym_core.config.layers import tool_name
from debug_gym_core.environment.settings import DEFAULT_TOOLS, EnvSection, Section, Tools
from debug_gym_core.models.llm import AnswerSettings
from debug_gym_core.sandbox.terminal import SandboxSettings
from debug_gym_core.tasks.task import BenchmarkSettings

MOST_REPEATS = 10_000
"""Episodes of a task: each is planned, and has a directory of its own."""

COMPONENT_SECTIONS = {"benchmark": "benchmarks", "terminal": "terminals", "agent": "agents", "llm": "llms"}
"""The sections about a component, and its kind."""


class ComponentSection(Section):
    """A section about a component: beside its own keys it takes those of the component's settings.

    Attributes:
        name: which component
    """

    model_config = pydantic.ConfigDict(extra="allow")
    name: str

    def settings_for(self, component: type[Any]) -> dict[str, Any]:
        """The values of this section that a component's settings know, as keyword arguments for its constructor."""
        values = {**self.__dict__, **(self.__pydantic_extra__ or {})}
        return {key: value for key, value in values.items() if key in component.Settings.model_fields}


class TaskChoice(ComponentSection):
    """Which benchmark is played, and what of it.

    Attributes:
        name: a benchmark; `debug-gym plugins` lists them
        tasks: `all`, a task, a glob, `!` and one to leave out, `@` and a file of them, or a list of these;
            `debug-gym tasks BENCHMARK` lists them
    """

    name: str = "mini_nightmare"
    tasks: str | tuple[str, ...] = "all"

    @pydantic.field_validator("tasks", mode="before")
    @classmethod
    def _check_tasks(cls, value: Any) -> Any:
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list | tuple) and value and all(isinstance(item, str) and item for item in value):
            return tuple(value)
        raise ValueError("say all, a task, a glob, or a list of them")


# Fields stand in the order of the bases, the last one first; its `model_config` counts, too.
class BenchmarkSection(BenchmarkSettings, TaskChoice):
    """Which bugs to fix.

    Attributes:
        source: a local file or checkout instead of the published one
        split: a named part of the benchmark
        revision: version of the published data
        path: your repository, for the benchmark `repo`
    """

    source: str | None = None
    split: str | None = None
    revision: str | None = None
    path: Path | None = None


class TerminalSection(SandboxSettings, ComponentSection):
    """The sandbox that the task's code runs in.

    Attributes:
        name: auto, bubblewrap, docker, local, or another that is installed
    """

    name: str = "auto"


class AgentSection(LateDebuggerSettings, ComponentSection):
    """Who plays.

    Attributes:
        name: an agent; `debug-gym plugins` lists them
        memory_size: steps that the history keeps; tool_agent keeps all that fit
        reset_prompt_history_after_rewrite: forget the steps before each change of files; not for tool_agent
        rewrites_before_pdb: for debug_5_agent: changes of files before it gets the debugger
    """

    name: str = "debug_agent"


class LLMSection(AnswerSettings, ComponentSection):
    """The language model that the agent asks.

    Attributes:
        name: a model of llm.yaml, or a backend that needs none (human, scripted)
    """

    name: str = "gpt-4o"


class RunSection(Section):
    """How the tasks are played and where the results go.

    Attributes:
        output: directory of the runs; each gets one of its own in it
        workers: episodes played at the same time
        executor: what spreads them; local: threads of this process
        repeats: episodes a task
        seed: seeds all of ours, and PYTHONHASHSEED in the sandbox
        task_timeout: seconds an episode may take; null: no bound
        max_retries: how often an episode is played again when its sandbox was lost
        max_cost: dollars that the run may cost; null: no bound
    """

    output: Path = Path("exps")
    workers: Positive = 1
    executor: str = "local"
    repeats: Annotated[Positive, Field(le=MOST_REPEATS)] = 1
    seed: Count = 0
    task_timeout: Seconds | None = None
    max_retries: Count = 2
    max_cost: Dollars | None = None


class Config(Section):
    """The effective config of a run.

    Attributes:
        benchmark: which bugs to fix
        env: the environment of each task
        tools: what the agent may use, by name or {name: {setting: value}}
        terminal: the sandbox that the task's code runs in
        agent: who plays
        llm: the language model that the agent asks
        run: how the tasks are played and where the results go
        llm_config_file_path: the llm.yaml; null: $LLM_CONFIG_FILE_PATH, else ~/.config/debug_gym/llm.yaml
    """

    benchmark: BenchmarkSection = BenchmarkSection()
    env: EnvSection = EnvSection()
    tools: Tools = DEFAULT_TOOLS
    terminal: TerminalSection = TerminalSection()
    agent: AgentSection = AgentSection()
    llm: LLMSection = LLMSection()
    run: RunSection = RunSection()
    llm_config_file_path: Path | None = None

    @pydantic.field_validator("tools", mode="before")
    @classmethod
    def _check_tools(cls, value: Any) -> Any:
        if isinstance(value, dict):
            value = [{name: settings} for name, settings in value.items()]
        if not isinstance(value, list | tuple):
            raise ValueError("say a list of tools, as in [view, {pdb: {timeout: 60}}]")
        found: dict[str, Any] = {}
        for item in value:
            name = tool_name(item)
            settings = item[name] if isinstance(item, dict) and name is not None else {}
            if name is None or not isinstance(settings, dict | None):
                raise ValueError(f"an item is a name or {{name: {{setting: value}}}}, not {item!r}")
            if name in found:
                raise ValueError(f"{name} is listed twice")
            found[name] = {name: settings} if settings else name
        return tuple(found.values())

    def tool_settings(self) -> dict[str, dict[str, Any]]:
        """Settings of the listed tools by name, in their order."""
        named = ((str(tool_name(item)), item) for item in self.tools)
        return {name: dict(item[name]) if isinstance(item, dict) else {} for name, item in named}
