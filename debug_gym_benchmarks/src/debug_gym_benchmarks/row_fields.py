"""What is declared of a row's fields, and held against it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from debug_gym_core import UsageError
from debug_gym_core.names import nearest

_KINDS = {str: "a text", list: "a list of texts", dict: "an object", int: "a whole number"}
JSON_NAMES = {bool: "a truth value", float: "a number", **_KINDS, list: "a list"}
"""What a value of JSON is called, by its type; null has no name here."""


@dataclass(frozen=True)
class Field:
    """What a field of a row must be.

    Attributes:
        type: `str`; `int`; `list`, of texts; `dict`. The JSON text of a list or object is one, too
        required: whether it must be there and not null; else it is None where it is not
    """

    type: type = str
    required: bool = True


def checked(row: Mapping[str, Any], fields: Mapping[str, Field], *, where: str) -> dict[str, Any]:
    """A row whose fields are what they should be.

    Args:
        row: as it was read; fields that nobody declared stay as they are
        fields: what is declared
        where: names file and row

    Raises:
        UsageError: a field is missing or not what it should be
    """
    result = dict(row)
    for name, field in fields.items():
        value = row.get(name)
        if value is None:
            if field.required:
                lack = f"the field {name!r} is null" if name in row else f"there is no field {name!r}"
                raise UsageError(f"{where}: {lack}{'' if name in row else nearest(name, row)}")
            result[name] = None
            continue
        if isinstance(value, str) and field.type in (list, dict):
            with contextlib.suppress(ValueError, RecursionError):  # what is no JSON is the text that it is: told below
                value = json.loads(value)
        wrong = _wrong(value, field.type)
        if wrong is not None:
            raise UsageError(f"{where}: the field {name!r} must be {_KINDS[field.type]}, and is {wrong}")
        result[name] = value
    return result


def _wrong(value: Any, wanted: type) -> str | None:
    """What a value is instead of what is wanted; None: it is that."""
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is int):
        return JSON_NAMES.get(type(value), f"a {type(value).__name__}")
    if isinstance(value, list):
        for place, item in enumerate(value, start=1):
            if not isinstance(item, str):
                return f"a list with {JSON_NAMES.get(type(item), 'null')} at place {place}"
    return None
