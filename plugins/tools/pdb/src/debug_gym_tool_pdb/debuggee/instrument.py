"""Breakpoints that cost nothing: compiled into the program, before their statements.

The source of a file with breakpoints is compiled with a call of ours before each of their statements, its condition in
line. The call stops nowhere by itself: it has the line event that follows it looked at, so that a stop is one of a
trace function in every respect. What is compiled in has a line number of its own, by which steps and reports know it.
"""

import ast
import builtins
import contextlib
import gc
import importlib.machinery
import os
import sys
import types

from debug_gym_core.debugging.inside.process import _current_frames, _get_ident, _getframe, _settrace

from .channel import _ORIGINAL_BUILTINS, OwnBuiltins, Room, _all_modules, _compile, _gettrace
from .insertion import insert, without
from .modules import is_file_of_frozen
from .own_frames import disguised
from .statements import parsed
from .unseen import HOOK, without_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable, Dict, List, Optional, Set

    from .insertion import Placed

FUTURE = 0
for _feature in __import__("__future__").all_feature_names:
    FUTURE |= getattr(__import__("__future__"), _feature).compiler_flag


_LOADER = importlib.machinery.SourceFileLoader
_SOURCE_TO_CODE = _LOADER.source_to_code.__code__

UNTRACED: "Set[int]" = set()
"""Threads that are in a call for us, which `sys.monitoring` does not leave out."""


class Untraced:
    """What the program calls for us is no code of its own to step into, or to stop in."""

    def __enter__(self) -> None:
        """Stop tracing."""
        self._tracer = _gettrace()
        if self._tracer is not None:
            _settrace(None)
        self._nested = _get_ident() in UNTRACED
        UNTRACED.add(_get_ident())

    def __exit__(self, *error: "Any") -> None:
        """Go on tracing."""
        if not self._nested:
            UNTRACED.discard(_get_ident())
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
        self._placed: "Dict[str, List[Placed]]" = {}
        self._plain: "Set[str]" = set()
        self._pending: "Set[str]" = set()
        self._installed = False
        self._loading: "Set[int]" = set()
        self.has_conditions = self.started = False

    # ---- which breakpoints

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
            (self._plain if is_file_of_frozen(file) or self._is_loaded(file) else self._pending).add(file)
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
        for top in list(_current_frames().values()):
            frame: "Optional[FrameType]" = top
            while frame is not None:
                if same(frame.f_code.co_filename):
                    return True
                frame = frame.f_back
        functions = (one for one in gc.get_objects() if type(one) is types.FunctionType)
        return any(same(one.__code__.co_filename) for one in functions)

    def end(self) -> None:
        """Let our calls do nothing in functions: what they call is gone before the last finalizers run."""
        if self._installed:
            for one in gc.get_objects():
                if type(one) is types.FunctionType and HOOK in one.__code__.co_names:
                    one.__code__ = _deaf(one.__code__)

    # ---- into the program

    def _install(self) -> None:
        if self._installed:
            return
        self._installed = True
        setattr(builtins, HOOK, self._make_hook())
        builtins.compile = self._make_compile()
        _ORIGINAL_BUILTINS["compile"] = builtins.compile
        original = _LOADER.get_code

        def load(self_: "Any", fullname: str) -> "Any":
            with Untraced():
                self._adopt()
                path = self_.get_filename(fullname)
                file = self._canonic(path)
            if self._wanted.get(file):
                source, ident = self_.get_data(path), _get_ident()
                self._loading.add(ident)
                try:
                    return self_.source_to_code(source, path)
                finally:
                    self._loading.discard(ident)
            code = original(self_, fullname)
            self._loaded(file)
            return code

        _LOADER.get_code = disguised(load)  # type: ignore[method-assign, assignment]

    def _adopt(self) -> None:
        """Have pytest compile the files that have breakpoints, whatever it has in its cache."""
        rewrite = sys.modules.get("_pytest.assertion.rewrite")
        if not self._installed or rewrite is None or getattr(rewrite, "__debug_gym__", False):
            return
        read, write = getattr(rewrite, "_read_pyc", None), getattr(rewrite, "_write_pyc", None)
        if read is None or write is None:  # it is still being imported
            return

        def read_pyc(source: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            with Untraced():
                file = self._canonic(os.fspath(source) if hasattr(source, "__fspath__") else str(source))
            if self._wanted.get(file):
                return None
            code = read(source, *args, **kwargs)
            if code is not None:
                self._loaded(file)
            return code

        def write_pyc(state: "Any", code: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            with Untraced():
                file = self._canonic(code.co_filename)
            if self._placed.get(file):
                return False
            return write(state, code, *args, **kwargs)

        rewrite._read_pyc, rewrite._write_pyc = read_pyc, write_pyc  # type: ignore[attr-defined]
        rewrite.__debug_gym__ = True  # type: ignore[attr-defined]

    def _loaded(self, file: str) -> None:
        """Code of a file was loaded that nothing was compiled into."""
        self._pending.discard(file)
        self._plain.add(file)

    def _make_hook(self) -> "Callable[..., None]":
        reached, getframe = self._reached, _getframe

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
                flags |= _getframe(1).f_code.co_flags & FUTURE
            if mode == "exec" and not flags & ast.PyCF_ONLY_AST and not options:
                with Untraced():
                    self._adopt()
                    file = self._file(filename)
                    placed = self._wanted.get(file)
                    if placed and self._is_for_a_file(_getframe(1)):
                        return _compile(source, filename, mode, flags, True, optimize)
                    if placed:
                        with OwnBuiltins():
                            return self._compiled(source, filename, file, placed, flags, optimize)
                    if file:
                        self._loaded(file)
            return _compile(source, filename, mode, flags, True, optimize, **options)

        compile.__doc__ = _compile.__doc__
        return compile

    def _is_for_a_file(self, caller: "Optional[FrameType]") -> bool:
        """Whether what is compiled is not run here: `py_compile` writes it to disk, where later runs find it."""
        for _ in range(2):  # between the two stands what has its frames removed
            if caller is not None and caller.f_code is _SOURCE_TO_CODE:
                ours = getattr(type(caller.f_locals.get("self")), "get_code", None) is _LOADER.get_code
                return ours and _get_ident() not in self._loading
            caller = caller.f_back if caller is not None else None
        return False

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
        code = None
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):  # as a name declared global further down
            code = _compile(tree, filename, "exec", flags, True, optimize)
        if code is None:  # an error of the program's own is raised again, and is not one that came of another
            self._loaded(file)
            self._lost(file)
            return _compile(source if source is not tree else without(tree), filename, "exec", flags, True, optimize)
        if done:
            code = without_lines(code)
        self._pending.discard(file)
        self._placed.setdefault(file, []).append(done)
        if any(line not in done for line in placed):
            self._lost(file)
        return code


def _fits(compiled: "Placed", wanted: "Placed") -> bool:
    """Whether what was compiled in finds a breakpoint: at every place, under no other condition than its own."""
    return all(line in compiled and compiled[line] in (None, condition) for line, condition in wanted.items())


def _deaf(code: "CodeType") -> "CodeType":
    """The same code, which calls a function that does nothing in the place of ours."""
    names = tuple("range" if name == HOOK else name for name in code.co_names)
    if sys.version_info >= (3, 8):
        return code.replace(co_names=names)
    counts = (code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize, code.co_flags)
    place = (code.co_filename, code.co_name, code.co_firstlineno, code.co_lnotab)
    variables = (code.co_varnames, *place, code.co_freevars, code.co_cellvars)
    return types.CodeType(*counts, code.co_code, code.co_consts, names, *variables)
