"""A model whose answers are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from debug_gym_core.models.llm import LLM, Completion, Message
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import Usage


class ScriptedLLM(LLM):
    """Calls the tools that it was told to, one a turn, then says that it is done.

    Each turn is charged as one prompt token a message and one completion token, so that tests can count.

    Attributes:
        seen: the conversations that it was given, one a turn
        offered: the tools that it was offered, one list a turn
    """

    name = "scripted-for-tests"

    def __init__(self, actions: Iterable[ToolCall | Mapping[str, Any] | str] = (), *, last: str = "Done.") -> None:
        """Learn the script.

        Args:
            actions: what to call: ToolCalls, their JSON form (`{"name": ..., "arguments": {...}}`) or text form
            last: what it says when all are played, in a message without a call
        """
        super().__init__()
        self._calls = [_call(action, number) for number, action in enumerate(actions, 1)]
        self._last = last
        self.seen: list[list[Message]] = []
        self.offered: list[list[dict[str, Any]]] = []

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """The next call; a message without a call when all are played."""
        turn = len(self.seen)
        self.seen.append(list(messages))
        self.offered.append(list(tools))
        message = Message("assistant", self._last)
        if turn < len(self._calls):
            message = Message("assistant", "", (self._calls[turn],))
        return Completion(message, Usage(prompt=len(messages), completion=1))


def _call(action: ToolCall | Mapping[str, Any] | str, number: int) -> ToolCall:
    """An action as a call; its text form is understood by the environment, which knows the tools."""
    if isinstance(action, ToolCall):
        return action
    if isinstance(action, str):
        return ToolCall(action, {}, f"call-{number}")
    return ToolCall(action["name"], action.get("arguments") or {}, f"call-{number}")
