"""Loads test modules as they were before any tested code ran, whatever became of their files and of the importer.

They are read first of all, and compiled before code of the repository runs. So it helps nobody to change how Python
reads, parses, caches or finds modules, or to write to a test and restore it.
"""

import builtins
import sys
import warnings
from importlib.machinery import PathFinder, SourceFileLoader
from types import ModuleType

from . import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ast import AST
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType
    from typing import Any, Union

    Compile = Callable[[bytes, str], CodeType]

_builtins = vars(builtins)
_execute = exec
_compile = compile  # type: Callable[..., Any]
_modules = sys.modules
_warned = vars(warnings)
_find = PathFinder.find_spec
_SILENT = ("ignore", None, Warning, None, 0)
_space = vars(ModuleType)["__dict__"].__get__  # a class of modules may have another `__dict__`


class Finder(object):
    """Stands first in `sys.meta_path` and finds the modules of which the code is there already.

    Attributes:
        codes: by real path
        asked: by the paths that they were compiled for, which may lead through links: a module's `__file__` is one
        before: modules that there were when it was made, by id
        made: modules that it loaded, and what they put in their own place, likewise
        names: of the modules, without their packages; what has another name is not looked for
        cleared: real paths of which other modules were forgotten already
    """

    def __init__(self) -> None:
        self.codes = {}  # type: dict[str, CodeType]
        self.asked = {}  # type: dict[str, CodeType]
        self.before = {id(one): one for one in list(_modules.values())}  # type: dict[int, ModuleType]
        self.made = {}  # type: dict[int, Any]
        self.names = set()  # type: set[str]
        self.cleared = set()  # type: set[str]

    def compile(self, texts: "Mapping[str, bytes]", compiled: "Compile") -> None:
        """Compile modules; one that cannot be is loaded as it is, and fails as it does.

        Args:
            texts: of modules by their absolute paths
            compiled: makes code of a text and a path
        """
        for path, text in texts.items():
            code = module_code(text, path, compiled)
            if code is not None:
                self.codes[files.real(path)] = self.asked[path] = code
                self.names.add(_stem(path))

    def install(self) -> None:
        """Let modules be found here, before any other finder that is there; may be called again."""
        sys.meta_path[:] = [self] + [one for one in sys.meta_path if one is not self]

    def find_spec(
        self, name: str, path: "Union[Sequence[str], None]" = None, target: "Union[ModuleType, None]" = None
    ) -> "Union[ModuleSpec, None]":
        """Find a module, as every finder does; None: it is none of ours."""
        if name.rpartition(".")[2] not in self.names:
            return None  # Of thousands that are imported hardly one is a test.
        spec = _find(name, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or not spec.origin:
            return None
        code = self.asked.get(spec.origin) or self.codes.get(files.real(spec.origin))
        if code is None:
            return None
        spec.loader = Loader(name, spec.origin, self, code)
        spec.cached = None
        return spec

    def remember(self, module: "Any") -> None:
        """Learn that a module was loaded here."""
        self.made[id(module)] = module

    def enter(self, module: "Any") -> None:
        """Learn that a module begins to run."""
        self.remember(module)

    def fail(self, module: "Any", path: str, error: Exception) -> None:
        """Learn that it raised.

        Args:
            module: it
            path: of its file
            error: what
        """

    def leave(self, module: "Any", path: str) -> None:
        """Learn that it has run, or raised.

        Args:
            module: it
            path: of its file
        """

    def forget_others(self, path: str) -> None:
        """Have a module be imported anew that says it is of a file and was not loaded here; once a file.

        Args:
            path: of the file
        """
        is_asked = path in self.asked
        path = files.real(path)
        if path in self.cleared or not (is_asked or path in self.codes):
            return
        self.cleared.add(path)
        end = files.split(path)[1]
        for name, module in list(_modules.items()):
            file = file_of(module)
            if file.endswith(end) and not self.is_genuine(module) and files.real(file) == path:
                del _modules[name]

    def is_genuine(self, module: "Any") -> bool:
        """Whether a module was loaded here, or before any tested code ran."""
        return self.made.get(id(module)) is module or self.before.get(id(module)) is module

    def is_loaded(self, space: "Mapping[str, Any]") -> bool:
        """Whether a namespace is that of a module that was loaded here."""
        return any(space_of(one) is space for one in self.made.values())

    def stands_for_other(self, root: str, name: str, module: "Any") -> bool:
        """Whether a module that tests are of should have been loaded here, by its name or its file, and was not.

        Args:
            root: of the repository
            name: of the module
            module: what has the name
        """
        inside = name.replace(".", "/") + ".py"
        file = file_of(module)
        if not file:
            return any(one.endswith("/" + inside) and self.is_other(one, module) for one in [*self.codes, *self.asked])
        if self.is_other(file, module):
            return True
        elsewhere = file.endswith("/" + inside) and files.is_file(file)
        return not elsewhere and self.is_other(files.joined(root, inside), module)

    def is_other(self, path: str, module: "Any") -> bool:
        """Whether a module should have been loaded here, and was not.

        Args:
            path: of its file
            module: what there is instead
        """
        if module is None or self.is_genuine(module) or _stem(path) not in self.names:
            return False
        return path in self.asked or files.real(path) in self.codes


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
        vars(module)["__builtins__"] = _builtins  # else it has ours, which no test could replace
        try:
            _execute(self.code, vars(module))
        except Exception as error:
            self.finder.fail(module, self.path, error)
            raise
        finally:
            self.finder.leave(module, self.path)
        if "modules" in self.code.co_names:  # It may have put an object of its own in its place in `sys.modules`.
            self.finder.remember(_modules.get(self.name))


def read(root: str, paths: "Iterable[str]") -> "dict[str, bytes]":
    """The texts of modules by their absolute paths; one that cannot be read is loaded as it is, and fails as it does.

    Args:
        root: of the repository
        paths: of the modules in it
    """
    texts = {}
    for path in paths:
        place = files.joined(root, path)
        text = files.read(place)
        if text is not None:
            texts[place] = text
    return texts


def module_code(text: bytes, path: str, compiled: "Compile") -> "Union[CodeType, None]":
    """The code of a module; None: it cannot be compiled.

    Args:
        text: of the module
        path: of its file
        compiled: makes code of them
    """
    # No function is called that tested code could replace: it would see the text before it is compiled.
    filters = _warned.get("filters")  # type: Any
    silent = type(filters) is list
    if silent:
        filters.insert(0, _SILENT)
    try:
        return compiled(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    finally:
        if silent:
            filters[:] = [one for one in filters if one is not _SILENT]


def plainly(text: "Union[bytes, AST]", path: str) -> "CodeType":
    """Compile a module as Python does."""
    code = _compile(text, path, "exec", dont_inherit=True)  # type: CodeType
    return code


def within(code: "CodeType") -> "Iterator[CodeType]":
    """A code object, and those of the functions and classes in it."""
    left = [code]
    while left:
        code = left.pop()
        yield code
        left += [one for one in code.co_consts if isinstance(one, type(code))]


def space_of(module: object) -> "Union[Mapping[str, Any], None]":
    """The namespace of a module; None for anything else that stands in `sys.modules`."""
    return _space(module) if issubclass(type(module), ModuleType) else None


def file_of(module: object) -> str:
    """The file that a module says it is of; empty when it says none, or is no module."""
    space = space_of(module)
    file = space.get("__file__") if space is not None else None
    return file if type(file) is str else ""


def _stem(path: str) -> str:
    """What a module is called, by its file, without the packages that it is in."""
    directory, name = files.split(path)
    return (files.split(directory)[1] if name.startswith("__init__.") else name).partition(".")[0]
