"""Conversations and answers in the formats of Chat Completions and Responses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debug_gym_core import Message, ToolCall, Usage
from debug_gym_core.errors import ContextOverflow, LLMRejected, LLMUnavailable, ToolsRefused
from debug_gym_core.models.chat_errors import failure, hide, retry_after, shortened, words_of
from debug_gym_core.models.chat_format import (
    CUT,
    DONE,
    MalformedAnswer,
    gather,
    read_answer,
    read_arguments,
    to_messages,
    without_system,
)
from debug_gym_core.models.responses_format import gather_response, read_response, to_input

LOADED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For a machine that does other work beside the tests."""

FIELDS = (
    *("choices", "message", "content", "tool_calls", "function", "arguments", "name", "id", "usage", "prompt_tokens"),
    *("finish_reason", "delta", "index", "output", "type", "text", "call_id", "summary", "input_tokens", "refusal"),
    *("reasoning_content", "error", "extra_content"),
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


def answer(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}], **more}


def delta(content: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": content, "finish_reason": finish}]}


@LOADED
@given(JSON)
def test_whatever_a_service_answers_is_an_answer_or_none(body: Any) -> None:
    for read in (read_answer, read_response):
        try:
            completion = read(body, key="x", reasoning_end="</think>")
        except MalformedAnswer:
            continue
        assert isinstance(completion.message.content, str)
        usage = completion.usage
        assert usage.prompt >= usage.cached + usage.written >= 0


@LOADED
@given(st.lists(JSON, max_size=6))
def test_whatever_a_service_streams_is_an_answer_or_none(chunks: list[Any]) -> None:
    for put_together in (gather, gather_response):
        try:
            assert isinstance(put_together(chunks), dict)
        except MalformedAnswer:
            continue


@LOADED
@given(st.text(max_size=30) | JSON)
def test_whatever_the_arguments_are_they_can_be_sent_back(given: Any) -> None:
    call = ToolCall("view", read_arguments(given), "1")
    (sent,) = to_messages([Message("assistant", "", (call,))])
    json.dumps(sent, ensure_ascii=False).encode()
    assert isinstance(json.loads(sent["tool_calls"][0]["function"]["arguments"]), dict)


def test_the_system_speaks_first_where_it_may_not() -> None:
    system, user = Message("system", "Be good."), Message("user", "Hi")
    assert without_system([system, user, system]) == [Message("user", "Be good.\n\nBe good.\n\nHi")]
    assert without_system([system, Message("assistant", "Hi")])[0] == Message("user", "Be good.")
    assert without_system([user]) == [user]


def test_what_the_user_says_in_turn_is_one_message() -> None:
    call = Message("assistant", "", (ToolCall("view", {}, "1"),))
    talk = [Message("system", "s"), Message("user", "a"), Message("user", "b"), call, Message("tool", "r", call_id="1")]
    talk += [Message("user", "c"), Message("assistant", ""), Message("user", "d")]
    plain, strict = to_messages(talk), to_messages(talk, strict=True)
    assert [one["role"] for one in plain] == ["system", "user", "assistant", "tool", "user", "assistant", "user"]
    assert [one["role"] for one in strict] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert plain[1]["content"] == "a\n\nb" and strict[3]["content"] == "r\n\nc"
    assert plain[5]["content"] == "(no words)"


def test_half_a_pair_of_surrogates_is_sent_as_something_else() -> None:
    (sent,) = to_messages([Message("user", "a\udc80b")])
    assert sent["content"] == "a?b"
    assert read_arguments('{"x": "\\ud83d", "y": ["\\udc80"]}') == {"x": "?", "y": ["?"]}
    assert read_arguments('{"x": "\\ud83d\\ude00"}') == {"x": "😀"}
    assert read_arguments('{"\\uD83D": 1}') == {"?": 1}


@pytest.mark.parametrize("given", ["[" * 100_000, '{"x": ' * 100_000])
def test_arguments_too_deep_to_parse_are_text(given: str) -> None:
    assert read_arguments(given) == given


def nested(levels: int) -> str:
    return '{"x": ' * levels + "1" + "}" * levels


@pytest.mark.parametrize("levels", [101, 500, 900])
def test_arguments_too_deep_to_be_copied_are_text(levels: int) -> None:
    """A conversation is copied, written and read again by whoever keeps it, within Python's bound on recursion."""
    assert read_arguments(nested(levels)) == nested(levels)
    assert read_arguments(json.dumps(nested(levels))) == json.dumps(nested(levels))
    assert isinstance(read_arguments(json.loads(nested(levels))), str)
    assert read_arguments(nested(100)) == json.loads(nested(100)) == read_arguments(json.loads(nested(100)))


def test_arguments_that_are_parsed_already() -> None:
    assert read_arguments({"path": "a"}) == {"path": "a"}
    assert read_arguments(["a"]) == '["a"]'
    assert read_arguments(None) == {}


@pytest.mark.parametrize(
    ("message", "said", "thought"),
    [
        ({"content": "yes", "reasoning": "hm"}, "yes", "hm"),
        ({"content": "yes", "reasoning_content": "hm"}, "yes", "hm"),
        ({"content": [{"type": "text", "text": "y"}, {"type": "text", "text": "es"}]}, "yes", ""),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"text": "yes"}]},
            "yes",
            "hm",
        ),
        ({"content": "hm</think>yes</think>"}, "yes</think>", "hm"),
        ({"content": "yes"}, "yes", ""),
        ({"content": None, "reasoning_content": "hm"}, "", "hm"),
    ],
)
def test_thinking_and_text(message: dict[str, Any], said: str, thought: str) -> None:
    completion = read_answer(answer(message), reasoning_end="</think>")
    assert (completion.message.content, completion.reasoning) == (said, thought)


def test_thinking_that_was_cut_off_is_no_answer() -> None:
    completion = read_answer(answer({"content": "<think>hm"}, "length"), reasoning_end="</think>")
    assert (completion.message.content, completion.reasoning, completion.finish) == ("", "<think>hm", "length")


def test_thinking_goes_back_under_its_name_where_it_led_to_calls() -> None:
    calls = [{"id": "1", "function": {"name": "view", "arguments": "{}"}}]
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s"}]
    message = read_answer(
        answer({"content": "", "tool_calls": calls, "reasoning": "hm", "reasoning_details": details}), key="x"
    ).message
    assert to_messages([message], key="x")[0]["reasoning_details"] == details
    assert to_messages([message], key="x")[0]["reasoning"] == "hm"
    assert "reasoning" not in to_messages([message], key="y")[0]
    assert "reasoning" not in to_messages([message], key="x", reasoning=False)[0]
    plain = read_answer(answer({"content": "yes", "reasoning": "hm"}), key="x").message
    assert to_messages([plain], key="x") == [{"role": "assistant", "content": "yes"}]


def test_what_comes_beside_a_call_goes_back_with_it_and_nothing_else_does() -> None:
    """Whatever ids the service has given; it is no thinking, which the setting is about."""
    signed = [{"google": {"thought_signature": text}} for text in ("s1", "s2\ud83d")]
    call = {"id": "1", "function": {"name": "view", "arguments": "{}"}}
    calls = [call | {"extra_content": signed[0], "more": 1}, call | {"extra_content": signed[1]}, call]
    read = read_answer(answer({"content": None, "tool_calls": calls}), key="x", taken=["1"]).message
    assert len({call.id for call in read.calls} | {"1"}) == 4
    for reasoning in (True, False):
        (sent,) = to_messages([read], key="x", reasoning=reasoning)
        more = [set(one) - {"id", "type", "function"} for one in sent["tool_calls"]]
        assert more == [{"extra_content"}, {"extra_content"}, set()]
        assert sent["tool_calls"][0]["extra_content"] == signed[0]
        assert sent["tool_calls"][1]["extra_content"] == {"google": {"thought_signature": "s2?"}}
    assert all("extra_content" not in one for one in to_messages([read], key="y")[0]["tool_calls"])
    for nothing in (None, {}, "", json.loads(nested(101))):
        without = read_answer(answer({"tool_calls": [call | {"extra_content": nothing}]}), key="x").message
        assert not without.provider


def test_what_comes_beside_a_call_is_found_in_whichever_piece_of_it() -> None:
    """As Gemini streams: whole calls, all with the same index; or as OpenAI does, in pieces."""
    signed = {"google": {"thought_signature": "s"}}
    whole = [
        call_delta("{}", index=0, id="a", name="view", extra_content=signed),
        call_delta("{}", index=0, id="b", name="eval"),
    ]
    pieces = [
        call_delta("{", index=0, id="a", name="view"),
        call_delta("}", index=0, extra_content=signed),
        call_delta("", index=0, extra_content=None),
        call_delta("{}", index=1, id="b", name="eval"),
    ]
    for chunks in (whole, pieces):
        message = read_answer(gather([*chunks, delta({}, "tool_calls")]), key="x").message
        (sent,) = to_messages([message], key="x")
        assert [one.get("extra_content") for one in sent["tool_calls"]] == [signed, None]


def test_calls_without_ids() -> None:
    (sent,) = to_messages([Message("assistant", "", (ToolCall("view", {}),))])
    assert sent["tool_calls"][0]["id"] == ""
    call = {"function": {"name": "view", "arguments": "{}"}}
    calls = read_answer(answer({"tool_calls": [call, {**call, "id": ""}, {**call, "id": None}, "?"]})).message.calls
    assert len({call.id for call in calls}) == 3 and all(call.id for call in calls)


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, Usage()),
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, 2)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 99}}, Usage(10, 0, 10)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4}, Usage(10, 0, 4)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}}, None),
        ({"prompt_tokens": -1, "completion_tokens": "many", "prompt_tokens_details": 3}, Usage()),
        ({"prompt_tokens": 10.0, "completion_tokens": float("inf")}, Usage(10, 0)),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}, Usage(32, 103)),
        ({"prompt_tokens": 32, "completion_tokens": 103, "total_tokens": 135}, Usage(32, 103)),
        ({"prompt_tokens": 32, "completion_tokens": 103, "total_tokens": 0}, Usage(32, 103)),
        ({"total_tokens": 135}, Usage()),
    ],
)
def test_usage(usage: Any, read: Usage | None) -> None:
    assert read_answer(answer({"content": "yes"}, usage=usage)).usage == (read or Usage(10, 0, 4, written=3))


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "eos_token", "", None, 3])
def test_an_answer_ends_by_itself(finish: Any) -> None:
    assert read_answer(answer({"content": "yes"}, finish)).finish == "stop"


def test_an_answer_that_ends_in_an_error_is_none() -> None:
    with pytest.raises(MalformedAnswer, match="ends in an error"):
        read_answer(answer({"content": "half of"}, "error"))


def call_delta(arguments: Any, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return delta({"tool_calls": [{**more, "function": function}]})


@pytest.mark.parametrize(
    "chunks",
    [
        # As OpenAI does, in turns.
        [
            call_delta("", index=0, id="a", name="view"),
            call_delta("", index=1, id="b", name="eval"),
            call_delta('{"x"', index=0),
            call_delta("{", index=1),
            call_delta(": 1}", index=0),
            call_delta("}", index=1),
        ],
        # The same index for all, no index, and the id and the name with each piece.
        [call_delta('{"x": 1}', index=0, id="a", name="view"), call_delta("{}", index=0, id="b", name="eval")],
        [call_delta('{"x": 1}', id="a", name="view"), call_delta("{}", id="b", name="eval")],
        # Another id with each piece.
        [
            call_delta('{"x"', index=0, id="a", name="view"),
            call_delta(": 1}", index=0, id="a2"),
            call_delta("{}", index=1, id="b", name="eval"),
        ],
        # The id later than the name, and pieces that are none.
        [
            call_delta('{"x"', index=0, name="view"),
            call_delta(None, index=0),
            delta({"tool_calls": [{"index": 0, "function": None}]}),
            call_delta(": 1}", index=0, id="a"),
            call_delta("{}", index=1, id="b", name="eval"),
        ],
        # An object in the place of its text, and nothing in that of a piece.
        [
            call_delta({"x": 1}, index=0, id="a", name="view"),
            {"choices": [{"delta": None}]},
            call_delta(None, index=1, id="b", name="eval"),
        ],
        [
            call_delta('{"x"', index=0, id="a", name="view"),
            call_delta(": 1}", index=0, id="a", name="view"),
            call_delta("{}", index=1, id="b", name="eval"),
        ],
    ],
)
def test_calls_in_pieces(chunks: list[Any]) -> None:
    calls = read_answer(gather([*chunks, delta({}, "tool_calls")])).message.calls
    assert calls == (ToolCall("view", {"x": 1}, "a"), ToolCall("eval", {}, "b"))


@pytest.mark.parametrize(("finish", "meant"), [("length", CUT), ("stop", {}), ("tool_calls", {})])
@pytest.mark.parametrize("arguments", ["", None])
def test_a_call_that_was_cut_off_before_its_arguments_is_none(finish: str, meant: Any, arguments: Any) -> None:
    calls = [{"id": name, "function": {"name": name, "arguments": arguments}} for name in ("eval", "submit")]
    found = read_answer(answer({"content": None, "tool_calls": calls}, finish)).message.calls
    assert [call.arguments for call in found] == [{}, meant]


def test_arguments_that_are_json_twice_are_taken() -> None:
    assert read_arguments(json.dumps(json.dumps({"path": "a.py"}))) == {"path": "a.py"}
    for text in (json.dumps("a.py"), json.dumps(json.dumps([1]))):
        assert isinstance(read_arguments(text), str)


def test_thinking_in_parts_and_text_in_pieces() -> None:
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
    gathered = gather([delta({"content": thought}), delta({"content": "y"}), delta({"content": "es"}, "stop")])
    completion = read_answer(gathered)
    assert (completion.message.content, completion.reasoning) == ("yes", "hm")


def test_a_stream_may_end_without_a_reason_but_not_break_off() -> None:
    assert read_answer(gather([delta({"content": "yes"}), DONE])).message.content == "yes"
    assert read_answer(gather([delta({"content": "y"}, "length"), DONE])).finish == "length"
    with pytest.raises(MalformedAnswer, match="broke off"):
        gather([delta({"content": "yes"})])


def test_usage_of_a_stream_stands_where_the_service_puts_it() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    last = {"choices": [], "usage": usage}
    within = {"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage}], "usage": None}
    for chunks in ([delta({"content": "yes"}, "stop"), last, DONE], [delta({"content": "yes"}), within]):
        assert read_answer(gather(chunks)).usage == Usage(3, 1)


def test_items_of_an_answer_go_back_as_they_came() -> None:
    reasoning = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAA"}
    call = {"type": "function_call", "id": "fc", "call_id": "", "name": "no tool", "arguments": "{oops"}
    message = read_response({"output": [reasoning, call]}, key="x").message
    (read,) = message.calls
    assert read.name == "no tool" and read.id
    back = to_input([message, Message("tool", "no", call_id=read.id)], key="x")
    assert back[0] == reasoning
    assert back[1] == {**call, "call_id": read.id, "name": "no_tool", "arguments": '{"malformed": "{oops"}'}
    assert back[2]["call_id"] == read.id
    assert [item["type"] for item in to_input([message], key="y")] == ["function_call"]


def test_an_answer_that_was_cut_off_goes_back_as_text() -> None:
    body = {
        "output": [
            {"type": "reasoning", "id": "rs", "summary": [{"text": "hm"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "It"}]},
        ],
        "incomplete_details": {"reason": "max_output_tokens"},
    }
    completion = read_response(body, key="x")
    assert (completion.finish, completion.reasoning) == ("length", "hm")
    assert to_input([completion.message], key="x") == [{"role": "assistant", "content": "It"}]


@pytest.mark.parametrize(
    "item", [{"type": "reasoning", "summary": [{"text": "hm"}]}, {"type": "message", "content": []}]
)
def test_an_answer_without_words_goes_back_as_one(item: dict[str, Any]) -> None:
    """As it came it is refused: thinking that nothing follows, a message that is empty."""
    said = read_response({"output": [item], "status": "completed"}, key="x").message
    assert (said.content, said.calls) == ("", ())
    assert to_input([said], key="x") == [{"role": "assistant", "content": "(no words)"}]


@pytest.mark.parametrize(
    ("body", "said", "code"),
    [
        ({"error": {"message": "no", "type": "t", "code": "c"}}, "no", "c"),
        ({"message": "no", "type": "BadRequestError", "code": 400}, "no", "BadRequestError"),
        ({"error": "no", "error_type": "validation"}, "no", None),
        ({"detail": "Not Found"}, "Not Found", None),
        ("<html>no</html>", "<html>no</html>", None),
        ({"other": 1}, "{'other': 1}", None),
        ({"error": ["no"], "type": 5}, "{'error': ['no'], 'type': 5}", None),
        ({"message": ["no"], "detail": {"a": 1}}, "{'message': ['no'], 'detail': {'a': 1}}", None),
        (None, "", None),
    ],
)
def test_the_words_of_services(body: Any, said: str, code: str | None) -> None:
    assert words_of(body) == (said, code)


@pytest.mark.parametrize(
    ("code", "crowded"),
    [("server_error", False), ("rate_limit_exceeded", True), ("overloaded_error", True), (None, False)],
)
def test_a_failure_within_an_answer(code: str | None, crowded: bool) -> None:
    error = failure("m", None, "oops", code)
    assert isinstance(error, LLMUnavailable) and error.crowded == crowded and str(error) == "m: oops"


def test_a_date_that_no_calendar_has_is_none() -> None:
    assert retry_after({"retry-after": "Fri, 31 Dec 99999999999999 23:59:59 GMT"}) is None


def test_a_prompt_that_is_wrong_within_an_answer_is_not_sent_again() -> None:
    for code in ("invalid_prompt", "invalid_request_error"):
        assert not isinstance(failure("m", None, "oops", code), LLMUnavailable)
    assert not isinstance(failure("m", 400, "Request too large."), ContextOverflow)
    assert isinstance(failure("m", 500, "The context window is not to be had"), LLMUnavailable)
    assert isinstance(failure("m", 429, "Request too large."), ContextOverflow)
    assert isinstance(failure("m", None, "The maximum context length is 3", None), ContextOverflow)


@pytest.mark.parametrize(
    "said",
    [
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "'max_tokens' is too large: 4000. This model's maximum context length is 8192 tokens, your request has 5000.",
    ],
)
def test_words_for_a_conversation_that_is_too_long(said: str) -> None:
    assert isinstance(failure("m", 400, said), ContextOverflow)


def test_an_answer_that_may_not_be_as_long_as_is_set_is_no_conversation_that_is_too_long() -> None:
    told = failure("m", 400, "'max_tokens' is too large: 9000. This model's maximum context length is 8192 tokens.")
    assert type(told) is LLMRejected and "lower max_tokens" in str(told)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("registry.ollama.ai/library/gemma:2b does not support tools", 400),
        ("No endpoints found that support tool use.", 404),
        ("deepseek-reasoner does not support Function Calling", 400),
        ("This model doesn't support tool use.", 400),
        ("Function calling is not enabled for models/gemma-3-27b-it", 400),
        ("`tool calling` is not supported with this model", 400),
        ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', 400),
        ("tools param requires --jinja flag", 500),
    ],
)
def test_words_for_tools_that_are_not_taken(said: str, status: int) -> None:
    told = failure("m", status, said)
    assert isinstance(told, ToolsRefused) and "function_calling: false in its entry in llm.yaml" in str(told)
    assert ("start its server with that" in str(told)) is ("--" in said)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        *(("m does not support tools", status) for status in (401, 402, 403, 429, 529)),
        ("this model does not support tool_choice: required", 400),
        ("this model does not support tool choice 'required'", 400),
        ("m does not support tool results with images", 400),
        ("m does not support images in the results of tools", 400),
        ("this model does not support parallel tool calls", 400),
        ("Parallel tool calling is not supported.", 400),
        ("Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", 400),
        ("Invalid schema for function 'view': 'format' is not supported", 400),
        ("tools.0.function.name: string too long", 400),
        ("tools: array too long, at most 128 are supported", 400),
        ("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'", 400),
    ],
)
def test_words_that_are_not_about_tools(said: str, status: int) -> None:
    assert not isinstance(failure("m", status, said), ToolsRefused)


def test_remedies_by_words() -> None:
    told = str(failure("m", 400, "'max_tokens' is not supported. Use 'max_completion_tokens' instead."))
    assert "generate_kwargs: {max_completion_tokens: ...}" in told
    assert "filter" in str(failure("m", 400, "no", "content_filter"))
    assert str(failure("m", 404, "")) == (
        "m: the service says nothing (404); look at model and endpoint in llm.yaml"
        " (most endpoints end in /v1, Anthropic's do not)"
    )
    for code in ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"):
        told = failure("m", 429, "No.", code)
        assert not isinstance(told, LLMUnavailable) and "credit" in str(told)


def test_text_for_a_person() -> None:
    assert shortened("a\n\x1b[31mb\t c") == "a [31mb c"
    assert len(shortened("x" * 1000)) == 300
    assert hide("key sk-123456 and sk-1234567", ["sk-123456", "sk-1234567", ""]) == "key *** and ***"
    assert hide("sk-1, secret; xsk-12, secrets", ["sk-1", "secret"]) == "***, ***; xsk-12, secrets"
    for placeholder in ("a", "none", "EMPTY", "ollama", "not-needed"):
        assert hide(f"no model {placeholder}", [placeholder]) == f"no model {placeholder}"
