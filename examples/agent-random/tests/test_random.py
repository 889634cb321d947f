from acme_agent_random import RandomAgent

from debug_gym_core.testing import AgentContract


class TestRandomAgent(AgentContract):
    agent = RandomAgent
