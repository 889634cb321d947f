"""Rows of data sets, as files, and with each field of the published schema changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from debug_gym_benchmarks.row_fields import Field

WRONG: dict[type, tuple[Any, str]] = {
    str: (5, "must be a text, and is a whole number"),
    list: ({"a": 1}, "must be a list of texts, and is an object"),
    dict: (["a"], "must be an object, and is a list"),
}
"""For each type of a field a value that is of another one, and what is said of it."""

PASSES_ALL = """\
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    out = yield
    out.get_result().outcome = "passed"
"""
"""A conftest.py that has every test pass."""


def written(path: Path, *rows: Mapping[str, Any]) -> str:
    """Write rows to a file, a line each; returns its name."""
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return str(path)


def changes(fields: Mapping[str, Field], key: str) -> list[tuple[str, str, str]]:
    """Every change of a single field that a loader has to refuse.

    Args:
        fields: that the loader declares
        key: the field with the id, which rows have in any case

    Returns:
        the field, what happens to it (`lost` or `mistyped`), and the end of what is said of it
    """
    every = {key: Field(), **fields}
    lost = [
        (name, "lost", f"there is no field {name!r}; did you mean '{name}s'?")
        for name, field in every.items()
        if field.required
    ]
    return [*lost, *((name, "mistyped", f"the field {name!r} {WRONG[field.type][1]}") for name, field in every.items())]


def changed(row: Mapping[str, Any], fields: Mapping[str, Field], name: str, how: str) -> dict[str, Any]:
    """A row with one field that has another name, or another type."""
    if how == "lost":
        return {f"{one}s" if one == name else one: value for one, value in row.items()}
    return {**row, name: WRONG[fields.get(name, Field()).type][0]}
