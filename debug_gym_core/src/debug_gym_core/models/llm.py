"""Language models: messages, what a call costs, what a backend implements."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from debug_gym_core.components.component import Component, Settings
from debug_gym_core.components.values import Positive
from debug_gym_core.errors import LLMError, LLMUnavailable
from debug_gym_core.tools.action import ToolCall

if TYPE_CHECKING:
    from debug_gym_core.environment.env import RepoEnv


class AnswerSettings(Settings):
    """What a config may say of any model's answers.

    Attributes:
        temperature: null: the provider's default
        max_tokens: bound on an answer; null: the provider's default
    """

    temperature: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None = None
    max_tokens: Positive | None = None


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: who speaks
        content: the text
        calls: tool calls that an assistant message makes
        call_id: for role `tool`: the call that this answers
        provider: what a backend wants back with this message when the conversation goes on, such as thinking with its
            signature: JSON types, opaque to everybody else
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    provider: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, as the provider counts them, and what they cost.

    Attributes:
        prompt: tokens of all that the model was given
        completion: tokens of its answer
        cached: how many of `prompt` the provider had kept from an earlier call
        cost: dollars
        written: how many of `prompt` the provider has put into its cache, where it charges more for that
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost: float = 0.0
    written: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.cost + other.cost,
            self.written + other.written,
        )


@dataclass(frozen=True)
class Completion:
    """A model's answer.

    Attributes:
        message: what it says, with the calls that it makes
        usage: what the call cost
        wasted: what was charged before it, for answers that were of no use
        finish: why it ends: `stop` (it is complete), `length` (cut off at the bound on an answer), `refused`, `over`
            (nothing more will come, as at the end of a script)
        reasoning: what the provider shows of the model's thinking
    """

    message: Message
    usage: Usage = field(default_factory=Usage)
    finish: Literal["stop", "length", "refused", "over"] = "stop"
    reasoning: str = ""
    wasted: Usage = field(default_factory=Usage)


class UnusableAnswer(LLMUnavailable):
    """An answer that says nothing, or cannot be understood, and is charged all the same.

    Attributes:
        usage: the tokens that it took
    """

    def __init__(self, text: str, usage: Usage) -> None:
        super().__init__(text)
        self.usage = usage


class ChargedFailure(LLMError):
    """A call without an answer that may be charged.

    Attributes:
        usage: what is known to be; None: it was left before its end, and may be charged whole
    """

    def __init__(self, text: str, usage: Usage | None) -> None:
        super().__init__(text)
        self.usage = usage


class LLM(Component, abc.ABC):
    """A language model backend.

    Attributes:
        trusted: whether a person answers, who may do without a sandbox and plays one episode at a time; a model
            never is
        replayable: whether an answer depends on nothing but the question, so that one that was paid for may be used
            again when an interrupted episode is played anew
    """

    trusted: ClassVar[bool] = False
    replayable: ClassVar[bool] = False

    def begin(self, env: RepoEnv) -> None:
        """An episode begins; a backend that shows or completes something may look at the environment.

        Called once an episode, after the environment was reset and before it is asked for the first time. Does nothing
        unless a backend has a use for it.

        Args:
            env: the environment; it must not be stepped from here
        """

    @abc.abstractmethod
    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Ask the model.

        Args:
            messages: the conversation
            tools: the tools as JSON Schema: `name`, `description`, `parameters`

        Raises:
            ContextOverflow: the conversation is longer than the model takes
            LLMError: the service failed for good
            KeyboardInterrupt: whoever answers wants the whole run stopped
        """

    def estimate(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        last: tuple[Sequence[Message], Usage] | None = None,
    ) -> Usage:
        """What a call will cost at most, as far as can be told before; nothing where nobody charges.

        Args:
            messages: the conversation
            tools: as `complete`
            last: the conversation with the answer of the call before, and what that cost
        """
        return Usage()

    def interrupt(self) -> None:
        """The run is being stopped: a call under way may end at once, with any exception.

        Called from another thread. Does nothing unless a backend can tell whom it waits for.
        """

    def close(self) -> None:
        """Give back what asking took, such as connections; the episode is over.

        May be called twice, and before the model was ever asked. Does nothing unless a backend holds something.
        """
