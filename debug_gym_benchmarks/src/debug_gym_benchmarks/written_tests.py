"""The ids that pytest gives to the tests of a file, found by reading it: nothing is imported, nothing is run."""

from __future__ import annotations

import ast
import builtins
import sys

_CASES = frozenset({"unittest.TestCase", "TestCase"})
_SKIPPED = frozenset({"unittest.skip", "skip", "unittest.expectedFailure", "expectedFailure", "pytest.mark.skip"})
_HARMLESS = ("patch", "mock.patch", "unittest.mock.patch", "staticmethod")


class _Unknown(Exception):
    """Only running the file tells what tests it has."""


def written_tests(path: str, text: str) -> tuple[str, ...] | None:
    """The ids of the tests in a file that can pass.

    Args:
        path: of the file, as the ids begin
        text: what is in it

    Returns:
        the ids in order, without tests that are marked as skipped or as expected to fail; None when only running it
        tells (inherited or parametrized tests, conditions)
    """
    try:
        tree = ast.parse(text)
        return tuple(dict.fromkeys(one for node in tree.body for one in _of_statement(path, node)))
    except (SyntaxError, _Unknown):
        return None


def _of_statement(path: str, node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef):
        return _of_class(path, node)
    if isinstance(node, ast.FunctionDef):
        return [f"{path}::{node.name}"] if node.name.startswith("test") and _can_pass(node) else []
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.asname or alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and any(_may_be_test(name) for name in names):
            raise _Unknown
        return []
    _insist_on_none(node)
    return []


def _of_class(path: str, node: ast.ClassDef) -> list[str]:
    bases = [ast.unparse(base) for base in node.bases]
    if not any(base in _CASES for base in bases):
        if not all(map(_is_no_case, bases)) or node.keywords:
            raise _Unknown
        if not node.name.startswith("Test"):
            return []
    elif len(bases) > 1:
        raise _Unknown
    whole = _can_pass(node)
    found = []
    for one in node.body:
        if isinstance(one, ast.FunctionDef):
            if one.name.startswith("test") and _can_pass(one) and whole:
                found.append(f"{path}::{node.name}::{one.name}")
        else:
            _insist_on_none(one)
    return found


def _is_no_case(base: str) -> bool:
    """Whether a base class surely has no tests to inherit: it is the standard library's."""
    module, dot, _ = base.rpartition(".")
    return hasattr(builtins, base) if not dot else module in sys.stdlib_module_names - {"unittest"}


def _may_be_test(imported: str) -> bool:
    """Whether pytest may find a test under a name that comes from another module."""
    return imported == "*" or (imported.startswith(("test", "Test")) and imported != "TestCase")


def _can_pass(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether no decorator skips a test."""
    names = [ast.unparse(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list]
    if any(name not in _SKIPPED and not name.startswith(_HARMLESS) for name in names):
        raise _Unknown
    return not any(name in _SKIPPED for name in names)


def _insist_on_none(statement: ast.stmt) -> None:
    """A statement that is no definition must make no test either."""
    for node in ast.walk(statement):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name
        stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id
        if (named or stored or "").lower().startswith(("test", "__test__", "pytestmark")):
            raise _Unknown
