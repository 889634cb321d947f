"""How a backend reads what a service answers, and what it sends back of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from debug_gym_core.models.llm import Completion, Message
from debug_gym_core.testing.chat_service import ASKED, BERN, KEY, ZURICH, ChatTests, Service
from debug_gym_core.testing.llm import WEATHER
from debug_gym_core.testing.model_server import Reply
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import Usage

ARGUMENTS: Sequence[tuple[str, Any]] = (
    ("", {}),
    ("null", {}),
    (" \n", {}),
    ('{"place": null}', {"place": None}),
    ('{"place": "Zü', '{"place": "Zü'),
    ('["a"]', '["a"]'),
    ('{"n": NaN}', '{"n": NaN}'),
)
"""Arguments of a call as models write them, and what they are."""


class AnswerTests(ChatTests):
    """Text, calls, reasoning, refusals and usage come whole, and go back in the service's format."""

    def test_text(self, service: Service) -> None:
        """What it says, with its tokens, of which some were cached."""
        completion = service.asked(service.reply("It is 漢字.\u2028", usage=Usage(100, 7, cached=60)))
        assert completion == Completion(
            Message("assistant", "It is 漢字.\u2028", provider=completion.message.provider), Usage(100, 7, 60)
        )
        assert bool(completion.message.provider) is (service.api == "responses")
        assert service.server.requests[-1].headers.get("authorization", f"Bearer {KEY}") == f"Bearer {KEY}"

    def test_the_request(self, service: Service) -> None:
        """Model, conversation, tools and settings, in the service's format."""
        service.llm = service.made(temperature=0.5, max_tokens=99, generate_kwargs={"top_k": 5, "seed": 1})
        service.asked(service.reply("yes"))
        body = service.server.requests[-1].body
        assert (body["model"], body["temperature"], body["top_k"], body["seed"]) == ("served", 0.5, 5, 1)
        assert bool(body.get("stream")) == service.stream
        assert [item["role"] for item in service.sent] == ["system", "user"]
        assert service.sent[1]["content"] == ASKED[1].content
        if service.api == "chat":
            assert body["tools"] == [{"type": "function", "function": dict(WEATHER)}]
            assert 99 in (body.get("max_tokens"), body.get("max_completion_tokens"))
            assert body.get("stream_options") == ({"include_usage": True} if service.stream else None)
        else:
            assert body["tools"] == [{"type": "function", "strict": False, **WEATHER}]
            assert (body["max_output_tokens"], body["store"]) == (99, False)

    def test_a_model_without_system_messages_or_tools(self, service: Service) -> None:
        """The system's words are the user's, and no tools are offered."""
        service.llm = service.made(system_prompt_support=False, function_calling=False)
        service.asked(service.reply("yes"))
        assert service.sent == [{"role": "user", "content": "Use the tools.\n\nZürich? 漢字"}]
        assert "tools" not in service.server.requests[-1].body

    def test_parallel_calls(self, service: Service) -> None:
        """All calls of a turn, in order, and their answers with their ids."""
        said = service.asked(service.reply("So:", [ZURICH, BERN])).message
        assert (said.content, said.calls) == ("So:", (ZURICH, BERN))
        answers = [Message("tool", "sunny", call_id="call-1"), Message("tool", "rain", call_id="call-2")]
        service.asked(service.reply("done"), [*ASKED, said, *answers])
        if service.api == "chat":
            assert [item["role"] for item in service.sent] == ["system", "user", "assistant", "tool", "tool"]
            assert [call["id"] for call in service.sent[2]["tool_calls"]] == ["call-1", "call-2"]
            assert service.sent[3] == {"role": "tool", "tool_call_id": "call-1", "content": "sunny"}
        else:
            kinds = ["message", "function_call", "function_call", "function_call_output", "function_call_output"]
            assert [item["type"] for item in service.sent[2:]] == kinds
            assert service.sent[5] == {"type": "function_call_output", "call_id": "call-1", "output": "sunny"}

    def test_arguments_of_all_kinds(self, service: Service) -> None:
        """None are {}; what is no object comes as text, and goes back as an object."""
        for given, read in ARGUMENTS:
            call: Any = ToolCall("no such tool!", given, "call-1")
            said = service.asked(service.reply(None, [call])).message
            assert [(call.name, call.arguments) for call in said.calls] == [("no such tool!", read)]
            service.asked(service.reply("done"), [*ASKED, said, Message("tool", "unknown", call_id="call-1")])
            back = service.sent[2]
            function = back["tool_calls"][0]["function"] if service.api == "chat" else back
            assert function["name"] == "no_such_tool_"
            assert json.loads(function["arguments"]) == (read if isinstance(read, dict) else {"malformed": read})

    def test_names_that_no_tool_can_have(self, service: Service) -> None:
        """They are read as they came, and go back as the service takes them."""
        for name, sent in (("x" * 300, "x" * 64), ("", "unknown")):
            said = service.asked(service.reply(None, [ToolCall(name, {}, "call-1")])).message
            assert [call.name for call in said.calls] == [name]
            service.asked(service.reply("done"), [*ASKED, said, Message("tool", "unknown", call_id="call-1")])
            back = service.sent[2]
            assert (back["tool_calls"][0]["function"] if service.api == "chat" else back)["name"] == sent

    def test_calls_have_ids_of_their_own(self, service: Service) -> None:
        """Also where the service uses one again in the next turn."""
        first = service.asked(service.reply(None, [ZURICH])).message
        again = service.asked(service.reply(None, [ZURICH, ZURICH]), [*ASKED, first]).message
        assert len({call.id for call in (*first.calls, *again.calls)}) == 3
        assert all(call.id for call in again.calls)

    def test_calls_that_come_without_ids(self, service: Service) -> None:
        """They get some, and their answers find them."""
        reply = service.reply(None, [ZURICH])
        without = json.loads(
            json.dumps([reply.body, reply.events]).replace(r"\"call-1\"", "null").replace('"call-1"', "null")
        )
        (call,) = service.asked(Reply(without[0], events=without[1])).message.calls
        assert call.id and call == ToolCall("weather", {"place": "Zürich"}, call.id)

    def test_reasoning(self, service: Service) -> None:
        """It is shown, and goes back with the calls that it led to; another backend's does not."""
        completion = service.asked(service.reply(None, [ZURICH], reasoning="The user asks."))
        assert completion.reasoning == "The user asks."
        said = Message("assistant", "", (ZURICH,), provider={**completion.message.provider, "other": {"output": [1]}})
        service.asked(service.reply("done"), [*ASKED, said, Message("tool", "sunny", call_id="call-1")])
        if service.api == "chat":
            assert service.sent[2]["reasoning_content"] == "The user asks."
        else:
            assert service.sent[2]["type"] == "reasoning" and service.sent[2]["encrypted_content"]
            assert service.server.requests[-1].body["include"] == ["reasoning.encrypted_content"]
        assert json.loads(json.dumps(completion.message.provider)) == completion.message.provider

    def test_what_comes_beside_a_call(self, service: Service) -> None:
        """It goes back with that call, as the signatures of Gemini have to; it is nothing of the Responses API's."""
        if service.api == "chat":
            signed = {"google": {"thought_signature": "c2lnbmVk"}}
            said = service.asked(service.reply(None, [ZURICH, BERN], beside={"call-2": signed})).message
            assert json.loads(json.dumps(said.provider)) == said.provider
            answers = [Message("tool", "sunny", call_id="call-1"), Message("tool", "rain", call_id="call-2")]
            service.asked(service.reply("done"), [*ASKED, said, *answers])
            assert [call.get("extra_content") for call in service.sent[2]["tool_calls"]] == [None, signed]
            assert "extra_content" not in service.sent[2]["tool_calls"][0]

    def test_thinking_aloud(self, service: Service) -> None:
        """The answer begins after the token."""
        service.llm = service.made(reasoning_end_token="</think>")
        completion = service.asked(service.reply("<think>hm</think>\n\nyes"))
        assert (completion.reasoning, completion.message.content) == ("<think>hm", "yes")

    def test_refusal(self, service: Service) -> None:
        """It is what the model says, and marked."""
        completion = service.asked(service.reply(None, refusal="I cannot help with that."))
        assert (completion.finish, completion.message.content) == ("refused", "I cannot help with that.")

    def test_cut_off_at_the_bound(self, service: Service) -> None:
        """An answer that is too long says so, even where nothing is left of it."""
        ends = ("length", "content_filter") if service.api == "chat" else ("max_output_tokens", "content_filter")

        def cut(text: str, end: str) -> Completion:
            more: dict[str, Any] = {"finish" if service.api == "chat" else "incomplete": end}
            return service.asked(service.reply(text, **more))

        assert [cut("I", end).finish for end in ends] == ["length", "refused"]
        assert cut("", ends[0]).message.content == ""

    def test_nothing_said(self, service: Service) -> None:
        """It is an answer, asked for once more; and the conversation goes on after it."""
        for text in ("", None):
            service.answer = lambda request, text=text: service.reply(text)  # type: ignore[misc]
            before = len(service.server.requests)
            completion = service.llm.complete(ASKED, [dict(WEATHER)])
            assert (completion.message.content, completion.message.calls, completion.finish) == ("", (), "stop")
            assert len(service.server.requests) == before + 2
            assert completion.wasted.prompt == completion.usage.prompt > 0
            service.asked(service.reply("sunny"), [*ASKED, completion.message, Message("user", "Well?")])

    def test_unknown_usage_is_estimated(self, service: Service) -> None:
        """A budget that saw nothing would never end."""
        usage = service.asked(service.reply("It is sunny in Zürich.", usage=None)).usage
        assert usage.prompt >= 10 and usage.completion >= 5
