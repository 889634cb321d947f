"""What a JSON Schema refers to, as pydantic writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

STRUCTURES = {"array": list, "object": dict}
"""Types whose values are written as JSON."""


def reference(schema: Mapping[str, Any]) -> str | None:
    """The name of the definition that a schema is; None: it says itself what it is.

    Pydantic before 2.9 puts what it refers to alone into `allOf` where something is said beside it.
    """
    parts = schema.get("allOf", ())
    found = parts[0] if len(parts) == 1 else schema
    return str(found["$ref"]).rpartition("/")[2] if "$ref" in found else None


def followed(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with what it refers to in its place; what stands beside a reference counts more.

    Args:
        schema: of a value
        definitions: what it may refer to
    """
    found = dict(schema)
    while (name := reference(found)) is not None and name in definitions:
        beside = {key: value for key, value in found.items() if key not in ("$ref", "allOf")}
        found = {**definitions[name], **beside}
    return found


def choices(schema: Mapping[str, Any]) -> Sequence[Any]:
    """The schemas of which a value fits one; none: the schema has no choices."""
    return schema.get("anyOf") or schema.get("oneOf") or ()


def whole(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with what it and its choices refer to in place."""
    found = followed(schema, definitions)
    return {**found, "anyOf": [whole(one, definitions) for one in choices(found)]}


def accepts(schema: Mapping[str, Any], kind: str) -> bool:
    """Whether a value of a type may be what a whole schema says."""
    return schema.get("type") == kind or any(accepts(one, kind) for one in schema["anyOf"])


def is_json(schema: Mapping[str, Any]) -> bool:
    """Whether a value is a list or mapping, which is written as JSON, and no text."""
    return any(accepts(schema, one) for one in STRUCTURES) and not accepts(schema, "string")


def as_json(name: str, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """How a list or mapping is written as a word; empty: the value of the argument is something else.

    Args:
        name: the argument
        schema: of its value
        definitions: what the schema may refer to
    """
    said = whole(schema, definitions)
    if not is_json(said):
        return ""
    sample = '["a", "b"]' if accepts(said, "array") else '{"a": 1}'
    return f"JSON in quotes, such as {name}='{sample}'"
