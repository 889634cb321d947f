"""How a backend fares with its connections: cut, slow, in pieces, many."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from debug_gym_core import Message, ToolCall, Usage
from debug_gym_core.errors import LLMUnavailable, RequirementError
from debug_gym_core.testing.chat_server import chat_reply, error_reply
from debug_gym_core.testing.chat_service import ASKED, ZURICH, ChatTests, Service
from debug_gym_core.testing.model_server import Reply, Request


class ConnectionTests(ChatTests):
    """Half an answer is none, a whole one is one however it comes, and no connection outlives its instance."""

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

    def test_tokens_of_attempts_that_failed(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """What the service has told of is charged, whatever came of it."""
        monkeypatch.setattr("debug_gym_core.models.gate.LONGEST_PAUSE", 0.01)
        used = {"prompt_tokens": 700, "completion_tokens": 5, "input_tokens": 700, "output_tokens": 5}
        failed = {"error": {"code": "server_error", "message": "x"}, "usage": used, "status": "failed"}
        if not service.stream:
            replies = [Reply(failed)] * 3
        elif service.api == "responses":
            event = {"type": "response.failed", "response": failed}
            replies = [Reply(events=[f"data: {json.dumps(event)}"])] * 3
        else:
            told = [{"choices": [], "usage": used}, {"choices": [], "usage": used}, {"choices": [{"usage": used}]}]
            ends = ["", "data: {oops", f"data: {json.dumps({'error': {'message': 'x'}})}"]
            replies = [Reply(events=[f"data: {json.dumps(one)}", end]) for one, end in zip(told, ends, strict=True)]
        good = service.reply("hi")
        service.answer = lambda request: replies.pop(0) if replies else good
        answer = service.llm.complete(list(ASKED), [])
        assert (answer.message.content, answer.wasted) == ("hi", Usage(2100, 15))

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

    def test_a_run_that_is_stopped(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """An answer that is still coming is left, but not at once: it is paid for."""
        service.llm.interrupt()
        service.answer = lambda request: service.reply("hello")
        assert service.llm.ask(list(ASKED), []).message.content == "hello"
        monkeypatch.setattr("debug_gym_core.models.stopping.GRACE", 0.0)
        assert "being stopped" in str(service.refused(service.reply("hello")))

    def test_an_environment_with_which_there_is_no_client(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the HTTP library refuses is said to be missing, with where to look."""
        monkeypatch.setenv("HTTP_PROXY", "foo://127.0.0.1")
        with pytest.raises(RequirementError, match=r"no client can be made: .*foo.*HTTP_PROXY"):
            service.made().prepare()

    def test_a_service_that_is_strict_about_who_speaks(self, service: Service) -> None:
        """It is told so in the order that it wants, from its first refusal on."""
        if service.api != "chat":
            pytest.skip("its items have no order of roles")
        call = ToolCall("view", {}, "1")
        talk = [*ASKED, Message("assistant", "", (call,)), Message("tool", "seen", call_id="1"), Message("user", "So?")]

        def answer(request: Request) -> Reply:
            roles = [one["role"] for one in request.body["messages"]]
            if "tool" in roles and roles[-1] == "user":
                return error_reply(400, "Unexpected role 'user' after role 'tool'")
            return service.reply(request.body["messages"][-1]["content"])

        service.answer = answer
        assert service.llm.ask(talk, []).message.content == "seen\n\nSo?"
        assert (service.llm.ask(talk, []).message.content, len(service.server.requests)) == ("seen\n\nSo?", 3)
        service.llm = service.made()
        together = threading.Barrier(2, timeout=60)

        def at_once(request: Request) -> Reply:
            if request.body["messages"][-1]["role"] == "user":
                together.wait()
            return answer(request)

        service.answer = at_once
        with ThreadPoolExecutor(2) as pool:  # both are refused before either knows
            answers = list(pool.map(lambda _: service.llm.ask(talk, []).message.content, range(2)))
        assert answers == ["seen\n\nSo?"] * 2

    def test_many_at_once(self, service: Service) -> None:
        """Workers share an instance."""
        service.answer = lambda request: service.reply(str(service.api))
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: service.llm.ask(list(ASKED), []).message.content, range(16)))
        assert answers == [service.api] * 16

    def test_a_storm_passes(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """Asked again until there is an answer."""
        monkeypatch.setattr("debug_gym_core.models.gate.FIRST_PAUSE", 0.001)
        replies = [error_reply(429, "Wait"), error_reply(500, "Oops"), error_reply(529, "Wait"), service.reply("yes")]
        service.answer = lambda request: replies[len(service.server.requests) - 1]
        assert service.llm.complete(list(ASKED), []).message.content == "yes"
        assert len(service.server.requests) == 4
