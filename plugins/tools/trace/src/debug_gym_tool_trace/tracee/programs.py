"""Runs what is asked for as `python target` would."""

import builtins
import importlib.machinery
import importlib.util
import linecache
import os
import runpy
import sys
import types

from .channel import LOADED_AT_START

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

_BUILTIN_MODULES = frozenset(sys.builtin_module_names)


class BadTarget(Exception):
    """What should be run is not there, or is not Python."""


class Program:
    """A program, which `find` looks for and `run` runs.

    Attributes:
        namespace: globals of its `__main__`
    """

    def __init__(self, target: str, args: "List[str]") -> None:
        """Become a program.

        Args:
            target: a path, a module's name, or code
            args: its arguments

        Raises:
            BadTarget: it is not there, or is not Python
        """
        self.target = target
        self.args = args
        module = types.ModuleType("__main__")
        self.namespace: "Dict[str, Any]" = module.__dict__
        self.namespace["__builtins__"] = builtins
        self._replaced = sys.modules["__main__"]  # kept: the interpreter clears a module that nobody holds
        sys.modules["__main__"] = module
        self.find()

    def find(self) -> None:
        """Look for it, without running any of it, and give it its place in `sys`."""
        raise NotImplementedError

    def run(self) -> int:
        """Run it to its end; returns its exit status."""
        raise NotImplementedError

    def become(self, name: str) -> None:
        """Make the program's arguments those of the process."""
        sys.argv[:] = [name, *self.args]

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
            if top in LOADED_AT_START or top in _BUILTIN_MODULES:
                continue
            package = os.path.join(directory, top, "__init__.py")
            if top + ".py" in entries or (top in entries and os.path.isfile(package)):
                del sys.modules[name]


class Script(Program):
    """`python file.py arguments`."""

    def find(self) -> None:
        """See Program."""
        if not os.path.isfile(self.target):
            what = "{} is a directory, not a Python file" if os.path.isdir(self.target) else "there is no file {}"
            raise BadTarget(what.format(self.target))
        path = os.path.join(os.getcwd(), self.target)
        try:
            with open(path, "rb") as file:
                source = file.read()
            name = path if sys.version_info >= (3, 9) else self.target
            self._code = compile(source, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise BadTarget("{} is not Python: {}".format(self.target, error)) from None
        except OSError as error:
            raise BadTarget("{} cannot be read: {}".format(self.target, error.strerror)) from None
        self.become(self.target)
        self.put_first(os.path.dirname(os.path.realpath(path)))
        loader = importlib.machinery.SourceFileLoader("__main__", path)
        self.namespace.update(__file__=name, __cached__=None, __loader__=loader, __package__=None, __spec__=None)

    def run(self) -> int:
        """See Program."""
        exec(self._code, self.namespace)
        return 0


class Code(Program):
    """`python -c code arguments`."""

    def find(self) -> None:
        """See Program."""
        try:
            self._code = compile(self.target, "<string>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise BadTarget("the code is not Python: {}".format(error)) from None
        lines = [line + "\n" for line in self.target.split("\n")]
        linecache.cache["<string>"] = (len(self.target), None, lines, "<string>")
        self.become("-c")
        self.put_first("")
        self.namespace.update(__loader__=importlib.machinery.BuiltinImporter, __package__=None, __spec__=None)

    def run(self) -> int:
        """See Program."""
        exec(self._code, self.namespace)
        return 0


class Module(Program):
    """`python -m module arguments`."""

    def find(self) -> None:
        """See Program."""
        self.put_first(os.getcwd() if sys.version_info >= (3, 7) else "")
        self.become("-m")
        top = self.target.partition(".")[0]
        try:
            found = importlib.util.find_spec(top)
        except (ImportError, ValueError, AttributeError):
            found = None
        if found is None:
            raise BadTarget("there is no module {}".format(top))

    def run(self) -> int:
        """See Program.

        Raises:
            BadTarget: the module cannot be run
        """
        try:
            _, spec, code = runpy._get_module_details(self.target)  # type: ignore[attr-defined]
        except ImportError as error:
            raise BadTarget("{} cannot be run: {}".format(self.target, error)) from None
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
