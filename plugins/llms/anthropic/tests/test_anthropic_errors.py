"""What goes wrong with the service: what is asked again, what is an overflow, what is said; never the key."""

from __future__ import annotations

import email.utils
import time
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from debug_gym_core import LLMError, Message, RequirementError, Usage, UsageError
from debug_gym_core.errors import ContextOverflow, LLMRefused, LLMRejected, LLMUnavailable
from debug_gym_core.testing.llm import WEATHER
from debug_gym_core.testing.messages_server import answer, call, error, event, stream, text, thinking, usage
from debug_gym_core.testing.model_server import Reply, Request
from debug_gym_llm_anthropic import Anthropic

if TYPE_CHECKING:
    from conftest import Service

KEY = "sk-ant-planted-0123456789"
HELLO = [Message("system", "You are brief."), Message("user", "Hi")]
TOOLS = [dict(WEATHER)]


def failure(llm: Anthropic) -> LLMError:
    """What asking once raises: one line that names the model and keeps the key, its traceback too."""
    with pytest.raises(LLMError) as caught:
        llm.ask(HELLO, TOOLS)
    said = str(caught.value)
    assert said.startswith("claude-test: ") and "\n" not in said and len(said) < 450
    whole = "".join(traceback.format_exception(caught.value))
    assert KEY not in said and KEY not in whole and KEY not in repr(llm.settings)
    return caught.value


WRONG = [
    (400, "invalid_request_error", "messages.0: x", "look at its settings and generate_kwargs in llm.yaml"),
    (400, "invalid_request_error", "Your credit balance is too low to access it.", "the account has no credit"),
    (401, "authentication_error", "invalid x-api-key", "look at api_key in llm.yaml"),
    (402, "billing_error", "pay", "the account has no credit"),
    (403, "permission_error", "no access", "the account or the key may not use it"),
    (404, "not_found_error", "model: x", "look at model and endpoint in llm.yaml"),
    (422, "odd", "x", "look at its settings"),
]


@pytest.mark.parametrize(("status", "kind", "message", "said"), WRONG)
def test_a_wrong_request_is_not_repeated(either: Service, status: int, kind: str, message: str, said: str) -> None:
    llm = either.llm(error(status, kind, message))
    caught = failure(llm)
    status = 402 if "credit" in message else status
    assert type(caught) is (LLMRefused if status in (401, 402, 404) else LLMRejected)
    assert str(caught).startswith(f"claude-test: {message} ({status}); {said}")
    with pytest.raises(LLMError):
        llm.complete(HELLO, TOOLS)
    assert len(either.requests) == 2


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "prompt is too long: 213462 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length"),
        (400, "Input is too long for requested model."),
        (400, "The request exceeds the maximum context length"),
        (413, "Request exceeds the maximum size"),
    ],
)
def test_a_conversation_that_is_too_long_is_an_overflow(either: Service, status: int, message: str) -> None:
    caught = failure(either.llm(error(status, "invalid_request_error", message)))
    assert type(caught) is ContextOverflow and message in str(caught)


def test_other_failures_may_speak_of_the_length(either: Service) -> None:
    words = "prompt is too long to be looked at now"
    assert isinstance(failure(either.llm(error(500, "api_error", words))), LLMUnavailable)


def test_a_bound_that_is_too_high_is_no_overflow(either: Service) -> None:
    """A shorter conversation would not help."""
    words = "max_tokens: 999999 > 128000, which is the maximum allowed number of output tokens for claude-test"
    assert type(failure(either.llm(error(400, "invalid_request_error", words)))) is LLMRejected


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (529, "overloaded_error")])
@pytest.mark.parametrize(("given", "seconds"), [(None, None), ("7", 7), ("0.5", 0.5), ("soon", None), ("nan", None)])
def test_too_many_requests(either: Service, status: int, kind: str, given: str | None, seconds: float | None) -> None:
    caught = failure(either.llm(error(status, kind, "slow down", **{"retry_after": given} if given else {})))
    assert isinstance(caught, LLMUnavailable) and caught.crowded and caught.retry_after == seconds
    assert str(caught) == f"claude-test: slow down ({status})"
    assert len(either.requests) == 1, "the SDK has repeated it"


@pytest.mark.parametrize(("distance", "least", "most"), [(60, 50, 60), (-60, 0, 0)])
def test_the_time_to_come_back_may_be_a_date(service: Service, distance: int, least: float, most: float) -> None:
    date = email.utils.formatdate(time.time() + distance, usegmt=True)
    caught = failure(service.llm(error(429, "rate_limit_error", "slow down", retry_after=date)))
    assert isinstance(caught, LLMUnavailable) and caught.retry_after is not None
    assert least <= caught.retry_after <= most


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504])
def test_a_service_that_fails_may_be_asked_again(either: Service, status: int) -> None:
    caught = failure(either.llm(error(status, "api_error", "Internal server error", retry_after="3")))
    assert isinstance(caught, LLMUnavailable) and not caught.crowded and caught.retry_after == 3
    assert str(caught) == f"claude-test: Internal server error ({status})"
    assert len(either.requests) == 1, "the SDK has repeated it"


def test_it_is_asked_again(either: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what all backends have in common, and the answer counts once."""
    monkeypatch.setattr("debug_gym_core.models.gate.LONGEST_PAUSE", 0.01)
    failures = [error(500, "api_error", "x"), error(529, "overloaded_error", "x"), Reply(b"{", cut=1)]
    llm = either.llm(*failures, either.answer(text("Hi")), max_retries=2)
    done = llm.complete(HELLO, TOOLS)
    assert (done.message.content, done.usage.prompt, len(either.requests)) == ("Hi", 20, 4)


def test_tokens_of_attempts_that_failed_are_counted(either: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debug_gym_core.models.gate.LONGEST_PAUSE", 0.01)
    used = usage(700, 5)
    broken = Reply({"content": "none", "usage": used})
    failures, spent = [broken] * 3, Usage(2100, 15)
    if either.streams:
        whole = list(stream(text("Half of an answer"), tokens=used).events or ())
        cut, told = whole[:4], whole[:-1]
        failures = [Reply(events=cut), Reply(events=[*told, event("content_block_delta")])]
        failures.append(Reply(events=[*cut, event("error", error={"type": "api_error", "message": "x"})]))
        spent = Usage(2100, 1 + 5 + 1)
    done = either.llm(*failures, either.answer(text("Hi"))).complete(HELLO, TOOLS)
    assert (done.message.content, done.wasted) == ("Hi", spent)


@pytest.mark.parametrize(
    ("kind", "crowded"),
    [
        ("overloaded_error", True),
        ("rate_limit_error", True),
        ("api_error", False),
        ("timeout_error", False),
        ("odd", False),
    ],
)
def test_an_error_in_the_middle_of_a_stream(service: Service, kind: str, crowded: bool) -> None:
    events = list(stream(text("Half of an answer")).events or ())[:5]
    events.append(event("error", error={"type": kind, "message": "Sorry"}))
    caught = failure(service.llm(Reply(events=events), stream=True))
    assert isinstance(caught, LLMUnavailable) and caught.crowded is crowded and ": Sorry (" in str(caught)
    assert ("(504)" in str(caught)) is (kind == "timeout_error")


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("invalid_request_error", 400),
        ("authentication_error", 401),
        ("billing_error", 402),
        ("permission_error", 403),
        ("not_found_error", 404),
    ],
)
def test_what_is_wrong_for_good_may_be_said_in_a_stream(service: Service, kind: str, status: int) -> None:
    caught = failure(service.llm(Reply(events=[event("error", error={"type": kind, "message": "Sorry"})]), stream=True))
    assert type(caught) is (LLMRefused if status in (401, 402, 404) else LLMRejected)
    assert f": Sorry ({status})" in str(caught)


@pytest.mark.parametrize(
    ("kind", "said"), [("invalid_request_error", "prompt is too long: 9 > 8"), ("request_too_large", "Sorry")]
)
def test_an_overflow_in_the_middle_of_a_stream(service: Service, kind: str, said: str) -> None:
    wrong = event("error", error={"type": kind, "message": said})
    assert isinstance(failure(service.llm(Reply(events=[wrong]), stream=True)), ContextOverflow)


WHOLE = stream(thinking("Hm", "c2ln"), text("Half of an answer"), call("weather", {"place": "Bern"}))


@pytest.mark.parametrize("pieces", range(len(WHOLE.events or ()) - 1))
def test_a_stream_that_is_cut_off_is_no_answer(service: Service, pieces: int) -> None:
    """However much of it has come: it ends when it says why."""
    caught = failure(service.llm(Reply(events=WHOLE.events, cut=pieces), stream=True))
    assert isinstance(caught, LLMUnavailable) and not caught.crowded
    assert "the connection" in str(caught)


@pytest.mark.parametrize("sent", [0, 1, 20])
def test_an_answer_that_is_cut_off(service: Service, sent: int) -> None:
    caught = failure(service.llm(Reply(answer(text("Hi")).body, cut=sent)))
    assert isinstance(caught, LLMUnavailable) and "the connection failed: " in str(caught)


def test_nobody_listens(service: Service) -> None:
    llm = service.llm(answer(text("Hi")))
    service.servers[-1].close()
    caught = failure(llm)
    assert isinstance(caught, LLMUnavailable)
    assert str(caught) == (
        "claude-test: the connection failed: [Errno 111] Connection refused; check `endpoint` of this model in llm.yaml"
    )


def test_the_service_takes_too_long(either: Service) -> None:
    caught = failure(either.llm(Reply({}, delay=3), timeout=0.2))
    assert isinstance(caught, LLMUnavailable)
    assert str(caught) == "claude-test: no answer within 0.2 s (the setting `timeout`)"


def test_an_answer_in_drops_has_an_end(service: Service) -> None:
    """A service that sends signs of life, and nothing else, keeps the connection's own timeout from running out."""
    alive = Reply(events=[event("ping")] * 300, delay=0.05)
    caught = failure(service.llm(alive, stream=True, timeout=0.5))
    assert isinstance(caught, LLMUnavailable) and "no answer within 0.5 s" in str(caught)


def test_stopping_the_run_ends_a_stream(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debug_gym_core.models.stopping.GRACE", 0.0)
    made: list[Anthropic] = []

    def reply(request: Request) -> Reply:
        made[0].interrupt()
        return Reply(events=[event("ping")] * 300, delay=0.05)

    made.append(service.asking(reply, stream=True))
    assert str(failure(made[0])) == "claude-test: the connection failed: the run is being stopped"
    with pytest.raises(LLMError, match=r"^the run is being stopped$"):
        made[0].complete(HELLO, TOOLS)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"<html>Bad gateway</html>",
        b"\xff\xfe",
        b'{"content": null}',
        b'{"content": "Hi"}',
        b'{"content": [{}]}',
        b'{"content": [{"type": "text"}]}',
        b'{"content": [{"type": ["text"]}]}',
        b'{"content": [{"type": "tool_use", "name": "", "input": {}}]}',
        b'{"content": [{"type": "tool_use", "input": {}}]}',
        b'{"content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": "many"}}',
        b'{"content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": -1}}',
    ],
)
def test_an_answer_that_is_none_may_be_asked_for_again(service: Service, body: bytes) -> None:
    caught = failure(service.llm(Reply(body)))
    assert isinstance(caught, LLMUnavailable) and "the answer cannot be understood: " in str(caught)
    assert "pydantic" not in str(caught)


@pytest.mark.parametrize(
    "events",
    [
        ["event: message_start\ndata: {"],
        ["event: message_start\ndata: []"],
        [event("message_start")],
        [event("message_start", message=5)],
        [event("content_block_start", index=0)],
        [event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hi"})],
        [event("content_block_start", index=0, content_block=text("")), event("content_block_delta", index=0, delta=7)],
        [event("message_delta", delta=None)],
        ["event: message_start\ndata: \xff"],
    ],
)
def test_a_stream_that_is_none_may_be_asked_for_again(service: Service, events: list[str]) -> None:
    caught = failure(service.llm(Reply(events=events), stream=True))
    assert isinstance(caught, LLMUnavailable) and "the answer cannot be understood: " in str(caught)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500])
@pytest.mark.parametrize("plain", [False, True], ids=["json", "plain"])
def test_a_service_that_repeats_the_key(either: Service, status: int, plain: bool) -> None:
    said = f"x-api-key: {KEY} is wrong\n{KEY}"
    reply = Reply(said.encode(), status) if plain else error(status, "authentication_error", said)
    assert "x-api-key: *** is wrong ***" in str(failure(either.llm(reply)))


def test_a_key_is_not_shown_in_part(either: Service) -> None:
    """Where the service's words are cut off."""
    for before in range(270, 300, 5):
        said = str(failure(either.llm(error(400, "odd", f"{'x' * before} {KEY} {'x' * 300}"))))
        assert KEY[:8] not in said and said.count("…") == 1


def test_words_that_are_none(either: Service) -> None:
    reply = Reply({"error": {"type": "odd", "message": {"a": 1}}}, 400)
    assert "{'a': 1}" in str(failure(either.llm(reply)))
    assert "(400)" in str(failure(either.llm(Reply({"error": None}, 400))))


def test_a_key_in_an_answer_that_cannot_be_understood(service: Service) -> None:
    assert "***" in str(failure(service.llm(Reply({"content": KEY}))))


@pytest.mark.parametrize("body", [b"", b"x" * 5000, b'{"error": null}', b'{"error": "%s"}' % (b"y" * 5000), b"[1]"])
def test_what_the_service_says_is_bounded(either: Service, body: bytes) -> None:
    assert "(400); look at" in str(failure(either.llm(Reply(body, 400))))


def test_a_key_may_be_the_environments(either: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-other-987654321")
    caught = failure(either.llm(error(401, "authentication_error", "no sk-ant-other-987654321"), api_key=None))
    assert either.requests[0].headers["x-api-key"] == "sk-ant-other-987654321"
    assert "no ***" in str(caught)


@pytest.mark.parametrize("key", [None, "", " \n"])
def test_there_is_no_key(service: Service, key: str | None) -> None:
    with pytest.raises(RequirementError) as caught:
        service.llm(answer(text("Hi")), api_key=key).prepare()
    assert str(caught.value) == (
        "claude-test: there is no key: set `api_key` of this model in llm.yaml, or ANTHROPIC_API_KEY"
    )


@pytest.mark.parametrize("key", [f"{KEY} x", f"{KEY}\nx", f"{KEY}…"])
def test_a_key_that_is_none_is_not_shown(service: Service, key: str) -> None:
    with pytest.raises(UsageError) as caught:
        service.llm(answer(text("Hi")), api_key=key).complete(HELLO, TOOLS)
    assert str(caught.value) == "claude-test: `api_key` in llm.yaml has a character that no key has"
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_key_with_a_line_end_is_the_key(service: Service) -> None:
    """Files of secrets end with one."""
    assert service.llm(answer(text("Hi")), api_key=f"{KEY}\n").complete(HELLO, TOOLS).message.content == "Hi"
    assert service.requests[0].headers["x-api-key"] == KEY


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"endpoint": "localhost:8000"}, "endpoint: an address begins with https:// or http://"),
        ({"thinking": 100}, "thinking: say 1024 or more"),
        (
            {"thinking": 4000, "max_tokens": 4000},
            "max_tokens (4000) must be more than thinking (4000), which is a part",
        ),
        ({"thinkin": 4000}, "unknown key 'thinkin'; did you mean 'thinking'?"),
    ],
)
def test_wrong_settings_are_said(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Anthropic(model="claude-test", **settings)
    assert said in str(caught.value) and "\n" not in str(caught.value)
