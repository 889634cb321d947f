"""The human LLM: a person answers, at a prompt with completion, history and help."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from debug_gym_core import LLM, Completion, Message, hookimpl

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv
    from debug_gym_llm_human.conversation import Conversation, Prompt


class Human(LLM):
    """A person at the terminal: types tool calls in the text form, with Tab, history and help.

    Where standard input is no terminal, its lines are taken instead.
    """

    name = "human"
    trusted: ClassVar[bool] = True

    def __init__(self, **settings: Any) -> None:
        """Check and keep the settings; see `Component`."""
        super().__init__(**settings)
        self._prompt: Prompt | None = None
        self._conversation: Conversation | None = None
        self._interrupted = False
        self._calls = 0

    def begin(self, env: RepoEnv) -> None:
        """Take the environment's tools, files and breakpoints for completion, and show what happens in it."""
        self._talk().begin(env)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Show what is new and let the person choose.

        Raises:
            KeyboardInterrupt: the person wants the run stopped, or it is being stopped
        """
        conversation = self._talk()
        conversation.show(messages[-1].content if messages else "")
        call = conversation.ask()
        if call is None:
            return Completion(Message("assistant", "The person ended the episode."), finish="over")
        self._calls += 1
        return Completion(Message("assistant", "", (dataclasses.replace(call, id=f"call-{self._calls}"),)))

    def interrupt(self) -> None:
        """Take the prompt away."""
        self._interrupted = True
        if self._prompt is not None:
            self._prompt.interrupt()

    def _talk(self) -> Conversation:
        if self._conversation is None:
            from debug_gym_llm_human.conversation import Conversation

            self._prompt = _make_prompt()
            self._conversation = Conversation(self._prompt)
            if self._interrupted:
                self._prompt.interrupt()
        return self._conversation


def _make_prompt() -> Prompt:
    """The prompt that fits standard input and output."""
    streams = (sys.stdin, sys.stdout)
    terminal = all(stream is not None and not stream.closed and stream.isatty() for stream in streams)
    if terminal and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", ""):
        from debug_gym_llm_human.terminal_prompt import TerminalPrompt

        return TerminalPrompt()
    from debug_gym_llm_human.plain_prompt import PlainPrompt

    return PlainPrompt()


@hookimpl
def debug_gym_register_llms() -> Sequence[type[LLM]]:
    """The LLM of this package."""
    return [Human]
