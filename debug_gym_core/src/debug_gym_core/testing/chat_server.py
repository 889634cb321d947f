"""Answers for `ModelServer` in OpenAI's wire formats: Chat Completions, which most services speak, and Responses."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from debug_gym_core.testing.model_server import Reply
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import Usage

PIECE = 7
"""Characters that a streamed answer has in one event."""

USAGE = Usage(prompt=20, completion=5, cached=8)


def chat_reply(
    text: str | None = None,
    calls: Sequence[ToolCall] = (),
    *,
    usage: Usage | None = USAGE,
    stream: bool = False,
    reasoning: str = "",
    beside: Mapping[str, Any] | None = None,
    refusal: str | None = None,
    finish: str | None = None,
    delay: float = 0.0,
    cut: int | None = None,
) -> Reply:
    """An answer of a Chat Completions service.

    Args:
        text: what the model says; None: null, as services send it beside calls
        calls: the tools that it calls; one without an id gets one; arguments that are a text are sent as they are
        usage: None: the service does not tell
        stream: as events, in pieces; say here what the request's `stream` says
        reasoning: sent as `reasoning_content`
        beside: sent as `extra_content` beside a call, by the call's id
        refusal: sent as such
        finish: the `finish_reason`; None: `tool_calls` or `stop`
        delay: as `Reply`
        cut: as `Reply`
    """
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [
            {
                **{"id": _id(call), "type": "function"},
                **({"extra_content": beside[call.id]} if beside and call.id and call.id in beside else {}),
                "function": {"name": call.name, "arguments": _arguments(call)},
            }
            for call in calls
        ]
    finish = finish or ("tool_calls" if calls else "stop")
    counted = None if usage is None else _chat_usage(usage)
    if stream:
        return Reply(events=list(_chat_events(message, finish, counted)), delay=delay, cut=cut)
    body = {
        **_chat_head("chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": counted,
    }
    return Reply(body, delay=delay, cut=cut)


def responses_reply(
    text: str | None = None,
    calls: Sequence[ToolCall] = (),
    *,
    usage: Usage | None = USAGE,
    stream: bool = False,
    reasoning: str = "",
    refusal: str | None = None,
    incomplete: str | None = None,
    delay: float = 0.0,
    cut: int | None = None,
) -> Reply:
    """An answer of the Responses API.

    Args:
        text: what the model says
        calls: as `chat_reply`
        usage: as `chat_reply`
        stream: as `chat_reply`
        reasoning: the summary of a reasoning item, which comes with encrypted content
        refusal: what it says instead of a text
        incomplete: why it ends early, such as `max_output_tokens`
        delay: as `Reply`
        cut: as `Reply`
    """
    output: list[dict[str, Any]] = []
    if reasoning:
        summary = [{"type": "summary_text", "text": reasoning}]
        output.append({"type": "reasoning", "id": _name("rs"), "summary": summary, "encrypted_content": _name("enc")})
    if text is not None or refusal is not None:
        said: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        part = said if refusal is None else {"type": "refusal", "refusal": refusal}
        item = {"type": "message", "id": _name("msg"), "role": "assistant", "status": "completed", "content": [part]}
        output.append(item)
    for call in calls:
        item = {"type": "function_call", "id": _name("fc"), "call_id": _id(call), "name": call.name}
        output.append({**item, "arguments": _arguments(call), "status": "completed"})
    response: dict[str, Any] = {
        **{"id": _name("resp"), "object": "response", "created_at": 1, "model": "served"},
        **{"status": "completed" if incomplete is None else "incomplete", "error": None, "output": output},
        "incomplete_details": None if incomplete is None else {"reason": incomplete},
        **{"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "store": False},
        "usage": None if usage is None else _responses_usage(usage),
    }
    if stream:
        return Reply(events=list(_responses_events(response)), delay=delay, cut=cut)
    return Reply(response, delay=delay, cut=cut)


def error_reply(
    status: int,
    message: str,
    code: str | None = None,
    kind: str = "invalid_request_error",
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """An error of a service that speaks either of the formats.

    Args:
        status: of HTTP
        message: what went wrong
        code: such as `context_length_exceeded`
        kind: the error's `type`
        headers: such as `retry-after`
    """
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return Reply(body, status=status, headers=headers or {})


def _chat_head(kind: str) -> dict[str, Any]:
    return {"id": _name("chatcmpl"), "object": kind, "created": 1, "model": "served"}


def _chat_usage(usage: Usage) -> dict[str, Any]:
    counted = {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion}
    details = {"prompt_tokens_details": {"cached_tokens": usage.cached}}
    return {**counted, "total_tokens": usage.prompt + usage.completion, **details}


def _responses_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    }


def _chat_events(message: Mapping[str, Any], finish: str, usage: Mapping[str, Any] | None) -> Iterator[str]:
    """The chunks of a streamed answer; the pieces of several calls come in turns."""
    head = _chat_head("chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], end: str | None = None) -> str:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})

    yield chunk({"role": "assistant", "content": ""})
    for key in ("reasoning_content", "content", "refusal"):
        for piece in _pieces(message.get(key) or ""):
            yield chunk({key: piece})
    calls = message.get("tool_calls", ())
    for index, call in enumerate(calls):
        yield chunk(
            {"tool_calls": [{**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}]}
        )
    waiting = [(index, list(_pieces(call["function"]["arguments"]))) for index, call in enumerate(calls)]
    for turn in range(max((len(pieces) for _, pieces in waiting), default=0)):
        for index, pieces in waiting:
            if turn < len(pieces):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": pieces[turn]}}]})
    yield chunk({}, finish)
    if usage is not None:
        yield _event({**head, "choices": [], "usage": usage})
    yield "data: [DONE]"


def _responses_events(response: Mapping[str, Any]) -> Iterator[str]:
    number = 0

    def event(kind: str, **fields: Any) -> str:
        nonlocal number
        number += 1
        return f"event: {kind}\n" + _event({"type": kind, "sequence_number": number, **fields})

    yield event("response.created", response={**response, "status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(response["output"]):
        yield event("response.output_item.added", output_index=index, item=item)
        if item["type"] == "message":
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            for piece in _pieces(item["content"][0].get("text") or ""):
                yield event("response.output_text.delta", **place, delta=piece, logprobs=[])
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{response['status']}", response=response)


def _event(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data)}"


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _arguments(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))


def _id(call: ToolCall) -> str:
    return call.id or _name("call")


def _name(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:24]}"
