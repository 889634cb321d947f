"""debug-gym: a text environment in which AI agents debug Python with a real debugger.

Everything that plugin authors and users of the Python API need is here; names are loaded when they are first used, so
that `import debug_gym_core` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from debug_gym_core.action import ToolCall
    from debug_gym_core.agent import Agent, AgentSettings
    from debug_gym_core.component import Settings
    from debug_gym_core.env import RepoEnv
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
    from debug_gym_core.grading import Grade, Measurement
    from debug_gym_core.hookspecs import hookimpl, hookspec
    from debug_gym_core.judge import Judge
    from debug_gym_core.llm import LLM, Completion, Message, Usage
    from debug_gym_core.making import make
    from debug_gym_core.observation import Observation
    from debug_gym_core.plugins import load_plugins
    from debug_gym_core.session import Session
    from debug_gym_core.task import Benchmark, BenchmarkSettings, Task
    from debug_gym_core.terminal import RunResult, SandboxSpec, Terminal, TerminalSettings
    from debug_gym_core.tool import Tool

__version__ = "0.1.0"

_HOMES = {
    "action": ["ToolCall"],
    "agent": ["Agent", "AgentSettings"],
    "component": ["Settings"],
    "env": ["RepoEnv"],
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
    "grading": ["Grade", "Measurement"],
    "hookspecs": ["hookimpl", "hookspec"],
    "judge": ["Judge"],
    "making": ["make"],
    "llm": ["LLM", "Completion", "Message", "Usage"],
    "observation": ["Observation"],
    "plugins": ["load_plugins"],
    "session": ["Session"],
    "task": ["Benchmark", "BenchmarkSettings", "Task"],
    "terminal": ["RunResult", "SandboxSpec", "Terminal", "TerminalSettings"],
    "tool": ["Tool"],
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


def __dir__() -> list[str]:
    return __all__
