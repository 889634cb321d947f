"""Calls of ours in the tree of a program: where one is safe, which condition may stand in line, and putting them in."""

import ast

from debug_gym_core.debugging.inside.process import OURS

from .code_lines import NOWHERE
from .statements import SCOPES, Statements, chained, parsed
from .unseen import HOOK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Set, Tuple

    Placed = Dict[int, Optional[str]]

HELD, RAISED = 1, 2
"""What was found out before our function is called: its condition held, or raised."""

_ALONE = "try:\n {}\nexcept NameError: pass"
_CONDITIONAL = "try:\n  if 0: {0}({1}, {2})\n except: {0}({1}, {3})"

NOT_INLINE = (*SCOPES, ast.Yield, ast.YieldFrom, ast.Await, *([ast.NamedExpr] if hasattr(ast, "NamedExpr") else []))
LOOKED_UP = frozenset(["super", "__class__", "locals", "vars", "dir", "eval", "exec"])
"""Names whose meaning depends on where an expression stands."""


def insert(tree: "Any", wanted: "Placed") -> "Placed":
    """Put our calls into a tree, before the first statement of each line.

    Args:
        tree: of a module; changed
        wanted: lines, and the conditions to put in line

    Returns:
        what was put in
    """
    done: "Placed" = {}

    def visit(node: "Any") -> None:
        """Go through what is in a statement; through a chain of `elif`, however long, in a loop."""
        while node is not None:
            following = chained(node)
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                block = getattr(node, name, None)
                if not isinstance(block, list):
                    continue
                result = []
                for one in block:
                    line = getattr(one, "lineno", 0)
                    if isinstance(one, ast.stmt) and line in wanted and line not in done and line != _header(node):
                        result.append(_call(line, wanted[line]))
                        done[line] = wanted[line]
                    if one is not following:
                        visit(one)
                    result.append(one)
                block[:] = result
            node = following

    visit(tree)
    return done


def without(tree: "Any") -> "Any":
    """The same tree, without what was put into it."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                block[:] = [one for one in block if not getattr(one, HOOK, False)]
    return tree


def _header(node: "Any") -> int:
    return getattr(node, "lineno", 0)


def _call(line: int, condition: "Optional[str]") -> ast.stmt:
    """Our call for a line; it does nothing where the code has come without us, such as to another process."""
    made: "Any"
    if condition is None:
        made = parsed(_ALONE.format("{}({})".format(HOOK, line)), OURS).body[0]
    else:
        text = _CONDITIONAL.format(HOOK, line, HELD, RAISED)
        made = parsed(_ALONE.format(text), OURS).body[0]
        made.body[0].body[0].test = parsed(condition.strip(), OURS, "eval").body
    for node in ast.walk(made):
        if "lineno" in node._attributes:
            node.lineno, node.col_offset = NOWHERE, 0  # type: ignore[attr-defined]
            if "end_lineno" in node._attributes:
                node.end_lineno, node.end_col_offset = NOWHERE, 0  # type: ignore[attr-defined]
    setattr(made, HOOK, True)
    return made  # type: ignore[no-any-return]


def places_of(statements: "Statements", line: int, conditions: "List[Optional[str]]", by_name: bool) -> "Placed":
    """Where our call for the breakpoints of a line would stand.

    Args:
        statements: of the file
        line: of the breakpoints
        conditions: of each of them
        by_name: whether one is set on a function, and stops where a call of it starts

    Returns:
        lines, and the condition to be compiled in; empty: there is no place that is safe
    """
    place = statements.places.get(line)
    if place is None:
        return {}
    if by_name:
        return {place.entered: None} if place.entered and len(conditions) == 1 else {}
    if not place.safe:
        return {}
    condition = conditions[0] if len(conditions) == 1 else None
    if condition is not None and not _is_inline(condition, place.scopes):
        condition = None
    return {line: condition}


def _is_inline(condition: str, scopes: "Tuple[ast.AST, ...]") -> bool:
    """Whether a condition means the same in line as when it is evaluated in the frame."""
    try:
        tree = parsed(condition.strip(), OURS, "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, NOT_INLINE):
            return False
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if name[:2] == "__" and name[-2:] != "__":
            return False  # would be another name in a class
        if isinstance(node, ast.Name):
            names.add(node.id)
    return not names & LOOKED_UP and not names & _captured(scopes)


def _captured(scopes: "Tuple[ast.AST, ...]") -> "Set[str]":
    """Names that an expression in the innermost function would get from the functions around it, and nothing else."""
    found: "Set[str]" = set()
    for scope in scopes[:-1]:
        if not isinstance(scope, ast.ClassDef):
            found |= _bound(scope)
    return found - _bound(scopes[-1]) - _asked_for(scopes[-1]) if found else found


def _asked_for(function: "Any") -> "Set[str]":
    """Names that a function's own code asks for: what is another function's among them is there anyway."""
    found: "Set[str]" = set()
    waiting = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif not isinstance(node, SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _bound(function: "Any") -> "Set[str]":
    """Names that a function binds, those of its parameters too; more than that does no harm."""
    found: "Set[str]" = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        else:
            found.update(value for value in (getattr(node, "name", None), getattr(node, "rest", None)) if value)
    return found
