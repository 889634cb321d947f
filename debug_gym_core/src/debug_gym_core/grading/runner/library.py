"""Whether what tests use of Python's own library is its own still: `Path.exists`, `json.loads`, `open`.

No text tells of what class an object is, so a name is looked up in whatever modules and classes of the library have it.
Of the modules these are those that are there before any tested code runs, and what the tests import is loaded by then.
"""

import contextlib
import importlib
import os
import sys
from importlib.util import find_spec

from .bindings import STANDARD
from .given import space_of
from .origins import LIBRARY, PLUGINS, TAKING_PART, TESTS, Origins, is_made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    Space = Mapping[str, Any]
    Had = tuple[Space, str, Any, str]

LIVELY = frozenset(("excepthook", "displayhook", "unraisablehook", "breakpointhook", "showwarning", "formatwarning"))
"""What programs are meant to replace."""

TALKING = frozenset(("print", "input", "help", "exit", "quit", "copyright", "credits", "license", "breakpoint", "_"))
"""Of Python's own functions those that they replace to talk in another way: these tell a test nothing."""

ELSEWHERE = frozenset(("unittest", "test"))
"""Modules that `Watch` looks at, or that test Python itself."""

JOKES = frozenset(("antigravity", "this"))
"""Modules that do something where they are imported."""

HOME = os.path.dirname(os.__file__) + os.sep
MISSING = object()

_modules = sys.modules


class Owner(object):
    """A module or class of the library.

    Args:
        value: it
        name: what it is called
    """

    __slots__ = ("had", "name", "space", "value")

    def __init__(self, value: "Any", name: str) -> None:
        self.value = value
        self.name = name
        self.space = vars(value)  # type: Space
        self.had = dict(self.space)


class Library(object):
    """Remembers what Python's modules and their classes have.

    Attributes:
        origins: knows whose functions and classes are; None: nobody has told yet
        owners: what is remembered, by id
        named: the modules among it, by all their names
        wanted: names that tests use
        index: where they are
    """

    __slots__ = ("builtin", "index", "named", "origins", "owners", "wanted")

    def __init__(self) -> None:
        self.origins = None  # type: Any
        self.owners = {}  # type: dict[int, Owner]
        self.named = {}  # type: dict[str, Owner]
        self.wanted = set()  # type: set[str]
        self.index = {}  # type: dict[str, list[Had]]
        self.builtin = type(len)  # type: Any

    def remember(self, origins: Origins) -> None:
        """Take in the modules that are there, and their classes.

        Args:
            origins: see `Library`
        """
        self.origins = origins
        for name, module in list(_modules.items()):
            if is_standard(name) and space_of(module) is not None:
                self.keep(module, name)
                self.named.setdefault(name, self.owners[id(module)])

    def keep(self, value: "Any", name: str) -> None:
        """Take in a module or class, with the classes in it; once."""
        if id(value) in self.owners:
            return
        owner = self.owners[id(value)] = Owner(value, name)
        for one in list(owner.had.values()):
            if issubclass(type(one), type) and is_standard(vars(one).get("__module__", "builtins")):
                self.keep(one, "{}.{}".format(one.__module__, one.__qualname__))

    def having(self, names: "Iterable[str]") -> "list[Had]":
        """Where the library has some of the names that are wanted, and what was there."""
        if not self.index:
            self.index = {name: [] for name in self.wanted}
            for owner in list(self.owners.values()):
                for name in self.index.keys() & owner.had.keys():
                    if is_asked(owner.name, name, owner.had[name]):
                        self.index[name] += self.inherited(owner, name)
        return [one for name in names for one in self.index[name]]

    def inherited(self, owner: Owner, name: str) -> "Iterator[Had]":
        """A module or class that has a name, and the classes made of that one which do not have it themselves."""
        yield owner.space, name, owner.had[name], owner.name
        left = type.__subclasses__(owner.value) if issubclass(type(owner.value), type) else []
        while left:
            kind = left.pop()
            known = self.owners.get(id(kind))
            if known is not None and name not in known.had:
                yield known.space, name, MISSING, known.name
                left += type.__subclasses__(kind)

    def original(self, module: str, inside: str) -> "Any":
        """What a module is, or has by a name, as it was at first; `MISSING`: nobody knows."""
        owner = self.named.get(module)
        if owner is None:
            return MISSING
        return owner.had.get(inside, MISSING) if inside else owner.value

    def may_be(self, now: "Any", value: "Any", name: str) -> bool:
        """Whether something may stand where something of the library's was.

        Args:
            now: it; `MISSING`: nothing, which nobody can ask
            value: what was there; `MISSING`: nothing, it was that of a base class
            name: of both
        """
        if now is MISSING or self.origins is None:
            return True
        if type(now) is self.builtin:
            return type(value) is self.builtin and now.__name__ == value.__name__ and now.__self__ is value.__self__
        function = self.origins.plain_function_of(now)
        if function is not None:
            home = self.origins.origin_of(now, TAKING_PART)
            return home in (TESTS, PLUGINS) or (home is LIBRARY and function.__code__.co_name == name)
        if issubclass(type(now), type):
            return self.is_theirs(now) and self.origins.origin_of(now) in (TESTS, PLUGINS, LIBRARY)
        return is_made(type(now)) and self.origins.origin_of(type(now), TAKING_PART) is TESTS

    def is_theirs(self, kind: type) -> bool:
        """Whether all functions of a class that is made, and of its own class, are of who may replace what he likes."""
        spaces = [vars(one) for one in (kind, type(kind)) if is_made(one)]
        functions = [one for space in spaces for one in space.values() if self.origins.plain_function_of(one)]
        return all(self.origins.origin_of(one, TAKING_PART) in (TESTS, PLUGINS, LIBRARY) for one in functions)


def is_standard(name: "Any") -> bool:
    """Whether a module is one of Python's own, by its name."""
    top = name.partition(".")[0] if type(name) is str else ""
    return top in STANDARD and top not in ELSEWHERE


def load(name: str) -> None:
    """Import a module of the library, unless another one has its name, or it is not for this platform."""
    with contextlib.suppress(Exception):
        found = find_spec(name.partition(".")[0])
        if found is not None and (not found.has_location or str(found.origin).startswith(HOME)):
            importlib.import_module(name)


def is_asked(where: str, name: str, value: "Any") -> bool:
    """Whether a test may ask something of the library.

    Args:
        where: the name of what has it
        name: its own
        value: it
    """
    if name in LIVELY or (where == "builtins" and name in TALKING):
        return False
    return callable(value) or hasattr(type(value), "__get__") or space_of(value) is not None
