"""Where a jump goes to, and whether the interpreter survives it.

Up to Python 3.10 an interpreter that is told to jump looks at blocks, not at what lies on its stack: into or out of the
middle of a statement, a handler or a `finally` it jumps without a word, and crashes a little later.
"""

import ast
import sys

from .code_lines import NOWHERE, line_starts
from .statements import Statements, parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Iterator, Set, Tuple

CHECKED = sys.version_info >= (3, 11)
"""Whether the interpreter itself refuses what would make it crash."""

BEFORE = "line {} comes before the current code block"
AFTER = "line {} comes after the current code block"
HALFWAY = "the statement at line {} is under way: n to its end, then j"
AT_HEADER = "this Python cannot jump from or to the line of `{}` here"
IN_BLOCK = "this Python cannot jump out of, into or within {}"


def jump_target(statements: "Statements", code: "CodeType", wanted: int) -> "Tuple[int, str]":
    """The line by which the interpreter finds the statement that is meant.

    Args:
        statements: of the file
        code: of the frame that jumps
        wanted: any line of the statement, or one before it that has no code

    Returns:
        the line, and why there is none
    """
    lines = [line for _, line in line_starts(code) if line != NOWHERE]
    line = _start(statements, wanted)
    if line > max(lines, default=0):
        return 0, AFTER.format(wanted)
    if line < begins_at(code):
        return wanted, ""  # Python says so
    line = _start(statements, min(one for one in lines if one >= line))
    begins = statements.begins(code, line)
    if begins:
        line = begins[min(begins)]
    return line, ""


def begins_at(code: "CodeType") -> int:
    """The line that a code object begins at, but for what we have compiled in."""
    if code.co_firstlineno != NOWHERE:
        return code.co_firstlineno
    return next((line for _, line in line_starts(code) if line != NOWHERE), 1)


def why_not_to_jump(statements: "Statements", code: "CodeType", offset: int, now: int, line: int) -> str:
    """Why the interpreter might not survive a jump; empty: it does.

    Args:
        statements: of the file
        code: of the frame that jumps
        offset: in its bytecode, where it is
        now: the line that it is at
        line: the one to go to
    """
    if CHECKED:
        return ""
    first = _start(statements, now)
    halfway = offset in statements.returns(code, first)
    if first != now:
        halfway = offset not in statements.begins(code, first)
    if halfway:
        return HALFWAY.format(first)
    tree = parsed(statements.source, "<source>")
    begun = min((at for at, number in line_starts(code) if number == now), default=offset) >= offset
    for header, inside, word in _headers(tree):
        if word == "with" and (now != header or begun) and (line != header or now not in inside):
            continue
        if header in (now, line):
            return AT_HEADER.format(word)
    for block, name in _blocks(tree):
        if (now in block) != (line in block) or (now in block and name == "`finally`"):
            return IN_BLOCK.format(name)
    return ""


def _start(statements: "Statements", line: int) -> int:
    """The first line of the statement that a line belongs to, of a decorated definition its first decorator."""
    line = statements.start(line)
    tree: "Any" = parsed(statements.source, "<source>")
    nodes: "Iterator[Any]" = ast.walk(tree)
    for node in nodes:
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            first = int(min(one.lineno for one in decorators))
            if first <= line < max(node.lineno + 1, node.body[0].lineno):
                return first
    return line


def _headers(tree: ast.AST) -> "Iterator[Tuple[int, Set[int], str]]":
    """Lines at which something lies on the stack: each, the lines of its block, and how it is called."""
    for node in ast.walk(tree):  # type: Any
        if isinstance(node, ast.ExceptHandler):
            for line in range(node.lineno, max(node.lineno + 1, node.body[0].lineno)):
                yield line, set(), "except"
        elif isinstance(node, (ast.With, ast.AsyncWith, ast.AsyncFor)):
            yield node.lineno, _lines(node.body), "with"
        for case in getattr(node, "cases", ()):
            for line in range(case.pattern.lineno, case.body[0].lineno):
                yield line, set(), "case"


def _blocks(tree: ast.AST) -> "Iterator[Tuple[Set[int], str]]":
    """Handlers and `finally` blocks: their lines, and how they are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            yield _lines(node.body) | {node.lineno}, "an `except` block"
        if getattr(node, "finalbody", None):
            yield _lines(node.finalbody), "`finally`"  # type: ignore[attr-defined]


def _lines(body: "Any") -> "Set[int]":
    """The lines from the first to the last of a block."""
    numbers = {
        getattr(one, name, 0) or 0 for node in body for one in ast.walk(node) for name in ("lineno", "end_lineno")
    }
    numbers.discard(0)
    return set(range(min(numbers), max(numbers) + 1))
