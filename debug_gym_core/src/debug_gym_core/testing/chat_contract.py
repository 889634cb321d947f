"""What a backend promises that is built on `ChatLLM`: the SDK against a server on loopback, well and failing."""

from __future__ import annotations

import email.utils
import json
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from debug_gym_core.errors import ContextOverflow, LLMError, LLMRefused, LLMUnavailable, UsageError
from debug_gym_core.models.chat_client import ChatLLM
from debug_gym_core.models.llm import Completion, Message, Usage
from debug_gym_core.testing.chat_server import chat_reply, error_reply, responses_reply
from debug_gym_core.testing.llm import WEATHER, LLMContract
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_core.tools.action import ToolCall

KEY = "sk-planted-0123456789abcdef"
ASKED = (Message("system", "Use the tools."), Message("user", "Zürich? 漢字"))
ZURICH = ToolCall("weather", {"place": "Zürich"}, "call-1")
BERN = ToolCall("weather", {"place": "Bern"}, "call-2")

OVERFLOWS = (
    (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens."),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
    (400, "the request exceeds the available context size, try increasing it"),
    (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (400, "Prompt is too long: 210000 tokens."),
    (413, "Input is too long for requested model."),
    (422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"),
    (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 60000."),
)
"""How servers say that a conversation is too long, without a code for it."""


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

PATIENCE: Sequence[tuple[dict[str, str], float | None]] = (
    ({}, None),
    ({"retry-after": "7"}, 7),
    ({"retry-after": "0.5"}, 0.5),
    ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "-5"}, 0),
    ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
)
"""How services ask to wait, and the seconds."""

REMEDIES = {400: "generate_kwargs", 401: "api_key", 403: "may not", 404: "model and endpoint", 422: "settings"}


class Service:
    """A server that answers as it is told, and a backend's instance that talks to it.

    Attributes:
        answer: tells what is answered; asked for each request
        api: the format that is spoken
        stream: whether answers come in pieces
        server: with the requests that came
        llm: the instance
    """

    def __init__(self, api: str, stream: bool, make: Callable[[str, dict[str, Any]], ChatLLM]) -> None:
        """Start to serve.

        Args:
            api: chat or responses
            stream: whether answers come in pieces
            make: the instance for the server's address and further settings
        """
        self.api, self.stream = api, stream
        self.answer: Callable[[Request], Reply] = lambda request: self.reply("hello")
        self.server = ModelServer(lambda request: self.answer(request))
        self._make = make
        self.llm = self.made()

    def made(self, **settings: Any) -> ChatLLM:
        """Another instance, with further settings."""
        return self._make(self.server.url, {"api": self.api, "stream": self.stream, **settings})

    def reply(self, text: str | None = None, calls: Sequence[ToolCall] = (), **more: Any) -> Reply:
        """An answer in the format that is spoken."""
        build = chat_reply if self.api == "chat" else responses_reply
        return build(text, calls, stream=self.stream, **more)

    def asked(self, reply: Reply, messages: Sequence[Message] = ASKED) -> Completion:
        """The answer to a conversation, when the service answers so."""
        self.answer = lambda request: reply
        return self.llm.ask(list(messages), [dict(WEATHER)])

    def refused(self, reply: Reply) -> LLMError:
        """What is raised when the service answers so."""
        with pytest.raises(LLMError) as caught:
            self.asked(reply)
        told = "".join(traceback.format_exception(caught.value))
        assert KEY not in told and "\n" not in str(caught.value)
        return caught.value

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The conversation of the last request, in the format that is spoken."""
        items: list[dict[str, Any]] = self.server.requests[-1].body["messages" if self.api == "chat" else "input"]
        return items


class ChatContract(LLMContract):
    """The tests of `LLMContract`, and all that a service may answer, in both formats, streamed and not.

    Attributes:
        llm: the backend's class
        endpoint: where its service lies below the server's address
        ways: to speak, that are tried
    """

    endpoint: ClassVar[str] = "/v1"
    ways: ClassVar[Sequence[str]] = ("chat", "chat-stream", "responses", "responses-stream")
    calls_tools = True
    counts = True

    def make(self, url: str, settings: dict[str, Any]) -> ChatLLM:
        """An instance for the server at an address; to be overridden where that needs more."""
        given = {"model": "served", "api_key": KEY, "endpoint": url + self.endpoint}
        llm = self.llm(**{**self.settings, **given, **settings})
        assert isinstance(llm, ChatLLM)
        return llm

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Each test in each way to speak."""
        if "way" in metafunc.fixturenames:
            metafunc.parametrize("way", self.ways)

    @pytest.fixture
    def service(self, way: str) -> Iterator[Service]:
        """A service that is spoken to in one way."""
        api, _, stream = way.partition("-")
        service = Service(api, bool(stream), self.make)
        try:
            yield service
        finally:
            service.server.close()

    @pytest.fixture
    def ready(self, service: Service) -> ChatLLM:
        """One that calls a tool when it is offered one, and then answers."""

        def answer(request: Request) -> Reply:
            if request.body.get("tools") and len(service.sent) < 4:
                return service.reply(None, [ZURICH, BERN])
            return service.reply("sunny")

        service.answer = answer
        return service.llm

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

    def test_unknown_usage_is_estimated(self, service: Service) -> None:
        """A budget that saw nothing would never end."""
        usage = service.asked(service.reply("It is sunny in Zürich.", usage=None)).usage
        assert usage.prompt >= 10 and usage.completion >= 5

    def test_what_is_wrong_for_good(self, service: Service) -> None:
        """One line: the model, what the service says, bounded and without the key, and what to do."""
        for number, (status, remedy) in enumerate(REMEDIES.items(), 1):
            error = service.refused(error_reply(status, f"Bad\n{'x' * 280} {KEY} {'x' * 400}", "wrong"))
            assert not isinstance(error, LLMUnavailable | ContextOverflow)
            assert isinstance(error, LLMRefused) is (status in (401, 404)), status
            assert str(error).startswith("served: Bad xxx") and f"({status})" in str(error) and remedy in str(error)
            assert len(str(error)) < 500 and KEY[:8] not in str(error) and "***" in str(error)
            assert len(service.server.requests) == number

    def test_an_account_without_credit(self, service: Service) -> None:
        """It says 429, and waiting does not help."""
        error = service.refused(error_reply(429, "You exceeded your current quota.", "insufficient_quota"))
        assert isinstance(error, LLMRefused) and "credit" in str(error)

    def test_what_may_pass(self, service: Service) -> None:
        """It is not asked again by the SDK, which the caller does."""
        for number, status in enumerate((408, 409, 425, 500, 502, 503, 504), 1):
            error = service.refused(error_reply(status, f"Try later, {KEY}", headers={"retry-after": "3"}))
            assert isinstance(error, LLMUnavailable), status
            assert (error.crowded, error.retry_after) == (False, 3), status
            assert len(service.server.requests) == number

    @pytest.mark.parametrize("status", [429, 529])
    def test_crowds(self, service: Service, status: int) -> None:
        """The time that a service asks for is read."""
        for number, (headers, seconds) in enumerate(PATIENCE, 1):
            error = service.refused(error_reply(status, "Too many requests", headers=headers))
            assert isinstance(error, LLMUnavailable) and error.crowded
            assert error.retry_after == seconds, headers
            assert len(service.server.requests) == number

    def test_a_date_to_come(self, service: Service) -> None:
        """As Retry-After may be."""
        date = email.utils.formatdate(time.time() + 600, usegmt=True)
        error = service.refused(error_reply(429, "Too many requests", headers={"retry-after": date}))
        assert isinstance(error, LLMUnavailable) and error.retry_after is not None and 0 < error.retry_after <= 600

    def test_too_long_by_words(self, service: Service) -> None:
        """As servers say it that have no code for it."""
        for status, words in OVERFLOWS:
            assert isinstance(service.refused(error_reply(status, words, "BadRequestError")), ContextOverflow), words

    def test_too_long_by_code(self, service: Service) -> None:
        """As OpenAI, and llama.cpp, say it."""
        for code in ("context_length_exceeded", "string_above_max_length", "exceed_context_size_error"):
            error = service.refused(error_reply(400, "Too much.", code))
            assert isinstance(error, ContextOverflow) and "Too much." in str(error)

    def test_answers_that_are_none(self, service: Service) -> None:
        """JSON of another kind, or none."""
        for body in (b"", b"<p>" + KEY.encode(), b'{"choices": [', b"[1, 2]", b"null", b"[" * 5000):
            error = service.refused(Reply(body))
            assert isinstance(error, LLMUnavailable) and "the service's answer" in str(error), body[:20]

    def test_empty_answers(self, service: Service) -> None:
        """No choices, no output, nothing said."""
        empty: list[Reply] = [service.reply(""), Reply({"choices": [], "output": []}), Reply({"choices": None})]
        empty += [Reply({"choices": [{"message": None}], "output": [None]}), Reply({})]
        for reply in empty:
            assert isinstance(service.refused(reply), LLMUnavailable)

    def test_an_error_as_an_answer(self, service: Service) -> None:
        """There are gateways that send one with status 200, whole or as an event of a stream."""
        wrong = {"error": {"message": f"Overloaded {KEY}", "code": 429}}
        reply = Reply(events=[f"data: {json.dumps(wrong)}"]) if service.stream else Reply(wrong)
        error = service.refused(reply)
        assert isinstance(error, LLMUnavailable) and error.crowded and "Overloaded ***" in str(error)
        wrong["error"] = {"message": "Too much.", "code": "context_length_exceeded"}
        reply = Reply(events=[f"data: {json.dumps(wrong)}"]) if service.stream else Reply(wrong)
        assert isinstance(service.refused(reply), ContextOverflow)

    def test_connections_that_are_cut(self, service: Service) -> None:
        """Before the answer or within it, half an answer is none."""
        for cut in (0, 2, 4):
            error = service.refused(service.reply("It is sunny in Zürich.", [ZURICH], cut=cut))
            assert isinstance(error, LLMUnavailable), cut

    def test_a_stream_with_a_broken_event(self, service: Service) -> None:
        """Half an answer is none."""
        good = chat_reply("hello", stream=True).events or ()
        error = service.refused(Reply(events=[good[0], "data: {oops", *good[1:]]))
        assert isinstance(error, LLMUnavailable) and "no JSON: {oops" in str(error)

    def test_events_that_come_in_parts(self, service: Service) -> None:
        """One that is longer than what is read at once is one all the same."""
        service.stream = True
        service.llm = service.made()
        wide = [event.replace("data: {", f"data: {' ' * 200_000}{{", 1) for event in service.reply("hi").events or ()]
        assert service.asked(Reply(events=wide)).message.content == "hi"

    def test_a_last_event_without_a_line_end(self, service: Service) -> None:
        """There are services that close the connection right behind it."""
        service.stream = True
        service.llm = service.made()
        events = [event for event in service.reply("hi", usage=None).events or () if event != "data: [DONE]"]
        reply = Reply("\n\n".join(events).encode(), headers={"content-type": "text/event-stream"})
        assert service.asked(reply).message.content == "hi"

    def test_its_connections_end_with_it(self, service: Service) -> None:
        """Whether it is closed or forgotten."""
        service.asked(service.reply("hi"))
        client = service.llm._client()
        service.llm.close()
        assert client.is_closed()
        service.asked(service.reply("hi"))
        client = service.llm._client()
        service.llm = service.made()
        assert client.is_closed()

    def test_nobody_listens(self, service: Service) -> None:
        """It may come back; the error says where it should be."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        llm = self.make(f"http://127.0.0.1:{port}", {"api": service.api})
        with pytest.raises(
            LLMUnavailable, match=rf"served: no connection with 127\.0\.0\.1:{port}: .*refused; look at endpoint"
        ):
            llm.ask(list(ASKED), [])

    def test_an_answer_that_takes_too_long(self, service: Service) -> None:
        """The time is an attempt's, not that between two pieces."""
        service.llm = service.made(timeout=0.2)
        error = service.refused(service.reply("It is sunny in Zürich.", delay=0.3))
        assert isinstance(error, LLMUnavailable) and "no answer within 0.2 s" in str(error)
        if service.stream:
            error = service.refused(Reply(events=[": still here"] * 30, delay=0.05))
            assert "no answer within 0.2 s" in str(error)

    def test_a_run_that_is_stopped(self, service: Service) -> None:
        """An answer that is still coming is left."""
        service.llm.interrupt()
        assert "being stopped" in str(service.refused(service.reply("hello")))

    def test_many_at_once(self, service: Service) -> None:
        """Workers share an instance."""
        service.answer = lambda request: service.reply(str(service.api))
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: service.llm.ask(list(ASKED), []).message.content, range(16)))
        assert answers == [service.api] * 16

    def test_a_storm_passes(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """Asked again until there is an answer."""
        monkeypatch.setattr("debug_gym_core.models.service.FIRST_PAUSE", 0.001)
        replies = [error_reply(429, "Wait"), error_reply(500, "Oops"), error_reply(529, "Wait"), service.reply("yes")]
        service.answer = lambda request: replies[len(service.server.requests) - 1]
        assert service.llm.complete(list(ASKED), []).message.content == "yes"
        assert len(service.server.requests) == 4

    def test_a_key_that_cannot_be_sent(self) -> None:
        """The SDK's error would repeat it."""
        with pytest.raises(UsageError, match="characters that no key has") as caught:
            self.make("http://127.0.0.1:9", {"api_key": f"{KEY}\u2014"})
        assert KEY not in "".join(traceback.format_exception(caught.value))

    def test_an_address_that_is_none(self) -> None:
        """It is said when the settings are read."""
        with pytest.raises(UsageError, match="begins with http"):
            self.make("", {"endpoint": "localhost:8000"})
