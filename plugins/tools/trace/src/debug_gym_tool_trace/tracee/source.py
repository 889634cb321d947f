"""Where statements, loops and functions are in a file."""

import ast
import bisect
import dis
import tokenize

from debug_gym_core.debugging.inside.quiet import Quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Dict, Iterator, List, Optional, Tuple

LARGEST = 4 << 20
"""Bytes of a file that is looked into."""

TEXT_ROOM = 110
"""Characters of a statement."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_FOR = (ast.For, ast.AsyncFor)
_LOOPS = (*_FOR, ast.While)
_WITH = (ast.With, ast.AsyncWith)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)


class Unit:
    """A statement, or the first lines of one that has others in it.

    Attributes:
        line: its first
        kind: `for`, `while`, `with`, `try`, `except`, `def`, `text` (a docstring), or empty
        loops: the loops that it is in, outermost first, by their lines; a loop's first line is in it
        collects: whether there is a comprehension in it, whose variables may be in the function's frame
    """

    __slots__ = ("collects", "end", "kind", "line", "loops")

    def __init__(self, line: int, end: int, kind: str, loops: "Tuple[int, ...]") -> None:
        """Describe it; `end` is its last line."""
        self.collects = False
        self.line = line
        self.end = end
        self.kind = kind
        self.loops = loops


class Definition:
    """A function, class or lambda.

    Attributes:
        name: qualified, without `<locals>`
        code: what its code object is called
        first: line where its code object begins, its first decorator's
        line: line of its `def` or `class`
        body: first line of what is in it
        end: its last line
        kind: `function`, `class` or `lambda`
    """

    def __init__(self, name: str, code: str, first: int, line: int, body: int, end: int, kind: str) -> None:
        """Keep it."""
        self.name = name
        self.code = code
        self.first = first
        self.line = line
        self.body = body
        self.end = end
        self.kind = kind


class Source:
    """One file.

    Attributes:
        lines: its text
        definitions: in the order of the text
        problem: why nothing is known of it; empty: it is
    """

    def __init__(self, path: str) -> None:
        """Read a file.

        Args:
            path: its name
        """
        self.lines: "List[str]" = []
        self.definitions: "List[Definition]" = []
        self.problem = ""
        self._units: "Dict[int, Unit]" = {}
        self._last: "Dict[int, int]" = {}
        try:
            with tokenize.open(path) as file:
                text = file.read(LARGEST)
            with Quiet():
                tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError, RecursionError, LookupError) as error:
            self.problem = str(error)
            tree = ast.parse("")
            text = ""
        self.lines = text.split("\n")
        for body in _bodies(tree):
            self._statements(body, "", ())
        self._starts = sorted(self._units)
        self._defined = {(one.code, one.first): one for one in self.definitions}

    # ---- what is asked

    def unit(self, line: int) -> "Unit":
        """The statement that a line belongs to."""
        at = bisect.bisect_right(self._starts, line) - 1
        return self._units[self._starts[at]] if at >= 0 else Unit(line, line, "", ())

    def text(self, unit: "Unit") -> str:
        """A statement in one line."""
        lines = [line.strip() for line in self.lines[unit.line - 1 : unit.end]]
        text = " ".join(line for line in lines if line and not line.startswith("#"))
        return text if len(text) <= TEXT_ROOM else text[: TEXT_ROOM - 3] + "..."

    def indent(self, unit: "Unit") -> int:
        """How far it is indented, in columns."""
        line = self.lines[unit.line - 1].expandtabs() if unit.line <= len(self.lines) else ""
        return len(line) - len(line.lstrip())

    def called(self, code: str, first: int) -> str:
        """The qualified name of a code object."""
        found = self._defined.get((code, first))
        return found.name if found is not None else code

    def is_written(self, code: "CodeType") -> bool:
        """Whether a code object is of what is written at its place.

        Libraries such as hypothesis give functions of their own, around one that is written, its name and place. The
        lines of these go on from there; where there is but one, they have variables of a function around them.
        """
        found = self._defined.get((code.co_name, code.co_firstlineno))
        if found is None or found.kind != "function":
            return True
        lines = {line for _, line in dis.findlinestarts(code) if line} - {code.co_firstlineno}
        if not lines <= {found.body}:
            return all(found.body <= line <= found.end for line in lines)
        around = [one for one in self.definitions if one.kind != "class" and one.line < found.line <= one.end]
        return bool(around) or all(name == "__class__" for name in code.co_freevars)

    # ---- reading the tree

    def _statements(self, body: "List[Any]", owner: str, loops: "Tuple[int, ...]") -> None:
        for node in body:
            self._statement(node, owner, loops)

    def _statement(self, node: "Any", owner: str, loops: "Tuple[int, ...]") -> None:
        """Read a statement; a chain of `elif`, however long, in a loop."""
        while node is not None:
            orelse: "List[Any]" = node.orelse if isinstance(node, ast.If) else []
            following = orelse[0] if len(orelse) == 1 and isinstance(orelse[0], ast.If) else None
            self._parts(node, owner, loops, orelse if following is not None else None)
            node = following

    def _parts(self, node: "Any", owner: str, loops: "Tuple[int, ...]", later: "Optional[List[Any]]") -> None:
        """Read what is in a statement, but for one of its bodies."""
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(one.lineno for one in decorators)])
        bodies = list(_bodies(node))
        kind = _kind(node)
        inside = (*loops, node.lineno) if isinstance(node, _LOOPS) else loops
        end = _end(node)
        if bodies:
            end = max(min(_first_line(bodies[0]) - 1, end), node.lineno)
        elif getattr(node, "cases", ()):
            end = max(node.cases[0].pattern.lineno - 1, node.lineno)
        self._add(first, end, kind, inside)
        if isinstance(node, _DEFINITIONS):
            self._define(node, node.name, node.name, owner, first)
            owner, inside = self._qualified(owner, node.name), ()
        self._units[first].collects |= self._lambdas(node, owner)
        for number, inner in enumerate(bodies):
            if inner is later:
                continue
            self._statements(inner, owner, loops if isinstance(node, _LOOPS) and number else inside)
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            line = part.lineno if hasattr(part, "lineno") else part.pattern.lineno
            kind = "except" if isinstance(part, ast.ExceptHandler) else ""
            self._add(line, max(_first_line(part.body) - 1, line), kind, inside)
            self._statements(part.body, owner, inside)

    def _add(self, line: int, end: int, kind: str, loops: "Tuple[int, ...]") -> None:
        """Keep a statement; on one line with others the first of them counts, but for a definition before its body."""
        known = self._units.get(line)
        if known is None or known.kind in ("def", "try"):
            self._units[line] = Unit(line, end, kind, loops)

    def _lambdas(self, node: "Any", owner: str) -> bool:
        """The lambdas in a statement itself; one that is given a name is called so. Whether it has comprehensions."""
        collects = False
        named = {}
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            named = {id(node.value): one.id for one in node.targets if isinstance(one, ast.Name)}
        waiting: "List[ast.AST]" = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        waiting += [one.value for one in ast.iter_child_nodes(node) if isinstance(one, ast.keyword)]
        while waiting:
            one = waiting.pop()
            if isinstance(one, ast.Lambda):
                self._define(one, named.get(id(one), "<lambda>"), "<lambda>", owner, one.lineno)
            collects |= isinstance(one, _COMPREHENSIONS)
            waiting += [inner for inner in ast.iter_child_nodes(one) if isinstance(inner, (ast.expr, ast.keyword))]
        return collects

    def _define(self, node: "Any", name: str, code: str, owner: str, first: int) -> None:
        kind = "class" if isinstance(node, ast.ClassDef) else "lambda" if code == "<lambda>" else "function"
        name = self._qualified(owner, name)
        body = _first_line(node.body) if isinstance(node.body, list) else node.lineno
        self.definitions.append(Definition(name, code, first, node.lineno, body, _end(node), kind))

    @staticmethod
    def _qualified(owner: str, name: str) -> str:
        return "{}.{}".format(owner, name) if owner else name


def _kind(node: "Any") -> str:
    if isinstance(node, _FOR):
        return "for"
    if isinstance(node, ast.While):
        return "while"
    if isinstance(node, _WITH):
        return "with"
    if isinstance(node, _DEFINITIONS):
        return "def"
    if isinstance(node, ast.Expr) and (type(node.value).__name__ == "Str" or _is_text(node.value)):
        return "text"
    return "try" if hasattr(node, "finalbody") else ""


def _is_text(node: "Any") -> bool:
    return type(node).__name__ == "Constant" and type(node.value) is str


def _bodies(node: "Any") -> "Iterator[List[Any]]":
    """The lists of statements in a statement, its handlers and cases apart."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body


def _first_line(body: "List[Any]") -> int:
    found: int = min([body[0].lineno, *(one.lineno for one in getattr(body[0], "decorator_list", []))])
    return found


def _end(node: "Any") -> int:
    """The last line of a statement; before Python 3.8 that of the last thing in it."""
    found: "Optional[int]" = getattr(node, "end_lineno", None)
    if found is None:
        found = max([node.lineno, *(one.lineno for one in ast.walk(node) if hasattr(one, "lineno"))])
    return found
