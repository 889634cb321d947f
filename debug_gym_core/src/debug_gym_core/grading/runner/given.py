"""Loads test modules as they were before any tested code ran, whatever became of their files and of the importer.

They are compiled first of all. So it helps nobody to change how Python reads, parses, caches or finds modules, or to
write to a test and restore it.
"""

import contextlib
import os
import sys
import warnings
from importlib.machinery import PathFinder, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any, Union

    Compile = Callable[[bytes, str], CodeType]

_compile = compile
_execute = exec
_modules = sys.modules
_meta_path = sys.meta_path
_find = PathFinder.find_spec
_resolve = os.path.realpath


class Finder(object):
    """Stands first in `sys.meta_path` and finds the modules of which the code is there already.

    Args:
        loaded: is told of each module when it has run, before anybody else has it
    """

    def __init__(self, loaded: "Callable[[Any], object]" = id) -> None:
        self.loaded = loaded
        self.codes = {}  # type: dict[str, CodeType]
        self.texts = {}  # type: dict[str, bytes]
        self.names = set()  # type: set[str]
        self.before = {}  # type: dict[int, ModuleType]
        self.made = {}  # type: dict[int, Any]

    def add(self, root: str, path: str, text: bytes, compiled: "Compile") -> None:
        """Compile a module; one that cannot be is loaded as it is, and fails as it does.

        Args:
            root: of the repository
            path: of the module in it
            text: of the module
            compiled: makes code of a text and the path that it is to have
        """
        place = os.path.join(root, path)
        self.names.add(_name(path))
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            self.codes[_resolve(place)] = compiled(text, place)

    def add_given(self, root: str, given: "Mapping[str, Sequence[str]]", compiled: "Compile") -> None:
        """Take modules as they are now.

        Args:
            root: of the repository
            given: paths of the modules in it: `tests` are compiled, `helpers` when they are imported
            compiled: makes code of a text and a path
        """
        for path in given["helpers"]:
            place = os.path.join(root, path)
            self.names.add(_name(path))
            with open(place, "rb") as file:
                self.texts[_resolve(place)] = file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What Python warns of when it compiles is for when it is loaded.
            for path in given["tests"]:
                with open(os.path.join(root, path), "rb") as file:
                    self.add(root, path, file.read(), compiled)

    def install(self) -> None:
        """Let modules be found here, before any other finder that is there; may be called again."""
        self.before = self.before or {id(one): one for one in list(_modules.values())}
        _meta_path[:] = [self] + [one for one in _meta_path if one is not self]

    def find_spec(
        self, name: str, path: "Union[Sequence[str], None]" = None, target: "Union[ModuleType, None]" = None
    ) -> "Union[ModuleSpec, None]":
        """Find a module, as every finder does; None: it is none of ours."""
        if name.rpartition(".")[2] not in self.names:
            return None  # Of thousands that are imported hardly one is a test.
        spec = _find(name, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or not spec.origin:
            return None
        code = self.code_of(spec.origin)
        if code is None:
            return None
        spec.loader = Loader(name, spec.origin, self, code)
        spec.cached = None
        return spec

    def code_of(self, origin: str) -> "Union[CodeType, None]":
        """The code of a module by its file; None: it is none of ours, or none can be made of it."""
        path = _resolve(origin)
        text = self.texts.pop(path, None)
        if text is not None:
            with contextlib.suppress(SyntaxError, ValueError, RecursionError):
                self.codes[path] = _compile(text, origin, "exec", 0, True)
        return self.codes.get(path)

    def enter(self, module: "Any") -> None:
        """Learn that a module begins to run."""
        self.made[id(module)] = module

    def forget_others(self, path: str) -> None:
        """Have a module be imported anew that says it is of a file and was not loaded here.

        Args:
            path: of the file
        """
        path = _resolve(path)
        if path not in self.codes:
            return
        end = os.path.basename(path)
        for name, module in list(_modules.items()):
            file = getattr(module, "__file__", None) if type(module) is type(sys) else None
            if not self.is_genuine(module) and type(file) is str and file.endswith(end) and _resolve(file) == path:
                del _modules[name]

    def is_genuine(self, module: "Any") -> bool:
        """Whether a module was loaded here, or before any tested code ran."""
        return self.made.get(id(module)) is module or self.before.get(id(module)) is module

    def stands_for_other(self, root: str, name: str, module: "Any") -> bool:
        """Whether a module that tests are of should have been loaded here, by its name or its file, and was not.

        Args:
            root: of the repository
            name: of the module
            module: what has the name
        """
        inside = os.path.join(*name.split(".")) + ".py"
        file = getattr(module, "__file__", None)
        if type(file) is str:
            return self.is_other(file, module) or self.is_other(os.path.join(root, inside), module)
        return any(one.endswith(os.sep + inside) and self.is_other(one, module) for one in self.codes)

    def is_other(self, path: str, module: "Any") -> bool:
        """Whether a module should have been loaded here, and was not.

        Args:
            path: of its file
            module: what there is instead
        """
        return module is not None and _resolve(path) in self.codes and not self.is_genuine(module)


class Loader(SourceFileLoader):
    """Loads one."""

    def __init__(self, name: str, path: str, finder: Finder, code: "CodeType") -> None:
        SourceFileLoader.__init__(self, name, path)
        self.finder = finder
        self.code = code

    def get_code(self, fullname: str) -> "Union[CodeType, None]":
        """The module's code."""
        return self.code

    def exec_module(self, module: "Any") -> None:
        """Run the module."""
        self.finder.enter(module)
        _execute(self.code, vars(module))
        self.finder.loaded(module)
        replaced = _modules.get(self.name)
        if replaced is not None:  # By itself, as modules do that are objects of their own.
            self.finder.made[id(replaced)] = replaced


def _name(path: str) -> str:
    """What a module is called, without the packages that it is in."""
    stem = os.path.basename(path).partition(".")[0]
    return os.path.basename(os.path.dirname(path)) if stem == "__init__" else stem


def plainly(text: bytes, path: str) -> "CodeType":
    """Compile a module as Python does."""
    return compile(text, path, "exec", dont_inherit=True)


def rewritten(config: "Any") -> "Compile":
    """What compiles a module as pytest does.

    Args:
        config: pytest's, early
    """
    import ast

    from _pytest.assertion import rewrite

    if not any(type(one) is rewrite.AssertionRewritingHook for one in sys.meta_path):
        return plainly

    def compiled(text: bytes, path: str) -> "CodeType":
        tree = ast.parse(text, path)
        rewrite.rewrite_asserts(tree, text, path, config)
        return compile(tree, path, "exec", dont_inherit=True)

    return compiled
