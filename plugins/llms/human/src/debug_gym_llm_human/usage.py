"""Tools as a person types them: usage, templates to fill in, examples, help."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_gym_core import Tool, ToolCall
from debug_gym_core.tools.action import as_text

ToolClass = type[Tool]


@dataclass(frozen=True)
class Argument:
    """One argument of a tool.

    Attributes:
        name: of the argument
        required: whether it must be given
        kinds: its types in JSON Schema, `null` left out
        choices: the words that it can be, when these are all
        default: as a person would type it; empty: none
        help: what it is
    """

    name: str
    required: bool
    kinds: frozenset[str]
    choices: tuple[str, ...]
    default: str
    help: str

    @property
    def is_path(self) -> bool:
        """Whether it names a file or directory of the workspace, as far as its name tells."""
        last = self.name.rpartition("_")[2]
        return "string" in self.kinds and last in ("path", "file", "filename", "directory", "dir", "folder")


@dataclass(frozen=True)
class Template:
    """A call to fill in.

    Attributes:
        text: of the call; the words to replace are in capitals
        fields: these words, in order, and whether each must be replaced
    """

    text: str
    fields: tuple[tuple[str, bool], ...]


def arguments(tool: ToolClass) -> list[Argument]:
    """The arguments of a tool in order."""
    schema = tool.schema()["parameters"]
    definitions = schema.get("$defs", {})
    required = schema.get("required", [])
    return [_argument(name, one, definitions, name in required) for name, one in schema["properties"].items()]


def is_raw(tool: ToolClass) -> bool:
    """Whether the rest of the line is the tool's command as it stands, as for pdb and bash."""
    return bool(tool.schema()["parameters"].get("required") == ["command"])


def block_argument(tool: ToolClass) -> str | None:
    """The argument that a person writes as a block between `<<<` and `>>>`; None: the tool has none that needs it."""
    required = [one for one in arguments(tool) if one.required]
    last = required[-1] if len(required) > 1 else None
    return last.name if last and "string" in last.kinds and not (last.is_path or last.choices) else None


def usage(tool: ToolClass) -> str:
    """A tool's call in the text form, what may be left out in brackets."""
    block = block_argument(tool)
    words = [tool.name]
    found = [one for one in arguments(tool) if one.name != block]
    if is_raw(tool):
        return f"{tool.name} {found[0].name}"
    names = [one.name for one in found]
    for one in found:
        if one.name == "start" and "end" in names:
            words.append("start:end" if one.required else "[start[:end]]")
        elif not (one.name == "end" and "start" in names):
            words.append(one.name if one.required else f"[{one.name}]")
    return " ".join(words) + (f" <<< {block} >>>" if block else "")


def template(tool: ToolClass) -> Template:
    """What Tab puts after a tool's name: its required arguments, and lines where it has them."""
    block = block_argument(tool)
    fields: list[tuple[str, bool]] = []
    found = [one for one in arguments(tool) if one.name != block]
    names = [one.name for one in found]
    for one in found:
        if one.name == "start" and "end" in names and block:
            fields.append(("START:END", one.required))
        elif one.required and not (one.name == "end" and ("START:END", True) in fields):
            fields.append((one.name.upper(), True))
    words = [tool.name, *(word for word, _ in fields), *(["<<<"] if block else [])]
    return Template(" ".join(words), tuple(fields))


def example(tool: ToolClass) -> str:
    """A call of the tool that is right, as a person would type it; empty when its author gave none."""
    return as_text(ToolCall(tool.name, tool.examples[0]), {tool.name: tool}) if tool.examples else ""


def summary(tool: ToolClass) -> str:
    """A tool's purpose in a sentence."""
    return " ".join(tool.help().partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def argument_help(one: Argument) -> str:
    """An argument's help in a line, with what it can be and its default."""
    notes = []
    if one.choices:
        notes.append(" or ".join(one.choices))
    if one.default:
        notes.append(f"default {one.default}")
    return (one.help or one.name) + (f" ({'; '.join(notes)})" if notes else "")


def tool_help(tool: ToolClass) -> str:
    """All that a person may want to know of a tool."""
    lines = [usage(tool), "", *_paragraphs(tool.help())]
    found = arguments(tool)
    if found:
        width = max(len(one.name) for one in found)
        lines += ["", *(f"  {one.name:<{width}}  {argument_help(one)}" for one in found)]
    if tool.examples:
        lines += ["", "Examples:" if len(tool.examples) > 1 else "Example:"]
        for given in tool.examples:
            text = as_text(ToolCall(tool.name, given), {tool.name: tool})
            lines += [f"  {line}" for line in text.splitlines()]
    return "\n".join(lines)


def overview(tools: Mapping[str, ToolClass], commands: Mapping[str, str], keys: Sequence[tuple[str, str]]) -> str:
    """The answer to `help`: the tools, the words of the prompt itself, the keys.

    Args:
        tools: by name
        commands: what else can be typed, and what it does
        keys: what to press, and what it does
    """
    rows: list[tuple[str, str]] = [("Tools, each use is a step:", "")]
    rows += [(f"  {name}", summary(tool)) for name, tool in tools.items()]
    rows += [("", ""), ("Free:", ""), *((f"  {name}", text) for name, text in commands.items())]
    rows += [("", ""), ("Keys:", ""), *((f"  {key}", text) for key, text in keys)] if keys else []
    width = max(len(name) for name, text in rows if text)
    lines = [f"{name:<{width}}  {text}".rstrip() for name, text in rows]
    lines += [
        "",
        "Words follow the shell's quoting; name=value names an argument. Text of several lines stands between <<< at "
        "the end of the line and >>> on a line of its own:",
        "  rewrite app.py 4:6 <<<",
        "      total += 1",
        "  >>>",
    ]
    return "\n".join(lines)


def _paragraphs(text: str) -> list[str]:
    """Prose with a line a paragraph, to be wrapped anew; what is indented or listed stays as it is."""
    lines: list[str] = []
    for line in text.splitlines():
        flows = lines and lines[-1] and line and not (line.startswith((" ", "-")) or lines[-1].startswith((" ", "-")))
        if flows:
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return lines


def _argument(name: str, one: Mapping[str, Any], definitions: Mapping[str, Any], required: bool) -> Argument:
    parts = [_resolved(part, definitions) for part in one.get("anyOf", [one])]
    kinds = frozenset(str(part.get("type", "")) for part in parts) - {"null", ""}
    words = [value for part in parts for value in part.get("enum", [part["const"]] if "const" in part else [])]
    if kinds == {"boolean"}:
        words = [True, False]
    default = one.get("default")
    return Argument(
        name,
        required,
        kinds,
        tuple(_word(value) for value in words),
        "" if default is None else shlex.quote(_word(default)),
        " ".join(str(one.get("description") or "").split()),
    )


def _resolved(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference of the schema refers to."""
    reference = part.get("$ref", "")
    return definitions.get(str(reference).rpartition("/")[2], part) if reference else part


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
