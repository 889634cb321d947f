"""What a model was told and said in an episode, as conversations: what training data is made of.

A trajectory of a run with `-vv` has each prompt whole. An agent that only appends to its history has one conversation;
one that makes its prompt anew, or leaves out old messages, has as many as there are prompts that do not go on with the
one before. Without the prompts one conversation is made of the steps: what the agent did and what it saw.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from debug_gym_core.models.llm import Message
from debug_gym_core.runs.reading import Trajectory, as_action, was_malformed
from debug_gym_core.runs.trajectory import EventKind
from debug_gym_core.tools.action import ToolCall


@dataclass(frozen=True)
class Conversation:
    """Messages, the last of them what the model answered.

    Attributes:
        messages: in their order; calls and what answers them have ids
        tools: names of the tools that the model was offered; empty for one that was asked for text
        source: `prompts` when they are those that the model was given, `steps` when they are made of the steps
    """

    messages: Sequence[Message]
    tools: Sequence[str]
    source: Literal["prompts", "steps"]


def conversations(trajectory: Trajectory) -> list[Conversation]:
    """The conversations of an episode.

    Args:
        trajectory: of the episode

    Returns:
        in their order; none where nothing was said
    """
    calls = [event.data for event in trajectory.of(EventKind.LLM_CALL) if "failed" not in event.data]
    if calls and all("prompt" in call and "answer" in call for call in calls):
        understood = _understood(trajectory)
        found = [
            [_as_understood(message, understood) for message in messages]
            for messages in _of_prompts([(call["prompt"], call["answer"]) for call in calls])
        ]
        in_text = not any(call.get("tools", call["calls"]) for call in calls)
        tools = [] if in_text else _tools(trajectory, found)
        return [Conversation(messages, tools, "prompts") for messages in found]
    messages = _of_steps(trajectory)
    return [Conversation(messages, _tools(trajectory, [messages]), "steps")] if len(messages) > 1 else []


def _of_prompts(calls: Sequence[tuple[Sequence[Mapping[str, Any]], Mapping[str, Any]]]) -> Iterator[list[Message]]:
    """The longest conversations: a prompt that goes on with the one before and its answer takes their place."""
    before: list[Message] = []
    for given, answered in calls:
        prompt, answer = [_message(one) for one in given], _message(answered)
        if before and not _goes_on(prompt, before):
            yield _with_ids(before)
            before = []
        before = [*prompt, answer]
    if before:
        yield _with_ids(before)


def _goes_on(prompt: Sequence[Message], before: Sequence[Message]) -> bool:
    """Whether a prompt begins with a conversation; its last answer may have got ids, or lost its thinking."""
    asked, answer = before[:-1], before[-1]
    if len(prompt) < len(before) or any(one != other for one, other in zip(prompt, asked, strict=False)):
        return False
    said = prompt[len(asked)]
    return said.role == "assistant" and [call.name for call in said.calls] == [call.name for call in answer.calls]


def _understood(trajectory: Trajectory) -> dict[str, ToolCall]:
    """What calls were understood as, by their ids: a whole action in text may stand as the name of one."""
    actions = [as_action(event.data["action"]) for event in trajectory.steps]
    return {one.id: one for one in actions if isinstance(one, ToolCall) and one.id is not None}


def _as_understood(message: Message, understood: Mapping[str, ToolCall]) -> Message:
    """The message, where what stands as a tool's name and is none is the call that it meant."""
    calls = tuple(
        understood.get(call.id or "", call) if not call.arguments and len(call.name.split()) > 1 else call
        for call in message.calls
    )
    return dataclasses.replace(message, calls=calls)


def _message(data: Mapping[str, Any]) -> Message:
    """A message as an event has it, without what only its provider understands."""
    calls = []
    for call in data.get("calls", ()):
        made = as_action(call)
        calls.append(made if isinstance(made, ToolCall) else ToolCall(str(call["name"])))
    answers = data.get("call_id")
    return Message(data["role"], data["content"], tuple(calls), answers if isinstance(answers, str) else None)


def _with_ids(messages: Sequence[Message]) -> list[Message]:
    """The messages, where a call that has no id gets one."""
    found = []
    for place, message in enumerate(messages):
        calls = tuple(
            call if call.id else dataclasses.replace(call, id=f"call-{place}-{number}")
            for number, call in enumerate(message.calls, 1)
        )
        found.append(dataclasses.replace(message, calls=calls))
    return found


def _of_steps(trajectory: Trajectory) -> list[Message]:
    """A conversation of the steps: what the agent saw first, then each call and what it showed."""
    messages: list[Message] = []
    for event in trajectory.events:
        data = event.data
        if event.kind is EventKind.LLM_CALL and "answer" in data and not data["calls"]:
            messages.append(_message(data["answer"]))
        if event.kind is not EventKind.STEP:
            continue
        text = data["observation"]["text"]
        action = as_action(data["action"]) if data["step"] else None
        if isinstance(action, ToolCall):
            call = dataclasses.replace(action, id=f"call-{data['step']}")
            messages += [Message("assistant", "", (call,)), Message("tool", text, call_id=call.id)]
        else:
            said = [Message("assistant", action)] if isinstance(action, str) else []
            messages += [*said, Message("user", text)]
    return messages


def _tools(trajectory: Trajectory, conversations: Sequence[Sequence[Message]]) -> list[str]:
    """The tools that the model was offered: those at the start, and what was called and had been withheld then."""
    understood = [as_action(event.data["action"]) for event in trajectory.steps if not was_malformed(event)]
    played = [action.name for action in understood if isinstance(action, ToolCall)]
    called = [call.name for messages in conversations for message in messages for call in message.calls]
    offered = [name for name in trajectory.started.get("tools", ()) if isinstance(name, str)]
    return list(dict.fromkeys([*offered, *(name for name in called if name in played)]))
