"""What the service is sent, for a conversation; `serve` refuses what the service would refuse."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from debug_gym_core import Message, ToolCall
from debug_gym_core.testing.llm import WEATHER
from debug_gym_core.testing.messages_server import (
    MOST_MARKS,
    call,
    complaint,
    marks,
    redacted,
    text,
    thinking,
    unmarked,
)
from debug_gym_llm_anthropic.conversation import UNANSWERED, request

TOOLS = [dict(WEATHER)]
CALL = ToolCall("weather", {"place": "Bern"}, "toolu_1")
OTHER = ToolCall("weather", {"place": "Chur"}, "toolu_2")
ASKED = [Message("system", "You are brief."), Message("user", "Bern? Chur?")]


def sent(*messages: Message, **settings: Any) -> Any:
    """The body of a request without its marks, which the service would take."""
    body = request([*ASKED, *messages], TOOLS, **settings)
    assert complaint(body) is None
    return unmarked(body)


def turns(*messages: Message) -> list[Any]:
    """The messages of it after the first."""
    body = sent(*messages)["messages"]
    assert body[0]["role"] == "user"
    return [(turn["role"], turn["content"]) for turn in body[1:]]


def result(identity: str, content: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def test_system_prompts_and_tools_have_fields_of_their_own() -> None:
    body = request([Message("system", "One."), Message("system", "Two."), Message("user", "Hi")], TOOLS, cache=False)
    assert body == {
        "system": [text("One."), text("Two.")],
        "tools": [
            {"name": "weather", "description": WEATHER["description"], "input_schema": WEATHER["parameters"]},
        ],
        "messages": [{"role": "user", "content": [text("Hi")]}],
    }


def test_a_tool_without_arguments_has_a_schema() -> None:
    body = request([Message("user", "Hi")], [{"name": "eval"}], cache=False)
    assert body["tools"] == [
        {"name": "eval", "description": "", "input_schema": {"type": "object", "properties": {}}},
    ]


def test_the_results_of_a_turn_are_one_message() -> None:
    said = Message("assistant", "I look.", (CALL, OTHER))
    assert turns(said, Message("tool", "sunny", call_id="toolu_1"), Message("tool", "rain", call_id="toolu_2")) == [
        (
            "assistant",
            [
                text("I look."),
                call("weather", {"place": "Bern"}, "toolu_1"),
                call("weather", {"place": "Chur"}, "toolu_2"),
            ],
        ),
        ("user", [result("toolu_1", "sunny"), result("toolu_2", "rain")]),
    ]


def test_results_come_before_what_the_user_says() -> None:
    said = Message("assistant", "", (CALL, OTHER))
    hint, more = Message("user", "A hint."), Message("user", "Another.")
    first, second = Message("tool", "sunny", call_id="toolu_1"), Message("tool", "error: rain", call_id="toolu_2")
    _, (_, content) = turns(said, first, hint, second, more)
    assert content == [
        result("toolu_1", "sunny"),
        result("toolu_2", "error: rain"),
        text("A hint."),
        text("Another."),
    ]


def test_a_call_without_a_result_gets_one() -> None:
    said = Message("assistant", "", (CALL, OTHER))
    _, (_, content) = turns(said, Message("tool", "rain", call_id="toolu_2"), Message("user", "Go on."))
    assert content == [
        result("toolu_2", "rain"),
        result("toolu_1", UNANSWERED, is_error=True),
        text("Go on."),
    ]


def test_messages_of_the_user_in_a_row_are_one() -> None:
    assert sent(Message("user", "Please."), Message("system", "Later."))["messages"] == [
        {"role": "user", "content": [text("Bern? Chur?"), text("Please."), text("Later.")]}
    ]


@pytest.mark.parametrize("nothing", ["", " \n\t"])
def test_nothing_empty_is_sent(nothing: str) -> None:
    said = Message("assistant", nothing, (CALL,))
    done = [said, Message("tool", nothing, call_id="toolu_1"), Message("user", nothing), Message("assistant", nothing)]
    assert turns(*done, Message("user", "And?")) == [
        ("assistant", [call("weather", {"place": "Bern"}, "toolu_1")]),
        ("user", [{"type": "tool_result", "tool_use_id": "toolu_1"}, text("And?")]),
    ]
    assert "system" not in request([Message("system", nothing), Message("user", "Hi")], [])


def test_arguments_that_are_text_go_back_as_an_object() -> None:
    broken: Any = '{"place": "Be'
    said = Message("assistant", "", (ToolCall("weather", broken, "toolu_1"),))
    (_, content), _ = turns(said, Message("tool", "no JSON", call_id="toolu_1"))
    assert content == [call("weather", {"_": broken}, "toolu_1")]


@pytest.mark.parametrize("system_role", [True, False])
def test_a_system_prompt_may_have_to_be_the_users(system_role: bool) -> None:
    body = sent(Message("assistant", "Yes?"), Message("user", "Go on."), system_role=system_role)
    first = body["messages"][0]["content"]
    if system_role:
        assert (body["system"], first) == ([text("You are brief.")], [text("Bern? Chur?")])
    else:
        assert "system" not in body and first == [text("You are brief."), text("Bern? Chur?")]


def test_a_system_prompt_alone_is_the_users() -> None:
    body = request([Message("system", "All that you know.")], TOOLS)
    assert complaint(body) is None and "system" not in body
    assert unmarked(body["messages"]) == [{"role": "user", "content": [text("All that you know.")]}]


BLOCKS = [
    thinking("Bern is nearer.", "c2lnbmF0dXJl+/=="),
    text("I look."),
    redacted("ZW5jcnlwdGVk"),
    call("weather", {"place": "Bern"}, "toolu_1"),
]
DONE = Message("tool", "sunny", call_id="toolu_1")


def thoughtful(content: str = "I look.", **provider: Any) -> Message:
    return Message("assistant", content, (CALL,), provider=provider or {"anthropic": {"content": BLOCKS}})


def test_thinking_goes_back_as_it_came_in_its_order() -> None:
    (_, content), _ = turns(thoughtful(), DONE)
    assert json.dumps(content) == json.dumps(BLOCKS)


def test_thinking_comes_first_in_a_message_that_was_changed() -> None:
    (_, content), _ = turns(thoughtful("I look at Bern."), DONE)
    assert content == [BLOCKS[0], BLOCKS[2], text("I look at Bern."), BLOCKS[3]]


def test_thinking_comes_first_where_calls_were_left_out() -> None:
    said = dataclasses.replace(thoughtful(), calls=(OTHER,))
    (_, content), _ = turns(said, Message("tool", "rain", call_id="toolu_2"))
    assert content == [BLOCKS[0], BLOCKS[2], BLOCKS[1], call("weather", {"place": "Chur"}, "toolu_2")]


def test_thinking_alone_is_not_sent() -> None:
    """The service refuses a message that ends with it."""
    alone = Message("assistant", "", provider={"anthropic": {"content": BLOCKS[:1]}})
    assert turns(alone, Message("user", "And?")) == []


def test_what_other_backends_keep_is_not_sent() -> None:
    (_, content), _ = turns(thoughtful(openai={"content": BLOCKS}), DONE)
    assert content == [BLOCKS[1], BLOCKS[3]]


def test_half_a_surrogate_pair_can_be_sent() -> None:
    """Such text comes from names of files that are not UTF-8."""
    said = Message("assistant", "", (ToolCall("weather", {"place": "a\udcff"}, "toolu_1"),))
    body = sent(said, Message("tool", "b\udcff🎉", call_id="toolu_1"))
    assert body["messages"][1]["content"][0]["input"] == {"place": "a?"}
    assert body["messages"][2]["content"][0]["content"] == "b?🎉"


def long_conversation(length: int) -> list[Message]:
    messages = list(ASKED)
    for turn in range(length):
        calls = tuple(ToolCall("weather", {"place": f"{turn}.{number}"}, f"{turn}_{number}") for number in range(30))
        messages.append(Message("assistant", f"Turn {turn}.", calls))
        messages += [Message("tool", f"rain {one.id}", call_id=one.id) for one in calls]
    return messages


@pytest.mark.parametrize("system", [True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_marks_are_where_the_next_request_finds_them(system: bool, length: int) -> None:
    messages = long_conversation(length)[0 if system else 1 :]
    body = request(messages, TOOLS)
    users = [turn["content"] for turn in body["messages"] if turn["role"] == "user"]
    marked = [(body["system"] if system else body["tools"])[-1], *(content[-1] for content in users[-2:])]
    if system and not length:
        marked.append(body["tools"][-1])
    assert all(block["cache_control"] == {"type": "ephemeral"} for block in marked)
    assert marks(body) == len(marked) <= MOST_MARKS


def test_marks_are_left_out_without_a_cache() -> None:
    assert marks(request(long_conversation(2), TOOLS, cache=False)) == 0
    assert marks(WEATHER) == 0 and marks(BLOCKS) == 0
