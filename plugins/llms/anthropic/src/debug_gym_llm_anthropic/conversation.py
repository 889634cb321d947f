"""A conversation and its tools in the form of the Messages API."""

from __future__ import annotations

import itertools
import json
import re
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
MARKED = f', "cache_control": {json.dumps(MARK)}'
"""As it ends a block in JSON; within a text its quotes are escaped."""
MOST_MARKS = 3
"""One less than the service takes, which leaves one to `generate_kwargs`."""

_SECTIONS = re.compile(r"(?<=\n\n)(?=#{1,6} )")
"""Where a prompt in Markdown has its headings."""


def request(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    *,
    cache: bool = True,
    before: Sequence[str] | None = None,
    system_role: bool = True,
) -> dict[str, Any]:
    """The fields `system`, `messages` and `tools` of a request, those that are not empty.

    Args:
        messages: the conversation
        tools: as `LLM.complete`
        cache: mark what the service is to keep for the next request
        before: `read` of the request before; None: there was none
        system_role: whether the model takes a system prompt; else that is the beginning of the first user message
    """
    head = list(itertools.takewhile(lambda message: message.role == "system", messages))
    # Sections are blocks of their own, so that those before one that changes can be kept.
    parts = [part for one in head for part in (_SECTIONS.split(one.content) if cache else (one.content,))]
    system = [block for part in parts for block in _text(part)]
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
        _mark(body, before if any(turn["role"] == "assistant" for turn in turns) else None)
    return body


def read(body: Mapping[str, Any]) -> list[str]:
    """What the service reads of a request, one part after the other; its marks are none."""
    return [part for part, _ in _parts(body)]


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


def _mark(body: Mapping[str, Any], before: Sequence[str] | None) -> None:
    """Say up to where the service keeps what it has read, which costs more than just to read it.

    Of a conversation that begins, or goes on with all of the request before, that is the part that never changes, and
    the last two user turns; the last but one ended the previous request, so that one is found whatever has come since.
    Else it is no more than what stands before the first change: what follows one can hardly be read again.
    """
    parts = _parts(body)
    pairs = zip(parts, before or (), strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0][0] == pair[1], pairs))
    if before is None or same == len(before):
        users = [turn["content"] for turn in body.get("messages", ()) if turn["role"] == "user"]
        ends = [blocks[-1] for blocks in (body.get("tools"), body.get("system"), *users[-2:]) if blocks][-MOST_MARKS:]
    else:
        kept = [block for _, block in parts[:same] if block is not None]
        ends = kept if len(kept) < 2 else [kept[0], kept[-1]]
    for block in ends:
        block["cache_control"] = dict(MARK)


def _parts(body: Mapping[str, Any]) -> list[tuple[str, Block | None]]:
    """What the service reads, in its order, with the block that a mark can be set on; none on what a model has said."""
    tools = body.get("tools")
    parts: list[tuple[str, Block | None]] = [(_plain(tools), tools[-1])] if tools else []
    parts += [(_plain(block), block) for block in body.get("system", ())]
    for turn in body.get("messages", ()):
        user = turn["role"] == "user"
        parts += [(_plain([turn["role"], block]), block if user else None) for block in turn["content"]]
    return parts


def _plain(blocks: Any) -> str:
    """Blocks as text, without their marks."""
    return json.dumps(blocks).replace(MARKED, "")


def _sendable(value: Any) -> Any:
    """A copy in which text has no half of a surrogate pair, which UTF-8 cannot say."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {_sendable(key): _sendable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(item) for item in value]
    return value
