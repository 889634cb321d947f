"""Docstrings and declarations: lines of source at which nothing runs that anybody would stop for."""

import ast
import io
import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    Block = List[ast.stmt]


def docstring(body: "Block") -> "Optional[ast.Expr]":
    """The docstring of a module, class or function by its body; None: it has none."""
    first = body[0] if body else None
    return first if isinstance(first, ast.Expr) and _is_text(first.value) else None


def executed(body: "Block") -> "Block":
    """The statements of a function from the first one on that is executed: after its docstring and declarations."""
    begin = 0 if docstring(body) is None else 1
    while begin < len(body) and isinstance(body[begin], (ast.Global, ast.Nonlocal)):
        begin += 1
    return body[begin:]


def _is_text(node: ast.AST) -> bool:
    if type(node).__name__ == "Str":  # up to Python 3.7; only there may its class be asked for without a warning
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


class Layout:
    """How statements lie on the lines of a source."""

    def __init__(self, source: bytes) -> None:
        """Read source."""
        self._source = source
        self._lines = source.splitlines()
        self._texts: "Optional[Dict[int, Tuple[int, int]]]" = None

    def follows_something(self, node: "ast.AST") -> bool:
        """Whether there is something before a statement on its line."""
        line, column = self._start(node)
        return bool(self._lines[line - 1][:column].strip())

    def docstring_lines(self, body: "Block") -> "range":
        """The lines that hold nothing but the docstring of a body."""
        node = docstring(body)
        if node is None:
            return range(0)
        first, last = self._start(node)[0], int(getattr(node, "end_lineno", None) or node.lineno)
        shares_first = self.follows_something(node)
        shares_last = len(body) > 1 and body[1].lineno == last
        return range(first + shares_first, last + 1 - shares_last)

    def _start(self, node: "ast.AST") -> "Tuple[int, int]":
        """Line and column where a statement starts.

        Up to Python 3.7, one that starts with a string of several lines has the last of these for its line, and no
        column.
        """
        line, column = int(getattr(node, "lineno", 0)), int(getattr(node, "col_offset", 0))
        if column >= 0:
            return line, column
        if self._texts is None:
            self._texts = self._find_texts()
        return self._texts.get(line, (line, 0))

    def _find_texts(self) -> "Dict[int, Tuple[int, int]]":
        """Where strings of several lines start, by their last lines."""
        found: "Dict[int, Tuple[int, int]]" = {}
        try:
            for token in tokenize.tokenize(io.BytesIO(self._source).readline):
                if token.type == tokenize.STRING and token.start[0] != token.end[0]:
                    found[token.end[0]] = token.start
        except (tokenize.TokenError, SyntaxError):  # the parser knows better
            pass
        return found
