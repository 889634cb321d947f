"""What lines and functions the repository's files have, found without running any of them."""

import ast
import dis
import os
import re
import sys
import types

from debug_gym_core.debugging.inside.process import _monotonic
from debug_gym_core.debugging.inside.quiet import Quiet

from .channel import Pattern, _compile
from .docstrings import Layout, docstring
from .statements import parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Optional, Set, Tuple

MOST_FILES_READ = 3000
LARGEST_FILE_READ = 4000000
SECONDS_OF_SEARCH = 1.5
_DEFINITION = Pattern(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


class Source:
    """A file's source, taken apart."""

    def __init__(self, path: str) -> None:
        """Read and compile a file.

        Raises:
            OSError: it cannot be read
            SyntaxError: it is not Python
            ValueError: it is not text, or holds a NUL
        """
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE_READ)
        with Quiet():
            self.tree = parsed(content, path)
            self._code = _compile(self.tree, path, "exec", dont_inherit=True)
        self.lines = content.decode("utf-8", "replace").split("\n")
        self._layout = Layout(content)
        self._last: "Dict[ast.AST, int]" = {}

    def lines_with_code(self) -> "List[int]":
        """Lines at which a breakpoint can be reached."""
        found: "Set[int]" = set()
        codes = [self._code]
        while codes:
            code = codes.pop()
            found.update(line for _, line in dis.findlinestarts(code) if line)
            codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        return sorted(found)

    def functions(self) -> "Iterator[Tuple[str, ast.AST]]":
        """Functions and classes with their qualified names, outermost first."""
        waiting: "List[Tuple[str, ast.AST]]" = [("", self.tree)]
        while waiting:
            prefix, parent = waiting.pop(0)
            for node in ast.iter_child_nodes(parent):
                name = prefix
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    name = prefix + node.name
                    yield name, node
                    name += "."
                waiting.append((name, node))

    def function_at(self, line: int) -> "Optional[ast.AST]":
        """The innermost function or class around a line."""
        found = None
        for _, node in self.functions():
            if self.header(node) <= line <= self.last_line(node) and (
                found is None or first_line(node) >= first_line(found)
            ):
                found = node
        return found

    def header(self, node: "ast.AST") -> int:
        """The line of the `def` or `class`; Python 3.7 and older have a decorated one begin at its decorator."""
        line = first_line(node)
        decorators = getattr(node, "decorator_list", ())
        if decorators and sys.version_info < (3, 8):
            line = self.last_line(decorators[-1]) + 1
            while line < len(self.lines) and not _DEFINITION.match(self.lines[line - 1]):
                line += 1
        return line

    def last_line(self, node: "ast.AST") -> int:
        """The last line of a statement; Python 3.7 and older only know the beginnings."""
        if node not in self._last:
            ends = ("end_lineno", "lineno")
            self._last[node] = max(int(getattr(one, end, None) or 0) for one in ast.walk(node) for end in ends)
        return self._last[node]

    def line_after(self, line: int) -> "Optional[int]":
        """The next line with code in the function around a line; None: there is none that is surely meant."""
        around = self.function_at(line)
        if not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        for number in self.lines_with_code():
            if number > line:
                inside = number <= self.last_line(around) and self.function_at(number) is around
                return number if inside else None
        return None

    def near(self, line: int, not_at: "Set[int]") -> "List[int]":
        """The lines with code before and after a line, without those at which there can be no breakpoint."""
        lines = [one for one in self.lines_with_code() if one not in not_at]
        return [one for one in lines if one < line][-1:] + [one for one in lines if one > line][:1]

    def entered(self, function: "ast.AST") -> "Tuple[int, bool]":
        """Where a breakpoint on a function belongs.

        Returns:
            the line, and whether it is that of the definition too, so that only the function's name tells a call
        """
        body = getattr(function, "body", [])
        first = body[1 if docstring(body) is not None else 0 :][:1]
        if not first:  # no line of its own has code on every version
            return _with_decorators(function), True
        return _with_decorators(first[0]), self._layout.follows_something(first[0])

    def starts(self, node: "ast.AST", code: "types.CodeType") -> bool:
        """Whether a code object is that of a function, or of one that was at its place."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return isinstance(node, kinds) and (node.name, _with_decorators(node)) == (code.co_name, code.co_firstlineno)


def first_line(node: "ast.AST") -> int:
    """The first line of a function or class, without its decorators."""
    return int(getattr(node, "lineno", 0))


def _with_decorators(node: "ast.AST") -> int:
    """The first line of a statement, from its decorators on."""
    return min([first_line(node)] + [first_line(one) for one in getattr(node, "decorator_list", ())])


def python_files(root: str, most: int) -> "Iterator[str]":
    """Python files of a repository, relative to its root, those near the root first."""
    waiting, seen = [""], 0
    while waiting and seen < most:
        directory = waiting.pop(0)
        try:
            with os.scandir(os.path.join(root, directory)) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name[:1] != "." and entry.name not in ("site-packages", "__pycache__", "node_modules"):
                    waiting.append(os.path.join(directory, entry.name))
            elif entry.name.endswith(".py"):
                yield os.path.join(directory, entry.name)
            seen += 1


class Definition:
    """A function or class in a file.

    Attributes:
        file: relative to the repository
        name: qualified, as in `Account.deposit`
        line: where a breakpoint in it belongs; of a class without `__init__`, None
        function: name of the code that alone stops there, where the line is that of the definition too; else None
    """

    def __init__(self, file: str, name: str, line: "Optional[int]", function: "Optional[str]") -> None:
        """Describe a definition."""
        self.file = file
        self.name = name
        self.line = line
        self.function = function


class Search:
    """Functions and classes by name, in one file or in all of a repository."""

    def __init__(self, root: str, ignored: "frozenset[str]") -> None:
        """Search below `root`, but not in what is ignored."""
        self.root = root
        self.ignored = ignored
        self.names: "Dict[str, str]" = {}

    def find(self, wanted: str, only: "Optional[str]" = None) -> "List[Definition]":
        """Find definitions.

        Args:
            wanted: a name, qualified by its classes, packages and module or by some of them
            only: the one file to look into

        Returns:
            what bears the name; all names that were seen are in `names`, with their files
        """
        last = wanted.rpartition(".")[2]
        until = _monotonic() + SECONDS_OF_SEARCH
        found: "List[Definition]" = []
        for file in [only] if only else python_files(self.root, 20 * MOST_FILES_READ):
            if file in self.ignored:
                continue
            if _monotonic() > until:
                break
            try:
                with open(os.path.join(self.root, file), "rb") as opened:
                    text = opened.read(LARGEST_FILE_READ).decode("utf-8", "replace")
            except OSError:
                continue
            names = set(_DEFINITION.findall(text))
            for name in names:
                self.names.setdefault(name, file)
            if last in names:
                found += self._in_file(file, wanted)
        return found

    def _in_file(self, file: str, wanted: str) -> "List[Definition]":
        try:
            source = Source(os.path.join(self.root, file))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return []
        module = re.sub(r"(/__init__)?\.py\Z", "", file).replace("/", ".")
        nodes = dict(source.functions())
        meant = [name for name in nodes if ("." + module + "." + name).endswith("." + wanted)]
        return [definition(source, nodes, name, file) for name in meant]


def definition(source: "Source", nodes: "Dict[str, ast.AST]", name: str, file: str) -> "Definition":
    """Where a breakpoint on a function belongs, or on a class.

    Args:
        source: where it is
        nodes: the functions and classes there, by qualified names
        name: its own
        file: what the file is called
    """
    node = nodes[name]
    if isinstance(node, ast.ClassDef):
        node = nodes.get(name + ".__init__", node)
    if isinstance(node, ast.ClassDef):
        return Definition(file, name, None, None)
    line, by_name = source.entered(node)
    return Definition(file, name, line, str(getattr(node, "name", "")) if by_name else None)
