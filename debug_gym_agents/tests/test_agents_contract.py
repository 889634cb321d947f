"""The agents keep what every agent promises."""

from __future__ import annotations

from debug_gym_agents.debug_agent import Debug5Agent, DebugAgent, RewriteAgent
from debug_gym_agents.noop import NoopAgent
from debug_gym_agents.solution import SolutionAgent
from debug_gym_agents.tool_agent import ToolAgent
from debug_gym_core import ToolCall
from debug_gym_core.testing import AgentContract

REPEATS = {"people": ["^(?!test_it_plays_to_the_end$)"]}
"""Of agents that are others with a few differences."""

FIX = ToolCall("rewrite", {"path": "shop.py", "start": 6, "new_code": "    for price in prices:"})


class TestNoopAgent(AgentContract):
    agent = NoopAgent
    resolves = False


class TestSolutionAgent(AgentContract):
    agent = SolutionAgent
    repeats = {"people": ["a_model_that_is_missing"]}  # noqa: RUF012


class TestToolAgent(AgentContract):
    agent = ToolAgent


class TestDebugAgent(AgentContract):
    agent = DebugAgent
    actions = ("eval", "pdb b shop.py:6", FIX, "eval")


class TestRewriteAgent(AgentContract):
    agent = RewriteAgent
    repeats = REPEATS
    actions = ("view shop.py", FIX, "eval")


class TestDebug5Agent(AgentContract):
    agent = Debug5Agent
    repeats = REPEATS
    actions = ("listdir", FIX, "eval")
