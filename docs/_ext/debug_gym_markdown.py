"""Markdown of what code says about itself: settings, arguments, signatures, words of docstrings."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from debug_gym_core.config.text import attribute_help
from debug_gym_core.tools.tool import Tool


def settings_table(model: type[pydantic.BaseModel], only: Iterable[str] | None = None) -> Iterator[str]:
    """The fields of a model: name, default, type, what its docstring says."""
    words = attribute_help(model)
    schemas = model.model_json_schema()["properties"]
    rows = []
    for name, field in model.model_fields.items():
        if only is None or name in only:
            value = field.get_default(call_default_factory=True)
            default = "required" if field.is_required() else code(yaml_text(value))
            rows.append((code(name), default, type_words(schemas.get(name, {})), escaped(words.get(name, ""))))
    yield from table(("key", "default", "type", "meaning"), rows)


def arguments_table(tool: type[Tool]) -> Iterator[str]:
    """The arguments of a tool, from the schema that models are shown."""
    parameters = tool.schema()["parameters"]
    required = parameters.get("required", [])
    rows = []
    for name, schema in parameters["properties"].items():
        default = "required" if name in required else code(yaml_text(schema.get("default")))
        rows.append((code(name), default, type_words(schema), escaped(schema.get("description", ""))))
    if rows:
        yield from table(("argument", "default", "type", "meaning"), rows)
    else:
        yield "It takes no arguments."


TYPES = {
    "string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null",
    "array": "list", "object": "mapping",
}  # fmt: skip


def type_words(schema: Mapping[str, Any]) -> str:
    """A JSON Schema type in words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_words(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(code(str(one)) for one in schema["enum"])
    if "const" in schema:
        return code(str(schema["const"]))
    text = TYPES.get(str(schema.get("type")), "any")
    items = schema.get("items")
    if text == "list" and items:
        inner = type_words(items)
        text = f"list of {'texts' if inner == 'text' else inner}"
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    text = ", ".join([text, *(f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema)])
    return "path" if schema.get("format") == "path" else text


def yaml_text(value: Any) -> str:
    """A default as it is written in YAML, in JSON's subset of it."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, tuple):
        return "[" + ", ".join(yaml_text(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, default=str)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def code(text: str) -> str:
    """Text set as code."""
    return f"`{text}`"


def escaped(text: str) -> str:
    """Text of a docstring as Markdown: what stands in backticks stays, stars and brackets elsewhere mean themselves."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*<>\[\]_])", r"\\\1", part) for part in parts)


def with_options(text: str) -> str:
    """Text of a command's help as Markdown, with options set as code."""
    return re.sub(r"(?<![\w`-])(--?[a-z][\w-]*)(?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)", r"`\1`", escaped(text))


def sentence(words: str) -> str:
    """Words of a docstring's list as a sentence."""
    return escaped(f"{words[:1].upper()}{words[1:]}.")


def signature(name: str, function: Any) -> str:
    """A hook's signature as its specification writes it."""
    found = inspect.signature(function)
    arguments = ", ".join(str(parameter) for parameter in found.parameters.values())
    return f"def {name}({arguments}) -> {found.return_annotation}"
