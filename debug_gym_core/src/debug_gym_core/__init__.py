"""debug-gym: a text environment in which AI agents debug Python with a real debugger.

Everything that plugin authors and users of the Python API need is here; names are loaded when they are first used, so
that `import debug_gym_core` costs next to nothing.

The house has rooms, each a package that says at its head what is where: `components`, `sandbox`, `tasks`, `workspace`,
`grading`, `debugging`, `tools`, `environment`, `models`, `agents`, `config`, `runs`, each above those before it. On top
stand `hookspecs`, what a plugin may implement; `plugins`, which finds and loads them; `making` and `envs`, which make
environments; the command line, `cli`; and `testing`, for the tests of plugins.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from debug_gym_core.agents.agent import Agent, AgentSettings
    from debug_gym_core.components.component import Settings
    from debug_gym_core.components.markers import hookimpl, hookspec
    from debug_gym_core.environment.env import RepoEnv
    from debug_gym_core.errors import (
        ActionError,
        DebugGymError,
        LLMError,
        PluginError,
        RequirementError,
        SandboxError,
        SandboxLost,
        UsageError,
    )
    from debug_gym_core.making import make
    from debug_gym_core.models.llm import LLM, Completion, Message
    from debug_gym_core.plugins import load_plugins
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.sandbox.terminal import RunResult, SandboxSpec, Terminal, TerminalSettings
    from debug_gym_core.tasks.judge import Judge, Twinned
    from debug_gym_core.tasks.results import Grade, Measurement
    from debug_gym_core.tasks.task import Benchmark, BenchmarkSettings, Task
    from debug_gym_core.tools.action import ToolCall
    from debug_gym_core.tools.environment import Environment
    from debug_gym_core.tools.observation import Observation
    from debug_gym_core.tools.tool import Tool
    from debug_gym_core.usage import Usage

__version__ = "0.1.0"

_HOMES = {
    "tools.action": ["ToolCall"],
    "agents.agent": ["Agent", "AgentSettings"],
    "components.component": ["Settings"],
    "environment.env": ["RepoEnv"],
    "errors": [
        "ActionError",
        "DebugGymError",
        "LLMError",
        "PluginError",
        "RequirementError",
        "SandboxError",
        "SandboxLost",
        "UsageError",
    ],
    "tasks.results": ["Grade", "Measurement"],
    "components.markers": ["hookimpl", "hookspec"],
    "tasks.judge": ["Judge", "Twinned"],
    "making": ["make"],
    "models.llm": ["LLM", "Completion", "Message"],
    "tools.environment": ["Environment"],
    "tools.observation": ["Observation"],
    "plugins": ["load_plugins"],
    "sandbox.session": ["Session"],
    "tasks.task": ["Benchmark", "BenchmarkSettings", "Task"],
    "sandbox.terminal": ["RunResult", "SandboxSpec", "Terminal", "TerminalSettings"],
    "tools.tool": ["Tool"],
    "usage": ["Usage"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "LLM",
    "ActionError",
    "Agent",
    "AgentSettings",
    "Benchmark",
    "BenchmarkSettings",
    "Completion",
    "DebugGymError",
    "Environment",
    "Grade",
    "Judge",
    "LLMError",
    "Measurement",
    "Message",
    "Observation",
    "PluginError",
    "RepoEnv",
    "RequirementError",
    "RunResult",
    "SandboxError",
    "SandboxLost",
    "SandboxSpec",
    "Session",
    "Settings",
    "Task",
    "Terminal",
    "TerminalSettings",
    "Tool",
    "ToolCall",
    "Twinned",
    "Usage",
    "UsageError",
    "__version__",
    "hookimpl",
    "hookspec",
    "load_plugins",
    "make",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def installed_plugins() -> Any:
    """The plugins of this environment, for those of our modules that stand below the loader of plugins."""
    from debug_gym_core.plugins import default_plugins

    return default_plugins()


def __dir__() -> list[str]:
    return __all__
