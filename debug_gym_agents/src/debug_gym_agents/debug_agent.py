"""The agents of the original: all they know is in the prompt, made anew for each step."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, ClassVar

from debug_gym_agents.loop import Turns, correction, ended_by, with_ids
from debug_gym_core import LLM, Agent, Message, Settings
from debug_gym_core.agents.agent import LateDebuggerSettings
from debug_gym_core.agents.history import History
from debug_gym_core.agents.prompts import Prompt, Sight, facts
from debug_gym_core.errors import ContextOverflow

if TYPE_CHECKING:
    from debug_gym_core import Completion, RepoEnv

OPENING = "Fix the bug that is described above."
ACTION_PROMPT = "Call one tool: the best next step towards fixing the bug."
NO_CALL = "Your answer calls no tool, and the tests do not pass yet. Call exactly one of: {}."
NOT_PLAYED = "Not carried out: one call a step. Call it again if it is still the best next step."

SMALLEST = 1_000
"""Tokens of context below which a prompt is not made any smaller."""


class DebugAgent(Agent):
    """Puts all it knows in the prompt and asks the model for one tool call a step; it has the debugger."""

    name = "debug_agent"
    tools: ClassVar[Sequence[str] | None] = ("pdb", "view", "rewrite", "eval", "listdir")

    def offer(self, env: RepoEnv) -> None:
        """Withhold tools or give them back; called before each step.

        Args:
            env: before its reset, or live
        """

    def prepare(self, env: RepoEnv) -> None:
        """See `Agent`."""
        self.offer(env)

    def play(self, env: RepoEnv, llm: LLM | None) -> str | None:
        """Play one episode; see `Agent`."""
        turns = Turns(env, llm, self.name)
        history = History([Message("user", OPENING)], self.settings.memory_size)
        sight = Sight()
        sight.see(env.last_observations)
        turn, finish = 0, "stop"
        while not turns.hopeless:
            self.offer(env)
            completion = self._ask(turns, history, sight)
            turn += 1
            answer = with_ids(completion.message, turn)
            if not answer.calls and ((resolved := turns.resolved) or turns.ends(completion)):
                return "resolved" if resolved else "over"
            history.append(answer)
            finish = completion.finish
            turns.note(answer)
            if not answer.calls:
                wrong = correction(completion) or NO_CALL.format(", ".join(env.tools))
                history.append(Message("user", wrong))
                continue
            rewrites = env.rewrites
            text = env.step(answer.calls[0])[0]["text"]
            sight.see(env.last_observations)
            history.append(Message("tool", text, call_id=answer.calls[0].id))
            for call in answer.calls[1:]:
                history.append(Message("tool", NOT_PLAYED, call_id=call.id))
            if env.ended is not None:
                return None
            if self.settings.reset_prompt_history_after_rewrite and env.rewrites > rewrites:
                history.keep(1)
        return ended_by(finish)

    def _ask(self, turns: Turns, history: History, sight: Sight) -> Completion:
        """Ask for the next step; where even the shortest history is too long, with a smaller prompt."""
        limit = turns.limit
        while True:
            first, last = self._prompt(turns, history, sight, limit)
            turns.trim(history, first, last)
            try:
                return turns.ask(history, [first], [last])
            except ContextOverflow:
                limit = (limit or 16 * SMALLEST) // 2
                if limit < SMALLEST:
                    raise

    def _prompt(self, turns: Turns, history: History, sight: Sight, limit: int | None) -> tuple[Message, Message]:
        """What stands before the history and behind it."""
        source = self.settings.system_prompt or template()
        prompt = Prompt(source, "agent.system_prompt", limit)
        return (
            Message("system", prompt.render(facts(turns.env, self, sight, history))),
            Message("user", ACTION_PROMPT),
        )


class RewriteAgent(DebugAgent):
    """Reads, rewrites and evaluates, without a debugger."""

    name = "rewrite_agent"
    tools: ClassVar[Sequence[str] | None] = ("view", "rewrite", "eval", "listdir")

    def offer(self, env: RepoEnv) -> None:
        """Withhold the debugger from a model in an environment that has one."""
        env.withhold("pdb")


class Debug5Agent(DebugAgent):
    """Rewrites first; gets the debugger when that many rewrites (`rewrites_before_pdb`) did not fix the bug."""

    name = "debug_5_agent"
    Settings: ClassVar[type[Settings]] = LateDebuggerSettings
    settings: LateDebuggerSettings

    def offer(self, env: RepoEnv) -> None:
        """Give the debugger back once there were enough rewrites."""
        if env.rewrites >= self.settings.rewrites_before_pdb:
            env.give_back("pdb")
        else:
            env.withhold("pdb")


def template() -> str:
    """The system prompt of these agents, to begin one's own with."""
    return (resources.files("debug_gym_agents") / "templates" / "debug_agent.jinja").read_text(encoding="utf-8")
