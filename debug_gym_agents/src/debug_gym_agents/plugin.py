"""Registration of the agents."""

from __future__ import annotations

from collections.abc import Sequence

from debug_gym_agents.debug_agent import Debug5Agent, DebugAgent, RewriteAgent
from debug_gym_agents.noop import NoopAgent
from debug_gym_agents.patch import PatchAgent
from debug_gym_agents.solution import SolutionAgent
from debug_gym_agents.tool_agent import ToolAgent
from debug_gym_core import Agent, hookimpl


@hookimpl
def debug_gym_register_agents() -> Sequence[type[Agent]]:
    """The agents of this package."""
    return [DebugAgent, RewriteAgent, Debug5Agent, ToolAgent, SolutionAgent, NoopAgent, PatchAgent]
