"""Tests that are methods, which other files than their own may run, told from what only looks like them in source."""

from __future__ import annotations

import ast
import re

from debug_gym_core.sandbox.python_code import parse

_WRITTEN = re.compile(rb"^([ \t]+)(async[ \t]+)?def[ \t]+test", re.MULTILINE)
"""In all source that has some."""


def has_test_methods(source: bytes) -> bool:
    """Whether a class in a module has methods that are tests by their names; so it may where it cannot be parsed.

    Args:
        source: of the module
    """
    first = _WRITTEN.search(source)
    if first is None or _is_below_class(source[: first.start()], len(first[1])):
        return first is not None
    try:
        tree = parse(source)
    except (SyntaxError, ValueError):
        return True
    return any(isinstance(one, ast.ClassDef) and _has_tests(one) for one in ast.walk(tree))


def _is_below_class(before: bytes, indentation: int) -> bool:
    """Whether a line is indented below one that begins a class, which spares most files of tests a slow look."""
    for line in reversed(before.splitlines()):
        text = line.lstrip()
        if text and len(line) - len(text) < indentation:
            return line.startswith(b"class ")
    return False


def _has_tests(kind: ast.ClassDef) -> bool:
    """Whether a function of a class's own has the name of a test, also below a condition."""
    left: list[ast.AST] = list(kind.body)
    while left:
        one = left.pop()
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if one.name.startswith("test"):
                return True
        elif not isinstance(one, ast.ClassDef):
            left += ast.iter_child_nodes(one)
    return False
