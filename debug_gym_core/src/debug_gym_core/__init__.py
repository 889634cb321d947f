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
    from debug_gym_core.agents.history import History
    from debug_gym_core.components.component import Settings
    from debug_gym_core.components.markers import hookimpl, hookspec
    from debug_gym_core.debugging.breakpoints import Breakpoint, Breakpoints
    from debug_gym_core.environment.env import RepoEnv
    from debug_gym_core.errors import (
        ActionError,
        ContextOverflow,
        DebugGymError,
        GradingError,
        LLMError,
        LLMRefused,
        LLMRejected,
        LLMUnavailable,
        PluginError,
        RequirementError,
        SandboxError,
        SandboxLost,
        TaskError,
        UsageError,
    )
    from debug_gym_core.making import make
    from debug_gym_core.models.llm import LLM, Completion, Message
    from debug_gym_core.plugins import load_plugins
    from debug_gym_core.runs.jobs import Executor, Exporter
    from debug_gym_core.sandbox.interpreter import Interpreter
    from debug_gym_core.sandbox.process import Process
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.sandbox.terminal import (
        ROOT,
        RunResult,
        SandboxSpec,
        Stream,
        Terminal,
        TerminalSettings,
        parse_size,
    )
    from debug_gym_core.tasks.entrypoint import Entrypoint
    from debug_gym_core.tasks.judge import Judge, Twinned
    from debug_gym_core.tasks.results import Grade, Measurement, TestResult
    from debug_gym_core.tasks.task import Benchmark, BenchmarkSettings, Task
    from debug_gym_core.tools.action import ToolCall
    from debug_gym_core.tools.environment import Environment
    from debug_gym_core.tools.observation import Observation
    from debug_gym_core.tools.tool import Tool
    from debug_gym_core.usage import Usage
    from debug_gym_core.workspace.edits import Edit
    from debug_gym_core.workspace.files import Workspace
    from debug_gym_core.workspace.snapshot import FileState

__version__ = "0.1.0"

_HOMES = {
    "agents.agent": ["Agent", "AgentSettings"],
    "agents.history": ["History"],
    "components.component": ["Settings"],
    "components.markers": ["hookimpl", "hookspec"],
    "debugging.breakpoints": ["Breakpoint", "Breakpoints"],
    "environment.env": ["RepoEnv"],
    "errors": [
        "ActionError",
        "ContextOverflow",
        "DebugGymError",
        "GradingError",
        "LLMError",
        "LLMRefused",
        "LLMRejected",
        "LLMUnavailable",
        "PluginError",
        "RequirementError",
        "SandboxError",
        "SandboxLost",
        "TaskError",
        "UsageError",
    ],
    "making": ["make"],
    "models.llm": ["LLM", "Completion", "Message"],
    "plugins": ["load_plugins"],
    "runs.jobs": ["Executor", "Exporter"],
    "sandbox.interpreter": ["Interpreter"],
    "sandbox.process": ["Process"],
    "sandbox.session": ["Session"],
    "sandbox.terminal": ["ROOT", "RunResult", "SandboxSpec", "Stream", "Terminal", "TerminalSettings", "parse_size"],
    "tasks.entrypoint": ["Entrypoint"],
    "tasks.judge": ["Judge", "Twinned"],
    "tasks.results": ["Grade", "Measurement", "TestResult"],
    "tasks.task": ["Benchmark", "BenchmarkSettings", "Task"],
    "tools.action": ["ToolCall"],
    "tools.environment": ["Environment"],
    "tools.observation": ["Observation"],
    "tools.tool": ["Tool"],
    "usage": ["Usage"],
    "workspace.edits": ["Edit"],
    "workspace.files": ["Workspace"],
    "workspace.snapshot": ["FileState"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "LLM",
    "ROOT",
    "ActionError",
    "Agent",
    "AgentSettings",
    "Benchmark",
    "BenchmarkSettings",
    "Breakpoint",
    "Breakpoints",
    "Completion",
    "ContextOverflow",
    "DebugGymError",
    "Edit",
    "Entrypoint",
    "Environment",
    "Executor",
    "Exporter",
    "FileState",
    "Grade",
    "GradingError",
    "History",
    "Interpreter",
    "Judge",
    "LLMError",
    "LLMRefused",
    "LLMRejected",
    "LLMUnavailable",
    "Measurement",
    "Message",
    "Observation",
    "PluginError",
    "Process",
    "RepoEnv",
    "RequirementError",
    "RunResult",
    "SandboxError",
    "SandboxLost",
    "SandboxSpec",
    "Session",
    "Settings",
    "Stream",
    "Task",
    "TaskError",
    "Terminal",
    "TerminalSettings",
    "TestResult",
    "Tool",
    "ToolCall",
    "Twinned",
    "Usage",
    "UsageError",
    "Workspace",
    "__version__",
    "hookimpl",
    "hookspec",
    "load_plugins",
    "make",
    "parse_size",
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
