"""Language models: messages, what a call costs, what a backend implements."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from debug_gym_core.action import ToolCall
from debug_gym_core.component import Component


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: who speaks
        content: the text
        calls: tool calls that an assistant message makes
        call_id: for role `tool`: the call that this answers
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, as the provider counts them, and what they cost in dollars."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.cost + other.cost,
        )


@dataclass(frozen=True)
class Completion:
    """A model's answer."""

    message: Message
    usage: Usage = field(default_factory=Usage)


class LLM(Component, abc.ABC):
    """A language model backend.

    Attributes:
        trusted: whether a person answers, who may do without a sandbox; a model never is
    """

    trusted: ClassVar[bool] = False

    @abc.abstractmethod
    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Ask the model.

        Args:
            messages: the conversation
            tools: the tools as JSON Schema: `name`, `description`, `parameters`

        Raises:
            LLMError: the service failed for good
        """
