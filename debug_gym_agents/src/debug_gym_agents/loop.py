"""What the agents that ask a model share: how it is asked, how its calls are played, when it calls nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from debug_gym_core import Completion, Message, UsageError
from debug_gym_core.errors import ContextOverflow
from debug_gym_core.models.text_calls import correction_of

if TYPE_CHECKING:
    from debug_gym_core import LLM, RepoEnv
    from debug_gym_core.agents.history import History

MOST_MALFORMED = 3
"""Answers in a row in which nothing that the model wrote is a call, which takes no step; then the episode is over."""

ANSWER = 4_096
"""Tokens of the context that are kept free for an answer when nobody bounds it."""

CUT_OFF = "Your answer was cut off at the bound on its length before it called a tool. Say less, and call one."


class Turns:
    """One episode: the environment, the model, and how it gets on.

    Attributes:
        env: was reset
        llm: the model
        malformed: answers in a row without a call, though one was asked for
        limit: tokens that a prompt may have; None: unknown
    """

    def __init__(self, env: RepoEnv, llm: LLM | None, agent: str) -> None:
        """Begin.

        Args:
            env: was reset
            llm: the model
            agent: name of the agent, which cannot play without a model

        Raises:
            UsageError: there is no model
        """
        if llm is None:
            raise UsageError(f"{agent} needs an LLM; say --llm NAME")
        self.env, self.llm = env, llm
        self.malformed = 0
        self.limit = _limit(llm)

    @property
    def hopeless(self) -> bool:
        """Whether the model calls nothing, however often it is asked."""
        return self.malformed >= MOST_MALFORMED

    @property
    def resolved(self) -> bool:
        """Whether the task is resolved as the files are now: what was measured may have been broken since."""
        return self.env.resolved and self.env.grade().resolved

    def tools(self) -> list[dict[str, Any]]:
        """What the model is offered now, as JSON Schema."""
        return [type(tool).schema() for tool in self.env.tools.values()]

    def trim(self, history: History, *more: Message, share: float = 1.0) -> None:
        """Leave out the oldest steps of a history that is too long, as far as the backend can tell.

        Args:
            history: the conversation
            more: further messages that are sent with it
            share: see `History.trim`
        """
        if self.limit is not None:
            tools = self.tools()
            history.trim(self.limit, lambda messages: self.llm.count([*messages, *more], tools) or 0, share=share)

    def ask(self, history: History, before: Sequence[Message] = (), after: Sequence[Message] = ()) -> Completion:
        """Ask the model, with a shorter history when it is too long.

        Args:
            history: the conversation
            before: what it is told before that, but is not remembered
            after: what it is told then, likewise

        Raises:
            LLMError: the service failed for good, or cannot take even the newest step
        """
        while True:
            try:
                return self.llm.complete([*before, *history.messages, *after], self.tools())
            except ContextOverflow:
                if not history.shrink():
                    raise

    def ends(self, completion: Completion) -> bool:
        """Whether nothing comes after an answer without a call: a person leaves, a script is played."""
        return self.llm.trusted or completion.finish == "over"

    def note(self, answer: Message) -> None:
        """Count an answer, where one without a call is none."""
        self.malformed = 0 if answer.calls else self.malformed + 1


def ended_by(finish: str) -> str:
    """What ended an episode in which the model called nothing, however often it was asked.

    Args:
        finish: why the last answer ended
    """
    return finish if finish in ("refused", "length") else "malformed"


def correction(completion: Completion) -> str | None:
    """What is wrong with an answer without a call; None where the model may just have nothing left to do."""
    return correction_of(completion.message) or (CUT_OFF if completion.finish == "length" else None)


def with_ids(message: Message, taken: int) -> Message:
    """An answer whose calls have ids, so that their results can be told apart.

    Args:
        message: the answer
        taken: a number that no earlier answer was given
    """
    if all(call.id is not None for call in message.calls):
        return message
    calls = (
        call if call.id is not None else dataclasses.replace(call, id=f"call-{taken}-{number}")
        for number, call in enumerate(message.calls, 1)
    )
    return dataclasses.replace(message, calls=tuple(calls))


def _limit(llm: LLM) -> int | None:
    """Tokens that a prompt may have."""
    thousands = getattr(llm.settings, "context_limit", None)
    if thousands is None:
        return None
    whole = int(thousands * 1000)
    answer = getattr(llm.settings, "max_tokens", None) or ANSWER
    return max(whole // 2, whole - answer)
