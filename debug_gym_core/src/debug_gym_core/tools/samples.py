"""Values made up for examples of arguments, by the arguments' JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from debug_gym_core.tools.references import choices, reference

_PLAIN = {"integer": 1, "number": 1.0, "boolean": True, "null": None}


def sample(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """A value that a JSON Schema takes, as small as may be.

    Args:
        schema: of the value, as pydantic writes it
        definitions: what it may refer to, without the types that it is part of: those end in an empty list, or None
    """
    if name := reference(schema):
        return sample(definitions[name], {key: value for key, value in definitions.items() if key != name})
    if several := choices(schema):
        return next((sample(one, definitions) for one in several if _is_known(one, definitions)), None)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        known = schema.get("properties", {})
        return {name: sample(known[name], definitions) for name in schema.get("required", ())}
    if kind == "array":
        items = schema.get("prefixItems") or [schema.get("items") or {}]
        return [sample(item, definitions) for item in items if _is_known(item, definitions)]
    return schema["minimum"] if "minimum" in schema else _PLAIN.get(str(kind), "...")


def _is_known(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    return reference(schema) in (None, *definitions)
