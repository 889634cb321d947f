"""What an agent asks for: a tool and its arguments, and the text form of it.

The text form is for models and people without function calling:

    view counter_code.py 1 20
    pdb b counter_code.py:12
    rewrite counter_code.py 4:6 <<<
        total += 1
    >>>

The first word is the tool. Words follow the shell's quoting; `key=value` names an argument, other words fill the
arguments in order; a block between `<<<` at the end of a line, or alone on the next, and `>>>` alone on one, or between
the two on a line, is the last string argument, taken literally; where a tool says what that must end like
(`Tool.ends_like`), without its last line end. A `command`, where nothing else is required, is the rest of the line
(`pdb p x['a b']`; see `command_line`); so is a tool's only argument, if it is text, where that is more than one word.
`START:END` fills `start` and `end` where a tool has both.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from debug_gym_core import strict_json
from debug_gym_core.errors import ActionError
from debug_gym_core.names import closest, nearest
from debug_gym_core.tools import blocks, text_arguments

if TYPE_CHECKING:
    from debug_gym_core.tools.tool import Tool


@dataclass(frozen=True)
class ToolCall:
    """One use of one tool.

    Attributes:
        name: the tool
        arguments: by name, None counts as left out; text where a model wrote what is no JSON object, as it came
        id: what the model's provider calls it, to match the answer
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The JSON form: `name` and `arguments`."""
        arguments = dict(self.arguments) if isinstance(self.arguments, Mapping) else self.arguments
        return {"name": self.name, "arguments": arguments}


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
        call = _from_json(action, tools)
    else:
        raise ActionError(
            f"an action is a ToolCall, its JSON form or text, not {type(action).__name__}\n{_example(tools)}"
        )
    if not isinstance(call.name, str):
        raise ActionError(f"a tool's name is text, not {type(call.name).__name__}\n{_example(tools)}")
    if call.name not in tools:
        name = call.name[:80]
        raise ActionError(f"there is no tool {name!r}{nearest(name, tools)}\n{_example(tools, closest(name, tools))}")
    if isinstance(call.arguments, str):
        call = dataclasses.replace(call, arguments=_object(call.name, call.arguments, tools))
    return call


def as_text(call: ToolCall, tools: Mapping[str, type[Tool]]) -> str:
    """Write an action in the text form, so that it can be read, and pasted where text is parsed.

    Args:
        call: the action
        tools: the tools of the environment by name

    Returns:
        text that `parse` makes the same call of, a block's last line end aside; the JSON form where the grammar has no
        other way to say it
    """
    if isinstance(call.arguments, str):
        return json.dumps(call.as_json(), ensure_ascii=False)
    given = {name: value for name, value in call.arguments.items() if value is not None}
    if call.name in tools:
        for text in _texts(tools[call.name], given):
            try:
                read = parse(text, tools)
            except ActionError:
                continue
            if read.name != call.name or not isinstance(read.arguments, Mapping):
                continue
            if _alike(read.arguments, given, tools[call.name].ends_like):
                return text
    return json.dumps({"name": call.name, "arguments": given}, ensure_ascii=False, default=str)


def _texts(tool: type[Tool], given: Mapping[str, Any]) -> Iterator[str]:
    """Ways to write a call, the one that reads best first; not all mean the same."""
    strings = [name for name, value in given.items() if isinstance(value, str)]
    for name in reversed(strings):
        if "\n" in given[name]:
            rest = {key: value for key, value in given.items() if key != name}
            for body in (given[name], f"{given[name]}\n"):  # of which a tool may leave out the last line end
                for words in _words(tool, rest) if body.endswith("\n") else ():
                    yield f"{' '.join([tool.name, *words])} {blocks.BEGIN}\n{body}{blocks.END}"
    if list(given) == ["command"] and strings:
        yield f"{tool.name} {given['command']}"
    for words in _words(tool, given):
        yield " ".join([tool.name, *words])
    if "command" in strings:
        rest = {key: value for key, value in given.items() if key != "command"}
        for words in _words(tool, rest):
            yield f"{' '.join([tool.name, *words])} {blocks.BEGIN}\n{given['command']}\n{blocks.END}"


def _words(tool: type[Tool], given: Mapping[str, Any]) -> Iterator[list[str]]:
    """Arguments as words: in their order as far as none is left out, else by name."""
    order = [name for name in tool.parameters() if name in given]
    placed = [name for name, known in zip(order, tool.parameters(), strict=False) if name == known]
    named = [_named(name, given[name]) for name in order if name not in placed]
    if placed[-2:] == ["start", "end"]:
        span = f"{given['start']}:{given['end']}"
        yield [*(_word(given[name]) for name in placed[:-2]), span, *named]
    yield [*(_word(given[name]) for name in placed), *named]
    yield [_named(name, value) for name, value in given.items()]


def _named(name: str, value: Any) -> str:
    return f"{name}={_word(value)}"


def _word(value: Any) -> str:
    if isinstance(value, str):
        return shlex.quote(value)
    return shlex.quote(json.dumps(value, ensure_ascii=False, default=str))


def _alike(read: Mapping[str, Any], given: Mapping[str, Any], to_the_end: Container[str]) -> bool:
    """Whether two sets of arguments are equal, but for the line end that a block adds at its end.

    Args:
        read: what was made of a text
        given: what it was to be
        to_the_end: names of those of which the line end matters
    """

    def same(name: str) -> bool:
        one, other = read[name], given[name]
        if isinstance(one, str) and isinstance(other, str):
            return one == other or (one == f"{other}\n" and name not in to_the_end)
        return type(one) is type(other) and bool(one == other)

    return read.keys() == given.keys() and all(map(same, given))


def _is_text(name: str) -> bool:
    """Whether what stands as a tool's name is a whole action in text or JSON."""
    return len(name.split()) > 1 or name.lstrip().startswith("{")


def _from_json(action: Mapping[str, Any], tools: Mapping[str, type[Tool]]) -> ToolCall:
    if "name" not in action:
        raise ActionError(f'an action in JSON has "name" and "arguments"; it has no "name"\n{_example(tools)}')
    name = action["name"]
    arguments = action.get("arguments")
    if isinstance(arguments, str):
        arguments = _object(name, arguments, tools)
    if not isinstance(arguments, Mapping | None):
        said = f'"arguments" must be an object, not {type(arguments).__name__}'
        raise ActionError(f"{said}\n{_example(tools, name)}")
    identity = action.get("id")
    return ToolCall(name, arguments or {}, identity if isinstance(identity, str) else None)


def _object(name: object, text: str, tools: Mapping[str, type[Tool]]) -> dict[str, Any]:
    """Arguments that came as text.

    Raises:
        ActionError: it is no JSON object; says where it stops being one
    """
    if not text.strip():
        return {}
    try:
        loaded = strict_json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ActionError(f'"arguments" is no JSON object: {_where(error, text)}\n{_example(tools, name)}') from None
    if loaded is not None and not isinstance(loaded, dict):
        said = f"it is a JSON {_KINDS[type(loaded)]}"
        raise ActionError(f'"arguments" is no JSON object: {said}\n{_example(tools, name)}')
    return loaded or {}


_KINDS = {list: "list", str: "string", int: "number", float: "number", bool: "boolean"}


def _from_text(text: str, tools: Mapping[str, type[Tool]]) -> ToolCall:
    stripped = text.strip()
    if stripped.startswith("{"):
        try:
            loaded = strict_json.loads(stripped)
        except (ValueError, RecursionError):
            loaded = None
        if isinstance(loaded, dict):
            return _from_json(loaded, tools)
        else:
            _refuse_cut_json(stripped, tools)
    body = None
    match = blocks.ACTION.match(text.lstrip())
    if match:
        text, body = match["head"], match["body"]
    elif opened := blocks.OPENED.match(text.lstrip()):
        name = text.split(maxsplit=1)[0]
        if name in tools:
            said = text_arguments.not_ended(text.lstrip()[opened.end() :])
            raise ActionError(f"{name}: {said}\n{blocks.EXAMPLE}")
    name, rest = _first_word(text)
    name, newline, below = name.partition("\n")
    rest = f"{below} {rest}".strip() if newline and below else rest.strip()
    if not name:
        raise ActionError(f"the action is empty\n{_example(tools)}")
    if name not in tools:
        return ToolCall(name)
    try:
        return ToolCall(name, text_arguments.read(tools[name], rest, body))
    except ActionError as error:
        raise ActionError(f"{error}\n{_example(tools, name)}") from None


def _first_word(text: str) -> tuple[str, str]:
    """A text up to its first blank, and what comes behind that."""
    name, *rest = re.split(r"[ \t]", text.strip(), maxsplit=1)
    return name, "".join(rest)


def _refuse_cut_json(text: str, tools: Mapping[str, type[Tool]]) -> None:
    """Refuse what begins as an action in JSON and is none.

    Raises:
        ActionError: always where it names one; says where it stops being JSON
    """
    if re.match(r'\{\s*"', text) is None:
        return
    named = re.match(r'\{\s*"name"\s*:\s*"([^"\\]*)"', text)
    try:
        strict_json.loads(text)
    except (ValueError, RecursionError) as error:
        example = _example(tools, named[1] if named else None)
        raise ActionError(f"the action begins as JSON and is none: {_where(error, text)}\n{example}") from None


def _where(error: Exception, text: str) -> str:
    """Where a text stops being JSON, and that it was cut off where it was."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    if error.msg.startswith("Unterminated string"):
        what = "it ends within a text, whose closing quote is missing,"
    elif not text[error.pos :].strip():
        what = "it ends before its last bracket is closed,"
    else:
        what = error.msg
    near = text[max(0, error.pos - 20) : error.pos + 20]
    return f"{what} at line {error.lineno}, column {error.colno}, near {near!r}"


def _example(tools: Mapping[str, type[Tool]], name: object = None) -> str:
    """A call that is right, or else the text form, of the tool of a name where there is one."""
    from debug_gym_core.tools.tool import example, usage

    if not tools:
        return "this environment has no tools"
    meant = tools[name] if isinstance(name, str) and name in tools else next(iter(tools.values()))
    right = example(meant)
    return f"example: {right}" if right else f"expected: {usage(meant)}"
