"""The modern loop: instructions once, an append-only history, several calls a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from debug_gym_agents.loop import Turns, correction, ended_by, with_ids
from debug_gym_core import LLM, Agent, Message
from debug_gym_core.agents.history import History
from debug_gym_core.agents.prompts import Prompt, facts

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv

SYSTEM_PROMPT = """\
You fix a bug in a Python repository. Look before you change: run the tests,
{%- if "pdb" in info.tools %} stop the program with the debugger where it goes wrong, look at the values,
{%- endif %} read the code, and only then change it. Call tools; the episode ends when you call none."""

KEPT_SHARE = 0.5
"""Of the context beside what always stays, how much older steps keep when the history grows beyond it: much is left out
at once, and so rarely, since a provider's cache is lost each time."""


class ToolAgent(Agent):
    """Gives the model its instructions once and lets it call tools until it calls none.

    The history only grows, so that providers can cache it; steps are left out when it is longer than the context.
    """

    name = "tool_agent"
    end_on_resolved: ClassVar[bool] = False
    unused: ClassVar[frozenset[str]] = frozenset({"memory_size", "reset_prompt_history_after_rewrite"})

    def play(self, env: RepoEnv, llm: LLM | None) -> str | None:
        """Play one episode; see `Agent`."""
        turns = Turns(env, llm, self.name)
        prompt = Prompt(self.settings.system_prompt or SYSTEM_PROMPT, "agent.system_prompt", turns.limit)
        history = History([Message("system", prompt.render(facts(env, self))), Message("user", env.last_text)])
        turn, finish = 0, "stop"
        while not turns.hopeless:
            turns.trim(history, share=KEPT_SHARE)
            completion = turns.ask(history)
            turn += 1
            answer = with_ids(completion.message, turn)
            history.append(answer)
            finish = completion.finish
            turns.note(answer)
            if not answer.calls:
                if turns.resolved:
                    return "resolved"
                wrong = correction(completion)
                if wrong is None:
                    return "over" if turns.ends(completion) else "refused" if finish == "refused" else "gave_up"
                history.append(Message("user", wrong))
            for call in answer.calls:
                history.append(Message("tool", env.step(call)[0]["text"], call_id=call.id))
                if env.ended is not None:
                    return None
        return ended_by(finish)
