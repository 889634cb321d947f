"""Tests that other files than their own may run: methods, and functions that are made by others."""

from __future__ import annotations

import ast
import re

from debug_gym_core.sandbox.python_code import parse

_WRITTEN = re.compile(rb"[ \t\f]def[ \t\f\\]\s*(test|runTest)")
"""In all source that has some; also in that of examples, and of tests that are in nothing."""

_NAMES = ("test", "runTest")


def has_inner_tests(source: bytes) -> bool:
    """Whether a class or function of a module has functions that are tests by their names.

    So it may where it cannot be parsed.

    Args:
        source: of the module
    """
    if not _WRITTEN.search(source):
        return False
    try:
        left: list[tuple[ast.AST, bool]] = [(parse(source), False)]
    except (SyntaxError, ValueError):
        return True
    while left:
        node, is_inside = left.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if is_inside and node.name.startswith(_NAMES):
                return True
            is_inside = True
        left += [(one, is_inside) for one in ast.iter_child_nodes(node)]
    return False
