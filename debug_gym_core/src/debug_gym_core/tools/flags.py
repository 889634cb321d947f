"""Whether true or false is given where the type of an argument wants a number, as pydantic makes 1 or 0 of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, repeat
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema

from debug_gym_core.tools.references import choices, reference

TURNED = "x-turned"
"""Marks, in a schema, a type that looks at what is given before pydantic does, and may turn flags on purpose."""

PYTHON: dict[str, type] = {"boolean": bool, "integer": int, "number": float}


def schema_of(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a model that `flag_for_number` reads."""
    return model.model_json_schema(schema_generator=_Marking)


def flag_for_number(value: Any, kind: Any, definitions: Mapping[str, Any]) -> bool | None:
    """Whether a value that pydantic took has a flag where a number is wanted.

    Args:
        value: as it was given
        kind: what a schema says of it
        definitions: the schema's `$defs`

    Returns:
        None: the value is something else than `kind` says
    """
    if not isinstance(kind, dict) or TURNED in kind:
        return False
    if name := reference(kind):
        return flag_for_number(value, definitions.get(name), definitions)
    if several := choices(kind):
        fitting = {flag_for_number(value, one, definitions) for one in several} - {None}
        return all(fitting) if fitting else None
    if isinstance(value, bool):
        listed = kind.get("enum") or ([kind["const"]] if "const" in kind else [])
        named = kind.get("type", "boolean")
        names = [named] if isinstance(named, str) else named
        wanted = set(map(type, listed)) or {PYTHON[name] for name in names if name in PYTHON}
        return None if wanted.isdisjoint((bool, int, float)) else bool not in wanted
    if isinstance(value, list | tuple):
        parts = list(zip(value, chain(kind.get("prefixItems", ()), repeat(kind.get("items"))), strict=False))
    elif isinstance(value, Mapping):
        others = next(iter(kind.get("patternProperties", {}).values()), kind.get("additionalProperties"))
        parts = [(part, kind.get("properties", {}).get(key, others)) for key, part in value.items()]
    else:
        return False
    if kind.get("type") not in (None, "object" if isinstance(value, Mapping) else "array"):
        return None
    found = {flag_for_number(part, of, definitions) for part, of in parts}
    return True if True in found else None if None in found else False


class _Marking(GenerateJsonSchema):
    """Marks types with validators that come before pydantic's; of a model each field still says what it takes."""

    def function_before_schema(self, schema: Any) -> dict[str, Any]:
        """The schema of a type with a `BeforeValidator`."""
        return _marked(super().function_before_schema(schema))

    def function_wrap_schema(self, schema: Any) -> dict[str, Any]:
        """The schema of a type with a `WrapValidator`."""
        return _marked(super().function_wrap_schema(schema))


def _marked(kind: dict[str, Any]) -> dict[str, Any]:
    return kind if "$ref" in kind else {**kind, TURNED: True}
