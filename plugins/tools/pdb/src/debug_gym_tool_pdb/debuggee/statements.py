"""The statements of a source file: where each starts, and before which a hook may stand."""

import ast
import gc
import io
import os
import sys
import tokenize

from debug_gym_core.debugging.inside.quiet import Quiet

from .channel import _compile
from .code_lines import NOWHERE, line_starts
from .docstrings import Layout, executed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

    Block = List[ast.stmt]

NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
SCOPES = (*NESTED, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
PAUSES = (ast.Yield, ast.YieldFrom, ast.Await)
SIMPLE = (
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Assert,
    ast.Delete,
    ast.Expr,
    ast.Import,
    ast.ImportFrom,
    ast.Raise,
    ast.Return,
)
CONSTANTS = tuple(
    getattr(ast, name)
    for name in ("Constant", "Num", "Str", "Bytes", "NameConstant", "Ellipsis")
    if name == "Constant" or sys.version_info < (3, 8)
)

DOUBTFUL = (
    *(ast.AnnAssign, ast.Assert, ast.Global, ast.If, ast.ImportFrom, ast.Nonlocal, ast.Pass, ast.While),
    *(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name)),
)
"""Statements whose first line may have no code: declarations, and those whose condition is a constant."""


class Place:
    """The statement that starts a line.

    Attributes:
        first: number of its first line
        last: number of the last line of it, of its header when it has a body
        safe: whether a hook before it stops exactly where line events would
        whole: whether all code of its lines is executed from its beginning on
        entered: of a function, the line of the statement that a call starts with, when that is safe; else 0
        scopes: the functions and classes it lies in, outermost first
    """

    __slots__ = ("entered", "first", "last", "safe", "scopes", "whole")

    def __init__(
        self, first: int, last: int, safe: bool, whole: bool, entered: int, scopes: "Tuple[ast.AST, ...]"
    ) -> None:
        """Describe a statement."""
        self.first = first
        self.last = last
        self.safe = safe
        self.whole = whole
        self.entered = entered
        self.scopes = scopes


class Statements:
    """The statements of a file.

    Attributes:
        source: the file's
        places: by the first line of each
        doubtful: first lines of statements that may have no code
        docstrings: lines that hold nothing but a docstring
    """

    def __init__(self, tree: ast.AST, source: bytes, optimized: bool) -> None:
        """Read a module's tree.

        Args:
            tree: as it was parsed
            source: that was parsed
            optimized: whether assertions are left out of the program
        """
        self.optimized = optimized
        self.places: "Dict[int, Place]" = {}
        self.doubtful: "Set[int]" = set()
        self.docstrings: "Set[int]" = set()
        self.source = source
        self._layout = Layout(source)
        self._starts: "Optional[Dict[int, int]]" = None
        self._scope(getattr(tree, "body", []), ())

    @classmethod
    def parse(cls, source: bytes, filename: str) -> "Optional[Statements]":
        """Read source; None: it is not Python."""
        try:
            with Quiet():
                tree = parsed(source, filename)
            return cls(tree, source, sys.flags.optimize > 0)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def start(self, line: int) -> int:
        """The first line of the statement that a line belongs to; itself, when it starts one or belongs to none."""
        if line in self.places:
            return line
        if self._starts is None:
            self._starts = self._find_starts()
        return self._starts.get(line, line)

    def lines(self, line: int) -> "Set[int]":
        """Lines of the statement, of its header or of the decorator that a line belongs to; itself, if to none."""
        first = self.start(line)
        place = self.places.get(first)
        return {first, line}.union(range(place.first, place.last + 1) if place is not None else ())

    def _find_starts(self) -> "Dict[int, int]":
        """The first lines of statements and decorators of several lines, by their other lines."""
        found: "Dict[int, int]" = {}
        begun: "Optional[tokenize.TokenInfo]" = None
        try:
            for token in tokenize.tokenize(io.BytesIO(self.source).readline):
                if token.type == tokenize.NEWLINE:
                    if begun is not None and (begun.string == "@" or begun.start[0] in self.places):
                        found.update((line, begun.start[0]) for line in range(begun.start[0] + 1, token.start[0] + 1))
                    begun = None
                elif begun is None and token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING):
                    begun = token
        except (tokenize.TokenError, SyntaxError):  # the parser knows better
            return {}
        return found

    def returns(self, code: "CodeType", line: int) -> "FrozenSet[int]":
        """Where a code object comes back to the first line of a statement of several lines, after its other lines.

        Returns:
            offsets in the bytecode
        """
        place = self.places.get(line)
        if place is None or place.last == place.first:
            return frozenset()
        found, before = [], 0
        for offset, number in line_starts(code):
            if number == line and line < before <= place.last:
                found.append(offset)
            before = number
        return frozenset(found)

    def begins(self, code: "CodeType", line: int) -> "Dict[int, int]":
        """Where a code object begins a statement of several lines at another line than its first.

        Returns:
            offsets in the bytecode, and the lines there
        """
        place = self.places.get(line)
        nested = code.co_firstlineno >= line and code.co_name != "<module>"  # a function inside the statement
        if place is None or place.last == place.first or nested:
            return {}
        found: "Dict[int, int]" = {}
        before = 0
        for offset, number in line_starts(code):
            if not line <= before <= place.last and line <= number <= place.last and (place.whole or not found):
                found[offset] = number
            before = number
        return {offset: number for offset, number in found.items() if number != line}

    def _scope(self, body: "Block", scopes: "Tuple[ast.AST, ...]") -> None:
        """Read the body of a module, class or function."""
        self.docstrings.update(self._layout.docstring_lines(body))
        self._block(body, scopes, False)

    def _block(self, statements: "Block", scopes: "Tuple[ast.AST, ...]", kept: bool) -> None:
        """Read the statements of a body.

        Args:
            statements: of the body
            scopes: where it lies
            kept: whether leaving it runs other code: of a `finally` or a context manager
        """
        documented = not scopes or isinstance(scopes[-1], NESTED)
        for place, node in enumerate(statements):
            if _last_line(node) >= NOWHERE > 0:
                return
            self._statement(node, scopes, kept, documented and place == 0)
            self._inside(node, scopes, kept)

    def _statement(self, node: "Any", scopes: "Tuple[ast.AST, ...]", kept: bool, documents: bool) -> None:
        """Read where a statement starts.

        Args:
            node: the statement
            scopes: where it lies
            kept: see `_block`
            documents: whether it is a docstring if it is a text
        """
        first = node.lineno
        docstring = documents and isinstance(node, ast.Expr) and isinstance(node.value, CONSTANTS)
        safe = not docstring and self._is_safe(node, scopes, kept)
        if first in self.places:  # after a semicolon, or after the colon of a header
            self.places[first].safe = self.places[first].safe and self._is_safe(node, scopes, kept)
        else:
            whole = isinstance(node, (*SIMPLE, ast.If, ast.While))
            self.places[first] = Place(first, _last_line(node), safe, whole, 0, scopes)
            if isinstance(node, DOUBTFUL) or (isinstance(node, ast.Expr) and isinstance(node.value, CONSTANTS)):
                self.doubtful.add(first)

    def _inside(self, node: "Any", scopes: "Tuple[ast.AST, ...]", kept: bool) -> None:
        """Read what is in a statement; of a chain of `elif`, however long, in a loop."""
        following = chained(node)
        while following is not None:
            self._block(node.body, scopes, kept)
            if _last_line(following) >= NOWHERE > 0:
                return
            self._statement(following, scopes, kept, False)
            node, following = following, chained(following)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._scope(node.body, (*scopes, node))
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                self.places[node.lineno].entered = self._entered(node)
            elif node.decorator_list and sys.version_info < (3, 8) and self._layout.follows_something(node.body[0]):
                self.places[node.body[0].lineno].safe = False  # the line is the header's too
            return
        leaving = kept or isinstance(node, (ast.With, ast.AsyncWith)) or bool(getattr(node, "finalbody", ()))
        for name in ("body", "orelse", "finalbody"):
            self._block(getattr(node, name, []), scopes, kept if name == "finalbody" else leaving)
        for handler in getattr(node, "handlers", ()):
            self._block(handler.body, scopes, leaving)
        for case in getattr(node, "cases", ()):
            self._block(case.body, scopes, kept)

    def _entered(self, function: "ast.FunctionDef") -> int:
        """The line that a call starts with, when a hook may stand there."""
        if any(isinstance(node, PAUSES) for node in own_nodes(function)):
            return 0
        body = executed(function.body)
        if not body:
            return 0
        place = self.places.get(body[0].lineno)
        return place.first if place is not None and place.safe else 0

    def _is_safe(self, node: "Any", scopes: "Tuple[ast.AST, ...]", kept: bool) -> bool:
        """Whether the statement has one line event, at its start, in one frame, and whenever it is executed."""
        if scopes and isinstance(scopes[-1], ast.ClassDef):
            return False  # names are looked up in a mapping of the program's own
        if isinstance(node, ast.If):
            return not isinstance(node.test, CONSTANTS) and _is_plain(node.test)
        if isinstance(node, ast.Try):
            return node.body[0].lineno != node.lineno
        if not isinstance(node, SIMPLE):
            return False
        if isinstance(node, ast.Expr) and isinstance(node.value, CONSTANTS):
            return False
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return False
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return False
        if isinstance(node, ast.Assert) and self.optimized:
            return False
        if isinstance(node, ast.Return) and kept:
            return False  # comes back to its line after the code that leaving runs
        return _is_plain(node)


class Sources:
    """The statements of files, read again when a file has changed."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._known: "Dict[str, Tuple[Any, Optional[Statements]]]" = {}

    def statements(self, file: str) -> "Optional[Statements]":
        """The statements of a file as it is now; None: it is not Python."""
        try:
            status = os.stat(file)
            stamp: "Any" = (status.st_mtime_ns, status.st_size)
        except OSError:
            stamp = None
        known = self._known.get(file)
        if known is None or known[0] != stamp:
            known = self._known[file] = (stamp, self._read(file) if stamp else None)
        return known[1]

    @staticmethod
    def _read(file: str) -> "Optional[Statements]":
        try:
            with open(file, "rb") as stream:
                return Statements.parse(stream.read(), file)
        except OSError:
            return None


def chained(node: "Any") -> "Optional[ast.If]":
    """The `elif` of an `if`; of source, one that stands alone below its `else:` is none that differs."""
    orelse = node.orelse if isinstance(node, ast.If) else ()
    return orelse[0] if len(orelse) == 1 and isinstance(orelse[0], ast.If) else None


def _is_plain(node: ast.AST) -> bool:
    """Whether a statement, or the expression in its header, is executed at one go in one frame."""
    return not any(isinstance(one, (*SCOPES, *PAUSES)) for one in ast.walk(node))


def own_nodes(function: ast.AST) -> "Iterator[ast.AST]":
    """The nodes of a function or module without those of functions and classes in it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, NESTED):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _last_line(node: "Any") -> int:
    """The last line of a statement, or of its header."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if isinstance(body, list):
        ends = [node.lineno]
        for name, value in ast.iter_fields(node):
            if name in ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    ends.append(_end(part))
        return int(max(ends))
    return int(max(node.lineno, _end(node)))


def _end(node: ast.AST) -> int:
    end = getattr(node, "end_lineno", None)
    if end is not None:
        return int(end)
    return max((getattr(one, "lineno", 0) for one in ast.walk(node)), default=0)


def parsed(source: "Any", filename: "Any", mode: str = "exec", flags: int = 0, optimize: int = -1) -> "Any":
    """The tree of some source.

    Python 3.11 gives up with a SystemError when another thread parses meanwhile (CPython issue 106905); without
    garbage to collect, no other thread has a turn.
    """
    flags |= ast.PyCF_ONLY_AST
    try:
        return _compile(source, filename, mode, flags, True, optimize)
    except SystemError:
        collects = gc.isenabled()
        gc.disable()
        try:
            return _compile(source, filename, mode, flags, True, optimize)
        finally:
            if collects:
                gc.enable()
