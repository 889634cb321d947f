"""Actions in the text of a model's answer, as models write them."""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import ActionError
from debug_gym_core.tools import action, blocks
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.tool import example, examples

if TYPE_CHECKING:
    from debug_gym_core.tools.tool import Tool

DONE = "done"
"""What a model writes in place of an action when it has no more to do."""

MOST_OBJECTS = 1000
"""Lines of an answer, from below, that are tried as the beginning of a JSON object, each with all that follows it."""

_THINKING = re.compile(
    rf"\A(?:(?!{blocks.BEGIN}).)*?</think>|<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
_TAGGED = re.compile(r"<(tool_call|function_call)>(.*?)(?:</\1>|(?=<\1>)|\Z)", re.DOTALL)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_DECORATION = re.compile(r"^(?:[>*\-$#]+[ \t]+|`+|<\w+>|(?:action|command|tool|call)[ \t]*:[ \t]*)+", re.IGNORECASE)
_SPELLINGS = {"name": ("name", "tool", "function", "action"), "arguments": ("arguments", "parameters", "args", "input")}
"""Keys that models use in JSON, ours first."""


def without_thinking(text: str) -> str:
    """An answer without what its model has thought aloud between tags."""
    return _THINKING.sub("", text).strip()


def find(text: str, tools: Mapping[str, type[Tool]]) -> ToolCall | None:
    """Find the action in a model's answer: the last that is right.

    Args:
        text: the answer, without the model's thinking
        tools: what it may call

    Returns:
        the call; None when it says that it is done

    Raises:
        ActionError: there is none, or what comes nearest is wrong; says what, and what is right
    """
    wrong: ActionError | None = None
    for candidate in _candidates(text, tools):
        if _is_done(candidate, tools):
            return None
        try:
            return _read(candidate, tools)
        except ActionError as error:
            wrong = wrong or error
    if wrong is not None:
        raise wrong
    shown = next((tool for tool in tools.values() if example(tool)), None)
    sample = ToolCall(shown.name, examples(shown)[0]) if shown else None
    so = f" Example:\n```\n{action.as_text(sample, tools)}\n```" if sample else ""
    raise ActionError(
        f"Your answer has no action. End it with one in a block of its own: a line that begins with a tool"
        f" ({', '.join(tools)}), or {DONE} when nothing is left to do.{so}"
    )


def find_instead(text: str, tools: Mapping[str, type[Tool]]) -> tuple[ToolCall, ...]:
    """Find what a model that was offered tools has written in place of calls.

    Such an answer may as well just speak of tools. Therefore only this counts: JSON between `<tool_call>` tags, which
    is how many models are taught to call and what a server should have understood; else an action that is all of the
    answer or of a fenced block, if there is one and no other.

    Args:
        text: the answer, without the model's thinking
        tools: what it may call

    Returns:
        the calls; none when nothing in it is surely meant as one

    Raises:
        ActionError: what is between tags, or JSON that names a tool, is wrong; says what, and what is right
    """
    tagged = [match[2].strip() for match in _TAGGED.finditer(text)]
    if tagged:
        return tuple(_read(one, tools) for one in tagged)
    found = []
    for block in dict.fromkeys(one.strip() for one in (text, *_fenced(text))):
        if not any(_if_action(block, tools)) or _is_done(block, tools):
            continue
        meant = False
        try:
            said = _said(block)
            meant = isinstance(said, dict) and said.get("name") in [*tools]  # which may be a list, as a model has it
            found.append(_call(said, tools))
        except ActionError:
            if meant:
                raise
    return tuple(found) if len(found) == 1 else ()


def _read(candidate: str, tools: Mapping[str, type[Tool]]) -> ToolCall:
    """A part of an answer as a call.

    Raises:
        ActionError: it is none, or one with wrong arguments
    """
    return _call(_said(candidate), tools)


def _said(candidate: str) -> str | dict[str, Any]:
    """A part of an answer as an action may be given: text, or what its JSON says.

    Raises:
        ActionError: the JSON is none
    """
    return _json(candidate) if candidate.startswith("{") else candidate


def _call(said: str | dict[str, Any], tools: Mapping[str, type[Tool]]) -> ToolCall:
    """What a part of an answer says as a call.

    Raises:
        ActionError: it is none, or one with wrong arguments
    """
    call = action.parse(said, tools)
    tools[call.name].check(call.arguments)
    return call


def _json(text: str) -> dict[str, Any]:
    """The JSON object that a text begins with, in our spelling.

    Raises:
        ActionError: it is none; says where it stops being one
    """
    try:
        loaded, _ = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        where = f"{error.msg} at line {error.lineno}, column {error.colno}, near {near!r}"
        raise ActionError(f"the JSON of your action is wrong: {where}") from None
    except RecursionError:
        raise ActionError("the JSON of your action is nested too deeply") from None
    found: dict[str, Any] = {}
    for ours, spellings in _SPELLINGS.items():
        found.update((ours, loaded[key]) for key in reversed(spellings) if key in loaded)
    return found


def _candidates(text: str, tools: Mapping[str, type[Tool]]) -> Iterator[str]:
    """Parts of an answer that may be an action, the likeliest first: all of it, fenced blocks and lines from below.

    What does not begin as an action is passed over.
    """
    if "\n\n" not in text.strip() or blocks.END in text:
        yield from _if_action(text, tools)
    for block in reversed(_fenced(text)):
        yield from _if_action(block, tools)
        yield from _from_lines(block, tools)
    yield from _from_lines(text, tools)


def _fenced(text: str) -> list[str]:
    """The blocks between fences, in order; one within another is a part of that.

    A fence is open until a line of the same marks and nothing else; one that nothing closes is none. The lines are
    walked once, as a model may repeat a fence thousands of times.
    """
    lines = text.split("\n")
    opened: dict[str, int] = {}
    blocks: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        begin = opened.setdefault(fence[1], number)
        if begin < number and not fence[2].strip():
            while opened.popitem()[1] > begin:
                pass  # opened within the block
            while blocks and blocks[-1][0] > begin:
                blocks.pop()
            blocks.append((begin, number))
    return ["\n".join(lines[begin + 1 : end]) for begin, end in blocks]


def _from_lines(text: str, tools: Mapping[str, type[Tool]]) -> Iterator[str]:
    """Actions that begin at a line's beginning, the last first; what stands in the block of one is none."""
    lines = text.split("\n")
    closings = [number for number, line in enumerate(lines) if blocks.ends(line.lstrip())]
    found: list[tuple[str, slice, str]] = []
    number = 0
    while number < len(lines):
        line = _DECORATION.sub("", lines[number].strip()).rstrip("` ")
        number += 1
        closing = bisect.bisect_left(closings, number)
        if blocks.begins(line) and closing < len(closings):
            end = closings[closing]
            if blocks.is_begin(line) and found and found[-1][1] == slice(number - 1, number - 1):
                line = f"{found.pop()[0]}\n{blocks.BEGIN}"  # it belongs to the line above
            found.append((line, slice(number, end), blocks.END))
            number = end + 1
        else:
            found.append((line, slice(number, None if line.startswith("{") else number), ""))
    objects = 0
    for line, below, last in reversed(found):
        if line.startswith("{"):
            objects += 1
            if objects > MOST_OBJECTS:
                continue
        yield from _if_action("\n".join([line, *lines[below], last]), tools)


def _if_action(text: str, tools: Mapping[str, type[Tool]]) -> Iterator[str]:
    """A text that begins as an action does: with a tool's name, or as JSON that names one; or that says `done`."""
    text = text.strip()
    named = text.startswith("{") and any(f'"{name}"' in text for name in _SPELLINGS["name"])
    if named or _is_done(text, tools) or (text.split() and text.split(maxsplit=1)[0] in tools):
        yield text


def _is_done(text: str, tools: Mapping[str, type[Tool]]) -> bool:
    return text.strip(" .`*").lower() == DONE and DONE not in tools
