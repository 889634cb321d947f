"""Breakpoints that cost nothing: compiled into the program, before their statements.

The source of a file with breakpoints is compiled with a call of ours before each of their statements, its condition in
line. The call stops nowhere by itself: it has the line event that follows it looked at, so that a stop is one of a
trace function in every respect. What is compiled in has a line number of its own, by which steps and reports know it.
"""

import ast
import builtins
import gc
import importlib.machinery
import os
import sys
import types

from .channel import (
    _ORIGINAL_BUILTINS,
    OURS,
    OwnBuiltins,
    Room,
    _all_modules,
    _compile,
    _gettrace,
    _settrace,
)
from .statements import NOWHERE, SCOPES, Statements, line_starts, parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, List, Optional, Set, Tuple

    Placed = Dict[int, Optional[str]]

HOOK = "__debug_gym_reached__"
"""Name of our function among the builtins."""

HELD, RAISED = 1, 2
"""What was found out before our function is called: its condition held, or raised."""

FUTURE = 0
for _feature in __import__("__future__").all_feature_names:
    FUTURE |= getattr(__import__("__future__"), _feature).compiler_flag

NOT_INLINE = (*SCOPES, ast.Yield, ast.YieldFrom, ast.Await, *([ast.NamedExpr] if hasattr(ast, "NamedExpr") else []))
LOOKED_UP = frozenset(["super", "__class__", "locals", "vars", "dir", "eval", "exec"])
"""Names whose meaning depends on where an expression stands."""


class Untraced:
    """What the program calls for us is no code of its own to step into."""

    def __enter__(self) -> None:
        """Stop tracing."""
        self._tracer = _gettrace()
        if self._tracer is not None:
            _settrace(None)

    def __exit__(self, *error: "Any") -> None:
        """Go on tracing."""
        if self._tracer is not None:
            _settrace(self._tracer)


class Instrument:
    """Compiles breakpoints into files that the program loads.

    A line is ours when every code object that the program has of it was compiled with our call before it.

    Attributes:
        has_conditions: whether conditions were compiled in
        started: whether any code of the program has run
    """

    def __init__(
        self,
        reached: "Callable[[FrameType, int, int], None]",
        lost: "Callable[[str], None]",
        canonic: "Callable[[str], str]",
    ) -> None:
        """Call `reached` with frame, line and outcome of the condition; `lost` with a file where a call is missing."""
        self._reached = reached
        self._lost = lost
        self._canonic = canonic
        self._wanted: "Dict[str, Placed]" = {}
        self._statements: "Dict[str, Tuple[Any, Optional[Statements]]]" = {}
        self._placed: "Dict[str, List[Placed]]" = {}
        self._plain: "Set[str]" = set()
        self._pending: "Set[str]" = set()
        self._installed = False
        self.has_conditions = self.started = False

    # ---- which breakpoints

    def statements(self, file: str) -> "Optional[Statements]":
        """The statements of a file as it is now; None: it is not Python."""
        try:
            status = os.stat(file)
            stamp: "Any" = (status.st_mtime_ns, status.st_size)
        except OSError:
            stamp = None
        known = self._statements.get(file)
        if known is None or known[0] != stamp:
            known = self._statements[file] = (stamp, self._parse(file) if stamp else None)
        return known[1]

    @staticmethod
    def _parse(file: str) -> "Optional[Statements]":
        try:
            with open(file, "rb") as stream:
                return Statements.parse(stream.read(), file)
        except OSError:
            return None

    def watch(self, breaks: "Dict[str, Dict[int, Placed]]") -> "Dict[str, Set[int]]":
        """Find these breakpoints from now on, as far as that is possible.

        Args:
            breaks: by canonical file name, then by line of the breakpoint, the lines where our call would stand and
                the condition there; empty: a stop is not safe here

        Returns:
            by file, those breakpoints that are found
        """
        self._adopt()
        if not self._installed:
            self._pending.clear()  # they may have been loaded since, unseen
        found: "Dict[str, Set[int]]" = {}
        self._wanted = {}
        for file, lines in breaks.items():
            known = self._generations(file)
            ours = found[file] = set()
            wanted = self._wanted[file] = {}
            for line, places in lines.items():
                if places and all(_fits(one, places) for one in known):
                    ours.add(line)
                    wanted.update(places)
        if any(self._wanted.values()):
            self._install()
        return found

    def _generations(self, file: str) -> "List[Placed]":
        """What was compiled into the code that the program has of a file."""
        known = self._placed.get(file, [])
        if file not in self._plain and file not in self._pending and not known:
            (self._plain if self._is_loaded(file) else self._pending).add(file)
        return [{}, *known] if file in self._plain else known

    def _is_loaded(self, file: str) -> bool:
        """Whether the program has code of a file that was not compiled by us."""
        base = os.path.basename(file)

        def same(name: "Any") -> bool:
            return type(name) is str and os.path.basename(name) == base and self._canonic(name) == file

        for known, module in _all_modules():
            if known == "__main__" and not self.started:
                continue  # names the file that will be run
            if issubclass(type(module), types.ModuleType):
                attributes = vars(types.ModuleType)["__dict__"].__get__(module)
                if type(attributes) is dict and same(attributes.get("__file__")):
                    return True
        if not self.started:
            return False
        for top in list(sys._current_frames().values()):
            frame: "Optional[FrameType]" = top
            while frame is not None:
                if same(frame.f_code.co_filename):
                    return True
                frame = frame.f_back
        functions = (one for one in gc.get_objects() if type(one) is types.FunctionType)
        return any(same(one.__code__.co_filename) for one in functions)

    # ---- into the program

    def _install(self) -> None:
        if self._installed:
            return
        self._installed = True
        setattr(builtins, HOOK, self._make_hook())
        builtins.compile = self._make_compile()
        _ORIGINAL_BUILTINS["compile"] = builtins.compile
        loader = importlib.machinery.SourceFileLoader
        original = loader.get_code

        def get_code(self_: "Any", fullname: str) -> "Any":
            with Untraced():
                self._adopt()
                path = self_.get_filename(fullname)
                file = self._canonic(path)
            if self._wanted.get(file):
                return self_.source_to_code(self_.get_data(path), path)
            code = original(self_, fullname)
            self._loaded(file)
            return code

        loader.get_code = get_code  # type: ignore[method-assign, assignment]

    def _adopt(self) -> None:
        """Have pytest compile the files that have breakpoints, whatever it has in its cache."""
        rewrite = sys.modules.get("_pytest.assertion.rewrite")
        if not self._installed or rewrite is None or getattr(rewrite, "__debug_gym__", False):
            return
        read, write = getattr(rewrite, "_read_pyc", None), getattr(rewrite, "_write_pyc", None)
        if read is None or write is None:  # it is still being imported
            return

        def read_pyc(source: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            file = self._canonic(os.fspath(source) if hasattr(source, "__fspath__") else str(source))
            if self._wanted.get(file):
                return None
            code = read(source, *args, **kwargs)
            if code is not None:
                self._loaded(file)
            return code

        def write_pyc(state: "Any", code: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            if self._placed.get(self._canonic(code.co_filename)):
                return False
            return write(state, code, *args, **kwargs)

        rewrite._read_pyc, rewrite._write_pyc = read_pyc, write_pyc  # type: ignore[attr-defined]
        rewrite.__debug_gym__ = True  # type: ignore[attr-defined]

    def _loaded(self, file: str) -> None:
        """Code of a file was loaded that nothing was compiled into."""
        self._pending.discard(file)
        self._plain.add(file)

    def _make_hook(self) -> "Callable[..., None]":
        reached, getframe = self._reached, sys._getframe

        def hook(line: int, outcome: int = 0) -> None:
            frame = getframe(1)
            try:
                reached(frame, line, outcome)
            except RecursionError:
                with Room():
                    reached(frame, line, outcome)

        return hook

    def _make_compile(self) -> "Callable[..., Any]":
        def compile(
            source: "Any",
            filename: "Any",
            mode: str,
            flags: int = 0,
            dont_inherit: bool = False,
            optimize: int = -1,
            **options: "Any",
        ) -> "Any":
            if not dont_inherit:
                flags |= sys._getframe(1).f_code.co_flags & FUTURE
            if mode == "exec" and not flags & ast.PyCF_ONLY_AST and not options:
                with Untraced():
                    self._adopt()
                    file = self._file(filename)
                    placed = self._wanted.get(file)
                    if placed:
                        with OwnBuiltins():
                            return self._compiled(source, filename, file, placed, flags, optimize)
                    if file:
                        self._loaded(file)
            return _compile(source, filename, mode, flags, True, optimize, **options)

        compile.__doc__ = _compile.__doc__
        return compile

    def _file(self, filename: "Any") -> str:
        """The canonical name of a file that is compiled; empty: it is none."""
        try:
            name = os.fsdecode(filename)
        except TypeError:
            return ""
        return "" if name[:1] == "<" or "\0" in name else self._canonic(name)

    def _compiled(
        self, source: "Any", filename: "Any", file: str, placed: "Placed", flags: int, optimize: int
    ) -> "Any":
        if isinstance(source, ast.AST):
            tree: "Any" = source
        else:
            tree = parsed(source, filename, "exec", flags, optimize)
        done = insert(tree, placed)
        self.has_conditions = self.has_conditions or any(done.values())
        try:
            code = _compile(tree, filename, "exec", flags, True, optimize)
        except (SyntaxError, ValueError, RecursionError):  # such as a name that is declared global further down
            self._loaded(file)
            self._lost(file)
            return (
                _compile(source, filename, "exec", flags, True, optimize)
                if source is not tree
                else self._without(tree, filename, flags, optimize)
            )
        self._pending.discard(file)
        self._placed.setdefault(file, []).append(done)
        if any(line not in done for line in placed):
            self._lost(file)
        return code

    @staticmethod
    def _without(tree: "Any", filename: "Any", flags: int, optimize: int) -> "Any":
        """A tree that we were given, without what was put into it."""
        for node in ast.walk(tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    block[:] = [one for one in block if not getattr(one, HOOK, False)]
        return _compile(tree, filename, "exec", flags, True, optimize)


def _fits(compiled: "Placed", wanted: "Placed") -> bool:
    """Whether what was compiled in finds a breakpoint: at every place, under no other condition than its own."""
    return all(line in compiled and compiled[line] in (None, condition) for line, condition in wanted.items())


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
                visit(one)
                result.append(one)
            block[:] = result

    visit(tree)
    return done


def _header(node: "Any") -> int:
    return getattr(node, "lineno", 0)


def _call(line: int, condition: "Optional[str]") -> ast.stmt:
    """Our call for a line."""
    made: "Any"
    if condition is None:
        made = parsed("{}({})".format(HOOK, line), OURS).body[0]
    else:
        text = "try:\n if 0: {0}({1}, {2})\nexcept Exception: {0}({1}, {3})".format(HOOK, line, HELD, RAISED)
        made = parsed(text, OURS).body[0]
        made.body[0].test = parsed(condition.strip(), OURS, "eval").body
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
    """Names that an expression in the innermost function would get from the functions around it."""
    found: "Set[str]" = set()
    for scope in scopes[:-1]:
        if not isinstance(scope, ast.ClassDef):
            found |= _bound(scope)
    return found - _bound(scopes[-1]) if found else found


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


def real_line(frame: "FrameType", line: int) -> int:
    """The line of the statement that a frame is before, when it is in what we have compiled in."""
    if line != NOWHERE:
        return line
    starts = (number for offset, number in line_starts(frame.f_code) if offset > frame.f_lasti and number != NOWHERE)
    return next(starts, line)


def first_real_line(code: "types.CodeType") -> int:
    """The first line of a function that is executed, when it is called, but for what we have compiled in."""
    lines = [line for _, line in line_starts(code) if line != NOWHERE]
    return lines[1] if len(lines) > 1 else code.co_firstlineno
