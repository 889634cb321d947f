"""Models without function calling: they are told the tools in words and answer with an action in the text form."""

from __future__ import annotations

import bisect
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import ActionError
from debug_gym_core.models.llm import LLM, Completion, Message, WrappedLLM
from debug_gym_core.tools import action
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.references import choices, followed
from debug_gym_core.tools.tool import example, examples

if TYPE_CHECKING:
    from debug_gym_core.environment.env import RepoEnv
    from debug_gym_core.tools.tool import Tool

KEY = "text_calls"
"""Under this key of `Message.provider` stands what this module knows of a message."""

DONE = "done"
"""What a model writes in place of an action when it has no more to do."""

MOST_OBJECTS = 1000
"""Lines of an answer, from below, that are tried as the beginning of a JSON object, each with all that follows it."""

_THINKING = re.compile(
    r"\A(?:(?!<<<).)*?</think>|<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_DECORATION = re.compile(r"^(?:[>*\-$#]+[ \t]+|`+|<\w+>|(?:action|command|tool|call)[ \t]*:[ \t]*)+", re.IGNORECASE)
_SPELLINGS = {"name": ("name", "tool", "function", "action"), "arguments": ("arguments", "parameters", "args", "input")}
"""Keys that models use in JSON, ours first."""

FORM = """\
# How to use the tools

You act by writing one action at the end of each answer, and see what it showed in the next message. Think first if you
like; the last action in your answer is the one that is carried out. Write it in a block of its own:

```
{example}
```

The first word is the tool. Words follow the shell's quoting and fill the arguments in order; key=value names one;
START:END fills start and end. A text of several lines stands between <<< at the end of the first line and >>> alone on
the last, and is taken literally:

```
rewrite some_file.py 4:5 <<<
    total = 0
    count = 0
>>>
```

JSON is taken as well: {json}

When nothing is left to do, write {done} in place of an action.

# The tools, optional arguments in brackets
{tools}"""


def with_text_calls(llm: LLM, env: RepoEnv) -> LLM:
    """The model as an agent asks it: as it is when it takes tools, else asked for text.

    Args:
        llm: its settings say `function_calling`, or nothing
        env: whose tools it is offered
    """
    return llm if getattr(llm.settings, "function_calling", True) else TextCalls(llm, env)


def correction_of(message: Message) -> str | None:
    """What to tell a model whose answer should hold an action and has none that is understood; None: all is well."""
    known = message.provider.get(KEY)
    said = known.get("correction") if isinstance(known, Mapping) else None
    return said if isinstance(said, str) else None


class TextCalls(WrappedLLM):
    """A model that is asked for actions in text; agents see calls of tools as of any other."""

    name = "text-calls"

    def __init__(self, inner: LLM, env: RepoEnv) -> None:
        """Wrap a model.

        Args:
            inner: the model
            env: knows the tools' text form
        """
        super().__init__(inner)
        self._env = env
        self._calls = 0

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int | None:
        """Tokens of a prompt as it would be sent; see `LLM`."""
        return self._inner.count(self._plain(messages, tools), [])

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Ask the model in words and find the action in its answer; see `LLM`."""
        completion = self._inner.complete(self._plain(messages, tools), [])
        offered = {name: type(made) for name, made in self._env.tools.items() if _offers(tools, name)}
        return dataclasses.replace(completion, message=self._understood(completion.message, offered))

    def _plain(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> list[Message]:
        """The conversation without tools: they are described, calls and their results are text."""
        plain: list[Message] = []
        names: dict[str | None, str] = {}
        for message in messages:
            names.update((call.id, call.name) for call in message.calls)
            text = message.content
            role = message.role
            if message.calls and not message.provider.get(KEY, {}).get("in_text"):
                blocks = [f"```\n{json.dumps(call.as_json(), ensure_ascii=False)}\n```" for call in message.calls]
                text = "\n\n".join([*([text] if text else []), *blocks])
            elif role == "tool":
                role, text = "user", f"[{names.get(message.call_id, 'tool')}]\n{text}"
            if plain and plain[-1].role == role:
                text = f"{plain.pop().content}\n\n{text}"
            plain.append(Message(role, text, provider=message.provider if role == "assistant" else {}))
        if tools:
            described = describe(tools)
            if plain and plain[0].role == "system":
                plain[0] = Message("system", f"{plain[0].content}\n\n{described}")
            else:
                plain.insert(0, Message("system", described))
        return plain

    def _understood(self, message: Message, tools: Mapping[str, type[Tool]]) -> Message:
        """The answer with its action as a call, or with what to tell the model."""
        content = _THINKING.sub("", message.content).strip()
        known: dict[str, Any] = {}
        calls = message.calls[:1]
        if not calls and tools:
            try:
                call = find(content, tools)
            except ActionError as error:
                known["correction"] = str(error)
            else:
                self._calls += call is not None
                calls = (dataclasses.replace(call, id=f"text-{self._calls}"),) if call else ()
                known["in_text"] = True
        return dataclasses.replace(message, content=content, calls=calls, provider={**message.provider, KEY: known})


def describe(tools: Sequence[Mapping[str, Any]]) -> str:
    """The tools and the form in which to use them, for a system message.

    Args:
        tools: as JSON Schema: `name`, `description`, `parameters`
    """
    lines = []
    for tool in tools:
        properties: Mapping[str, Any] = tool["parameters"].get("properties", {})
        required, definitions = tool["parameters"].get("required", []), tool["parameters"].get("$defs", {})
        words = [name if name in required else f"[{name}]" for name in properties]
        lines += ["", " ".join([tool["name"], *words]), f"    {tool['description']}".replace("\n", "\n    ")]
        for name, schema in properties.items():
            whole = followed(schema, definitions)
            types = [followed(one, definitions).get("type", "null") for one in (whole, *choices(whole))]
            kinds = [one for one in dict.fromkeys(types) if one != "null"]
            if "string" not in kinds:
                kinds = [f"{kind} as JSON in quotes" if kind in ("array", "object") else kind for kind in kinds]
            default = f", default {json.dumps(schema['default'])}" if schema.get("default") is not None else ""
            said = schema.get("description", "")
            lines.append(f"    {name} ({' or '.join(kinds) or 'any'}{default}){': ' if said else ''}{said}")
    names = [tool["name"] for tool in tools]
    example = next((text for name, text in _EXAMPLES.items() if name in names), names[0])
    sample = json.dumps({"name": names[0], "arguments": {}})
    return FORM.format(example=example, json=sample, done=DONE, tools="\n".join(lines))


_EXAMPLES = {"view": "view some_file.py 1 40", "eval": "eval", "bash": "bash ls -la"}


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
            call = action.parse(_json(candidate) if candidate.startswith("{") else candidate, tools)
            tools[call.name].check(call.arguments)
        except ActionError as error:
            wrong = wrong or error
            continue
        return call
    if wrong is not None:
        raise wrong
    shown = next((tool for tool in tools.values() if example(tool)), None)
    sample = ToolCall(shown.name, examples(shown)[0]) if shown else None
    so = f" Example:\n```\n{action.as_text(sample, tools)}\n```" if sample else ""
    raise ActionError(
        f"Your answer has no action. End it with one in a block of its own: a line that begins with a tool"
        f" ({', '.join(tools)}), or {DONE} when nothing is left to do.{so}"
    )


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
    if "\n\n" not in text.strip() or ">>>" in text:
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
    closings = [number for number, line in enumerate(lines) if line.strip() == ">>>"]
    found: list[tuple[str, slice, str]] = []
    number = 0
    while number < len(lines):
        line = _DECORATION.sub("", lines[number].strip()).rstrip("` ")
        number += 1
        closing = bisect.bisect_left(closings, number)
        if line.endswith("<<<") and closing < len(closings):
            end = closings[closing]
            found.append((line, slice(number, end), ">>>"))
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


def _offers(tools: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(tool["name"] == name for tool in tools)
