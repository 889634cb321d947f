"""Arguments that no tool should fall over: wrong ones and right ones of every kind, from a tool's own schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LARGE = 5_000_000
"""Characters of the largest text: more than any bound that a text passes on its way into a sandbox."""

LINES = 200_000
"""Characters of the largest text of many lines: more than any buffer of a pipe or terminal, and than an argument of a
program may have. A shell takes each line for a command, and starts a process for it.
"""

DEPTH = 100_000
"""Levels of the deepest list."""


@dataclass(frozen=True)
class Attempt:
    """Arguments to try.

    Attributes:
        label: what is special about them
        arguments: the arguments
        wrong: the argument that must be named as wrong; None: they may be right
    """

    label: str
    arguments: Any
    wrong: str | None = None


def attempts(parameters: Mapping[str, Any], good: Mapping[str, Any]) -> Iterator[Attempt]:
    """Arguments of every kind that agents have been seen to invent.

    Args:
        parameters: the tool's `parameters` as JSON Schema
        good: arguments that are right
    """
    properties: Mapping[str, Any] = parameters.get("properties", {})
    required = parameters.get("required", [])
    yield Attempt("an unknown argument", {**good, "no_such_argument": 1}, "no_such_argument")
    yield Attempt("an unknown argument of 5 MB", {**good, "n" * LARGE: 1}, "n" * 40)
    for name in required:
        without = {key: value for key, value in good.items() if key != name}
        yield Attempt(f"no {name}", without, name)
        yield Attempt(f"{name} null", {**good, name: None}, name)
    deep = nested()  # once: a collector of garbage that follows it takes longer than most tools
    for name, schema in properties.items():
        for kind, value in _VALUES:
            if not accepts(schema, kind):
                yield Attempt(f"{name} of type {kind}", {**good, name: value}, name)
        if not accepts(schema, "array"):
            yield Attempt(f"{name} nested {DEPTH} deep", {**good, name: deep}, name)
        for label, value in _NUMBERS.items() if accepts(schema, "integer") or accepts(schema, "number") else ():
            yield Attempt(f"{name} = {label}", {**good, name: value})
        for label, text in _TEXTS.items() if accepts(schema, "string") else ():
            yield Attempt(f"{name} = {label}", {**good, name: text})


def accepts(schema: Mapping[str, Any], kind: str) -> bool:
    """Whether a property takes a JSON type, or any; a number where a whole one is wanted counts as taken.

    Args:
        schema: of the property
        kind: `string`, `integer`, `number`, `boolean`, `array` or `object`
    """
    choices = [one for key in ("anyOf", "oneOf") for one in schema.get(key, ())]
    if choices:
        return any(accepts(one, kind) for one in choices)
    known = schema.get("type")
    kinds = [known] if isinstance(known, str) else known
    if kinds is None:
        return not {"enum", "const"} & set(schema)
    return kind in kinds or (kind == "integer" and "number" in kinds)


def nested() -> list[Any]:
    """A list in a list in a list ..."""
    made: list[Any] = []
    for _ in range(DEPTH):
        made = [made]
    return made


def arguments(parameters: Mapping[str, Any], known: Mapping[str, list[Any]]) -> SearchStrategy[dict[str, Any]]:
    """A hypothesis strategy for arguments, right and wrong ones.

    Args:
        parameters: the tool's `parameters` as JSON Schema
        known: values that mean something, by argument; tried often
    """
    from hypothesis import strategies as st

    texts = st.text(st.characters(), max_size=20) | st.text(st.characters(categories=("Cs", "Cc")), max_size=3)
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
    anything = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    )
    of_type = {
        "string": texts,
        "integer": st.integers(-3, 100) | st.integers(),
        "number": st.integers(-3, 100) | st.floats(),
        "boolean": st.booleans(),
        "array": st.lists(anything, max_size=3),
        "object": st.dictionaries(texts, anything, max_size=3),
    }
    values: dict[str, SearchStrategy[Any]] = {}
    for name, schema in parameters.get("properties", {}).items():
        fitting = [strategy for kind, strategy in of_type.items() if accepts(schema, kind)]
        if known.get(name):
            fitting += [st.sampled_from(known[name])] * 2
        values[name] = st.one_of(*fitting, anything)
    required = {name: values[name] for name in parameters.get("required", []) if name in values}
    optional = {name: values[name] for name in values if name not in required}
    usual = st.fixed_dictionaries(required, optional=optional)
    return usual | st.fixed_dictionaries({}, optional={**values, "no_such_argument": scalars})


_VALUES: tuple[tuple[str, Any], ...] = (
    ("string", "not a number"),
    ("integer", 7),
    ("object", {"a": 1}),
    ("array", ["a", 1]),
)

_NUMBERS: Mapping[str, Any] = {
    "0": 0,
    "-1": -1,
    "2**63": 2**63,
    "10**30": 10**30,
    "10**5000": 10**5000,
    "not a number": float("nan"),
    "infinity": float("inf"),
}

_TEXTS = {
    "5 MB of text": "x" * LARGE,
    "200 KB of lines": f"{'x' * 79}\n" * (LINES // 80),
    "a NUL": "a\0b",
    "a lone surrogate": "a\ud800b",
    "nothing": "",
    "blanks": " \t ",
    "newlines": "\n\r\n\n",
    "escape sequences": "\x1b[2J\x1b]0;title\x07",
    "many directories up": "../" * 1000,
    "deeply nested JSON": "[" * DEPTH,
    "an option": "--help",
    "a long name": "n" * 300,
}
