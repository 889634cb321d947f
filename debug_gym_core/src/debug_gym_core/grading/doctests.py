"""Doctests that count in modules that hold no other tests that count: there the code may change, but they may not.

Such a module is the product's, so a fix may be in it. Its text is compared, as it is written: nothing of it is run.
"""

from __future__ import annotations

import ast
import doctest
import posixpath
import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import TYPE_CHECKING

from debug_gym_core.sandbox.python_code import parse

if TYPE_CHECKING:
    from debug_gym_core.workspace.snapshot import FileState

LARGEST = 1_000_000
"""Bytes of a module that is read: what an agent wrote must not cost the host minutes."""

Bindings = dict[str, list[str | None]]
"""What is bound to each qualified name of a module, the module's own being empty: the docstrings of functions and
classes (empty without one), None for anything else."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


class CountedDoctests:
    """Knows the doctests that count, from the pristine texts alone; a module is read when it is asked for."""

    def __init__(
        self, tests: Mapping[str, str], others: Container[str], pristine: Callable[[str], FileState | None]
    ) -> None:
        """Read nothing yet.

        Args:
            tests: the files that hold the tests that count, by the tests' ids
            others: files that are no such modules, whatever they hold
            pristine: gives a file as it was
        """
        self._tests: dict[str, list[str]] = {}
        for test, path in tests.items():
            if path not in others:
                self._tests.setdefault(path, []).append(test)
        self._pristine = pristine
        self._known: dict[str, tuple[Bindings, dict[str, str]]] = {}

    def __contains__(self, path: str) -> bool:
        """Whether all tests that count of a file are doctests of a module, and are found in its text."""
        return bool(self._doctests(path)[1])

    def modules(self) -> frozenset[str]:
        """The paths of all such files."""
        return frozenset(path for path in self._tests if path in self)

    def expecting(self) -> frozenset[str]:
        """The ids of those, and of the doctests that whole text files are, that expect an output or an exception.

        None that unittest runs: those have no twins.
        """
        found = set()
        for path, tests in self._tests.items():
            bindings, doctests = self._doctests(path)
            for name, test in doctests.items():
                if "::" in test and any(map(_expects, _docstrings(name, bindings))):
                    found.add(test)
            whole = f"{path}::{posixpath.basename(path)}"
            if whole in tests and not path.endswith(".py"):
                state = self._pristine(path)
                if state is not None and state.kind == "file" and _expects(state.data.decode("utf-8", "replace")):
                    found.add(whole)
        return frozenset(found)

    def reason(self, path: str, state: FileState | None) -> str | None:
        """Why a change is not taken over; None: it changes no doctest that counts.

        Args:
            path: of the file
            state: its new state, None when it is deleted
        """
        before, doctests = self._doctests(path)
        if not doctests:
            return None
        if state is None or state.kind != "file":
            return "doctests in it count"
        after = _bindings(state.data)
        if after is None:
            return "doctests in it count, and it cannot be parsed"
        for name, test in doctests.items():
            if _differs(name, before, after):
                return f"it changes the doctest {_name_of(test)}, which counts"
        return None

    def _doctests(self, path: str) -> tuple[Bindings, dict[str, str]]:
        """A module's pristine bindings, and of each doctest that counts the qualified name and the id."""
        if path not in self._tests:
            return {}, {}
        if path not in self._known:
            state = self._pristine(path) if path.endswith(".py") else None
            bindings = (_bindings(state.data) if state is not None and state.kind == "file" else None) or {}
            self._known[path] = bindings, _named(path, self._tests[path], bindings)
        return self._known[path]


def _named(path: str, tests: list[str], bindings: Bindings) -> dict[str, str]:
    """The ids of doctests, by the qualified names that they may be of; none unless all are found.

    Args:
        path: of the module
        tests: ids of all tests that count in it
        bindings: of its pristine text
    """
    named: dict[str, str] = {}
    modules = list(_module_names(path))
    for test in tests:
        name = "" if _is_method(test) else _name_of(test)
        inner = [name[len(one) + 1 :] for one in modules if f"{name}.".startswith(f"{one}.")]
        # More than one may fit where a class is called as its module is. A name without a dot may be a function's.
        found = [] if name in bindings else [one for one in inner if any(map(_examples, _docstrings(one, bindings)))]
        if not found:
            return {}
        named.update(dict.fromkeys(found, test))
    return named


def _name_of(test: str) -> str:
    """What a doctest is called by its id: pytest's, or unittest's, which is no more than that."""
    return test.partition("::")[2] or test


def _is_method(test: str) -> bool:
    """Whether an id is unittest's of a method of a test case, which may have a docstring with examples, too."""
    return "::" not in test and test.rpartition(".")[2].startswith(("test", "runTest"))


def _module_names(path: str) -> Iterator[str]:
    """What a module may be called: pytest goes by its packages, and by how it imports."""
    parts = path.removesuffix(".py").split("/")
    for names in (parts, parts[:-1] if parts[-1] == "__init__" else []):
        yield from (".".join(names[first:]) for first in range(len(names)))


def _differs(name: str, before: Bindings, after: Bindings) -> bool:
    """Whether other doctests are written for a qualified name, or it is bound to something else besides.

    Args:
        name: that a doctest is of
        before: of the pristine module
        after: of the changed one
    """
    parts = name.split(".")
    bound = [*(".".join(parts[: end + 1]) for end in range(len(parts))), _inside(name, "__doc__"), _ANY_DOC]
    if any(after.get(one, []).count(None) > before.get(one, []).count(None) for one in bound):
        return True
    old, new = _docstrings(name, before), _docstrings(name, after)
    return len(old) != len(new) or any(
        one != other and _examples(one) != _examples(other) for one, other in zip(old, new, strict=True)
    )


_ANY_DOC = ".__doc__"
"""Stands for the docstring of whatever it is, of which an attribute is set."""


def _docstrings(name: str, bindings: Bindings) -> list[str]:
    """The docstrings for a qualified name that may have doctests in them."""
    return [one for one in bindings.get(name, ()) if one is not None and ">>>" in one]


def _examples(docstring: str) -> list[tuple[str, str]]:
    """What a docstring's doctest runs and expects; none where it has no doctest, or a malformed one."""
    try:
        return [(one.source, one.want) for one in _Parser().get_examples(docstring)]
    except _UNREADABLE:
        return []


def _expects(text: str) -> bool:
    """Whether an example in a text expects something."""
    return len(text) <= LARGEST and any(want for _, want in _examples(text))


class _Parser(doctest.DocTestParser):
    """Leaves options in comments, and exceptions that are expected, as they are written: so they are compared."""

    _EXCEPTION_RE = re.compile("(?!)")  # Its own takes the square of what it is given.

    def _find_options(self, *_: object) -> dict[int, bool]:
        return {}  # Of a line of many such comments it takes the square of its length.


def _bindings(text: bytes) -> Bindings | None:
    """What a module's text binds; None: it cannot be read."""
    if len(text) > LARGEST:
        return None
    found: Bindings = {}
    try:
        tree = parse(text)
        found[""] = [ast.get_docstring(tree, clean=False) or ""]
        for prefix, one in _outside_functions(tree):
            if isinstance(one, _DEFINITIONS):
                found.setdefault(_inside(prefix, one.name), []).append(ast.get_docstring(one, clean=False) or "")
            elif isinstance(one, ast.alias):
                found.setdefault(_inside(prefix, one.asname or one.name.partition(".")[0]), []).append(None)
            elif isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
                found.setdefault(_inside(prefix, one.id), []).append(None)
        for inner in ast.walk(tree):
            if isinstance(inner, ast.Attribute) and inner.attr == "__doc__" and not isinstance(inner.ctx, ast.Load):
                found.setdefault(_ANY_DOC, []).append(None)
    except _UNREADABLE:
        return None
    return found


def _outside_functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """What a module consists of but for what is in functions, in order, each with the name of the class it is in."""
    left: list[tuple[str, ast.AST]] = [("", tree)]
    while left:  # Without recursion: what is written may be deep.
        prefix, one = left.pop()
        yield prefix, one
        if isinstance(one, ast.ClassDef):
            prefix = _inside(prefix, one.name)
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            left += [(prefix, child) for child in ast.iter_child_nodes(one)][::-1]


def _inside(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
