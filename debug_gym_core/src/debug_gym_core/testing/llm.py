"""What a backend for language models promises."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from debug_gym_core.models.llm import LLM, Completion, Message
from debug_gym_core.testing.component import ComponentContract
from debug_gym_core.testing.environments import TERMINAL, Environments, unusable
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import Usage

WEATHER: Mapping[str, Any] = {
    "name": "weather",
    "description": "Tell the weather of a place.",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string", "description": "the place"}},
        "required": ["place"],
        "additionalProperties": False,
    },
}
"""A tool that the model is offered."""


class LLMContract(ComponentContract):
    """The tests that every backend must pass.

    A backend that needs a service overrides the fixture `ready`: start a local server that speaks the service's
    language, and return an instance that talks to it. It is asked twice in each test at most.

    Attributes:
        llm: the backend's class
        calls_tools: whether the model of the fixture `ready` calls a tool when it is first asked
        counts: whether the service of the fixture `ready` counts tokens
    """

    llm: ClassVar[type[LLM]]
    calls_tools: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    _kind: ClassVar[str] = "llms"

    @pytest.fixture
    def ready(self) -> Iterator[LLM]:
        """An instance that can be asked; to be overridden where that needs more than `settings`."""
        yield self.llm(**self.settings)

    @pytest.fixture
    def conversation(self) -> list[Message]:
        """What the model is asked."""
        return [
            Message("system", "You answer questions. Use the tools."),
            Message("user", "What is the weather in Zürich? 漢字 🎉 <b> & \"quotes\" 'and' `ticks`\n\x0c"),
        ]

    def test_it_says_whether_a_person_answers(self) -> None:
        """`trusted` decides whether the answers may be carried out without a sandbox."""
        assert isinstance(self.llm.trusted, bool)

    def test_an_answer_is_a_message_with_its_cost(self, ready: LLM, conversation: list[Message]) -> None:
        """From the assistant: text, calls of tools, or both; tokens and money are counted, or 0."""
        completion = ready.complete(conversation, [dict(WEATHER)])
        self.check(completion)
        assert completion.message.content or completion.message.calls
        if self.calls_tools:
            assert completion.message.calls, "it calls no tool, and this contract says `calls_tools = True`"
        if self.counts:
            assert completion.usage.prompt > 0 and completion.usage.completion > 0

    def test_a_conversation_goes_on(self, ready: LLM, conversation: list[Message]) -> None:
        """Calls are answered, by the id that they have, and the model is asked again."""
        answer = ready.complete(conversation, [dict(WEATHER)]).message
        conversation.append(answer)
        for call in answer.calls:
            conversation.append(Message("tool", "sunny", call_id=call.id))
        if not answer.calls:
            conversation.append(Message("user", "And tomorrow?"))
        self.check(ready.complete(conversation, [dict(WEATHER)]))

    def test_what_it_is_given_stays_as_it_is(self, ready: LLM, conversation: list[Message]) -> None:
        """The conversation is the agent's, the schemas are everybody's."""
        tools = [copy.deepcopy(dict(WEATHER))]
        before = list(conversation), json.dumps(tools)
        ready.complete(conversation, tools)
        assert (conversation, json.dumps(tools)) == before

    def test_it_does_without_tools(self, ready: LLM, conversation: list[Message]) -> None:
        """An agent may offer none."""
        self.check(ready.complete(conversation, []))

    def test_an_episode_may_begin(self, ready: LLM, tmp_path: Path) -> None:
        """It may look at the environment, and leaves it as it is."""
        if reason := unusable(TERMINAL):
            pytest.skip(reason)
        with Environments(tmp_path) as environments:
            env = environments.make()
            before = env.last_text
            ready.begin(env)
            assert (env.steps, env.last_text, env.failure, env.patch) == (0, before, None, b"")

    def test_it_may_be_closed_at_any_time(self, ready: LLM, conversation: list[Message]) -> None:
        """Before it was asked, after, and twice; who asks again gets an answer."""
        ready.close()
        self.check(ready.complete(conversation, []))
        ready.close()
        ready.close()

    def check(self, completion: Completion) -> None:
        """Hold an answer against what every answer must be."""
        assert isinstance(completion, Completion)
        message, usage = completion.message, completion.usage
        assert isinstance(message, Message) and message.role == "assistant" and message.call_id is None
        assert isinstance(message.content, str)
        for call in message.calls:
            assert isinstance(call, ToolCall) and isinstance(call.name, str) and call.name
            json.dumps(call.as_json())
        ids = [call.id for call in message.calls]
        assert len(set(ids)) == len(ids), f"two calls have the same id: {ids}"
        assert isinstance(usage, Usage)
        counts = (usage.prompt, usage.completion, usage.cached)
        assert all(isinstance(count, int) and count >= 0 for count in counts), counts
        assert usage.cached <= usage.prompt and usage.cost >= 0
