"""What of Python's own library has names: its modules, the classes and objects in them, and what they had at first."""

from opcode import opmap

from .given import space_of, within
from .origins import is_made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import CodeType
    from typing import Any

    Space = Mapping[str, Any]

# fmt: off
REPLACED = {
    # What programs are meant to replace, wherever it is.
    "": frozenset((
        "excepthook", "displayhook", "unraisablehook", "breakpointhook", "showwarning", "formatwarning",
    )),
    # What they replace to talk in another way.
    "builtins": frozenset((
        "print", "input", "help", "exit", "quit", "copyright", "credits", "license", "breakpoint", "_",
    )),
    # Who runs programs, as click does, has it talk elsewhere.
    "pdb.Pdb": frozenset(("__init__",)),
}
# fmt: on
"""What whoever likes to may replace, by the names of what has it: it tells a test nothing."""

MISSING = object()
STORE_GLOBAL, EXTENDED_ARG = opmap["STORE_GLOBAL"], opmap["EXTENDED_ARG"]

_mro = vars(type)["__mro__"].__get__  # a class may say that it has others


class Owner(object):
    """A module or class of the library.

    Args:
        value: it
        name: what it is called
        function_of: finds the Python function in what stands for one, see `Origins`

    Attributes:
        had: what it has by which name
        functions: what the functions among it were
    """

    __slots__ = ("functions", "had", "kind", "mro", "name", "space", "value")

    def __init__(self, value: "Any", name: str, function_of: "Callable[[Any], Any]") -> None:
        self.value = value
        self.name = name
        self.space = vars(value)  # type: Space
        self.had = dict(self.space)
        functions = [(name, function_of(one)) for name, one in self.had.items()]
        self.functions = {name: Function(one) for name, one in functions if one is not None}
        self.kind = type(value)
        self.mro = mro_of(value) if issubclass(self.kind, type) else ()

    def sets(self) -> "set[str]":
        """The names to which functions of a module give something else themselves, as `logging.setLoggerClass` does."""
        codes = [known.code for known in self.functions.values()]
        return {name for code in codes for one in within(code) for name in stored_by(one)}

    def is_asked(self, name: str) -> bool:
        """Whether a test may ask something of what it, or a base class, has by a name."""
        value = self.had.get(name, MISSING)
        return value is MISSING or is_asked(self.name, name, value)

    def is_other(self) -> bool:
        """Whether names are looked up elsewhere now."""
        return type(self.value) is not self.kind or (self.mro != () and mro_of(self.value) is not self.mro)


class Function(object):
    """What a Python function was, which may be written anew.

    Args:
        value: it
    """

    __slots__ = ("code", "defaults", "named", "value")

    def __init__(self, value: "Any") -> None:
        self.value = value
        self.code = value.__code__
        self.defaults = value.__defaults__
        self.named = value.__kwdefaults__ and dict(value.__kwdefaults__)

    def is_rewritten(self) -> bool:
        """Whether it does something else now."""
        if self.value.__code__ is not self.code or self.value.__defaults__ is not self.defaults:
            return True
        now, named = self.value.__kwdefaults__ or {}, self.named or {}
        return len(now) != len(named) or any(now.get(name) is not value for name, value in named.items())


class Single(Owner):
    """An object in a module of the library: nothing of its own where its class has a function, as `os.environ`."""

    __slots__ = ()

    def __init__(self, value: "Any", name: str, function_of: "Callable[[Any], Any]") -> None:
        Owner.__init__(self, value, name, function_of)
        for kind in filter(is_made, mro_of(self.kind)):
            for one, found in vars(kind).items():
                if not one.startswith("__") and is_asked("", one, found):
                    self.had.setdefault(one, MISSING)


class Had(object):
    """What a module or class had by a name.

    Args:
        owner: the module or class
        name: the name

    Attributes:
        value: what it was; `MISSING`: that of a base class
        function: what the Python function was that this is, or None
    """

    __slots__ = ("function", "is_asked", "name", "owner", "value")

    def __init__(self, owner: Owner, name: str) -> None:
        self.owner = owner
        self.name = name
        self.value = owner.had.get(name, MISSING)
        self.function = owner.functions.get(name)
        self.is_asked = owner.is_asked(name)

    def __str__(self) -> str:
        return "{}.{}".format(self.owner.name, self.name)

    def now(self) -> "Any":
        """What it has now."""
        return self.owner.space.get(self.name, MISSING)

    def is_rewritten(self) -> bool:
        """Whether it was a function which does something else now."""
        return self.function is not None and self.function.is_rewritten()


def stored_by(code: "CodeType") -> "Iterator[str]":
    """The names of its module to which code gives something."""
    more = 0
    for what, number in zip(code.co_code[::2], code.co_code[1::2]):  # noqa: B905 - Python 3.6
        if what == STORE_GLOBAL:
            yield code.co_names[number | more]
        more = (number | more) << 8 if what == EXTENDED_ARG else 0


def mro_of(kind: type) -> "tuple[type, ...]":
    """The classes in which a class looks for a name, whatever it says of itself."""
    found = _mro(kind)  # type: tuple[type, ...]
    return found


def is_enumerated(value: "Any") -> bool:
    """Whether a value is one of an enumeration, of which there are thousands, which have nothing to call."""
    return "_member_map_" in vars(type(value))


def is_asked(where: str, name: str, value: "Any") -> bool:
    """Whether a test may ask something of the library.

    Args:
        where: the name of what has it
        name: its own
        value: it
    """
    if name in REPLACED[""] or name in REPLACED.get(where, ()):
        return False
    return callable(value) or hasattr(type(value), "__get__") or space_of(value) is not None


def keep(
    owners: "dict[int, Owner]",
    value: "Any",
    name: str,
    function_of: "Callable[[Any], Any]",
    is_kept: "Callable[[type], bool]",
) -> None:
    """Take in a module or class, with the classes in it and in those; once.

    Args:
        owners: what is taken in, by id
        value: it
        name: what it is called
        function_of: see `Owner`
        is_kept: whether a class in it is
    """
    if id(value) in owners:
        return
    owner = owners[id(value)] = Owner(value, name, function_of)
    for one in list(owner.had.values()):
        if issubclass(type(one), type) and is_kept(one):
            keep(owners, one, "{}.{}".format(one.__module__, one.__qualname__), function_of, is_kept)
