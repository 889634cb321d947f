"""Conversations in the format of the Responses API, and answers in it.

Everything here is JSON types. The service keeps nothing: the items of an answer, with the model's thinking encrypted,
stay in `Message.provider` and are given back as they came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from debug_gym_core.models.chat_format import (
    WORDLESS,
    MalformedAnswer,
    clean,
    cut_reasoning,
    make_usage,
    mapping,
    read_calls,
    sent,
    sent_name,
    text_of,
    without_system,
)
from debug_gym_core.models.llm import Completion, Message
from debug_gym_core.usage import Usage

OUTPUT = "output"
"""What the items of an answer are called below the backend's key in `Message.provider`."""


def to_input(messages: Sequence[Message], *, key: str = "", system: bool = True) -> list[dict[str, Any]]:
    """A conversation as the `input` of a request.

    Args:
        messages: the conversation
        key: of the backend in `Message.provider`
        system: whether the model takes a system message; else it is put before the first user message
    """
    items: list[dict[str, Any]] = []
    for message in messages if system else without_system(messages):
        kept = mapping(message.provider.get(key)).get(OUTPUT)
        content = clean(message.content)
        if message.role == "tool":
            items.append({"type": "function_call_output", "call_id": message.call_id or "", "output": content})
        elif kept:
            items += [dict(item) for item in kept]
        else:
            if content or not message.calls:
                items.append({"role": message.role, "content": content or WORDLESS})
            items += [
                {"type": "function_call", "call_id": call.id or "", "name": sent_name(call), "arguments": sent(call)}
                for call in message.calls
            ]
    return items


def to_functions(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tools as those of a request; arguments may be left out, as their schemas say."""
    return [{"type": "function", "strict": False, **tool} for tool in tools]


def read_response(
    body: Any, *, key: str = "", reasoning_end: str | None = None, taken: Collection[str | None] = ()
) -> Completion:
    """Understand an answer.

    Args:
        body: the answer as JSON
        key: of the backend in `Message.provider`
        reasoning_end: the answer begins after this, where the model thinks aloud
        taken: ids that calls of the conversation have

    Raises:
        MalformedAnswer: it is not in the format, or says neither anything nor that it is complete
    """
    output = mapping(body).get("output")
    if not isinstance(output, list):
        raise MalformedAnswer("holds no output")
    items = [dict(item) for item in output if isinstance(item, Mapping)]
    parts = [part for item in items if item.get("type") == "message" for part in _mappings(item.get("content"))]
    content = "".join(text_of(part.get("text")) for part in parts)
    refusal = "".join(text_of(part.get("refusal")) for part in parts)
    thinking = "\n\n".join(
        text_of(part.get("text"))
        for item in items
        if item.get("type") == "reasoning"
        for part in (*_mappings(item.get("summary")), *_mappings(item.get("content")))
    )
    asked = [item for item in items if item.get("type") == "function_call"]
    reason = mapping(mapping(body).get("incomplete_details")).get("reason")
    finish = _finish(bool(refusal), reason)
    calls = read_calls([(item.get("call_id"), item) for item in asked], taken, finish)
    for item, call in zip(asked, calls, strict=True):
        # What goes back must fit the answers to the calls, and be taken by the service.
        item.update(call_id=call.id, name=sent_name(call), arguments=sent(call))
    if reasoning_end is not None and not thinking:
        thinking, content = cut_reasoning(content, reasoning_end, finish)
    if not (content or calls or thinking) and finish == "stop" and mapping(body).get("status") != "completed":
        raise MalformedAnswer("is empty")
    # Of an answer that was cut off, the last item may be half of one, which the service would refuse; and thinking that
    # nothing follows, too.
    provider = {key: {OUTPUT: items}} if key and (content or calls) and finish == "stop" else {}
    said = Message("assistant", content or refusal, calls, provider=provider)
    return Completion(said, read_response_usage(mapping(body).get("usage")), finish, thinking)


def _finish(refused: bool, reason: Any) -> Any:
    if refused or reason == "content_filter":
        return "refused"
    return "length" if reason else "stop"


def read_response_usage(usage: Any) -> Usage:
    """Tokens as the service counts them; 0 for what it does not say."""
    usage = mapping(usage)
    details = mapping(usage.get("input_tokens_details"))
    return make_usage(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        details.get("cached_tokens"),
        details.get("cache_write_tokens"),
        usage.get("total_tokens"),
    )


def gather_response(events: Iterable[Any]) -> dict[str, Any]:
    """The answer of a stream, which its last event holds whole.

    Raises:
        MalformedAnswer: the stream ends before the answer does
    """
    for event in map(mapping, events):
        if event.get("type") in ("response.completed", "response.incomplete", "response.failed"):
            return dict(mapping(event.get("response")))
        if event.get("error") or event.get("type") == "error":
            return {"error": event.get("error") or dict(event)}
    raise MalformedAnswer("broke off")


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
