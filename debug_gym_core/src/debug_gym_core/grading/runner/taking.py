"""Which `with` statements of a test module may take an exception, and with it what an expectation in them says."""

import ast
import re

from .bindings import called, parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Union

    Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]

TAKES = re.compile("rais|suppress|except|expect|error|fail|ignor|catch|throw|swallow", re.IGNORECASE)
"""In the name of what a `with` statement may enter that takes exceptions."""

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Taking(object):
    """Knows what names of one module may stand for, attributes by their last part.

    Args:
        nodes: of the module, all
    """

    def __init__(self, nodes: "Sequence[ast.AST]") -> None:
        self.values = {}  # type: dict[str, list[ast.AST]]
        for node in nodes:
            for target, value in _bound(node):
                for one in ast.walk(target):
                    if isinstance(one, (ast.Name, ast.Attribute)) and not isinstance(one.ctx, ast.Load):
                        self.values.setdefault(called(one), []).append(value)
        self.given = set()  # type: set[str]
        for node in nodes:
            if isinstance(node, DEFINITIONS):
                self.given.update(self._given(node))

    def _given(self, definition: "Definition") -> "Iterator[str]":
        """Parameters that are given what may take exceptions, or anything; the names of fixtures that are such."""
        yield from parameters(definition)
        if isinstance(definition, ast.ClassDef):
            return
        arguments = definition.args
        for decorator in definition.decorator_list:
            kind = called(getattr(decorator, "func", decorator))
            if kind != "parametrize" and self._may([decorator]):  # That one says which.
                yield from (one.arg for one in (*arguments.args, *arguments.kwonlyargs))
            chosen = [one.arg for one in getattr(decorator, "keywords", ())]
            if kind == "fixture" and ("params" in chosen or self._may([*definition.body])):
                yield definition.name

    def may(self, entered: ast.expr) -> bool:
        """Whether what a `with` statement enters may take what is raised below it: its name, or what that is, says so.

        Args:
            entered: the expression
        """
        return self._may([entered.func if isinstance(entered, ast.Call) else entered])

    def _may(self, left: "list[ast.AST]") -> bool:
        """Whether something in some nodes may take exceptions."""
        seen = set()  # type: set[str]
        while left:
            here = left.pop()
            if not isinstance(here, (ast.Name, ast.Attribute)):
                left += _parts(here)
                continue
            name = called(here)
            if TAKES.search(name) or name in self.given:
                return True
            if name not in seen:
                seen.add(name)
                left += self.values.get(name, ())
        return False


def _bound(node: ast.AST) -> "Iterator[tuple[ast.AST, ast.AST]]":
    """What a node binds, with what that is, or is in."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield node.target, node.iter


def _parts(node: ast.AST) -> "list[ast.AST]":
    """What says what a node is: of what a call is given only what is called there, as in `param(1, raises(E))`."""
    if not isinstance(node, ast.Call):
        return list(ast.iter_child_nodes(node))
    given = [*node.args, *(one.value for one in node.keywords)]
    return [node.func, *(one.func for part in given for one in ast.walk(part) if isinstance(one, ast.Call))]
