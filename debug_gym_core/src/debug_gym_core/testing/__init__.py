"""What the tests of a plugin use: a contract class for each kind of component, a sample task, a scripted model.

A contract class holds the tests that every component of its kind must pass. The author inherits it, names the component
and what to try it with, and runs pytest:

    from debug_gym_core.testing import ToolContract
    from my_plugin import WordCount

    class TestWordCount(ToolContract):
        tool = WordCount
        calls = [{"path": "hello.txt"}]

Fixtures for an author's own tests are a pytest plugin: `pytest_plugins = ["debug_gym_core.testing.fixtures"]` in a test
module or in the top `conftest.py`; see there.

pytest, hypothesis and the terminal `local` come with `pip install 'debug-gym-core[testing]'`; without hypothesis the
tests that need it are skipped.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

try:
    import pytest
except ImportError as error:
    raise ImportError("debug_gym_core.testing needs pytest: pip install 'debug-gym-core[testing]'") from error

if TYPE_CHECKING:
    from debug_gym_core.testing.agent import AgentContract
    from debug_gym_core.testing.benchmark import BenchmarkContract
    from debug_gym_core.testing.environments import Environments, unusable
    from debug_gym_core.testing.escape import EscapeProbes
    from debug_gym_core.testing.llm import LLMContract
    from debug_gym_core.testing.runs import ExecutorContract, ExporterContract
    from debug_gym_core.testing.sample import sample_task, write_sample
    from debug_gym_core.testing.scripted import ScriptedLLM
    from debug_gym_core.testing.terminal import TerminalContract
    from debug_gym_core.testing.tool import ToolContract
    from debug_gym_core.testing.waiting import is_alive, processes_with, wait_until

_HOME = {
    "AgentContract": "agent",
    "BenchmarkContract": "benchmark",
    "Environments": "environments",
    "EscapeProbes": "escape",
    "ExecutorContract": "runs",
    "ExporterContract": "runs",
    "LLMContract": "llm",
    "ScriptedLLM": "scripted",
    "TerminalContract": "terminal",
    "ToolContract": "tool",
    "is_alive": "waiting",
    "processes_with": "waiting",
    "sample_task": "sample",
    "unusable": "environments",
    "wait_until": "waiting",
    "write_sample": "sample",
}

__all__ = [
    "AgentContract",
    "BenchmarkContract",
    "Environments",
    "EscapeProbes",
    "ExecutorContract",
    "ExporterContract",
    "LLMContract",
    "ScriptedLLM",
    "TerminalContract",
    "ToolContract",
    "is_alive",
    "processes_with",
    "sample_task",
    "unusable",
    "wait_until",
    "write_sample",
]

# So that a contract that fails says what the values were, as a test of the author's own does.
pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
