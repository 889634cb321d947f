"""Each hook and each event is explained in the code, has its place in the docs, and is implemented in a test."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from pathlib import Path

import pytest

from debug_gym_core import hookspecs
from debug_gym_core.tools import events

TOP = Path(__file__).parent.parent
HOOKS = [name for name, one in vars(hookspecs).items() if hasattr(one, "debug_gym_spec")]
EVENTS = [name for name, one in vars(events).items() if hasattr(one, "debug_gym_spec")]
SPECS = {name: getattr(hookspecs, name) for name in HOOKS} | {name: getattr(events, name) for name in EVENTS}


@functools.cache
def documentation() -> str:
    """The pages, with the files that they show."""
    texts = []
    for page in sorted((TOP / "docs").rglob("*.md")):
        if "_build" in page.parts:
            continue
        text = page.read_text(encoding="utf-8")
        texts.append(text)
        for shown in re.findall(r"^```\{[\w-]+\}\s+(?:\w+ )?(\S+\.py)$", text, re.MULTILINE):
            for place in (page.parent / shown, TOP / "docs" / shown):
                if place.is_file():
                    texts.append(place.read_text(encoding="utf-8"))
    return "\n".join(texts)


@functools.cache
def implemented_in_tests() -> frozenset[str]:
    """Names of functions marked `@hookimpl` in the files of tests."""
    found = set()
    places = ("tests", "debug_gym_*/tests", "plugins/*/*/tests", "docs/examples")
    for path in [path for place in places for path in TOP.glob(f"{place}/**/*.py")]:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "hookimpl" in text else ():
            if isinstance(node, ast.FunctionDef) and "hookimpl" in map(ast.unparse, node.decorator_list):
                found.add(node.name)
    return frozenset(found)


def test_the_contract_is_not_empty() -> None:
    assert len(HOOKS) >= 12 and len(EVENTS) >= 5
    assert all(name.startswith("debug_gym_") for name in HOOKS)
    assert all(name.startswith("on_") for name in EVENTS)


@pytest.mark.parametrize("name", SPECS)
def test_it_has_a_docstring(name: str) -> None:
    assert len((inspect.getdoc(SPECS[name]) or "").split()) >= 3


@pytest.mark.parametrize("name", SPECS)
def test_it_has_its_place_in_the_docs(name: str) -> None:
    assert re.search(rf"\b{name}\b", documentation()), f"no page of docs/ speaks of {name}"


@pytest.mark.parametrize("name", SPECS)
def test_a_test_implements_it(name: str) -> None:
    assert name in implemented_in_tests(), f"no test implements {name}: see tests/hooks_plugin.py"
