"""Where functions and classes come from, and who may replace what while tests run."""

import os
import sys
import time
from functools import partial

from . import files
from .given import module_code, plainly, space_of, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import CodeType
    from typing import Any, Union

    Space = Mapping[str, Any]

TESTS, PLUGINS, LIBRARY, NOBODY = "test infrastructure", "other installed code", "Python or pytest", "the tested code"
"""Where a function or class comes from."""

ASKED, DECIDING, TAKING_PART, OTHER = "asked", "deciding", "taking part", "other"
"""What a name is for: by it a test asks whether an expectation holds; it decides on a test's outcome; it is a hook's;
any other."""

MAY_REPLACE = {
    ASKED: (TESTS,),  # what is installed is no better than any other that takes as much, and raises nothing
    DECIDING: (TESTS, PLUGINS),  # no plugin binds one of these to another function of pytest
    TAKING_PART: (TESTS, PLUGINS, LIBRARY),
    OTHER: (TESTS, PLUGINS, LIBRARY),
}
"""Whose functions and classes may be bound to a name meanwhile."""

OPTIMIZED = 1
"""Of a code object's flags that of functions, which the body of a class has not."""

HEAP = 1 << 9
"""Of a class's flags that of those which are made as a program runs."""

_flags = vars(type)["__flags__"].__get__  # a class may say that it has others
_PARTS = [vars(partial)[name] for name in ("func", "args", "keywords")]  # a subclass may say that it has others


class Origins(object):
    """Tells of functions and classes whose they are.

    A module can say of itself that it is any file's, and whoever likes can put a function into one. So what matters
    most (what is asked, what decides, hooks) is of a file only where that has the very code, and had it when the run
    began; a function whose code a decorator or an import hook has written anew is nobody's there, and one in whose
    closure is another that is nobody's. What else is a module's may be made for it, as by `dataclass`.

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
        self.root = root
        self.inside = inside
        self.trusted = trusted
        self.given = {}  # type: Mapping[str, CodeType]
        self.compiled = [plainly]  # type: list[Callable[[bytes, str], CodeType]]
        self.is_loaded = lambda space: False  # type: Callable[[Space], bool]
        self.modules = {}  # type: dict[int, tuple[Any, Any]]
        self.functions = {}  # type: dict[int, Any]
        self.codes = {}  # type: dict[tuple[str, int], list[CodeType]]
        self.resolved = {}  # type: dict[str, str]
        self.began = time.time()
        self.homes = homes_of(root, trusted)
        self.function = type(lambda: 0)
        self.property = property
        self.methods = (staticmethod, classmethod, type(self.origin_of))
        places = [files.real(one) for one in sys.path if one and inside(one) is None]
        self.places = tuple(one.rstrip(os.sep) + os.sep for one in places if one != files.real(root))

    def remember(self, functions: "Iterable[Any]") -> None:
        """Take in what is there before any tested code ran: the modules, with the files that they are of.

        Args:
            functions: of Python's or pytest's
        """
        for module in list(sys.modules.values()):
            space = space_of(module)
            if space is not None:
                self.modules.setdefault(id(space), (module, space.get("__file__")))
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

    def plain_function_of(self, value: "Any") -> "Any":
        """That in a function, method or property of Python's own: any other wrapper may call what it likes."""
        if type(value) is self.property:
            value = value.fget
        elif type(value) in self.methods:
            value = value.__func__
        return value if type(value) is self.function else None

    def may_replace(self, value: "Any", kind: str) -> bool:
        """Whether a function, or a class, may stand where another one was, or none.

        Args:
            value: it
            kind: what the name is for
        """
        return self.origin_of(value, kind) in MAY_REPLACE[kind]

    def origin_of(self, value: "Any", kind: str = OTHER) -> str:
        """Where a function, or a class, comes from.

        Args:
            value: it
            kind: what for it is asked
        """
        function = self.function_of(value) if kind == OTHER else self.plain_function_of(value)
        if function is None:
            return self.origin_of_class(value, kind) if issubclass(type(value), type) else NOBODY
        home = self.origin_of_function(function, kind)
        return NOBODY if kind != OTHER and any(self.held_by_nobody(function, kind)) else home

    def origin_of_function(self, function: "Any", kind: str) -> str:
        """Where a function comes from, whatever it calls; see `origin_of`."""
        if id(function) in self.functions:  # inside, too, where the repository is pytest's own
            return LIBRARY
        return self.home_of(function.__globals__, [function.__code__], kind)

    def held_by_nobody(self, function: "Any", kind: str) -> "Iterator[Any]":
        """Functions that a function's closure holds, and theirs, which are nobody's."""
        seen, left = {id(function)}, [function]
        while left:
            for cell in left.pop().__closure__ or ():
                for one in held_in(cell):
                    found = self.plain_function_of(one) or call_of(one)
                    if type(found) is not self.function or id(found) in seen:
                        continue
                    seen.add(id(found))
                    left.append(found)
                    if self.origin_of_function(found, kind) == NOBODY:
                        yield found

    def origin_of_class(self, value: "Any", kind: str) -> str:
        """Where a class comes from.

        Args:
            value: it
            kind: what for it is asked
        """
        space = space_of(sys.modules.get(value.__module__)) or {}
        if space.get(value.__name__) is not value:
            return NOBODY
        if kind == OTHER:
            return self.home_of(space, [], kind)
        if type(value) is not type or any(self.origin_of(one) is NOBODY for one in value.__mro__[1:] if is_made(one)):
            return NOBODY
        methods = [one for one in map(self.function_of, list(vars(value).values())) if one is not None]
        if any(one.__globals__ is not space and self.origin_of(one) is NOBODY for one in methods):
            return NOBODY
        own = [one.__code__ for one in methods if one.__globals__ is space]
        bodies = [one for one in self.codes_of(str(space.get("__file__"))) if one.co_name == value.__name__]
        return self.home_of(space, own, kind) if any(not one.co_flags & OPTIMIZED for one in bodies) else NOBODY

    def home_of(self, space: "Space", codes: "Iterable[CodeType]", kind: str) -> str:
        """Where a function, or a class, of a module comes from.

        Args:
            space: the module's namespace
            codes: that of the function, or those of the class's methods
            kind: what for it is asked
        """
        known = self.modules.get(id(space))
        path = known[1] if known is not None else space.get("__file__")
        if type(path) is not str:
            return NOBODY
        inside = self.inside(path)
        if inside is not None and not is_infrastructure(inside, self.trusted):
            return NOBODY
        if known is None and not self.is_loaded(space):
            if self.real(path) in self.given or space_of(sys.modules.get(str(space.get("__name__")))) is not space:
                return NOBODY
            if inside is None and kind != OTHER and not self.is_installed(path):
                return NOBODY
            if kind == DECIDING and self.was_loaded(path):
                return NOBODY
        if kind != OTHER and not all(self.has(path, one) for one in codes):
            return NOBODY
        if inside is not None:
            return TESTS
        return LIBRARY if files.is_pythons(path) else PLUGINS

    def has(self, path: str, code: "CodeType") -> bool:
        """Whether a file has some code.

        Args:
            path: of the file
            code: what is looked for
        """
        return any(one == code for one in self.codes_of(path) if one.co_name == code.co_name)

    def was_loaded(self, path: str) -> bool:
        """Whether a module of a file was there at first: the code of another may work with anything of other names.

        Tests load modules anew, of which others ask, but which decide on nothing.

        Args:
            path: of the file
        """
        return self.real(path) in (self.real(file) for _, file in self.modules.values() if type(file) is str)

    def is_installed(self, path: str) -> bool:
        """Whether a file lies below what was in `sys.path` at first, but for the repository."""
        return any(one.startswith(self.places) for one in (files.plain(path), self.real(path)))

    def real(self, path: str) -> str:
        """A path without links, as they were when it was first asked for."""
        if path not in self.resolved:
            self.resolved[path] = files.real(path)
        return self.resolved[path]

    def is_conftest(self, space: "Space") -> bool:
        """Whether a namespace is that of a `conftest.py` of the tests.

        Args:
            space: it
        """
        path = space.get("__file__")
        if type(path) is not str or files.split(path)[1] != "conftest.py":
            return False
        if self.real(path) in self.given:
            return self.is_loaded(space)
        inside = self.inside(path)
        return inside is not None and is_infrastructure(inside, self.trusted)

    def holds_tests(self, package: str) -> bool:
        """Whether files of the tests lie in a package of the repository's own: it is what they try.

        Only the host can tell, as of all that is trusted: what lies there now may have been put there. Where the host
        does not say, a `conftest.py` there does, of which the clean grading takes over none.

        Args:
            package: its name
        """
        if self.trusted is None:
            return files.is_file(files.joined(self.root, package + "/conftest.py"))
        return any(one.startswith(package + "/") for one in self.trusted)

    def codes_of(self, path: str) -> "Iterator[CodeType]":
        """All code that a file has; one that cannot be read, or was written or moved since the run began, has none."""
        given = self.given.get(self.real(path))
        for way, compiled in enumerate(self.compiled if given is None else [plainly]):
            found = self.codes.get((path, way))
            if found is None:  # what pytest makes of a file takes long, and is seldom needed
                found = self.compiled_of(path, compiled) if given is None else list(within(given))
                if found is not None:
                    self.codes[path, way] = found
            for one in found or ():
                yield one

    def compiled_of(self, path: str, compiled: "Callable[[bytes, str], CodeType]") -> "Union[list[CodeType], None]":
        """The code of a file that was not given; None: it cannot be compiled, at least not now.

        Args:
            path: of it
            compiled: makes code of a text and a path
        """
        try:
            # A directory that is moved here brings files of which no time tells.
            inside = self.trusted is not None and self.inside(path) is not None
            if inside and files.identity_of(files.split(path)[0]) not in self.homes:
                return []
            text = files.read(path)
            if files.may_be_written_since(path, self.began):  # asked last: who writes it meanwhile is seen, too
                return []
        except (OSError, ValueError):
            return []
        code = module_code(text, path, compiled) if text is not None else None
        return list(within(code)) if code is not None else None


def homes_of(root: str, trusted: "Union[list[str], None]") -> "frozenset[tuple[int, int]]":
    """Which directories the files of the tests lie in now.

    Args:
        root: of the repository
        trusted: see `is_infrastructure`
    """
    above = {os.path.dirname(one) for one in trusted or () if not one.endswith("/")}
    below = [one for one in trusted or () if one.endswith("/")]
    places = [os.path.join(root, one) for one in above]
    places += [place for one in below for place, _, _ in os.walk(os.path.join(root, one))]
    return frozenset(files.identity_of(one) for one in places if os.path.isdir(one))


def content_of(cell: "Any") -> "Any":
    """What is in a cell of a closure; None: nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def held_in(cell: "Any") -> "Iterable[Any]":
    """What is in a cell of a closure, or in the table or list there, and the parts of what is a `partial` of those."""
    held, seen = content_of(cell), set()  # type: Any, set[int]
    if type(held) is dict:
        held = list(held.values())
    found = list(held) if type(held) in (list, tuple, set) else [held]
    for one in found:  # parts, too, of which one may be the whole
        if issubclass(type(one), partial) and id(one) not in seen:
            seen.add(id(one))
            function, given, named = (part.__get__(one) for part in _PARTS)
            found += [function, *given, *named.values()]
    return found


def call_of(value: "Any") -> "Any":
    """What its class has as `__call__`; None: it has none."""
    return next((vars(base)["__call__"] for base in type(value).__mro__ if "__call__" in vars(base)), None)


def is_like(name: str, code: "CodeType") -> bool:
    """Whether a function is called as what it stands for, but for what differs where one is written for another.

    Args:
        name: of what it stands for
        code: the function's
    """
    return _plain(name) in _plain(code.co_name)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def is_made(kind: "Any") -> bool:
    """Whether a class is made by a program, and not built in."""
    return bool(_flags(kind) & HEAP)


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
