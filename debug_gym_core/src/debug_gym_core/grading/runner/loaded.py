"""What modules of the tests had when they were loaded: their functions, and what they have from other modules."""

import sys

from .given import space_of
from .origins import NOBODY, OTHER
from .owners import MISSING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .named import Source
    from .origins import Origins
    from .owners import Space

_modules = sys.modules
_inner = vars(type)["__dict__"].__get__  # a class of classes may have another `__dict__`


class Loaded(object):
    """What all of them had.

    Attributes:
        values: what names stood for that a module has from others, but the tested code's; by the ids of their globals
        functions: functions and methods, with what they have by default, by their ids
    """

    __slots__ = ("function", "functions", "values")

    def __init__(self) -> None:
        self.values = {}  # type: dict[int, dict[str, Any]]
        self.functions = {}  # type: dict[int, tuple[Any, Any, dict[str, Any]]]
        self.function = type(lambda: 0)

    def begin(self, space: "Space") -> None:
        """Learn that a module begins to run, perhaps once more."""
        self.values.pop(id(space), None)

    def end(self, space: "Space", sources: "Mapping[str, Source]", origins: "Origins") -> None:
        """Learn that it has run.

        Args:
            space: its globals
            sources: see `Names`
            origins: knows whose modules are
        """
        self.values[id(space)] = {
            name: space[name] for name, one in sources.items() if name in space and is_known(space, name, one, origins)
        }
        kinds = [_inner(one) for one in list(space.values()) if issubclass(type(one), type)]
        for owner in (space, *kinds):
            for value in list(owner.values()):
                if type(value) is self.function and value.__globals__ is space:
                    self.functions[id(value)] = (value, value.__defaults__, named_of(value))

    def had(self, space: "Space", name: str) -> "Any":
        """What a name stood for; `MISSING`: the tested code's, or nobody knows."""
        return self.values.get(id(space), {}).get(name, MISSING)

    def has_changed(self, function: "Any") -> bool:
        """Whether a function of a module that was loaded is another one, or has other values by default."""
        if id(function.__globals__) not in self.values:
            return False
        known, given, named = self.functions.get(id(function), (None, None, {}))
        if known is not function or function.__defaults__ is not given:
            return True
        now = named_of(function)
        return len(now) != len(named) or any(name not in now or now[name] is not value for name, value in named.items())


def named_of(function: "Any") -> "dict[str, Any]":
    """What the parameters of a function that only have names are by default."""
    return dict(function.__kwdefaults__ or {})


def is_known(space: "Space", name: str, source: "Source", origins: "Origins") -> bool:
    """Whether a name that a module has from another one stands for something that is not the tested code's.

    Args:
        space: the module's globals
        name: it
        source: see `Names`
        origins: see `Loaded.end`
    """
    level, module = source
    if level:
        package = space.get("__package__")
        above = package.split(".") if type(package) is str else []
        module = ".".join(above[: len(above) - level + 1] + [module] * bool(module))
    home = space_of(space[name]) or space_of(_modules.get(module))
    return home is not None and origins.home_of(home, [], OTHER) != NOBODY
