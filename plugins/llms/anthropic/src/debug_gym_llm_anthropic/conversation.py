"""A conversation and its tools in the form of the Messages API."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from debug_gym_core import Message, ToolCall
from debug_gym_core.models.chat_format import sent_name

Block = dict[str, Any]

KEPT = "anthropic"
"""Under this key of `Message.provider` lies what the service wants back: `content`, the blocks as they came."""

THINKING = ("thinking", "redacted_thinking")
UNANSWERED = "This call was not carried out."
MARK = {"type": "ephemeral"}


def request(
    messages: Sequence[Message], tools: Sequence[dict[str, Any]], *, cache: bool = True, system_role: bool = True
) -> dict[str, Any]:
    """The fields `system`, `messages` and `tools` of a request, those that are not empty.

    Args:
        messages: the conversation
        tools: as `LLM.complete`
        cache: mark what the service is to keep for the next request
        system_role: whether the model takes a system prompt; else that is the beginning of the first user message
    """
    head = list(itertools.takewhile(lambda message: message.role == "system", messages))
    system = [block for message in head for block in _text(message.content)]
    turns = _turns(messages[len(head) :])
    if system and not (system_role and turns):
        if not turns or turns[0]["role"] != "user":
            turns.insert(0, {"role": "user", "content": []})
        turns[0]["content"][:0] = system
        system = []
    offered = [_tool(tool) for tool in tools]
    fields = {"system": system, "tools": offered, "messages": turns}
    body: dict[str, Any] = _sendable({name: value for name, value in fields.items() if value})
    if cache:
        _mark(body)
    return body


def as_input(arguments: object) -> dict[str, Any]:
    """Arguments as the object that the service insists on; text that was none comes under `_`."""
    return dict(arguments) if isinstance(arguments, Mapping) else {"_": arguments}


def text_of(blocks: Sequence[Block]) -> str:
    """What the text blocks of an answer say."""
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages that alternate between user and assistant, as the service has them."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if blocks and turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    for before, after in itertools.pairwise(turns):
        if after["role"] == "user":
            after["content"] = _results_first(before["content"], after["content"])
    return turns


def _results_first(asked: Sequence[Block], answered: Sequence[Block]) -> list[Block]:
    """The blocks that follow calls: the service wants one result for each, and nothing before them."""
    results = [block for block in answered if block["type"] == "tool_result"]
    known = {block["tool_use_id"] for block in results}
    missing = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": UNANSWERED, "is_error": True}
        for block in asked
        if block["type"] == "tool_use" and block["id"] not in known
    ]
    return [*results, *missing, *(block for block in answered if block["type"] != "tool_result")]


def _blocks(message: Message) -> list[Block]:
    if message.role == "assistant":
        return _assistant(message)
    if message.role == "tool":
        result: Block = {"type": "tool_result", "tool_use_id": message.call_id}
        return [result | {"content": message.content} if message.content.strip() else result]
    # A system message later on is the user's: put into `system` it would change the beginning, and void the cache.
    return _text(message.content)


def _assistant(message: Message) -> list[Block]:
    kept: list[Block] = list(message.provider.get(KEPT, {}).get("content", ()))
    calls = [_call(call) for call in message.calls]
    if kept and text_of(kept) == message.content and _calls(kept) == _calls(calls):
        blocks = kept
    else:  # somebody has changed the message: its thinking comes first, as the service has it
        blocks = [block for block in kept if block["type"] in THINKING] + _text(message.content) + calls
    return blocks if any(block["type"] not in THINKING for block in blocks) else []


def _calls(blocks: Sequence[Block]) -> list[tuple[Any, ...]]:
    return [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]


def _call(call: ToolCall) -> Block:
    return {"type": "tool_use", "id": call.id, "name": sent_name(call), "input": as_input(call.arguments)}


def _text(text: str) -> list[Block]:
    """A block of text; none for white space, which the service refuses."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _tool(schema: Mapping[str, Any]) -> Block:
    return {
        "name": schema["name"],
        "description": schema.get("description", ""),
        "input_schema": schema.get("parameters") or {"type": "object", "properties": {}},
    }


def _mark(body: Mapping[str, Any]) -> None:
    """Say up to where the service keeps what it has read: the part that never changes, and the last two user turns.

    The last turn but one ended the previous request, so that one is found whatever has come since.
    """
    users = [turn["content"] for turn in body.get("messages", ()) if turn["role"] == "user"]
    for blocks in (body.get("system") or body.get("tools"), *users[-2:]):
        if blocks:
            blocks[-1]["cache_control"] = dict(MARK)


def _sendable(value: Any) -> Any:
    """A copy in which text has no half of a surrogate pair, which UTF-8 cannot say."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {_sendable(key): _sendable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(item) for item in value]
    return value
