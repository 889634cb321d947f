"""What lines and functions the repository's files have, found without running any of them."""

import ast
import collections
import contextlib
import dis
import os
import re
import sys
import types

from debug_gym_core.debugging.inside.process import _monotonic
from debug_gym_core.debugging.inside.quiet import Quiet

from .channel import Pattern, _compile
from .docstrings import Layout, executed
from .statements import parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Deque, Dict, Iterator, List, Optional, Set, Tuple

LARGEST_FILE_READ = 4000000
SECONDS_OF_SEARCH = 1.5
_DEFINITION = Pattern(r"^\ufeff?[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


class Source:
    """A file's source, taken apart."""

    def __init__(self, path: str) -> None:
        """Read a file.

        Raises:
            OSError: it cannot be read
            SyntaxError: it is not Python
            ValueError: it is not text, or holds a NUL
        """
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE_READ)
        with Quiet():
            self.tree = parsed(content, path)
        self._path = path
        self.lines = content.decode("utf-8", "replace").split("\n")
        self._layout = Layout(content)
        self._last: "Dict[ast.AST, int]" = {}
        self._with_code: "List[int]" = []
        self._functions: "List[Tuple[str, ast.AST]]" = []

    def lines_with_code(self) -> "List[int]":
        """Lines at which a breakpoint can be reached; see `compile` for what it raises."""
        if not self._with_code:
            found: "Set[int]" = set()
            with Quiet():
                codes = [_compile(self.tree, self._path, "exec", dont_inherit=True)]
            while codes:
                code = codes.pop()
                found.update(line for _, line in dis.findlinestarts(code) if line)
                codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
            self._with_code = sorted(found)
        return self._with_code

    def functions(self) -> "List[Tuple[str, ast.AST]]":
        """Functions and classes with their qualified names, outermost first."""
        if not self._functions:
            waiting: "Deque[Tuple[str, ast.AST]]" = collections.deque([("", self.tree)])
            while waiting:
                prefix, parent = waiting.popleft()
                for node in statements_in(parent):
                    name = prefix
                    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                        name = prefix + node.name
                        self._functions.append((name, node))
                        name += "."
                    waiting.append((name, node))
        return self._functions

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
            end = getattr(node, "end_lineno", None)
            self._last[node] = end or max(int(getattr(one, "lineno", 0)) for one in ast.walk(node))
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
        first = executed(getattr(function, "body", []))[:1]
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


def statements_in(node: "ast.AST") -> "Iterator[ast.AST]":
    """The statements of the bodies of one, with its handlers and cases; nothing of what has no body."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield from block


def python_files(root: str, most: int = sys.maxsize, until: float = float("inf")) -> "Iterator[str]":
    """Python files of a repository, relative to its root, those near the root first.

    Args:
        root: of the repository
        most: files of any kind that are looked at
        until: when to stop looking, on the clock of `_monotonic`
    """
    waiting, seen = [""], 0
    while waiting and seen < most and _monotonic() <= until:
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
    """Functions and classes by name, in one file or in all of a repository.

    Attributes:
        finished: whether all files were looked into, which takes too long in a large repository
    """

    def __init__(self, root: str, ignored: "frozenset[str]") -> None:
        """Search below `root`, but not in what is ignored."""
        self.root = root
        self.ignored = ignored
        self.finished = True

    def find(self, wanted: str, only: "Optional[str]" = None) -> "List[Definition]":
        """Find definitions.

        Args:
            wanted: a name, qualified by its classes, packages and module or by some of them
            only: the one file to look into

        Returns:
            what bears the name
        """
        *around, last = wanted.split(".")
        found: "List[Definition]" = []
        for file, content in self._contents(only):
            if last.encode() in content:
                names = set(_names_in(content))
                if last in names and names.union(re.split(r"[/.]", file)).issuperset(around):
                    found += self._in_file(file, wanted)
        return found

    def names(self, only: "Optional[str]" = None) -> "List[str]":
        """The names of functions and classes, in one file or as far as there is time."""
        return list(dict.fromkeys(name for _, content in self._contents(only) for name in _names_in(content)))

    def _contents(self, only: "Optional[str]") -> "Iterator[Tuple[str, bytes]]":
        """The files to look into, those near the root first, until there is no time left."""
        until = _monotonic() + SECONDS_OF_SEARCH
        for file in [only] if only else python_files(self.root, until=until):
            if file not in self.ignored and _monotonic() <= until:
                with contextlib.suppress(OSError), open(os.path.join(self.root, file), "rb") as opened:
                    yield file, opened.read(LARGEST_FILE_READ)
        if _monotonic() > until:
            self.finished = False

    def _in_file(self, file: str, wanted: str) -> "List[Definition]":
        try:
            source = Source(os.path.join(self.root, file))
        except (OSError, SyntaxError, ValueError, RecursionError):
            return []
        module = re.sub(r"(/__init__)?\.py\Z", "", file).replace("/", ".")
        meant = [one for one in source.functions() if ("." + module + "." + one[0]).endswith("." + wanted)]
        overloads = [one for one in meant if _is_overload(one[1])]
        meant = [one for one in meant if one not in overloads] or meant
        return [made for name, node in meant for made in definitions(source, name, node, file)]


def _names_in(content: bytes) -> "List[str]":
    """The names of functions and classes in a source."""
    return _DEFINITION.findall(content.decode("utf-8", "replace"))


def _is_overload(node: "ast.AST") -> bool:
    """Whether a function only tells checkers of types how another one may be called."""
    decorators = getattr(node, "decorator_list", ())
    return any("overload" in (getattr(one, "attr", ""), getattr(one, "id", "")) for one in decorators)


def definitions(source: "Source", name: str, node: "ast.AST", file: str) -> "List[Definition]":
    """Where a breakpoint on a function belongs, or on a class, which may define its `__init__` more than once.

    Args:
        source: where it is
        name: its qualified name
        node: itself
        file: what the file is called
    """
    nodes = [node]
    if isinstance(node, ast.ClassDef):
        first, last = source.header(node), source.last_line(node)
        inits = [one for its, one in source.functions() if its == name + ".__init__"]
        nodes = [one for one in inits if first < first_line(one) <= last]
        if not nodes:
            return [Definition(file, name, None, None)]
    found = []
    for one in nodes:
        line, by_name = source.entered(one)
        found.append(Definition(file, name, line, str(getattr(one, "name", "")) if by_name else None))
    return found
