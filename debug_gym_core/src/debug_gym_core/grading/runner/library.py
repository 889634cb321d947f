"""Whether what tests use of Python's own library is its own still: `Path.exists`, `json.loads`, `open`.

No text tells of what class an object is, so a name is looked up in whatever modules and classes of the library have it.
Of the modules these are those that are there before any tested code runs, and what the tests import is loaded by then.
"""

import contextlib
import importlib
import sys
import warnings
from importlib.util import find_spec

from . import files
from .bindings import STANDARD
from .given import space_of, within
from .origins import LIBRARY, PLUGINS, TAKING_PART, TESTS, Origins, is_like, is_made
from .owners import MISSING, Had, Owner, Single, is_enumerated, keep, mro_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping
    from types import CodeType
    from typing import Any

    Space = Mapping[str, Any]

ELSEWHERE = frozenset(("unittest", "test"))
"""Modules that `Watch` looks at, or that test Python itself."""

COMMON = 12
"""Owners that a name has at most where it is looked at what stands behind."""

MOST = 300
"""What is looked at behind the names of one statement."""

SPECIAL = frozenset((
    "__new__", "__init__", "__getattribute__", "__getattr__", "__call__", "__enter__", "__exit__", "__aenter__",
    "__aexit__", "__await__", "__iter__", "__next__", "__aiter__", "__anext__", "__len__", "__bool__",
    "__contains__", "__getitem__", "__missing__", "__reversed__", "__hash__", "__eq__", "__ne__", "__lt__",
    "__le__", "__gt__", "__ge__", "__str__", "__repr__", "__format__", "__bytes__", "__int__", "__float__",
    "__index__", "__fspath__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
    "__rtruediv__", "__floordiv__", "__mod__", "__and__", "__or__", "__xor__", "__neg__", "__abs__", "__round__",
    "__instancecheck__", "__subclasscheck__",
))  # fmt: skip
"""Methods of classes that no test names, and which answer it."""

JOKES = frozenset(("antigravity", "this"))
"""Modules that do something where they are imported."""

_modules = sys.modules


class Library(object):
    """Remembers what Python's modules and their classes have.

    Attributes:
        origins: knows whose functions and classes are; None: nobody has told yet
        owners: what is remembered, by id
        named: the modules among it, by all their names
        wanted: names that tests use
        index: where they are
        closed: the same, with what stands behind it, of names that were asked for
        sets: names that modules change themselves, by the ids of these
        singles: objects by the ids of their classes
        spaces: modules by the ids of their namespaces
        special: special methods that classes have, and names of those that they have not, by the ids of the classes
    """

    __slots__ = (
        "builtin", "closed", "index", "named", "origins", "owners", "sets", "singles", "spaces", "special",
        "wanted",
    )  # fmt: skip

    def __init__(self) -> None:
        self.origins = None  # type: Any
        self.owners = {}  # type: dict[int, Owner]
        self.named = {}  # type: dict[str, Owner]
        self.wanted = set()  # type: set[str]
        self.index = {}  # type: dict[str, list[Had]]
        self.closed = {}  # type: dict[str, list[Had]]
        self.sets = {}  # type: dict[int, set[str]]
        self.singles = {}  # type: dict[int, list[Owner]]
        self.spaces = {}  # type: dict[int, Owner]
        self.special = {}  # type: dict[int, tuple[list[Had], frozenset[str]]]
        self.builtin = type(len)  # type: Any

    def remember(self, origins: Origins) -> None:
        """Take in the modules that are there, and their classes.

        Args:
            origins: see `Library`
        """
        self.origins = origins
        for name, module in list(_modules.items()):
            if is_standard(name) and space_of(module) is not None:
                keep(self.owners, module, name, self.origins.plain_function_of, is_standard_class)
                self.named.setdefault(name, self.owners[id(module)])
        modules = [one for one in self.owners.values() if not one.mro]
        self.spaces = {id(one.space): one for one in modules}
        for owner in modules:
            for name, value in owner.had.items():
                if id(type(value)) in self.owners and id(value) not in self.owners and not is_enumerated(value):
                    with contextlib.suppress(TypeError):  # it has no names itself
                        single = Single(value, "{}.{}".format(owner.name, name), self.origins.plain_function_of)
                        self.owners[id(value)] = single
                        self.singles.setdefault(id(type(value)), []).append(single)
        self.index = {name: [] for name in self.wanted}
        for owner in list(self.owners.values()):
            for name in self.index.keys() & owner.had.keys():
                if owner.is_asked(name):
                    self.index[name] += self.inherited(owner, name)

    def inherited(self, owner: Owner, name: str) -> "Iterator[Had]":
        """A module or class that has a name, and the classes made of that one which do not have it themselves."""
        yield Had(owner, name)
        left = type.__subclasses__(owner.value) if owner.mro else []
        while left:
            kind = left.pop()
            known = self.owners.get(id(kind))
            if known is not None and name not in known.had:
                yield Had(known, name)
                left += type.__subclasses__(kind)

    # As tests run

    def having(self, names: "Iterable[str]", but: "Container[str]") -> "list[Had]":
        """Where the library has some of the names that are wanted, and what was there; and what stands behind that.

        Args:
            names: they
            but: names that may stand for anything
        """
        found = {}  # type: dict[tuple[int, str], Had]
        for name in names:
            if name not in self.closed:
                first = self.index.get(name, [])
                # What many have is asked of few: who closes something may close anything, and `split` is a text's.
                many = sum(one.value is not MISSING for one in first) > COMMON
                plain = any(one.owner.name.startswith("builtins.") for one in first)
                self.closed[name] = first if many or plain else first + self.behind(first)
            found.update(((id(one.owner), one.name), one) for one in self.closed[name])
        return [one for one in found.values() if one.name not in but]

    def behind(self, first: "list[Had]") -> "list[Had]":
        """What functions of the library use of it themselves, and so on: `os.stat` of `Path.exists`."""
        found = {(id(one.owner), one.name): one for one in first}
        left = list(first)
        while left and len(found) < MOST:
            one = left.pop(0)
            if one.function is None:
                continue
            function, code = one.function.value, one.function.code
            names = {name for inner in within(code) for name in inner.co_names if not name.startswith("__")}
            home = self.spaces.get(id(function.__globals__))
            used = [home.had[name] for name in names & home.had.keys()] if home is not None else []
            kinds = [value if issubclass(type(value), type) else type(value) for value in used]
            places = [self.owners.get(id(value)) for kind in kinds for value in mro_of(kind) if is_made(value)]
            places += [self.owners.get(id(value)) for value in (*used, *one.owner.mro)]
            singles = [single for kind in one.owner.mro for single in self.singles.get(id(kind), ())]
            for owner in [place for place in (home, *places, *singles) if place is not None]:
                for name in names.intersection(owner.had).difference(() if owner.mro else self.set_in(owner)):
                    key = id(owner), name
                    had = found.get(key) or Had(owner, name)
                    if key not in found and (had.is_asked or owner is home):
                        found[key] = had
                        left.append(had)
        return list(found.values())[len(first) :]

    def classes_of(self, names: "Iterable[str]") -> "list[Owner]":
        """The classes that names stand for in the library, or that have them, and what these are made of."""
        found = {}  # type: dict[int, Owner]
        for name in names:
            first = self.index.get(name, [])
            if sum(one.value is not MISSING for one in first) <= COMMON:
                values = [value for one in first for value in (one.value, one.owner.value)]
                kinds = [base for one in values if issubclass(type(one), type) for base in mro_of(one) if is_made(base)]
                found.update((id(one), self.owners[id(one)]) for one in kinds if id(one) in self.owners)
        return list(found.values())

    def set_in(self, owner: Owner) -> "set[str]":
        """See `Owner.sets`; found once."""
        if id(owner) not in self.sets:
            self.sets[id(owner)] = owner.sets()
        return self.sets[id(owner)]

    def is_strange(self, one: Had) -> bool:
        """Whether what the library had is not what it was, and may not be what it is."""
        now = one.now()
        if now is one.value:
            return one.is_rewritten()
        if one.is_asked:
            return not self.may_be(now, one.value, one.name)
        # A module may have kept anything of its own there.
        kind = type(now)
        return is_made(kind) and id(kind) not in self.owners and not self.is_theirs(kind, (TESTS, PLUGINS, LIBRARY))

    def strange_special(self, kind: Owner, but: "Container[str]") -> "Iterator[str]":
        """The special methods of a class that are not what they were, as `__new__`.

        Args:
            kind: the class
            but: names that may stand for anything
        """
        known = self.special.get(id(kind))
        if known is None:
            names = SPECIAL.intersection(kind.had)
            known = self.special[id(kind)] = [Had(kind, name) for name in sorted(names)], SPECIAL - names
        for one in known[0]:
            if one.name not in but and self.is_strange(one):
                yield str(one)
        for name in known[1].intersection(kind.space):
            if name not in but and not self.may_be(kind.space[name], MISSING, name):
                yield "{}.{}".format(kind.name, name)

    def original(self, module: str, inside: str) -> "Any":
        """What a module is, or has by a name that can be asked, as it was at first; `MISSING`: nobody knows."""
        owner = self.named.get(module)
        if owner is None or not inside:
            return MISSING if owner is None else owner.value
        return owner.had.get(inside, MISSING) if owner.is_asked(inside) else MISSING

    def has_given(self, modules: "Iterable[str]", name: str, value: "Any") -> bool:
        """Whether a name stands for what one of some modules has, which is installed, or the tests'.

        Args:
            modules: their names
            name: it
            value: what it stands for
        """
        for one in modules:
            known, space = self.named.get(one), space_of(_modules.get(one)) or {}
            if known is not None and known.had.get(name, MISSING) is value:
                return True
            if space.get(name, MISSING) is value and self.origins.home_of(space, [], TAKING_PART) in (TESTS, PLUGINS):
                return True
        return False

    def may_be(self, now: "Any", value: "Any", name: str) -> bool:
        """Whether something may stand where something else of the library's was.

        Args:
            now: it; `MISSING`: nothing
            value: what was there; `MISSING`: nothing, it was that of a base class
            name: of both
        """
        if now is MISSING:
            return False
        if type(now) is self.builtin:
            return type(value) is self.builtin and now.__name__ == value.__name__ and now.__self__ is value.__self__
        function = self.origins.plain_function_of(now)
        if function is not None:
            code, home = function.__code__, self.origins.origin_of(now, TAKING_PART)
            if home is PLUGINS or (home is LIBRARY and not is_pythons(code)):  # pytest replaces `pdb.set_trace`
                return is_like(name, code)
            own = self.origins.plain_function_of(value)
            is_same = own is not None and (type(now), written_at(code)) == (type(value), written_at(own.__code__))
            return home is TESTS or (home is LIBRARY and is_same)
        if issubclass(type(now), type):
            return self.is_theirs(now, (TESTS, PLUGINS, LIBRARY))
        return self.is_theirs(type(now), (TESTS, PLUGINS))

    def is_theirs(self, kind: type, homes: "tuple[str, ...]") -> bool:
        """Whether a class, all that it is made of, and its own class are of who may replace what he likes.

        Args:
            kind: the class; another one of the library's is none
            homes: who may
        """
        return (
            is_made(kind)
            and id(kind) not in self.owners
            and all(
                self.origins.origin_of(one, TAKING_PART) in homes or self.has_their_functions(one, homes)
                for one in (*mro_of(kind), *mro_of(type(kind)))
                if is_made(one) and id(one) not in self.owners
            )
        )

    def has_their_functions(self, kind: type, homes: "tuple[str, ...]") -> bool:
        """Whether a class that its module does not have has functions, and nothing else that could be called."""
        values = list(vars(kind).values())
        functions = [one for one in values if self.origins.plain_function_of(one) is not None]
        others = [one for one in values if self.origins.plain_function_of(one) is None and not is_built_in(one)]
        return (
            bool(functions)
            and not others
            and all(self.origins.origin_of(one, TAKING_PART) in homes for one in functions)
        )


def is_built_in(value: "Any") -> bool:
    """Whether a value cannot be called, or is as C has made it."""
    return not callable(value) or type(value) is type(len) or issubclass(type(value), type)


def is_pythons(code: "CodeType") -> bool:
    """Whether a function is of Python's own library, where it is known to be that or pytest's."""
    return code.co_filename.startswith("<frozen") or files.is_pythons(code.co_filename)


def written_at(code: "CodeType") -> "tuple[str, str]":
    """Where a function is written."""
    return code.co_filename, code.co_name


def is_standard(name: "Any") -> bool:
    """Whether a module is one of Python's own, by its name."""
    top = name.partition(".")[0] if type(name) is str else ""
    return top in STANDARD and top not in ELSEWHERE


def is_standard_class(kind: type) -> bool:
    """Whether a class is of one of Python's own modules, by what it says."""
    return is_standard(vars(kind).get("__module__", "builtins"))


def load(name: str) -> None:
    """Import a module of the library, unless another one has its name, or it is not for this platform."""
    top = name.partition(".")[0]
    if top in JOKES:
        return
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one that is no longer recommended, the test is told
        found = find_spec(top)
        if found is not None and (not found.has_location or files.is_pythons(str(found.origin))):
            importlib.import_module(name)
