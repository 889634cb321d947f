"""Loads test modules turned (see `turning`), from the text that the host sends and not from the workspace's files.

They are compiled before any tested code runs, which could change how.
"""

import ast
import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader

from . import expectations, turning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any, Union


class Finder(object):
    """Stands first in `sys.meta_path` and finds the modules that are turned.

    Args:
        root: of the repository
        sources: texts of the modules by their paths in it
        tests: names of functions and methods that are tests
        name: of the global by which a module asks
        secret: what only the failure says of a test whose expectations hold
        failure: makes the failure of a test whose expectations hold
        keeps: whether pytest rewrites what is asserted, which keeps what is called
    """

    def __init__(
        self,
        root: str,
        sources: "Mapping[str, bytes]",
        tests: "Sequence[str]",
        name: str,
        secret: str,
        failure: "Callable[[str], BaseException]" = AssertionError,
        keeps: bool = False,
    ) -> None:
        self.name = name
        self.expectations = expectations.Expectations(secret, failure, keeps)
        self.codes = {}  # type: dict[str, CodeType]
        for path, text in sources.items():
            place = os.path.join(root, path)
            try:
                tree = ast.parse(text, place)
                turning.turn(tree, self.name, frozenset(tests), self.expectations.literals)
                self.codes[os.path.realpath(place)] = compile(tree, place, "exec", dont_inherit=True)
            except (SyntaxError, ValueError, RecursionError):
                continue  # It is loaded as it is, and fails as it does.
        self.expectations.own = frozenset(id(one) for code in self.codes.values() for one in within(code))

    def find_spec(
        self, name: str, path: "Union[Sequence[str], None]" = None, target: "Union[ModuleType, None]" = None
    ) -> "Union[ModuleSpec, None]":
        """Find a module, as every finder does; None: it is none of those that are turned."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or not spec.origin:
            return None
        code = self.codes.get(os.path.realpath(spec.origin))
        if code is None:
            return None
        spec.loader = Loader(name, spec.origin, self, code)
        spec.cached = None
        return spec


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
        """Run the module, with what it asks in its globals."""
        setattr(module, self.finder.name, self.finder.expectations)
        SourceFileLoader.exec_module(self, module)


def within(code: "CodeType") -> "Iterator[CodeType]":
    """A code object, and those of the functions and classes in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, type(code)):
            for inner in within(one):
                yield inner


def prepare(
    config: "dict[str, Any]", failure: "Callable[[str], BaseException]" = AssertionError, keeps: bool = False
) -> Finder:
    """What finds modules turned, as the host asks; it has to be put into `sys.meta_path`.

    Args:
        config: what the host asks for; `turned` is taken out: the texts, the names of the tests, a name and a secret
        failure: makes the failure of a test whose expectations hold
        keeps: whether pytest rewrites what is asserted
    """
    import base64

    asked = config.pop("turned")
    sources = {path: base64.b64decode(text) for path, text in asked["sources"].items()}
    return Finder(config["root"], sources, asked["tests"], asked["name"], asked["secret"], failure, keeps)


def install(finder: Finder) -> None:
    """Let modules be found turned, before any other finder that is there."""
    sys.meta_path.insert(0, finder)
