"""What an agent asks for: a tool and its arguments, and the text form of it.

The text form is for models and people without function calling:

    view counter_code.py 1 20
    pdb b counter_code.py:12
    rewrite counter_code.py 4:6 <<<
        total += 1
    >>>

The first word is the tool. Words follow the shell's quoting; `key=value` names an argument, other words fill the
arguments in order; a block between `<<<` at the end of a line and `>>>` alone on one is the last string argument, taken
literally. A tool whose only required argument is one string takes the rest of the line as it is (`pdb p x['a b']`).
`START:END` fills `start` and `end` where a tool has both.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import ActionError
from debug_gym_core.names import nearest

if TYPE_CHECKING:
    from debug_gym_core.tool import Tool


@dataclass(frozen=True)
class ToolCall:
    """One use of one tool.

    Attributes:
        name: the tool
        arguments: by name; None counts as left out
        id: what the model's provider calls it, to match the answer
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The JSON form: `name` and `arguments`."""
        return {"name": self.name, "arguments": dict(self.arguments)}


_BLOCK = re.compile(r"\A(?P<head>[^\n]*)<<<[ \t]*\n(?P<body>.*?)^>>>[ \t]*\n*\Z", re.DOTALL | re.MULTILINE)


def parse(action: ToolCall | Mapping[str, Any] | str, tools: Mapping[str, type[Tool]]) -> ToolCall:
    """Understand an action in any of its forms.

    Args:
        action: a ToolCall (a model's text may stand as its name), its JSON form (a mapping or text), or the text form
        tools: the tools of the environment by name

    Returns:
        a call whose tool exists; the arguments are not checked yet

    Raises:
        ActionError: the action is in none of the forms, or names no tool of the environment
    """
    if isinstance(action, str):
        call = _from_text(action, tools)
    elif isinstance(action, ToolCall):
        call = action
        if isinstance(call.name, str) and call.name not in tools and not call.arguments and _is_text(call.name):
            call = dataclasses.replace(_from_text(call.name, tools), id=call.id)
    elif isinstance(action, Mapping):
        call = _from_json(action)
    else:
        raise ActionError(
            f"an action is a ToolCall, its JSON form or text, not {type(action).__name__}\n{_example(tools)}"
        )
    if not isinstance(call.name, str) or call.name not in tools:
        raise ActionError(
            f"there is no tool {str(call.name)[:80]!r}{nearest(str(call.name)[:80], tools)}\n{_example(tools)}"
        )
    return call


def _is_text(name: str) -> bool:
    """Whether what stands as a tool's name is a whole action in text or JSON."""
    return len(name.split()) > 1 or name.lstrip().startswith("{")


def _from_json(action: Mapping[str, Any]) -> ToolCall:
    if "name" not in action:
        raise ActionError('an action in JSON is {"name": ..., "arguments": {...}}; it has no "name"')
    arguments = action.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise ActionError(f'"arguments" is no JSON object: {error}') from None
    if not isinstance(arguments, Mapping | None):
        raise ActionError(f'"arguments" must be an object, not {type(arguments).__name__}')
    identity = action.get("id")
    return ToolCall(action["name"], arguments or {}, identity if isinstance(identity, str) else None)


def _from_text(text: str, tools: Mapping[str, type[Tool]]) -> ToolCall:
    stripped = text.strip()
    if stripped.startswith("{"):
        try:
            loaded = json.loads(stripped)
        except (ValueError, RecursionError):
            loaded = None
        if isinstance(loaded, dict):
            return _from_json(loaded)
    body = None
    match = _BLOCK.match(text.lstrip())
    if match:
        text, body = match["head"], match["body"]
    name, _, rest = text.strip().partition(" ")
    name, newline, below = name.partition("\n")
    rest = f"{below} {rest}".strip() if newline and below else rest.strip()
    if not name:
        raise ActionError(f"the action is empty\n{_example(tools)}")
    if name not in tools:
        return ToolCall(name)
    return ToolCall(name, _arguments(tools[name], rest, body))


def _arguments(tool: type[Tool], rest: str, body: str | None) -> dict[str, Any]:
    schema = tool.schema()["parameters"]
    properties: dict[str, Any] = schema["properties"]
    required = schema.get("required", [])
    strings = [name for name in properties if _accepts(properties[name], "string")]
    arguments: dict[str, Any] = {}
    if body is not None:
        if not strings:
            raise ActionError(f"{tool.name} takes no text, so no block between <<< and >>>")
        last = [name for name in strings if name in required] or strings
        arguments[last[-1]] = body
    free = [name for name in properties if name not in arguments]
    if len(required) == 1 and required[0] in strings and free[:1] == required and _is_raw(tool):
        if rest:
            arguments[required[0]] = rest
        return arguments
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise ActionError(f"{tool.name}: the words cannot be told apart: {error}") from None
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in properties:
            arguments[key] = _value(properties[key], value)
            free = [name for name in free if name != key]
            continue
        span = re.fullmatch(r"(\d{1,18}):(\d{1,18})", word)
        if span and free[:2] == ["start", "end"]:
            arguments.update(start=int(span[1]), end=int(span[2]))
            free = free[2:]
        elif free:
            arguments[free[0]] = _value(properties[free[0]], word)
            free = free[1:]
        else:
            raise ActionError(f"{tool.name}: too many words, from {word[:80]!r} on; quote an argument that has spaces")
    return arguments


def _is_raw(tool: type[Tool]) -> bool:
    """Whether the tool's one required argument is a command, which the rest of the line is, quotes and all."""
    return bool(tool.schema()["parameters"].get("required") == ["command"])


def _accepts(schema: Mapping[str, Any], kind: str) -> bool:
    return schema.get("type") == kind or any(one.get("type") == kind for one in schema.get("anyOf", ()))


def _value(schema: Mapping[str, Any], word: str) -> Any:
    """A word as a value of the argument's type; text that does not fit stays text, and checking says so."""
    if word in ("null", "None") and _accepts(schema, "null"):
        return None
    if _accepts(schema, "boolean") and word.lower() in ("true", "false", "yes", "no"):
        return word.lower() in ("true", "yes")
    if (_accepts(schema, "integer") or _accepts(schema, "number")) and not _accepts(schema, "string"):
        for convert in (int, float):
            try:
                return convert(word)
            except ValueError:
                continue
    return word


def _example(tools: Mapping[str, type[Tool]]) -> str:
    from debug_gym_core.tool import example

    return f"example: {example(next(iter(tools.values())))}" if tools else "this environment has no tools"
