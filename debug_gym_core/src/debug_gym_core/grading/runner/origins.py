"""Where functions and classes come from, and who may replace what while tests run."""

import contextlib
import os
import sys
import warnings

from .given import plainly, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import CodeType
    from typing import Any, Union

    Space = Mapping[str, Any]

STANDARD = os.path.dirname(os.__file__) + os.sep

TESTS, PLUGINS, LIBRARY, NOBODY = "test infrastructure", "other installed code", "Python or pytest", "the tested code"
"""Where a function or class comes from."""

ASKED, DECIDING, OTHER = "asked", "deciding", "other"
"""What a name is for: by it a test asks whether an expectation holds; it decides on a test's outcome; any other."""

MAY_REPLACE = {
    ASKED: (TESTS,),  # what is installed is no better than any other that takes as much, and raises nothing
    DECIDING: (TESTS, PLUGINS),  # no plugin binds one of these to another function of pytest
    OTHER: (TESTS, PLUGINS, LIBRARY),
}
"""Whose functions and classes may be bound to a name meanwhile."""

_resolve = os.path.realpath


class Origins(object):
    """Tells of functions and classes whose they are.

    A module can say of itself that it is any file's, and whoever likes can put a function into one. So what was not
    there before any tested code ran is of a file only where that has the very code, and a module that was not there is
    installed only below what was in `sys.path` then.

    Attributes:
        given: code of modules that the host has given, by their real paths: their files may be other ones by now
        compiled: how other modules are compiled
        is_loaded: whether a namespace is that of a module which the host has given, under whatever name: of several
            modules `conftest` the last has it
    """

    def __init__(
        self, root: str, inside: "Callable[[str], Union[str, None]]", trusted: "Union[list[str], None]"
    ) -> None:
        """See `is_infrastructure` for what is trusted.

        Args:
            root: of the repository
            inside: the path of a repository's file relative to the root; None for any other
            trusted: see `is_infrastructure`
        """
        self.inside = inside
        self.trusted = trusted
        self.given = {}  # type: Mapping[str, CodeType]
        self.compiled = [plainly]  # type: list[Callable[[bytes, str], CodeType]]
        self.is_loaded = lambda space: False  # type: Callable[[Space], bool]
        self.modules = {}  # type: dict[int, tuple[Any, Any]]
        self.functions = {}  # type: dict[int, Any]
        self.codes = {}  # type: dict[str, list[CodeType]]
        self.function = type(lambda: 0)
        self.property = property
        self.methods = (staticmethod, classmethod, type(self.origin_of))
        places = [_resolve(one) for one in sys.path if one and inside(one) is None]
        self.places = tuple(one.rstrip(os.sep) + os.sep for one in places if one != _resolve(root))

    def remember(self, functions: "Iterable[Any]") -> None:
        """Take in what is there before any tested code ran: the modules, with the files that they are of.

        Args:
            functions: of Python's or pytest's
        """
        for module in list(sys.modules.values()):
            if type(module) is type(sys):
                self.modules.setdefault(id(vars(module)), (module, vars(module).get("__file__")))
        self.functions.update((id(one), one) for one in functions)

    def function_of(self, value: "Any") -> "Any":
        """The Python function in a function, method, property or wrapper; None where there is none."""
        if issubclass(type(value), self.property):
            value = value.fget
        elif issubclass(type(value), self.methods):
            value = value.__func__
        if type(value) is not self.function:
            try:  # Of itself: a proxy asked for it would ask what it stands for, which may not be there.
                value = object.__getattribute__(value, "__wrapped__")
            except Exception:
                return None
        return value if type(value) is self.function else None

    def may_replace(self, value: "Any", kind: str) -> bool:
        """Whether a function, or a class, may stand where another one was, or none.

        Args:
            value: it
            kind: what the name is for
        """
        return self.origin_of(value) in MAY_REPLACE[kind]

    def origin_of(self, value: "Any") -> str:
        """Where a function, or a class, comes from."""
        function = self.function_of(value)
        if function is not None:
            if id(function) in self.functions:  # inside, too, where the repository is pytest's own
                return LIBRARY
            return self.home_of(function.__globals__, [function.__code__], function.__name__)
        if not issubclass(type(value), type):
            return NOBODY
        name, module = value.__name__, sys.modules.get(value.__module__)
        space = vars(module) if type(module) is type(sys) else {}
        if space.get(name) is not value:
            return NOBODY
        own = []
        for one in [self.function_of(one) for one in list(vars(value).values())]:
            if one is None or self.is_made(one, value):
                continue
            if one.__globals__ is space:
                own.append(one.__code__)
            elif self.origin_of(one) is NOBODY:
                return NOBODY
        return self.home_of(space, own, name)

    def home_of(self, space: "Space", codes: "list[CodeType]", name: str) -> str:
        """Where a function, or a class, of a module comes from.

        Args:
            space: the module's namespace
            codes: that of the function, or those of the class's methods
            name: of the function or class
        """
        known = self.modules.get(id(space))
        path = known[1] if known is not None else space.get("__file__")
        if type(path) is not str:
            return NOBODY
        inside = self.inside(path)
        if inside is not None and not is_infrastructure(inside, self.trusted):
            return NOBODY
        if known is None and not self.is_loaded(space):
            module = sys.modules.get(str(space.get("__name__")))
            if type(module) is not type(sys) or vars(module) is not space:
                return NOBODY
            if inside is None and not _resolve(path).startswith(self.places):
                return NOBODY
        there = self.codes_of(path)
        # Of a class without methods all that is known is its name.
        if not all(one in there for one in codes) or not (codes or any(one.co_name == name for one in there)):
            return NOBODY
        if inside is not None:
            return TESTS
        return LIBRARY if path.startswith(STANDARD) and "site-packages" not in path else PLUGINS

    def is_conftest(self, space: "Space") -> bool:
        """Whether a namespace is that of a `conftest.py` of the tests.

        Args:
            space: it
        """
        path = space.get("__file__")
        if type(path) is not str or os.path.basename(path) != "conftest.py":
            return False
        if _resolve(path) in self.given:
            return self.is_loaded(space)
        inside = self.inside(path)
        return inside is not None and is_infrastructure(inside, self.trusted)

    def is_made(self, value: "Any", kind: "Any") -> bool:
        """Whether a method of a class of the tests is of no file, as those are that `dataclass` makes.

        Args:
            value: it
            kind: the class
        """
        function, module = self.function_of(value), sys.modules.get(kind.__module__)  # type: tuple[Any, Any]
        if function is None or type(module) is not type(sys) or not function.__code__.co_filename.startswith("<"):
            return False
        path = vars(module).get("__file__")
        inside = self.inside(path) if type(path) is str else None
        own = inside is not None and is_infrastructure(inside, self.trusted)
        return own and function.__globals__ is vars(module)

    def codes_of(self, path: str) -> "list[CodeType]":
        """All code that a file has; one that cannot be read has none."""
        if path not in self.codes:
            given = self.given.get(_resolve(path))
            self.codes[path] = list(within(given)) if given is not None else self.compiled_of(path)
        return self.codes[path]

    def compiled_of(self, path: str) -> "list[CodeType]":
        """The code of a file that was not given."""
        codes = []  # type: list[CodeType]
        with contextlib.suppress(OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            with open(path, "rb") as file:
                text = file.read()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for compiled in self.compiled:
                    codes += within(compiled(text, path))
        return codes


def is_infrastructure(path: str, trusted: "Union[list[str], None]") -> bool:
    """Whether a file of the repository belongs to its tests.

    Args:
        path: relative to the root
        trusted: the paths that the host restored, directories ending in `/`; None where nothing was: then by name
    """
    if trusted is not None:
        return any(path == one or (one.endswith("/") and path.startswith(one)) for one in trusted)
    parts = path.split("/")
    name = parts[-1]
    if name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py") or name == "test.py":
        return True
    return any(part in ("test", "tests", "testing") for part in parts[:-1])
