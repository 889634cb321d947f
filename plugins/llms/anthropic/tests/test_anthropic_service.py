"""Counting tokens, the client, and what is loaded when."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from debug_gym_core import LLMError, Message, RequirementError, ToolCall, Usage
from debug_gym_core.errors import LLMRefused
from debug_gym_core.models.gate import STOPPED
from debug_gym_core.models.service import MARGIN, ServiceLLM
from debug_gym_core.testing.llm import WEATHER
from debug_gym_core.testing.messages_server import answer, call, error, text
from debug_gym_core.testing.model_server import Reply, Request
from debug_gym_llm_anthropic import Anthropic

if TYPE_CHECKING:
    import anthropic
    from conftest import Service

HELLO = [Message("system", "You are brief."), Message("user", "Hi")]
TOOLS = [dict(WEATHER)]


def test_tokens_are_estimated_without_a_request(service: Service) -> None:
    llm = service.llm(Reply({"input_tokens": 123}))
    assert llm.count(HELLO, TOOLS) == ServiceLLM.count(llm, HELLO, TOOLS)
    assert not service.requests


def test_the_service_counts_when_it_is_asked_to(service: Service) -> None:
    more = {"tool_choice": {"type": "any"}, "top_k": 3}
    llm = service.llm(Reply({"input_tokens": 123}), count_tokens=True, thinking=1024, generate_kwargs=more)
    assert llm.count(HELLO, TOOLS) == 123
    (asked,) = service.requests
    assert asked.path == "/v1/messages/count_tokens"
    assert sorted(asked.body) == ["messages", "model", "system", "thinking", "tool_choice", "tools"]


@pytest.mark.parametrize(
    "more", [{"thinking": 6000}, {"generate_kwargs": {"thinking": {"type": "enabled", "budget_tokens": 6000}}}]
)
def test_an_answer_has_as_much_room_beside_the_thinking_wherever_that_is_said(
    service: Service, more: dict[str, Any]
) -> None:
    assert service.llm(**more).longest_answer == service.llm().longest_answer + 6000


def test_a_service_that_is_busy_does_not_count(service: Service) -> None:
    llm = service.llm(error(429, "rate_limit_error", "slow down"), count_tokens=True)
    assert llm.count(HELLO, TOOLS) == ServiceLLM.count(llm, HELLO, TOOLS)
    assert len(service.requests) == 1


@pytest.mark.parametrize("body", [b"{}", b"null", b"{", b'{"input_tokens": "many"}', b"<html>"])
def test_a_service_that_counts_wrong_does_not_count(service: Service, body: bytes) -> None:
    llm = service.llm(Reply(body), count_tokens=True)
    assert llm.count(HELLO, TOOLS) == ServiceLLM.count(llm, HELLO, TOOLS)


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (404, "not_found_error", r"no such path \(404\); look at model"),
        (401, "authentication_error", r"no such path \(401\); "),
    ],
)
def test_a_count_that_is_refused_is_refused_as_the_call_would_be(
    service: Service, status: int, kind: str, said: str
) -> None:
    llm = service.llm(error(status, kind, "no such path"), count_tokens=True)
    with pytest.raises(LLMRefused, match=said) as caught:
        llm.count(HELLO, TOOLS)
    assert str(caught.value).endswith("; or turn `count_tokens` off")


def test_a_conversation_that_goes_on_is_counted_whole(service: Service) -> None:
    llm = service.llm(Reply({"input_tokens": 500}), count_tokens=True, max_tokens=7)
    asked = Message("assistant", "", (ToolCall("weather", {"city": "Oslo"}, "toolu_1"),))
    messages = [*HELLO, asked, Message("tool", "rain", call_id="toolu_1")]
    estimate = llm.estimate(messages, TOOLS, (messages[:-1], Usage(300, 20)))
    assert (estimate.prompt, estimate.completion) == (int(500 * MARGIN), 7)
    (body,) = service.bodies
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]


def test_a_count_that_the_service_does_not_take_is_estimated_and_said_once(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """As in each of two runs, which have a backend of their own."""
    for _ in range(2):
        caplog.clear()
        llm = service.llm(error(400, "invalid_request_error", "not like this"), model="claude-400", count_tokens=True)
        for _ in range(2):
            assert llm.count(HELLO, TOOLS) == ServiceLLM.count(llm, HELLO, TOOLS)
        (told,) = (one for one in caplog.records if one.levelname == "WARNING")
        assert "claude-400: not like this (400)" in told.getMessage()
        assert told.getMessage().endswith("; its tokens are estimated")


def test_a_count_that_hangs_ends_when_the_run_is_stopped(service: Service) -> None:
    asked, leave = threading.Event(), threading.Event()

    def reply(request: Request) -> Reply:
        asked.set()
        leave.wait(60)
        return Reply({"input_tokens": 1})

    llm = service.asking(reply, count_tokens=True)
    threading.Thread(target=lambda: (asked.wait(60), llm.interrupt())).start()
    try:
        with pytest.raises(LLMError, match=STOPPED):
            llm.count(HELLO, TOOLS)
        assert not leave.is_set()
    finally:
        leave.set()


def test_the_sdk_is_loaded_when_it_is_needed() -> None:
    code = (
        "import sys; from debug_gym_llm_anthropic import Anthropic;"
        "llm = Anthropic(model='claude-test', api_key='k', thinking=1024); llm.count([], []);"
        "print({'anthropic', 'httpx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_missing_sdk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "anthropic"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(RequirementError) as caught:
        Anthropic(model="claude-test", api_key="k").complete(HELLO, TOOLS)
    assert str(caught.value).startswith("claude-test: the SDK cannot be loaded (")
    assert str(caught.value).endswith("): pip install 'anthropic>=0.70,<1'")


def test_many_threads_share_one_client(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    import anthropic  # not where tests are collected: it takes a second

    built = []
    build = anthropic.Anthropic.__init__

    def counted(self: anthropic.Anthropic, *args: object, **kwargs: object) -> None:
        built.append(self)
        build(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(anthropic.Anthropic, "__init__", counted)
    together = threading.Barrier(8, timeout=30)

    def reply(_: object) -> Reply:
        together.wait()  # all eight are under way at once
        return answer(text("Hi"), call("weather"))

    llm = service.asking(reply)
    done: list[str] = []
    threads = [
        threading.Thread(target=lambda: done.append(llm.ask(HELLO, TOOLS).message.content), daemon=True)
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert done == ["Hi"] * 8 and len(built) == 1


def test_an_environment_with_which_there_is_no_client(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "foo://127.0.0.1")
    with pytest.raises(RequirementError, match=r"no client can be made: .*foo.*HTTP_PROXY"):
        service.llm(answer(text("Hi"))).prepare()


def test_connections_are_closed_with_the_backend(service: Service) -> None:
    """An open socket that is collected is a warning, which fails this test."""
    llm = service.llm(answer(text("Hi")))
    llm.ask(HELLO, TOOLS)
    http = llm._client()[0]._client
    assert not http.is_closed
    del llm
    assert http.is_closed
