"""Language models: messages, what a call costs, what a backend implements."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from debug_gym_core.components.component import Component, Settings
from debug_gym_core.components.values import Positive
from debug_gym_core.errors import PluginError
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import Usage

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


def completed(model: LLM, answer: object, method: str = "complete") -> Completion:
    """What a backend has answered: it is written down and added up before anybody looks at it again.

    Args:
        model: the backend
        answer: what its method returned
        method: its name

    Raises:
        PluginError: it is no answer, or one with a message or usage that is none
    """
    wrong = f"llm {model.name}: {method}() must return"
    if not isinstance(answer, Completion):
        raise PluginError(f"{wrong} a Completion, not {answer!r:.80}")
    said = answer.message
    if not (isinstance(said, Message) and isinstance(said.content, str)):
        raise PluginError(f"{wrong} a Message with a text, not {said!r:.80}")
    if not (isinstance(said.calls, tuple | list) and all(isinstance(call, ToolCall) for call in said.calls)):
        raise PluginError(f"{wrong} its calls as a tuple of ToolCall, not {said.calls!r:.80}")
    for usage in (answer.usage, answer.wasted):
        if not (isinstance(usage, Usage) and usage.adds_up):
            raise PluginError(f"{wrong} a Usage of finite numbers that are not negative, not {usage!r:.80}")
    return answer


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

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int | None:
        """Tokens of a prompt before it is sent; None where a backend cannot tell.

        Args:
            messages: the conversation
            tools: as `complete`
        """
        return None

    def interrupt(self) -> None:
        """The run is being stopped: a call under way may end at once, with any exception.

        Called from another thread. Does nothing unless a backend can tell whom it waits for.
        """

    def close(self) -> None:
        """Give back what asking took, such as connections; the episode is over.

        May be called twice, and before the model was ever asked. Does nothing unless a backend holds something.
        """


class WrappedLLM(LLM):
    """A model that does what another one does: base of those that change a part of it."""

    def __init__(self, inner: LLM) -> None:
        """Wrap a model.

        Args:
            inner: the model
        """
        self._inner = inner
        self.settings = inner.settings
        self.trusted = inner.trusted  # type: ignore[misc]
        self.replayable = inner.replayable  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def begin(self, env: RepoEnv) -> None:
        """See `LLM`."""
        self._inner.begin(env)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """See `LLM`."""
        return self._inner.complete(messages, tools)

    def complete_as(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], read: Callable[[Completion], Completion]
    ) -> Completion:
        """Ask as `complete` does, for who understands calls in the text: one that keeps answers keeps these calls.

        Args:
            messages: as `complete`
            tools: likewise
            read: gives the answer as it is understood
        """
        return read(self.complete(messages, tools))

    def estimate(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        last: tuple[Sequence[Message], Usage] | None = None,
    ) -> Usage:
        """See `LLM`."""
        return self._inner.estimate(messages, tools, last)

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int | None:
        """See `LLM`."""
        return self._inner.count(messages, tools)

    def interrupt(self) -> None:
        """See `LLM`."""
        self._inner.interrupt()

    def close(self) -> None:
        """See `LLM`."""
        self._inner.close()
