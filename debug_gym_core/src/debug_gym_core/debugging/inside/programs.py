"""Runs what is debugged as `python target` would."""

import ast
import builtins
import importlib.machinery
import importlib.util
import linecache
import os
import runpy
import sys
import types

from debug_gym_core.debugging.inside.process import LOADED_AT_START
from debug_gym_core.debugging.inside.quiet import Quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

BUILTIN_MODULES = frozenset(sys.builtin_module_names)


class BadTarget(Exception):
    """What should be debugged is not there, or is not Python."""


class Program:
    """What is debugged.

    Attributes:
        filename: file of its first line
        first_line: number of that line
        namespace: globals of `__main__`
        option: Python's option for it, empty for a file
        steppable: whether stepping can start at the first line
        uses_unittest: whether it may run tests of unittest
    """

    option = ""
    steppable = True
    uses_unittest = False

    def __init__(self, target: str, args: "List[str]") -> None:
        """Look for the target, without running or importing any of it.

        Raises:
            BadTarget: it is not there, or is not Python
        """
        self.target = target
        self.args = args
        self.first_line = 1
        self.filename = self.find()
        self.become()

    def find(self) -> str:
        """The file that is run."""
        raise NotImplementedError

    def run(self) -> int:
        """Run it to its end; returns its exit status."""
        raise NotImplementedError

    def become(self) -> None:
        """Make `__main__`, `sys.argv` and `sys.orig_argv` the program's."""
        # Both are kept: the interpreter clears a module that nobody holds at once, and one that is held at the end.
        self._module = types.ModuleType("__main__")
        self._replaced = sys.modules["__main__"]
        self.namespace = self._module.__dict__
        self.namespace["__builtins__"] = builtins
        if sys.version_info < (3, 14):  # as that of every interpreter has
            self.namespace["__annotations__"] = {}
        sys.modules["__main__"] = self._module
        if hasattr(sys, "orig_argv"):  # ours ends with `-c`, code, arguments
            own = [self.option, self.target] if self.option else [self.target]
            sys.orig_argv[-1 - len(sys.argv) :] = [*own, *self.args]
        sys.argv[:] = [self.filename, *self.args]

    def release(self) -> None:
        """Hold nothing of it any more: at its end Python finalizes what nobody holds while its globals are there."""
        del self._module
        self.namespace = {}

    def put_first(self, directory: str) -> None:
        """Make a directory the first entry of `sys.path`, as Python does at the start.

        Modules that we loaded from the standard library make way for ones of the same name in there.
        """
        if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
            return
        sys.path.insert(0, directory)
        try:
            entries = set(os.listdir(directory or "."))
        except OSError:
            return
        for name in list(sys.modules):
            top = name.partition(".")[0]
            if top in LOADED_AT_START or top in BUILTIN_MODULES:
                continue
            if top + ".py" in entries or (
                top in entries and os.path.isfile(os.path.join(directory, top, "__init__.py"))
            ):
                del sys.modules[name]


class Script(Program):
    """`python file.py arguments`."""

    def find(self) -> str:
        """See Program."""
        if os.path.isdir(self.target):
            raise BadTarget("{} is a directory, not a Python file".format(self.target))
        if not os.path.isfile(self.target):
            raise BadTarget("there is no file {}".format(self.target))
        path = os.path.join(os.getcwd(), self.target)
        try:
            with open(path, "rb") as file:
                self.source = file.read()
            tree = _tree(self.source, path)
        except (SyntaxError, ValueError) as error:
            import zipfile

            if zipfile.is_zipfile(path):
                raise BadTarget("{} is a zip archive, not a Python file".format(self.target)) from None
            raise BadTarget("{} is not Python: {}".format(self.target, error)) from None
        except OSError as error:
            raise BadTarget("{} cannot be read: {}".format(self.target, error.strerror)) from None
        self.first_line = _first_line(tree)
        self.uses_unittest = b"unittest" in self.source
        return path

    def become(self) -> None:
        """See Program."""
        super().become()
        sys.argv[0] = self.target
        self.put_first(os.path.dirname(os.path.realpath(self.filename)))
        loader = importlib.machinery.SourceFileLoader("__main__", self.filename)
        name = self.filename if sys.version_info >= (3, 9) else self.target
        self.namespace.update(__file__=name, __cached__=None, __loader__=loader, __package__=None, __spec__=None)

    def run(self) -> int:
        """See Program."""
        exec(builtins.compile(self.source, self.namespace["__file__"], "exec", dont_inherit=True), self.namespace)
        return 0


class Code(Program):
    """`python -c code arguments`."""

    option = "-c"

    def find(self) -> str:
        """See Program."""
        try:
            tree = _tree(self.target, "<string>")
        except (SyntaxError, ValueError) as error:
            raise BadTarget("the code is not Python: {}".format(error)) from None
        self.first_line = _first_line(tree)
        lines = [line + "\n" for line in self.target.split("\n")]
        linecache.cache["<string>"] = (len(self.target), None, lines, "<string>")
        return "<string>"

    def become(self) -> None:
        """See Program."""
        super().become()
        sys.argv[0] = "-c"
        self.put_first("")
        self.namespace.update(__loader__=importlib.machinery.BuiltinImporter, __package__=None, __spec__=None)

    def run(self) -> int:
        """See Program."""
        exec(compile(self.target, self.filename, "exec", dont_inherit=True), self.namespace)
        return 0


class Module(Program):
    """`python -m module arguments`."""

    option = "-m"

    def find(self) -> str:
        """See Program."""
        self.uses_unittest = self.target == "unittest"
        self.steppable = self.steppable and not self.uses_unittest
        self.put_first(os.getcwd() if sys.version_info >= (3, 7) else "")
        parts = self.target.split(".")
        try:
            spec = importlib.util.find_spec(parts[0])
        except (ImportError, ValueError, AttributeError):
            spec = None
        for depth in range(1, len(parts)):
            if spec is None:
                break
            spec = self._inside(spec, ".".join(parts[: depth + 1]))
        if spec is None:
            raise BadTarget("there is no module {}".format(self.target))
        if spec.submodule_search_locations is not None:
            spec = self._inside(spec, self.target + ".__main__")
            if spec is None:
                raise BadTarget("{} is a package without __main__, it cannot be run".format(self.target))
        if not spec.origin or not spec.has_location:
            raise BadTarget("{} is not a module in Python source".format(self.target))
        if spec.origin.endswith(".py"):
            try:
                with open(spec.origin, "rb") as file:
                    tree = _tree(file.read(), spec.origin)
            except (SyntaxError, ValueError) as error:
                raise BadTarget("{} is not Python: {}".format(self.target, error)) from None
            except OSError as error:
                raise BadTarget("{} cannot be read: {}".format(self.target, error.strerror)) from None
            self.first_line = _first_line(tree)
        return spec.origin

    @staticmethod
    def _inside(spec: "importlib.machinery.ModuleSpec", name: str) -> "Optional[importlib.machinery.ModuleSpec]":
        """Find a module of a package without importing the package."""
        if spec.submodule_search_locations is None:
            return None
        # `find_spec` would ask the parent, which is not imported, for the places of a package without `__init__.py`.
        found = importlib.machinery.PathFinder._get_spec(  # type: ignore[attr-defined]
            name, list(spec.submodule_search_locations)
        )
        there = found is not None and (found.loader is not None or found.submodule_search_locations)
        return found if there else None

    def run(self) -> int:
        """See Program."""
        sys.argv[0] = "-m"
        _, spec, code = runpy._get_module_details(self.target)  # type: ignore[attr-defined]
        sys.argv[0] = spec.origin
        self.namespace.update(
            __file__=spec.origin,
            __cached__=spec.cached,
            __loader__=spec.loader,
            __package__=spec.parent,
            __spec__=spec,
        )
        exec(code, self.namespace)
        return 0


def make_program(kind: str, target: str, args: "List[str]") -> Program:
    """The program that an entrypoint starts.

    Args:
        kind: `script`, `code` or `module`
        target: the script's path, the code, or the module's name
        args: the program's arguments

    Raises:
        BadTarget: there is none that can be debugged; says why
    """
    return {"script": Script, "code": Code, "module": Module}[kind](target, args)


def _tree(source: "Any", filename: str) -> ast.AST:
    """The tree of what is run later."""
    with Quiet():
        return compile(source, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)


def _first_line(tree: "Any") -> int:
    """The number of a program's first line with code."""
    return int(tree.body[0].lineno) if tree.body else 1
