"""The arguments of a tool in the text form: words and a block become values of its arguments."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from debug_gym_core import strict_json
from debug_gym_core.errors import ActionError
from debug_gym_core.names import nearest
from debug_gym_core.tools import blocks, command_line
from debug_gym_core.tools.references import STRUCTURES, accepts, as_json, is_json, whole

if TYPE_CHECKING:
    from debug_gym_core.tools.tool import Tool


def read(tool: type[Tool], rest: str, body: str | None) -> dict[str, Any]:
    """Read what stands behind a tool's name.

    Args:
        tool: the tool
        rest: its words
        body: the block of lines behind them; None: there is none

    Returns:
        values by the arguments' names, which are not checked yet

    Raises:
        ActionError: the words are none, are too many, or name an argument twice; a block is not closed, or not the last
    """
    schema = tool.schema()["parameters"]
    properties = {name: whole(one, schema.get("$defs", {})) for name, one in schema["properties"].items()}
    required = schema.get("required", [])
    strings = [name for name in properties if accepts(properties[name], "string")]
    if body is None and required == [command_line.COMMAND] == [*properties][:1] and required[0] in strings:
        return command_line.read(rest, properties, functools.partial(_fitting, properties))
    alone = len(properties) == 1 and list(properties) == strings and not rest.startswith(f"{strings[0]}=")
    if not alone:
        rest, body = _without_block(tool.name, rest, body)
    elif body is None and (closed := blocks.WHOLE.fullmatch(rest)):
        rest, body = "", closed["body"]
    arguments: dict[str, Any] = {}
    if body is not None:
        if not strings:
            raise ActionError(f"{tool.name} takes no text, so no block between <<< and >>>")
        last = [name for name in strings if name in required] or strings
        arguments[last[-1]] = body
    if len(rest) > command_line.LONGEST:
        raise ActionError(
            f"{tool.name}: {len(rest)} characters are too many for words; put a long text between <<< and >>>, or use"
            " the JSON form"
        )
    try:
        words = shlex.split(rest)
    except ValueError as error:
        if alone:
            return {strings[0]: rest}
        raise ActionError(f"{tool.name}: the words cannot be told apart: {_why_not(error)}") from None
    if alone and body is None and len(words) > 1:
        return {strings[0]: rest}
    in_block = next(iter(arguments), "")
    if body is not None and words and words[-1].endswith("=") and words[-1][:-1] in strings:
        in_block = words.pop()[:-1]  # the block is the value of what is named just before it
        arguments = {in_block: body}
    for word in words:
        key, equals, value = word.partition("=")
        free = [name for name in properties if name not in arguments]
        span = re.fullmatch(r"(\d{1,18}):(\d{1,18})", word)
        if equals and key in properties:
            if key in arguments:
                raise ActionError(f"{tool.name}: {_twice(key, words, arguments, properties, body is not None)}")
            arguments[key] = _value(properties[key], value)
        elif span and free[:2] == ["start", "end"]:
            arguments.update(start=int(span[1]), end=int(span[2]))
        elif free:
            arguments[free[0]] = _value(properties[free[0]], word)
        else:
            raise ActionError(f"{tool.name}: too many words, from {word[:80]!r} on; quote an argument that has spaces")
    other = arguments.get(tool.ends_like.get(in_block, ""))
    if body is not None and isinstance(other, str) and other and not other.endswith("\n"):
        arguments[in_block] = body.removesuffix("\n").removesuffix("\r")
    return arguments


def _twice(
    key: str, words: list[str], arguments: Mapping[str, Any], properties: Mapping[str, Any], has_block: bool
) -> str:
    """What is wrong where an argument is named that has a value, by a word's place or by the block."""
    odd = next((one.partition("=")[0] for one in words if arguments[key] == one and "=" in one), "")
    if odd.isidentifier():  # it was taken for the first argument, by its place
        return f"unknown argument {odd!r}{nearest(odd, properties)}"
    block = " (the block between <<< and >>> is one)" if has_block else ""
    how = as_json(key, properties[key], {})
    return f"{key} is given twice{block}" + (f"; say it as {how}" if how else "")


def _without_block(tool: str, rest: str, body: str | None) -> tuple[str, str | None]:
    """What stands before a block, and the block; as they were given where there is none.

    The block is on one line, or has lines and begins below the action's first line: behind `<<<` on a line of its own,
    or behind a word of several lines.

    Raises:
        ActionError: the block does not begin or end as one does, or is not the end; it is never taken for a word
    """
    found = blocks.BEFORE.match(rest)
    if found is None:
        return rest, body
    before, behind = rest[: found.end() - len(blocks.BEGIN)], rest[found.end() :]
    if body is None and (lines := blocks.LINES.match(behind)) is not None:
        return before, lines["body"]
    if re.match(r"[ \t]*(\r?\n|\Z)", behind):
        raise ActionError(f"{tool}: {not_ended(behind)}\n{blocks.EXAMPLE}")
    block, closed, behind = behind.partition(blocks.END)
    if not closed:
        said = "the block after <<< is not closed; end it with >>>"
    elif "\n" in block:
        said = "a block of several lines begins on the line below <<< and ends with >>> alone on a line"
    elif behind or body is not None:
        said = "nothing stands behind the >>> of a block on one line; one that has >>> in it stands on lines of its own"
    else:
        return before, block
    raise ActionError(f"{tool}: {said} (a word that has <<< in it is put in quotes)\n{blocks.EXAMPLE}")


def not_ended(behind: str) -> str:
    """What is wrong with a block of lines that is not all of the action from `<<<` on.

    Args:
        behind: what stands behind `<<<`
    """
    end = blocks.LAST.search(behind)
    if end is None:
        return "the block after <<< is not closed; end it with >>> alone on a line"
    more = behind[end.end() :].strip().split("\n")[0].strip()
    return f"a block is the last of an action, but {more[:80]!r} stands behind its >>>; give one action at a time"


def _why_not(error: ValueError) -> str:
    """Why a line has no words, and what to do."""
    if "quotation" in str(error):
        return "a quote is opened and not closed; close it, or put the text in quotes of the other kind"
    return "it ends with a backslash that stands before nothing; put it in quotes"


_WORDLESS = ("boolean", "integer", "number", "array", "object")
"""Types without a value that is written as a word such as `null` is; who has none of these may have any."""


def _value(schema: Mapping[str, Any], word: str) -> Any:
    """A word as a value of the argument's type; text that does not fit stays text, and checking says so."""
    wordless = not accepts(schema, "string") and any(accepts(schema, one) for one in _WORDLESS)
    if word in ("null", "None") and (accepts(schema, "null") or ("default" in schema and wordless)):
        return None
    if accepts(schema, "boolean") and word.lower() in ("true", "false", "yes", "no"):
        return word.lower() in ("true", "yes")
    if (accepts(schema, "integer") or accepts(schema, "number")) and not accepts(schema, "string"):
        for convert in (int, float):
            try:
                return convert(word)
            except ValueError:
                continue
    if is_json(schema) and word.startswith(("[", "{")):
        try:
            loaded = strict_json.loads(word)
        except (ValueError, RecursionError):
            return word
        if any(isinstance(loaded, made) and accepts(schema, kind) for kind, made in STRUCTURES.items()):
            return loaded
    return word


def _fitting(properties: Mapping[str, Any], name: str, word: str) -> Any:
    """A word as a value of an argument; None: it is not of the argument's type."""
    value = _value(properties[name], word)
    return value if not isinstance(value, str) or accepts(properties[name], "string") else None
