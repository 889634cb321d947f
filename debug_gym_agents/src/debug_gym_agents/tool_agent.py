"""The modern loop: instructions once, an append-only history, several calls a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from debug_gym_core import LLM, Agent, Message, UsageError

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv

SYSTEM_PROMPT = """\
You fix a bug in a Python repository. Look before you change: run the tests, stop the program with the debugger where it
goes wrong, look at the values, and only then rewrite. Call tools; the episode ends when you call none."""


class ToolAgent(Agent):
    """Gives the model its instructions once and lets it call tools until it calls none."""

    name = "tool_agent"
    end_on_resolved: ClassVar[bool] = False

    def play(self, env: RepoEnv, llm: LLM | None) -> None:
        """Play one episode."""
        if llm is None:
            raise UsageError(f"{self.name} needs an LLM; say --llm NAME")
        tools = [type(tool).schema() for tool in env.tools.values()]
        messages = [Message("system", self.settings.system_prompt or SYSTEM_PROMPT), Message("user", env.last_text)]
        while True:
            answer = llm.complete(messages, tools).message
            messages.append(answer)
            if not answer.calls:
                return
            for call in answer.calls:
                observation, _, terminated, truncated, _ = env.step(call)
                messages.append(Message("tool", observation["text"], call_id=call.id))
                if terminated or truncated:
                    return
