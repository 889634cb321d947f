"""What is read of the service's answers, whole and in pieces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support import repeated

from debug_gym_core import Message, ToolCall, Usage
from debug_gym_core.errors import ContextOverflow, LLMUnavailable, UsageError
from debug_gym_core.models.chat_format import TOO_DEEP
from debug_gym_core.models.service import Prices
from debug_gym_core.testing.llm import WEATHER
from debug_gym_core.testing.messages_server import (
    answer,
    call,
    complaint,
    event,
    marks,
    redacted,
    stream,
    text,
    thinking,
    unmarked,
    usage,
)
from debug_gym_core.testing.model_server import Reply
from debug_gym_llm_anthropic import PAUSES, Anthropic

if TYPE_CHECKING:
    from conftest import Service

TOOLS = [dict(WEATHER)]
HELLO = [Message("system", "You are brief."), Message("user", "Hi")]
SIGNATURE = "ErUBCkYIBRgCIkD+/a==\u2028"


def test_text_and_calls_are_read(either: Service) -> None:
    said = either.answer(
        text("I look "), text("twice: ☀"), call("weather", {"place": "漢字\n"}), call("eval", None, "b")
    )
    done = either.llm(said).ask(HELLO, TOOLS)
    calls = (ToolCall("weather", {"place": "漢字\n"}, "toolu_1"), ToolCall("eval", {}, "b"))
    assert done.message == Message("assistant", "I look \ntwice: ☀", calls)
    assert (done.finish, done.reasoning) == ("stop", "")


def test_the_request_is_what_the_settings_say(either: Service) -> None:
    llm = either.llm(either.answer(text("Hi")), temperature=0.5, max_tokens=99, generate_kwargs={"top_k": 3})
    llm.ask(HELLO, TOOLS)
    (asked,) = either.requests
    assert (asked.path, asked.headers["x-api-key"]) == ("/v1/messages", "sk-ant-planted-0123456789")
    assert unmarked(asked.body) | {"stream": None} == {
        "model": "claude-test",
        "max_tokens": 99,
        "temperature": 0.5,
        "top_k": 3,
        "system": [text("You are brief.")],
        "messages": [{"role": "user", "content": [text("Hi")]}],
        "tools": [
            {"name": "weather", "description": WEATHER["description"], "input_schema": WEATHER["parameters"]},
        ],
        "stream": None,
    }


def test_tokens_are_the_providers(either: Service) -> None:
    tokens = usage(100, 50, cached=1000, written=300)
    llm = either.llm(
        either.answer(text("Hi"), tokens=tokens), prices={"prompt": 1, "completion": 2, "cached": 0.1, "written": 1.25}
    )
    done = llm.complete(HELLO, TOOLS)
    cost = (100 * 1 + 1000 * 0.1 + 300 * 1.25 + 50 * 2) / 1e6
    assert done.usage == Usage(1400, 50, 1000, pytest.approx(cost), 300)
    assert isinstance(llm.settings.prices, Prices)


def test_tokens_of_a_service_without_a_cache(either: Service) -> None:
    tokens = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": None}
    assert either.llm(either.answer(text("Hi"), tokens=tokens)).ask(HELLO, []).usage == Usage(7, 5)


def test_tokens_that_a_stream_does_not_tell_again_stay(service: Service) -> None:
    start = answer(tokens=usage(7, 1, cached=30)).body
    events = [
        event("message_start", message=start),
        event("content_block_start", index=0, content_block=text("Hi")),
        event(
            "message_delta",
            delta={"stop_reason": "end_turn"},
            usage={"input_tokens": None, "cache_read_input_tokens": None, "output_tokens": 5},
        ),
    ]
    assert service.llm(Reply(events=events), stream=True).ask(HELLO, []).usage == Usage(37, 5, 30)


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
    ],
)
def test_why_it_ends(either: Service, stop: str, finish: str) -> None:
    done = either.llm(either.answer(text("So"), stop=stop)).ask(HELLO, TOOLS)
    assert (done.finish, done.message.provider) == (finish, {})


def test_a_refusal_may_say_nothing_and_is_kept(either: Service) -> None:
    why = {"type": "refusal", "category": "cyber", "explanation": "It could do harm."}
    llm = either.llm(either.answer(stop="refusal", stop_details=why), either.answer(text("Now, then.")))
    done = llm.ask(HELLO, TOOLS)
    assert (done.finish, done.message.content) == ("refused", "")
    assert done.message.provider == {"anthropic": {"refusal": why}}
    assert llm.ask([*HELLO, done.message, Message("user", "It is a test.")], TOOLS).message.content == "Now, then."


def test_details_of_another_end_are_no_refusal(either: Service) -> None:
    done = either.llm(either.answer(text("Hi"), stop="end_turn", stop_details={"type": "other"})).ask(HELLO, TOOLS)
    assert (done.finish, done.message.provider) == ("stop", {})


def test_a_stream_may_count_nothing(service: Service) -> None:
    events = [
        event("message_start", message=answer().body | {"usage": None}),
        event("content_block_start", index=0, content_block=text("Hi")),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage=None),
    ]
    assert service.llm(Reply(events=events), stream=True).ask(HELLO, []).usage == Usage()


def test_arguments_of_white_space_are_none(service: Service) -> None:
    events = [
        event("message_start", message=answer().body),
        event("content_block_start", index=0, content_block=call("eval", {})),
        event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": " \n"}),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 3}),
    ]
    (asked,) = service.llm(Reply(events=events), stream=True).ask(HELLO, TOOLS).message.calls
    assert asked.arguments == {}


def test_what_it_quotes_goes_back(service: Service) -> None:
    """Citations come one by one, with the text that they belong to."""
    quoted = [{"type": "char_location", "cited_text": word, "document_index": 0} for word in ("sun", "rain")]
    events = [
        event("message_start", message=answer().body),
        event("content_block_start", index=0, content_block=thinking("Hm", "c2ln")),
        event("content_block_start", index=1, content_block={**text(""), "citations": None}),
        event("content_block_delta", index=1, delta={"type": "text_delta", "text": "So."}),
        *[event("content_block_delta", index=1, delta={"type": "citations_delta", "citation": one}) for one in quoted],
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3}),
    ]
    llm = service.llm(Reply(events=events), stream(text("Well.")), stream=True, thinking=1024)
    said = llm.ask(HELLO, []).message
    llm.ask([*HELLO, said, Message("user", "And?")], [])
    sent = service.bodies[1]["messages"][1]["content"][1]
    assert [one["cited_text"] for one in sent["citations"]] == ["sun", "rain"] and sent["text"] == "So."


@pytest.mark.parametrize(("given", "sent"), [("oops", {"_": "oops"}), ('{"query": "rain"}', {"query": "rain"})])
def test_arguments_of_the_services_own_tools_go_back_as_an_object(either: Service, given: str, sent: Any) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": given}
    llm = either.llm(either.answer(search, text("So.")), either.answer(text("Well.")))
    said = llm.ask(HELLO, TOOLS).message
    llm.ask([*HELLO, said, Message("user", "And?")], TOOLS)
    assert either.bodies[1]["messages"][1]["content"][0]["input"] == sent


def test_no_room_for_an_answer_is_an_overflow(either: Service) -> None:
    with pytest.raises(ContextOverflow, match=r"^claude-test: the conversation leaves no room for an answer$"):
        either.llm(either.answer(stop="model_context_window_exceeded")).ask(HELLO, TOOLS)


def test_an_answer_cut_off_within_its_thinking_is_one(either: Service) -> None:
    done = either.llm(either.answer(thinking("Hm", "c2ln"), stop="max_tokens"), thinking=1024).ask(HELLO, TOOLS)
    assert (done.finish, done.message.content, done.reasoning) == ("length", "", "Hm")
    assert either.llm(either.answer(stop="max_tokens")).ask(HELLO, TOOLS).finish == "length"


@pytest.mark.parametrize("blocks", [[], [text("")], [text(" \n")]])
def test_an_empty_answer_is_asked_for_once_more_and_then_taken(either: Service, blocks: list[Any]) -> None:
    replies = [either.answer(*blocks, tokens=usage(10, 1)), either.answer(*blocks, tokens=usage(20, 2))]
    llm = either.llm(*replies, either.answer(text("Well.")))
    done = llm.complete(HELLO, TOOLS)
    assert (done.message.content, done.message.calls, done.finish) == ("", (), "stop")
    assert (done.wasted, done.usage) == (Usage(10, 1), Usage(20, 2)) and len(either.requests) == 2
    assert llm.complete([*HELLO, done.message, Message("user", "And?")], TOOLS).message.content == "Well."


@pytest.mark.parametrize("stop", [None, "pause_turn"])
def test_an_empty_answer_that_has_not_ended_is_none(service: Service, stop: str | None) -> None:
    reply = Reply({**service.answer().body, "stop_reason": stop})
    with pytest.raises(LLMUnavailable, match=r"^claude-test: the answer is empty$"):
        service.llm(reply).ask(HELLO, TOOLS)


def test_a_paused_turn_is_resumed(either: Service) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    llm = either.llm(
        either.answer(search, stop="pause_turn", tokens=usage(10, 1)),
        either.answer(found, stop="pause_turn", tokens=usage(20, 2, cached=10)),
        either.answer(text("Rain."), tokens=usage(30, 4)),
    )
    done = llm.ask(HELLO, TOOLS)
    assert (done.message.content, done.finish) == ("Rain.", "stop")
    assert done.usage == Usage(70, 7, 10)
    assert [body["messages"][1:] for body in either.bodies] == [
        [],
        [{"role": "assistant", "content": [search]}],
        [{"role": "assistant", "content": [search, found]}],
    ]
    llm.ask([*HELLO, done.message, Message("user", "And?")], TOOLS)
    assert either.bodies[-1]["messages"][1]["content"] == [search, found, text("Rain.")]


def test_a_turn_is_not_resumed_for_ever(either: Service) -> None:
    done = either.llm(either.answer(text("Wait."), stop="pause_turn")).ask(HELLO, TOOLS)
    assert done.finish == "length" and len(either.requests) == PAUSES + 1


NESTED = '{"x": ' * 500 + "1" + "}" * 500
"""More than can be copied within Python's bound on recursion."""


def arguments_of(service: Service, given: Any) -> Any:
    """What a call's arguments are read as; and the service takes them back."""
    said = {**call("weather"), "input": given}
    llm = service.llm(service.answer(said), service.answer(text("Well.")))
    said = llm.ask(HELLO, TOOLS).message
    assert llm.ask([*HELLO, said, Message("tool", "So.", call_id=said.calls[0].id)], TOOLS).message.content == "Well."
    return said.calls[0].arguments


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("null", {}),
        ('{"place": "Bern"}', {"place": "Bern"}),
        ('{"place": "Be', '{"place": "Be'),
        ("Bern", "Bern"),
        ("[1, 2]", "[1, 2]"),
        *repeated(
            "services",
            ("[" * 100_000, "[" * 100_000),
            (NESTED, NESTED),
            ('{"place": NaN}', '{"place": NaN}'),
            ('"{\\"place\\": \\"Bern\\"}"', {"place": "Bern"}),
            ('{"place": "\\ud83d"}', {"place": "?"}),
        ),
    ],
)
def test_arguments_that_are_no_object_stay_text(either: Service, given: str, read: object) -> None:
    assert arguments_of(either, given) == read


@pytest.mark.parametrize(("given", "read"), [(None, {}), ([1], "[1]"), (5, "5"), (json.loads(NESTED), TOO_DEEP)])
def test_arguments_of_other_types(service: Service, given: object, read: object) -> None:
    assert arguments_of(service, given) == read


def test_a_call_that_is_cut_off_is_not_completed(either: Service) -> None:
    """A client that completes partial JSON would have half a file written."""
    half = '{"path": "a.py", "new_code": "def f():\\n    ret'
    llm = either.llm(either.answer(call("rewrite", half), stop="max_tokens"))
    done = llm.ask(HELLO, TOOLS)
    assert (done.finish, done.message.calls) == ("length", (ToolCall("rewrite", half, "toolu_1"),))  # type: ignore[arg-type]


def test_text_arguments_beside_thinking_go_back_as_an_object(either: Service) -> None:
    blocks = [thinking("Hm", SIGNATURE), call("weather", '{"pl'), text("So.")]
    llm = either.llm(either.answer(*blocks), either.answer(text("Well.")), thinking=1024)
    said = llm.ask(HELLO, TOOLS).message
    llm.ask([*HELLO, said, Message("tool", "no JSON", call_id="toolu_1")], TOOLS)
    assert either.bodies[1]["messages"][1]["content"] == [blocks[0], call("weather", {"_": '{"pl'}), blocks[2]]


@pytest.mark.parametrize("name", ["no such tool!", "weather.now", "x" * 300])
@pytest.mark.parametrize("thinks", [False, True])
def test_a_wrong_name_goes_back_as_one_that_the_service_takes(either: Service, name: str, thinks: bool) -> None:
    """Else the one wrong call would have every further request refused."""
    blocks = [*([thinking("Hm", SIGNATURE)] if thinks else []), call(name, {"place": "Bern"})]
    llm = either.llm(either.answer(*blocks), either.answer(text("Well.")))
    said = llm.ask(HELLO, TOOLS).message
    assert said.calls == (ToolCall(name, {"place": "Bern"}, "toolu_1"),)
    back = [*HELLO, said, Message("tool", "no such tool", call_id="toolu_1")]
    assert llm.ask(back, TOOLS).message.content == "Well."
    assert [one["type"] for one in either.bodies[1]["messages"][1]["content"]] == [one["type"] for one in blocks]


@pytest.mark.parametrize("identity", [None, "", "known"])
def test_each_call_has_an_id_of_its_own(either: Service, identity: str | None) -> None:
    before = [
        *HELLO,
        Message("assistant", "", (ToolCall("weather", {}, "known"),)),
        Message("tool", "sun", call_id="known"),
    ]
    llm = either.llm(
        either.answer(call("eval", {}, identity), call("eval", {}, identity)), either.answer(text("Well."))
    )
    said = llm.ask(before, TOOLS).message
    ids = [one.id for one in said.calls]
    assert all(ids) and len({*ids, "known"}) == 3
    results = [Message("tool", "done", call_id=one) for one in ids]
    assert llm.ask([*before, said, *results], TOOLS).message.content == "Well."


def test_two_calls_with_one_id(either: Service) -> None:
    said = either.llm(either.answer(call("eval", {}, "same"), call("eval", {}, "same"))).ask(HELLO, TOOLS).message
    assert said.calls[0].id == "same" != said.calls[1].id


def test_a_service_may_send_arguments_at_once(service: Service) -> None:
    """Compatible services do: with the beginning of the block."""
    events = [
        event("message_start", message=answer().body),
        event("content_block_start", index=0, content_block=call("weather", {"place": "Bern"})),
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 3}),
    ]
    said = service.llm(Reply(events=events), stream=True).ask(HELLO, TOOLS)
    assert said.message.calls == (ToolCall("weather", {"place": "Bern"}, "toolu_1"),)
    assert said.usage == Usage(20, 3)


def test_what_the_service_adds_to_its_format_is_no_error(either: Service) -> None:
    """Fields and blocks of a later version go back as they came."""
    new = {"type": "musing", "words": ["a", {"b": None}]}
    thought = thinking("Hm", SIGNATURE) | {"depth": 3}
    first = answer(thought, new, text("Hi")) if not either.streams else stream(new, text("Hi"))
    llm = either.llm(first, either.answer(text("Well.")))
    said = llm.ask(HELLO, TOOLS).message
    llm.ask([*HELLO, said, Message("user", "And?")], TOOLS)
    expected = [new, text("Hi")] if either.streams else [thought, new, text("Hi")]
    assert (said.content, either.bodies[1]["messages"][1]["content"]) == ("Hi", expected)


def test_thinking_is_asked_for_without_a_temperature(service: Service) -> None:
    llm = service.llm(answer(text("Hi")), thinking=2000, temperature=1)
    llm.ask(HELLO, TOOLS)
    (body,) = service.bodies
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000} and "temperature" not in body
    assert body["max_tokens"] == llm.longest_answer == 8192 + 2000


@pytest.mark.parametrize("how", [{"thinking": 2000}, {"generate_kwargs": {"thinking": {"type": "adaptive"}}}])
def test_a_temperature_that_would_do_nothing_is_refused(how: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"temperature \(0\.3\) cannot be set for a model that thinks; leave it out"):
        Anthropic(model="m", temperature=0.3, **how)


@pytest.mark.parametrize(("kind", "sent"), [("adaptive", False), ("disabled", True)])
def test_other_thinking_is_the_services(service: Service, kind: str, sent: bool) -> None:
    more = {"thinking": {"type": kind}, "output_config": {"effort": "high"}, "extra_headers": {"anthropic-beta": "new"}}
    more["extra_query"] = {"region": "eu"}
    temperature = 0.3 if sent else 1
    service.llm(answer(text("Hi")), temperature=temperature, generate_kwargs=more).ask(HELLO, TOOLS)
    (asked,) = service.requests
    assert asked.body["thinking"] == {"type": kind} and asked.body["output_config"] == {"effort": "high"}
    assert ("temperature" in asked.body) is sent and asked.headers["anthropic-beta"] == "new"
    assert asked.query == "region=eu" and not {"extra_headers", "extra_query"} & set(asked.body)


def test_an_answer_is_bounded_as_the_service_insists(service: Service) -> None:
    llm = service.llm(answer(text("Hi")))
    llm.ask(HELLO, TOOLS)
    assert service.bodies[0]["max_tokens"] == llm.longest_answer == 8192
    assert Anthropic(model="m", generate_kwargs={"max_tokens": 5}).longest_answer == 5


def prompt(body: Any) -> str:
    """What a model reads of a request, in the order in which the service's cache has it."""
    return json.dumps([body.get("tools"), body["system"], body["messages"]], ensure_ascii=False).rstrip("]}")


def test_a_conversation_grows_at_its_end(either: Service) -> None:
    """Thinking comes back byte for byte, what was sent stays, and there are never more marks than the service takes."""
    turns = 6
    blocks = [
        [
            thinking(f"Thought {turn}: «ü» 🎉\n", f"{SIGNATURE}{turn}"),
            redacted(f"cmVk{turn}"),
            text(f"Turn {turn}."),
            call("weather", {"place": f"{turn}.0", "b": 1, "a": None}, f"{turn}_0"),
            call("weather", {"place": f"{turn}.1"}, f"{turn}_1"),
        ]
        for turn in range(turns)
    ]
    llm = either.llm(*(either.answer(*one) for one in blocks), either.answer(text("Done.")), thinking=1024)
    messages = list(HELLO)
    for turn in range(turns + 1):
        before = [json.dumps(message.provider) for message in messages]
        done = llm.ask(messages, TOOLS)
        assert [json.dumps(message.provider) for message in messages] == before
        if turn < turns:
            assert done.reasoning == f"Thought {turn}: «ü» 🎉\n"
        messages.append(done.message)
        messages += [Message("tool", f"rain at {one.arguments['place']}", call_id=one.id) for one in done.message.calls]
    assert len(either.bodies) == turns + 1
    for body in either.bodies:
        assert 1 <= marks(body) <= 4 and complaint(body) is None
    for one, other in zip(either.bodies, either.bodies[1:], strict=False):
        assert prompt(unmarked(other)).startswith(prompt(unmarked(one)))
        assert len(other["messages"]) == len(one["messages"]) + 2
        before_last = [turn for turn in other["messages"] if turn["role"] == "user"][-2]
        assert before_last == one["messages"][-1], "the previous request's last mark is still there"
    said = [turn["content"] for turn in either.bodies[-1]["messages"] if turn["role"] == "assistant"]
    assert said == blocks
    if not either.streams:  # what comes in pieces has no order of its own
        assert json.dumps(said) == json.dumps(blocks)


def test_a_message_says_what_it_kept_in_json(either: Service) -> None:
    """A trajectory holds it."""
    blocks = [thinking("Hm", SIGNATURE), redacted("cmVk"), text("Hi")]
    said = either.llm(either.answer(*blocks), thinking=1024).ask(HELLO, TOOLS).message
    assert json.loads(json.dumps(dict(said.provider))) == {"anthropic": {"content": blocks}}
    assert either.llm(either.answer(text("Hi"), call("eval"))).ask(HELLO, TOOLS).message.provider == {}
