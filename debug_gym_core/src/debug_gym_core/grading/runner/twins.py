"""Loads test modules turned (see `turning`), from the text that the host sends and not from the workspace's files.

They are compiled before any tested code runs, which could change how.
"""

import ast
import contextlib
import os
import sys

from . import expectations, turning
from .given import Finder, within
from .origins import Origins
from .statements import STRANGE, listed, outliving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import CodeType
    from typing import Any, Union

    from .given import Compile


DEEP = 10000
"""Calls in calls while a module is turned, three for each level of its tree; older Pythons have no stack for more."""


class Turner(Finder):
    """Finds the modules that are turned.

    Args:
        root: of the repository
        sources: texts of the modules by their paths in it
        helpers: texts of modules in which these have helpers, likewise
        tests: names of functions and methods that are tests
        shadowed: names of modules that the repository has itself
        said: names that other files of the tests say in a text
        name: of the global by which a module asks
        secret: what only the failure says of a test whose expectations hold
        failure: makes the failure of a test whose expectations hold
        keeps: whether pytest rewrites what is asserted, which keeps what is called
    """

    def __init__(
        self,
        root: str,
        sources: "Mapping[str, bytes]",
        helpers: "Mapping[str, bytes]",
        tests: "Sequence[str]",
        shadowed: "Sequence[str]",
        said: "Sequence[str]",
        name: str,
        secret: str,
        failure: "Callable[[str], BaseException]" = AssertionError,
        keeps: bool = False,
    ) -> None:
        from unittest import SkipTest

        Finder.__init__(self)
        self.skip = SkipTest  # pytest's is no Exception
        self.name = name
        self.expectations = expectations.Expectations(secret, failure, keeps)
        self.expectations.statements.shadowed = frozenset(shadowed)
        self.expectations.statements.said.update(said)

        equal = {"__eq__"}
        lasting = {}  # type: dict[str, frozenset[tuple[str, int]]]
        anything = any(b"ANY" in text for text in helpers.values())

        self.numbers = {}  # type: dict[str, Sequence[int]]
        self.testing = set()  # type: set[str]

        def compiled_for(functions: "frozenset[str]") -> "Compile":
            def compiled(text: bytes, place: str) -> "CodeType":
                with nested_deeply():
                    tree = ast.parse(text, place)
                    equal.update(equal_by(tree))
                    lasting[place] = frozenset(outliving(tree))
                    names = self.expectations.statements.names
                    first = len(names)
                    turning.turn(tree, name, functions, self.expectations, anything)
                    self.numbers[place] = range(first, len(names))
                    if functions:
                        self.testing.add(place)
                    return compile(tree, place, "exec", dont_inherit=True)

            return compiled

        for texts, functions in ((helpers, frozenset()), (sources, frozenset(tests))):
            self.compile({os.path.join(root, path): text for path, text in texts.items()}, compiled_for(functions))
        codes = [one for code in self.asked.values() for one in within(code)]
        self.expectations.statements.own = frozenset(map(id, codes))
        longer = [one for one in codes if (one.co_name, one.co_firstlineno) in lasting[one.co_filename]]
        self.expectations.statements.lasting = frozenset(map(id, longer))
        self.expectations.anything.own = frozenset(id(one) for one in codes if one.co_name in equal)

    def enter(self, module: "Any") -> None:
        """Give a module what it asks in its globals."""
        Finder.enter(self, module)
        setattr(module, self.name, self.expectations)
        self.expectations.statements.loaded.begin(vars(module))
        self.expectations.loading += 1

    def fail(self, module: "Any", path: str, error: Exception) -> None:
        """Tell what the tests of a module would use that is not what it was: none of them runs.

        Raises:
            Exception: there is something, and the module does not skip itself
        """
        if path not in self.testing or isinstance(error, self.skip):
            return
        found = self.expectations.statements.all_strange(self.numbers.get(path, ()), vars(module))
        if found:
            raise self.expectations.failure(STRANGE + listed(found)) from None

    def leave(self, module: "Any", path: str) -> None:
        """Tests that are called from now on are run as tests; what the module has now, it has to have then."""
        self.expectations.loading -= 1
        self.expectations.statements.remember(vars(module), self.numbers.get(path, ()))


@contextlib.contextmanager
def nested_deeply() -> "Iterator[None]":
    """Where a tree may be gone through that is as deep as Python compiles it, as of a chain of hundreds of calls."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def equal_by(tree: ast.Module) -> "Iterator[str]":
    """The names of functions that classes of a module have for `__eq__`, as `__eq__ = lambda self, other: ...`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__eq__" for one in node.targets):
            yield "<lambda>" if isinstance(node.value, ast.Lambda) else str(getattr(node.value, "id", ""))


def turner_of(
    config: "dict[str, Any]", failure: "Callable[[str], BaseException]" = AssertionError, keeps: bool = False
) -> Turner:
    """What finds modules turned, as the host asks; it has to be installed.

    Args:
        config: what the host asks for; `turned` is taken out: the texts, the names of the tests, a name and a secret
        failure: makes the failure of a test whose expectations hold
        keeps: whether pytest rewrites what is asserted
    """
    import base64

    asked = config.pop("turned")
    sources, helpers = (
        {path: base64.b64decode(text) for path, text in asked[kind].items()} for kind in ("sources", "helpers")
    )
    names = asked["tests"], asked["shadowed"], asked["said"], asked["name"], asked["secret"]
    return Turner(config["root"], sources, helpers, *names, failure, keeps)


def origins_of(config: "dict[str, Any]", inside: "Callable[[str], Union[str, None]]", finder: Finder) -> Origins:
    """What tells in a run whose functions and classes are; what is turned asks it too.

    Args:
        config: what the host asks for
        inside: the path of a repository's file relative to the root; None for any other
        finder: finds the modules that the host has given
    """
    origins = Origins(config["root"], inside, config.get("trusted"))
    origins.is_loaded, origins.given = finder.is_loaded, finder.codes
    if isinstance(finder, Turner):
        finder.expectations.origin_of = origins.origin_of
        finder.expectations.statements.library.remember(origins)
    return origins
