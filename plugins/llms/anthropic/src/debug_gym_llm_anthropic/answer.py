"""What the Messages API answers, whole or in pieces, as a `Completion`."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from debug_gym_core import Completion, Message, ToolCall, Usage
from debug_gym_core.errors import ContextOverflow, LLMUnavailable
from debug_gym_core.models.chat_format import CUT, read_arguments, sent_name
from debug_gym_llm_anthropic.conversation import KEPT, Block, as_input, text_of

Count = Annotated[int, Field(ge=0)]


class Tokens(pydantic.BaseModel):
    """The service's count of a call."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None

    def usage(self) -> Usage:
        """As ours; the service's `input_tokens` are those that its cache had no part in."""
        cached, written = self.cache_read_input_tokens or 0, self.cache_creation_input_tokens or 0
        return Usage(self.input_tokens + cached + written, self.output_tokens, cached, written=written)


class Counted(pydantic.BaseModel):
    """The service's count of a prompt."""

    input_tokens: Count


class Answer(pydantic.BaseModel):
    """One answer, as far as it is of use here."""

    content: list[Block]
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None
    usage: Tokens = Tokens()


class _Text(pydantic.BaseModel):
    type: Literal["text"]
    text: str


class _Call(pydantic.BaseModel):
    type: Literal["tool_use"]
    id: str | None = None
    name: Annotated[str, Field(min_length=1)]
    input: Any = None


SHAPES: Mapping[str, type[pydantic.BaseModel]] = {"text": _Text, "tool_use": _Call}
"""What is read of a block, by its type; blocks of other types go back as they came."""


def understand(body: object) -> Answer:
    """Check an answer.

    Raises:
        ValueError: it is none of the Messages API
    """
    answer = Answer.model_validate(body)
    for block in answer.content:
        if not isinstance(block.get("type"), str):
            raise ValueError("a block of its content has no type")
        if block["type"] in SHAPES:
            SHAPES[block["type"]].model_validate(block)
        if block["type"] == "server_tool_use":
            block["input"] = as_input(read_arguments(block.get("input")))
    answer.content = [block for block in answer.content if block["type"] != "text" or block["text"].strip()]
    return answer


def usage_of(told: Mapping[str, Any]) -> Usage:
    """What a service has counted of an answer that is of no use; nothing where that cannot be understood."""
    try:
        return Tokens.model_validate(told).usage()
    except ValueError:
        return Usage()


def understand_count(body: object) -> int:
    """Check the count of a prompt's tokens.

    Raises:
        ValueError: it is none
    """
    return Counted.model_validate(body).input_tokens


def gather(events: Iterable[Any], told: dict[str, Any]) -> dict[str, Any]:
    """Put an answer together that comes in pieces.

    The arguments of a call are put together as text and parsed when all is there: a call that is cut off stays text,
    so that nobody carries out half of it.

    Args:
        events: of a stream of the SDK
        told: gets what it says of tokens, as it comes

    Raises:
        LLMUnavailable: it ends before it is complete
        ValueError: the pieces do not fit
    """
    message: dict[str, Any] = {"usage": told}
    blocks: dict[int, Block] = {}
    inputs: dict[int, str] = {}
    try:
        for event in events:
            _add(event.to_dict(mode="json", warnings=False), message, blocks, inputs)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an event of the stream does not fit: {error!r}") from error
    if message.get("stop_reason") is None:
        raise LLMUnavailable("the connection was closed in the middle of the answer")
    for index, text in inputs.items():
        if text.strip():
            blocks[index]["input"] = text
    return message | {"content": [blocks[index] for index in sorted(blocks)]}


def _add(event: Mapping[str, Any], message: dict[str, Any], blocks: dict[int, Block], inputs: dict[int, str]) -> None:
    """Take one event in."""
    match event["type"]:
        case "message_start":
            message["usage"] |= event["message"].get("usage") or {}
        case "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        case "content_block_delta":
            index, delta = event["index"], event["delta"]
            block = blocks[index]
            match delta["type"]:
                case "text_delta":
                    block["text"] = block.get("text", "") + delta["text"]
                case "input_json_delta":
                    inputs[index] = inputs.get(index, "") + delta["partial_json"]
                case "thinking_delta":
                    block["thinking"] = block.get("thinking", "") + delta["thinking"]
                case "signature_delta":
                    block["signature"] = delta["signature"]
                case "citations_delta":
                    block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case "message_delta":
            message |= {name: value for name, value in event["delta"].items() if value is not None}
            # Totals so far: what is not said again stays as it was.
            message["usage"] |= {name: count for name, count in (event.get("usage") or {}).items() if count is not None}


def completion(answer: Answer, known: Collection[str | None]) -> Completion:
    """An answer in our form.

    Args:
        answer: it
        known: ids of the calls that the conversation has

    Raises:
        LLMUnavailable: it says neither anything nor why it ends
        ContextOverflow: it is empty, since there was no room for one
    """
    finish = _finish(answer)
    if not answer.content and answer.stop_reason == "model_context_window_exceeded":
        raise ContextOverflow("the conversation leaves no room for an answer")
    if not answer.content and answer.stop_reason in (None, "pause_turn"):
        raise LLMUnavailable("the answer is empty")
    calls = _read_calls(answer.content, set(known), finish == "length")
    kept: dict[str, Any] = {}
    if any(block["type"] not in ("text", "tool_use") for block in answer.content):
        kept["content"] = answer.content
    if finish == "refused" and answer.stop_details:
        kept["refusal"] = answer.stop_details
    reasoning = "\n".join(str(block["thinking"]) for block in answer.content if block.get("thinking"))
    message = Message("assistant", text_of(answer.content), calls, provider={KEPT: kept} if kept else {})
    return Completion(message, answer.usage.usage(), finish, reasoning)


def _finish(answer: Answer) -> Literal["stop", "length", "refused"]:
    if answer.stop_reason == "refusal":
        return "refused"
    # `pause_turn` comes here when the service has paused as often as it is let.
    cut = answer.stop_reason in ("max_tokens", "model_context_window_exceeded", "pause_turn")
    return "length" if cut else "stop"


def _read_calls(blocks: list[Block], known: set[str | None], cut: bool) -> tuple[ToolCall, ...]:
    """The calls of an answer; its blocks get what the service would refuse when they are sent back put right.

    Args:
        blocks: of the answer
        known: ids of the calls that the conversation has
        cut: whether the answer was cut off: a last call that has no arguments yet is half a call
    """
    calls = []
    for block in blocks:
        if block["type"] == "tool_use":
            arguments = read_arguments(block.get("input"))
            if cut and block is blocks[-1] and arguments == {}:
                arguments = CUT
            block["input"] = as_input(arguments)
            if not block.get("id") or block["id"] in known:
                block["id"] = f"call_{uuid.uuid4().hex}"
            known.add(block["id"])
            call = ToolCall(block["name"], arguments, block["id"])
            block["name"] = sent_name(call)
            calls.append(call)
    return tuple(calls)
