"""Answers in Anthropic's Messages format, for a `ModelServer`, which refuses what the service would refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from debug_gym_core.testing.model_server import ModelServer, Reply, Request

Block = Mapping[str, Any]

MOST_MARKS = 4
"""Of `cache_control` in a request."""

LOOKED_BACK = 20
"""Blocks up to a mark that the service looks for what it has kept."""

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""Of a tool."""

PIECE = 7
"""Characters of a piece of a streamed text: few, so that pieces end within words and escapes."""


def text(said: str) -> Block:
    """Text."""
    return {"type": "text", "text": said}


def call(name: str, arguments: Any = None, identity: str | None = "toolu_1") -> Block:
    """A tool call; arguments that are text go out as they are in a stream."""
    return {"type": "tool_use", "id": identity, "name": name, "input": {} if arguments is None else arguments}


def thinking(said: str, signature: str) -> Block:
    """Thinking, with the service's signature."""
    return {"type": "thinking", "thinking": said, "signature": signature}


def redacted(data: str) -> Block:
    """Thinking that only the service can read."""
    return {"type": "redacted_thinking", "data": data}


def usage(prompt: int = 20, completion: int = 10, *, cached: int = 0, written: int = 0) -> dict[str, int]:
    """The tokens of a call, as the service tells them: `prompt` without those of its cache."""
    return {
        "input_tokens": prompt,
        "output_tokens": completion,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }


def answer(*blocks: Block, stop: str | None = None, tokens: Mapping[str, Any] | None = None, **more: Any) -> Reply:
    """A whole answer.

    Args:
        blocks: its content
        stop: why it ends; None: for the calls that it makes, or since it is complete
        tokens: its usage
        more: further fields
    """
    return Reply(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": list(blocks),
            "stop_reason": stop or _stop(blocks),
            "stop_sequence": None,
            "usage": usage() if tokens is None else tokens,
            **more,
        }
    )


def stream(
    *blocks: Block, stop: str | None = None, tokens: Mapping[str, Any] | None = None, delay: float = 0, **more: Any
) -> Reply:
    """The same in pieces, as server-sent events; `more` goes with the last of them."""
    used = dict(usage() if tokens is None else tokens)
    message = answer(tokens=used | {"output_tokens": 1}).body | {"stop_reason": None}
    events = [event("message_start", message=message), event("ping")]
    for index, block in enumerate(blocks):
        start, deltas = _pieces(block)
        events.append(event("content_block_start", index=index, content_block=start))
        events += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        events.append(event("content_block_stop", index=index))
    delta = {"stop_reason": stop or _stop(blocks), "stop_sequence": None, **more}
    events.append(event("message_delta", delta=delta, usage={"output_tokens": used.get("output_tokens", 0)}))
    events.append(event("message_stop"))
    return Reply(events=events, delay=delay)


def event(kind: str, **fields: Any) -> str:
    """One server-sent event."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}"


def error(status: int, kind: str, message: str, **headers: str) -> Reply:
    """What the service says when it refuses; underscores in the names of headers are dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply({"type": "error", "error": {"type": kind, "message": message}}, status, named)


def serve(reply: Callable[[Request], Reply]) -> ModelServer:
    """A server that refuses a malformed request with status 400, and asks `reply` for the others."""

    def checked(request: Request) -> Reply:
        wrong = complaint(request.body) if request.path.startswith("/v1/messages") else None
        return error(400, "invalid_request_error", wrong) if wrong else reply(request)

    return ModelServer(checked)


def complaint(body: Any) -> str | None:
    """What the service would refuse a request for; None: nothing."""
    return next(_complaints(body), None)


def marks(value: Any) -> int:
    """How many `cache_control` there are in a value."""
    if isinstance(value, Mapping):
        return ("cache_control" in value) + sum(map(marks, value.values()))
    return sum(map(marks, value)) if isinstance(value, list) else 0


def unmarked(value: Any) -> Any:
    """A value without its `cache_control`."""
    if isinstance(value, Mapping):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


class PromptCache:
    """What the service keeps of the requests that it is sent, told in characters where the service tells tokens.

    A prompt is kept up to each of its marks, and read up to the longest part that is kept and ends at a mark or a few
    blocks before one. The service keeps nothing that is shorter than some thousand tokens; this does.
    """

    def __init__(self) -> None:
        self._kept: set[str] = set()

    def take(self, body: Mapping[str, Any]) -> dict[str, int]:
        """The tokens of a request, as `usage` has them; what it marks is kept."""
        said = [(turn["role"], block) for turn in body["messages"] for block in turn["content"]]
        blocks = [
            *(("tool", one) for one in body.get("tools", ())),
            *(("system", one) for one in body.get("system", ())),
        ]
        blocks += said
        whole = [json.dumps([role, unmarked(block)]) for role, block in blocks]
        marked = [place for place, (_, block) in enumerate(blocks, 1) if "cache_control" in block]
        found = (end for mark in marked for end in range(mark, max(mark - LOOKED_BACK, 0), -1))
        read = max((end for end in found if "".join(whole[:end]) in self._kept), default=0)
        kept = max([read, *marked])
        self._kept.update("".join(whole[:mark]) for mark in marked)
        sizes = [len("".join(part)) for part in (whole[kept:], whole[:read], whole[read:kept])]
        return usage(sizes[0], cached=sizes[1], written=sizes[2])


def _complaints(body: Any) -> Iterator[str]:
    turns = body.get("messages") if isinstance(body, Mapping) else None
    if not turns:
        yield "messages: at least one message is required"
        return
    if turns[0]["role"] != "user":
        yield "messages: first message must use the user role"
    if marks(body) > MOST_MARKS:
        yield f"a maximum of {MOST_MARKS} blocks with cache_control may be provided"
    if any(not block["text"].strip() for block in body.get("system", ())):
        yield "system: text content blocks must be non-empty"
    asked: list[str] = []
    ids: list[str] = []
    for number, before, turn in zip(count(), [None, *turns], turns, strict=False):
        where = f"messages.{number}"
        if before and before["role"] == turn["role"]:
            yield f"{where}: roles must alternate"
        yield from (f"{where}: {wrong}" for wrong in _of_turn(turn, asked))
        asked = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        ids += asked
    if len(set(ids)) != len(ids):
        yield "messages: `tool_use` ids must be unique"
    if ids and not body.get("tools"):
        yield "tools: required, since messages contain tool_use blocks"


def _of_turn(turn: Mapping[str, Any], asked: Sequence[str]) -> Iterator[str]:
    """What is wrong with one message that follows calls of these ids."""
    blocks = turn["content"]
    if not blocks:
        yield "must have non-empty content"
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            yield "text content blocks must contain non-whitespace text"
        if block["type"] == "tool_use" and not isinstance(block["input"], Mapping):
            yield "tool_use.input: Input should be a valid dictionary"
        if block["type"] == "tool_use" and not NAME.fullmatch(block["name"]):
            yield f"tool_use.name: String should match pattern '{NAME.pattern}'"
        if "cache_control" in block and block["type"].endswith("thinking"):
            yield "cache_control cannot be set for thinking blocks"
    if turn["role"] == "assistant":
        if blocks and blocks[-1]["type"].endswith("thinking"):
            yield "the final block in an assistant message cannot be `thinking`"
        return
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    first = [block["tool_use_id"] for block in blocks[: len(asked)] if block["type"] == "tool_result"]
    if sorted(first) != sorted(asked) or len(answered) != len(first):
        yield "each `tool_use` must have one `tool_result` at the beginning of the next message"


def _stop(blocks: Sequence[Block]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def _pieces(block: Block) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block's beginning, and what is added to it."""
    match block["type"]:
        case "text":
            return dict(block) | {"text": ""}, [{"type": "text_delta", "text": part} for part in _cut(block["text"])]
        case "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": part} for part in _cut(block["thinking"])]
            return start, [*deltas, {"type": "signature_delta", "signature": block["signature"]}]
        case "tool_use" | "server_tool_use":
            given = block["input"]
            raw = given if isinstance(given, str) else json.dumps(given) if given else ""
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ["", *_cut(raw)]]
            return dict(block) | {"input": {}}, deltas
    return dict(block), []


def _cut(whole: str) -> list[str]:
    return [whole[start : start + PIECE] for start in range(0, len(whole), PIECE)]
