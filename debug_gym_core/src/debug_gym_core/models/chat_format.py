"""Conversations in the format of Chat Completions, and answers in it: what most services of models speak.

Everything here is JSON types; no SDK is needed. Services differ in what they leave out, so nothing is taken for granted
in an answer.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from debug_gym_core import strict_json
from debug_gym_core.models.llm import Completion, Message
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.usage import Usage

Finish = Literal["stop", "length", "refused"]

REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields of an answer in which services show the model's thinking; they are given back as they came."""

BESIDE = "extra_content"
"""What services put beside a call and want back with it, such as Gemini's signature of the thought that led to it."""

FINISH: Mapping[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
}

DONE: Mapping[str, Any] = {"object": "done"}
"""Stands for the event that ends a stream."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 64


WORDLESS = "(no words)"
"""What goes back for an answer that says nothing."""

CUT = "{"
"""Arguments of a call that was cut off before them: no JSON, so that nobody carries it out."""

DEEPEST = 100
"""Levels of lists and objects in arguments: far more than any tool takes, and few enough to be copied and written."""

TOO_DEEP = "(arguments that are nested too deeply)"
"""Stands for arguments that came as an object which cannot be written down."""


class MalformedAnswer(ValueError):
    """An answer of a service is not what its format says; the text begins with a verb."""


def to_messages(
    messages: Sequence[Message], *, key: str = "", system: bool = True, reasoning: bool = True, strict: bool = False
) -> list[dict[str, Any]]:
    """A conversation as the `messages` of a request; what the user says in several, one after the other, is one.

    Args:
        messages: the conversation
        key: of the backend in `Message.provider`
        system: whether the model takes a system message; else it is put before the first user message
        reasoning: whether the thinking that led to tool calls is given back
        strict: whether after a tool's result the model has to speak, as Mistral's do: what the user says there goes
            into the result
    """
    said = _joined_turns(messages if system else without_system(messages), ("user", "tool") if strict else ("user",))
    return [_to_message(message, key, reasoning) for message in said]


def _joined_turns(messages: Iterable[Message], before: Collection[str]) -> list[Message]:
    """The conversation with what the user says joined to the message before, where that has one of some roles."""
    found: list[Message] = []
    for message in messages:
        if message.role == "user" and found and found[-1].role in before:
            found[-1] = replace(found[-1], content=f"{found[-1].content}\n\n{message.content}")
        else:
            found.append(message)
    return found


def without_system(messages: Sequence[Message]) -> list[Message]:
    """The conversation with what the system says before what the user says first."""
    said = "\n\n".join(message.content for message in messages if message.role == "system")
    others = [message for message in messages if message.role != "system"]
    if not said:
        return others
    first = next((index for index, message in enumerate(others) if message.role == "user"), None)
    if first is None:
        return [Message("user", said), *others]
    others[first] = Message("user", f"{said}\n\n{others[first].content}")
    return others


def _to_message(message: Message, key: str, reasoning: bool) -> dict[str, Any]:
    content = clean(message.content)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id or "", "content": content}
    if not message.calls:
        silent = message.role == "assistant" and not content  # it has only thought; an empty message is refused
        return {"role": message.role, "content": WORDLESS if silent else content}
    kept = mapping(message.provider.get(key))
    beside = mapping(kept.get(BESIDE))
    calls = [
        {
            **{"id": call.id or "", "type": "function"},
            **({BESIDE: beside[call.id]} if call.id and call.id in beside else {}),
            "function": {"name": sent_name(call), "arguments": sent(call)},
        }
        for call in message.calls
    ]
    thinking = {name: kept[name] for name in REASONING if reasoning and name in kept}
    return {"role": message.role, "content": content or None, "tool_calls": calls, **thinking}


def to_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tools as those of a request."""
    return [{"type": "function", "function": dict(tool)} for tool in tools]


def sent_name(call: ToolCall) -> str:
    """The name of a call that goes back to the service, which refuses the whole request for one that it cannot be."""
    return _NOT_IN_NAMES.sub("_", call.name)[:LONGEST_NAME] or "unknown"


def sent(call: ToolCall) -> str:
    """The arguments of a call that goes back: an object, since servers parse them for the model's chat template."""
    arguments: Any = call.arguments
    return clean(json.dumps({"malformed": arguments} if isinstance(arguments, str) else dict(arguments)))


def clean(text: str) -> str:
    """The text without what cannot be sent: halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_answer(
    body: Any, *, key: str = "", reasoning_end: str | None = None, taken: Collection[str | None] = ()
) -> Completion:
    """Understand an answer.

    Args:
        body: the answer as JSON
        key: of the backend in `Message.provider`
        reasoning_end: the answer begins after this, where the model thinks aloud
        taken: ids that calls of the conversation have

    Raises:
        MalformedAnswer: it is not in the format, or says neither anything nor why it ends
    """
    choices = mapping(body).get("choices")
    choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise MalformedAnswer("holds no message")
    reason = text_of(choice.get("finish_reason"))
    if reason == "error":
        raise MalformedAnswer("ends in an error")
    content, thought = _parts(message.get("content"))
    thinking = text_of(message.get("reasoning_content")) or text_of(message.get("reasoning")) or thought
    refusal = text_of(message.get("refusal"))
    finish = "refused" if refusal else FINISH.get(reason, "stop")
    if reasoning_end is not None and not thinking:
        thinking, content = cut_reasoning(content, reasoning_end, finish)
    found = [call for call in _list(message.get("tool_calls")) if isinstance(call, Mapping)]
    calls = read_calls([(call.get("id"), mapping(call.get("function"))) for call in found], taken, finish)
    if not (content or calls or thinking or refusal or reason):
        raise MalformedAnswer("is empty")
    kept = {name: message[name] for name in REASONING if message.get(name)}
    extras = [(made.id, call.get(BESIDE)) for made, call in zip(calls, found, strict=True)]
    beside = {identity: _cleaned(extra) for identity, extra in extras if extra and _fits(extra)}
    if beside:
        kept[BESIDE] = beside
    said = Message("assistant", content or refusal, calls, provider={key: kept} if kept and key else {})
    return Completion(said, read_usage(mapping(body).get("usage")), finish, thinking)


def _parts(content: Any) -> tuple[str, str]:
    """Text and thinking of a message's content, which is a text or a list of parts."""
    text, thinking = text_of(content), ""
    for part in filter(None, map(mapping, _list(content))):
        text += text_of(part.get("text"))
        thought = part.get("thinking")
        thinking += text_of(thought) + "".join(text_of(mapping(piece).get("text")) for piece in _list(thought))
    return text, thinking


def cut_reasoning(content: str, end: str, finish: Finish) -> tuple[str, str]:
    """Part thinking aloud from the answer; where it never ends, what was cut off is thinking, else answer."""
    thinking, found, answer = content.partition(end)
    if found:
        return thinking.strip(), answer.lstrip()
    return (content, "") if finish == "length" else ("", content)


def read_calls(
    found: Sequence[tuple[Any, Mapping[str, Any]]], taken: Collection[str | None] = (), finish: Finish = "stop"
) -> tuple[ToolCall, ...]:
    """The calls of an answer, each with an id of its own.

    Args:
        found: the id and the function of each, as they came
        taken: ids that earlier calls of the conversation have
        finish: why the answer ends: of one that was cut off, a last call that has no arguments yet is half a call
    """
    seen = set(taken)
    calls = []
    for place, (given, function) in enumerate(found, 1):
        identity = text_of(given)
        if not identity or identity in seen:
            identity = f"call_{uuid.uuid4().hex[:24]}"
        seen.add(identity)
        arguments = read_arguments(function.get("arguments"))
        if finish == "length" and place == len(found) and not function.get("arguments"):
            arguments = CUT
        calls.append(ToolCall(text_of(function.get("name")), arguments, identity))
    return tuple(calls)


def read_arguments(given: Any) -> Any:
    """Arguments of a call: by name; the text as it came when it is no JSON object, or one that is nested too deeply."""
    if not _fits(given):
        return TOO_DEEP
    text = given if isinstance(given, str) else json.dumps(given)
    if not text.strip():
        return {}
    try:
        value = strict_json.loads(text)
        if not _fits(value):
            return clean(text)
        # What cannot be sent back, half of a surrogate pair, is cleaned away inside of the values as well.
        value = value if text.isascii() and r"\ud" not in text.lower() else _cleaned(value)
    except (ValueError, RecursionError):
        return clean(text)
    if value is None:
        return {}
    if isinstance(value, str) and value.strip().startswith("{") and isinstance(inner := read_arguments(value), dict):
        return inner  # an object that was written as JSON twice
    return value if isinstance(value, dict) else clean(text)


def _fits(value: Any, levels: int = DEEPEST) -> bool:
    """Whether a value of JSON types has at most so many levels."""
    if not isinstance(value, list | dict):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_fits(item, levels - 1) for item in inner)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(name): _cleaned(item) for name, item in value.items()}
    return value


def read_usage(usage: Any) -> Usage:
    """Tokens as the service counts them; 0 for what it does not say."""
    usage = mapping(usage)
    details = mapping(usage.get("prompt_tokens_details"))
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    written, total = details.get("cache_write_tokens"), usage.get("total_tokens")
    return make_usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached, written, total)


def make_usage(prompt: Any, completion: Any, cached: Any, written: Any, total: Any = None) -> Usage:
    """Usage of what a service says, which may be anything; what is cached and written is part of the prompt.

    There are services that leave a model's thinking out of the answer's tokens: what a total has more is charged too.
    """
    given = _number(prompt)
    answered = max(_number(completion), _number(total) - given if given else 0)
    kept = min(_number(cached), given)
    return Usage(given, answered, kept, written=min(_number(written), given - kept))


def gather(chunks: Iterable[Any]) -> dict[str, Any]:
    """Put a streamed answer together, as if it had come at once; an error within it is all that there is then.

    Raises:
        MalformedAnswer: the stream ends before the answer does
    """
    message: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    places: dict[Any, dict[str, Any]] = {}
    usage, finish, done = None, None, False
    for chunk in map(mapping, chunks):
        if chunk.get("error"):
            return dict(chunk)
        done = done or chunk is DONE
        usage = chunk.get("usage") or usage
        for choice in map(mapping, _list(chunk.get("choices"))[:1]):
            usage = choice.get("usage") or usage
            finish = choice.get("finish_reason") or finish
            delta = mapping(choice.get("delta"))
            for name in ("content", "refusal", *REASONING):
                if delta.get(name):
                    message[name] = _joined(message.get(name), delta[name])
            for call in filter(None, map(mapping, _list(delta.get("tool_calls")))):
                _gather_call(call, calls, places)
    if finish is None and not done:
        raise MalformedAnswer("broke off")
    return {"choices": [{"message": {**message, "tool_calls": calls}, "finish_reason": finish}], "usage": usage}


def _joined(before: Any, piece: Any) -> Any:
    """Text, or parts of a message; there are services that send thinking as parts and then plain text."""
    if before is None:
        return piece
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    return [
        part
        for half in (before, piece)
        for part in (half if isinstance(half, list) else [{"type": "text", "text": half}])
    ]


def _gather_call(delta: Mapping[str, Any], calls: list[dict[str, Any]], places: dict[Any, dict[str, Any]]) -> None:
    """Add a piece to its call; there are services that give all calls the same index, or none, but an id each."""
    index, identity, function = delta.get("index"), delta.get("id"), mapping(delta.get("function"))
    call = places.get(index)
    # There are services, too, that give each piece of a call another id; only its first has a name.
    if call is None or (identity and call["id"] and identity != call["id"] and function.get("name")):
        call = {"id": None, "function": {"name": None, "arguments": ""}}
        calls.append(call)
        places[index] = call
    call["id"] = call["id"] or identity
    if delta.get(BESIDE):
        call[BESIDE] = delta[BESIDE]
    gathered = call["function"]
    gathered["name"] = gathered["name"] or function.get("name")
    arguments = function.get("arguments")
    gathered["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def text_of(value: Any) -> str:
    """The value where it is a text, else an empty one."""
    return clean(value) if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> int:
    return max(int(value), 0) if isinstance(value, int | float) and abs(value) < 1e12 else 0
