"""What the agents' prompts cost on a service with a cache, on a real task in a real sandbox, through HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from support import repeated

from debug_gym_agents.debug_agent import DebugAgent
from debug_gym_agents.tool_agent import ToolAgent
from debug_gym_core import Agent, ToolCall, make
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.messages_server import PromptCache, answer, call, marks, serve, text
from debug_gym_core.testing.model_server import Reply, Request

CALLS = (
    ToolCall("listdir"),
    ToolCall("view", {"path": "counter_code.py"}),
    ToolCall("eval"),
    *(ToolCall("pdb", {"command": command}) for command in ("b counter_code.py:12", "c", "p 1", "p 2", "p 3", "p 4")),
)

OWN = "Step {{ info.step }} of {{ agent.max_steps }}.\n\n# Task\n{{ task.description }}\n\n# Files\n{{ tree }}"


@pytest.mark.parametrize(
    ("agent", "most"),
    [
        (DebugAgent(), 0.75),
        (ToolAgent(), 0.4),
        *repeated("services", (DebugAgent(system_prompt=OWN), 0.75)),
    ],
)
def test_the_cache_makes_each_agent_s_prompts_cheaper(agent: Agent, most: float, sandbox: str) -> None:
    """What is read costs a tenth, what is written a quarter more than without a cache; `most` is of what that costs.

    A prompt that begins with the number of the step has its tools read all the same.
    """
    cache = PromptCache()
    figures: list[tuple[int, float, float]] = []

    def reply(request: Request) -> Reply:
        tokens = cache.take(request.body)
        whole = sum(tokens.values()) - tokens["output_tokens"]
        read, written = (tokens[f"cache_{name}_input_tokens"] / whole for name in ("read", "creation"))
        figures.append((marks(request.body), read, written))
        if len(figures) > len(CALLS):
            return answer(text("I leave it as it is."), tokens=tokens)
        made = CALLS[len(figures) - 1]
        arguments: Any = made.arguments
        return answer(call(made.name, arguments, f"toolu_{len(figures)}"), tokens=tokens)

    with serve(reply) as server:
        llm = default_plugins().get("llms", "anthropic")(
            model="claude-test", api_key="sk-test", endpoint=server.url, max_retries=0
        )
        env = make(
            "mini_nightmare/counter",
            tools=["view", "listdir", "rewrite", "eval", "pdb"],
            terminal=sandbox,
            max_steps=len(CALLS),
        )
        try:
            agent.prepare(env)
            env.reset(seed=0)
            agent.play(env, llm)
        finally:
            env.close()
            llm.close()
    assert len(figures) == len(CALLS)
    costs = [1 - 0.9 * read + 0.25 * written for _, read, written in figures]
    assert all(marked <= 3 for marked, _, _ in figures)
    assert all(read > 0.15 for _, read, _ in figures[1:]), "the tools at least"
    assert sum(costs) / len(costs) < most
