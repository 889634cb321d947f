"""What the statements of a turned test use by name, looked at before each of them: whether it is what it was.

What a test asks by a function of Python's, or a helper of its own, has no opposite that could be asked, and who
replaces one may put it back as soon as it was called. Tests themselves replace what they like: by functions of their
own, or by names that they say, as `mock.patch("os.path.exists")` does.
"""

import ast
import builtins
import os
import re
import sys
from zlib import crc32

from .bindings import Bindings, written_text
from .library import Library, load
from .loaded import Loaded
from .named import PYTHONS, Names, dotted, later_in, names_in, said_in, texts_in, with_later
from .owners import MISSING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set
    from types import FrameType
    from typing import Any, Union

    from .owners import Space

STRANGE = "what it uses is not what it was: "
"""How a test fails that is not believed for it; what follows are names, with commas between them. Before it stands the
secret where its expectations hold, and their opposites do not."""

TOLD = 8
"""Names that are told of one test: no more than a message holds."""

OFTEN = 300
"""Looks in one test after which only one in sixteen is taken, of many more one in 256, as in a loop over millions."""

WIDE = re.compile(
    "setUpClass|setup_class|setUpModule|setup_module"
    "|pytest_(?!runtest_|fixture_|pyfunc_|assert|exception_|report_teststatus|warning_).*"
)
"""Functions that prepare several tests: hooks, but for those of each test."""

_modules = sys.modules
_builtins = vars(builtins)


class Uses(object):
    """What one statement uses by name.

    Attributes:
        library: what the library has
        owners: the modules and classes that have it
        loaded: modules that it may name, and what they were
        imported: names that its module has from there, what they were, and what they are called
        functions: functions of the module
        methods: methods, with the names of their classes
        inherited: likewise, those of other classes
        kinds: classes of the library, of which it may use what no text names
        others: names that its module has from others than the library
        pythons: Python's own functions
        stars: modules that may have given the module others of these names
    """

    __slots__ = (
        "functions", "imported", "inherited", "kinds", "library", "loaded", "methods", "others", "owners", "pythons",
        "stars",
    )  # fmt: skip

    def __init__(self, names: "frozenset[str]", module: Names, library: Library, said: "Set[str]") -> None:
        names = names - said
        self.library = library.having(names, said)
        self.kinds = library.classes_of(names)
        self.owners = list({id(one.owner): one.owner for one in self.library}.values())
        known = [(name, library.original(name, "")) for name in sorted(names)]
        self.loaded = [(name, value) for name, value in known if value is not MISSING]
        found = [(name, *module.imported[name]) for name in sorted(names.intersection(module.imported))]
        originals = [(name, library.original(home, one), dotted(home, one)) for name, home, one in found]
        self.imported = [one for one in originals if one[1] is not MISSING]
        self.functions = sorted(names & module.functions)
        self.methods = [(kind, name) for name in sorted(names) for kind in module.methods.get(name, ())]
        self.inherited = [(kind, name) for name in sorted(names) for kind in module.inherited.get(name, ())]
        self.others = sorted(names.intersection(module.sources).difference(module.imported))
        self.pythons = sorted(names & module.pythons)
        self.stars = module.stars


class Statements(object):
    """All of a run.

    Attributes:
        library: Python's
        said: names that the tests say in a text, or give something of the library: these they may replace
        shadowed: names of the library's modules that some in the repository have
        own: ids of the code objects of turned modules
        names: what each statement uses by name
        modules: what the names of its module stand for
        later: names that are used by what functions of the tests return, when that is called
        loaded: what modules had when they were loaded
        looked: what each statement uses which ran
        before: what was strange since the last test
        at_load: likewise, as modules were loaded, by the ids of their globals
        lasting: ids of the code objects of what prepares more than the next test
        always: what was strange in one of these
    """

    __slots__ = (
        "always", "at_load", "before", "function", "lasting", "later", "library", "loaded", "looked", "modules",
        "names", "own", "said", "shadowed", "urandom",
    )  # fmt: skip

    def __init__(self) -> None:
        self.library = Library()
        self.said = set()  # type: set[str]
        self.shadowed = frozenset()  # type: frozenset[str]
        self.own = frozenset()  # type: frozenset[int]
        self.names = []  # type: list[frozenset[str]]
        self.modules = []  # type: list[Names]
        self.later = {}  # type: dict[str, set[str]]
        self.loaded = Loaded()
        self.looked = {}  # type: dict[int, Uses]
        self.before = set()  # type: set[str]
        self.at_load = {}  # type: dict[int, set[str]]
        self.lasting = frozenset()  # type: frozenset[int]
        self.always = set()  # type: set[str]
        self.urandom = os.urandom
        self.function = type(lambda: 0)

    # Before any tested code runs

    def meet(self, tree: ast.Module, bindings: Bindings) -> Names:
        """Learn what a module of the tests names and says, and load what it imports from the library.

        Args:
            tree: the module
            bindings: see there
        """
        own, shared = later_in(bindings.nodes)
        for name, used in shared.items():
            self.later.setdefault(name, set()).update(used)
        names = Names(tree, bindings, set(texts_in(bindings.nodes)), own)
        for module in names.loads:
            if module.partition(".")[0] not in self.shadowed:
                load(module)
        self.said.update(said_in(bindings.nodes, names.imported))
        return names

    def number(self, statement: ast.stmt, module: Names) -> "Union[int, None]":
        """The number of a statement that uses something by name; None: it does not.

        Args:
            statement: it
            module: see `meet`
        """
        names = frozenset(names_in(statement))
        if not names:
            return None
        self.library.wanted |= names
        self.names.append(names)
        self.modules.append(module)
        return len(self.names) - 1

    # As tests run

    def remember(self, space: "Space", numbers: "Iterable[int]") -> None:
        """Take in what a module has that was loaded.

        Args:
            space: its globals
            numbers: of its statements
        """
        for number in list(numbers)[:1]:
            self.loaded.end(space, self.modules[number].sources, self.library.origins)

    def begin(self, test: "Any", space: "Space") -> None:
        """Tell a test what was strange before it, as in its fixtures, or as its module was loaded.

        Args:
            test: an `Around`
            space: the globals of its module
        """
        test.strange |= self.before | self.always | self.at_load.get(id(space), set())
        self.before = set()

    def look(self, number: int, frame: "FrameType", under_way: "list[Any]", is_loading: bool) -> None:
        """Look at what a statement is about to use, the first time in each test, and then often enough.

        Args:
            number: the statement's
            frame: what runs it
            under_way: the tests that are, each an `Around`
            is_loading: whether its module is loaded just now
        """
        if under_way:
            test = under_way[-1]
            test.looks += 1
            is_again, often = number in test.used, test.looks > OFTEN
            if is_again and often and max(self.urandom(2 if test.looks > 16 * OFTEN else 1)) >= 16:
                return
            test.used.add(number)
        found = self.found(number, frame.f_globals)
        if frame.f_builtins is not _builtins:
            found.append("__builtins__")
        for strange in [one.strange for one in under_way] or [self.told_of(frame, is_loading)] if found else ():
            strange.update(found)

    def told_of(self, frame: "FrameType", is_loading: bool) -> "set[str]":
        """What was strange where there is no test under way, for those that are told of it.

        Args:
            frame: what ran then
            is_loading: see `look`
        """
        if is_loading:
            return self.at_load.setdefault(id(frame.f_globals), set())
        caller = frame  # type: Union[FrameType, None]
        while caller is not None and id(caller.f_code) not in self.lasting:
            caller = caller.f_back
        return self.before if caller is None else self.always

    def all_strange(self, numbers: "Iterable[int]", space: "Space") -> "set[str]":
        """What statements that do not run would use that is not what it was.

        Args:
            numbers: of them
            space: the globals of their module
        """
        return {name for number in numbers for name in self.found(number, space)}

    def found(self, number: int, space: "Space") -> "list[str]":
        """As `strange`, also of what raises where it is looked at, as the tested code may have put there."""
        try:
            return list(self.strange(number, space))
        except Exception:
            return ["what cannot be looked at"]

    def strange(self, number: int, space: "Space") -> "Iterator[str]":
        """What a statement is about to use that is not what it was.

        Args:
            number: the statement's
            space: the globals of the function that it is in
        """
        uses = self.looked.get(number)
        if uses is None:
            module = self.modules[number]
            names = with_later(self.names[number], module.later, self.later)
            uses = self.looked[number] = Uses(names, module, self.library, self.said)
        may_be = self.library.may_be
        for owner in uses.owners:
            if owner.is_other():
                yield owner.name
        for kind in uses.kinds:
            for name in self.library.strange_special(kind, self.said):
                yield name
        for one in uses.library:
            if self.library.is_strange(one):
                yield str(one)
        for name, module in uses.loaded:
            if _modules.get(name, module) is not module:
                yield name
        for name, value, where in uses.imported:
            now = space.get(name, value)
            if now is not value and not may_be(now, value, name):
                yield where
        for name in uses.others:
            value = self.loaded.had(space, name)
            now = space.get(name, value)
            if value is not MISSING and now is not value and not may_be(now, value, name):
                yield name
        for name in uses.functions:
            if name in space and not self.is_own(space[name], name, space):
                yield name
        for home, name in uses.methods:
            inner = inside(space, home)
            if name in inner and not self.is_own(inner[name], name, space):
                yield "{}.{}".format(home, name)
        for home, name in uses.inherited:
            if name in inside(space, home):
                yield "{}.{}".format(home, name)
        for name in uses.pythons:
            there = space.get(name, PYTHONS[name])
            if there is not PYTHONS[name] and not self.library.has_given(uses.stars, name, there):
                yield name

    def is_own(self, value: "Any", name: str, space: "Space") -> bool:
        """Whether a function is one that the module defines.

        Args:
            value: it
            name: of it
            space: the module's
        """
        if type(value) is not self.function or value.__globals__ is not space:
            return False
        is_written = id(value.__code__) in self.own and value.__code__.co_name == name
        return is_written and not self.loaded.has_changed(value)


def inside(space: "Space", name: str) -> "Space":
    """What a class of a module has itself."""
    value = space.get(name)
    return vars(value) if issubclass(type(value), type) else {}


def listed(names: "Set[str]") -> str:
    """Names in a line; of more than a message holds, how many more and a number that no others have."""
    first, rest = sorted(names)[:TOLD], sorted(names)[TOLD:]
    return ", ".join(first + ["{} more ({:08x})".format(len(rest), crc32(" ".join(rest).encode()))] * bool(rest))


def outliving(tree: ast.Module) -> "Iterator[tuple[str, int]]":
    """The functions whose work may be for more than the next test, as fixtures of a session; with their first lines."""
    for one in ast.walk(tree):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            named = [each for call in one.decorator_list for each in getattr(call, "keywords", ())]
            scopes = [each.value for each in named if each.arg == "scope"]
            if WIDE.fullmatch(one.name) or any(written_text(each) != "function" for each in scopes):
                yield one.name, min([one.lineno, *(each.lineno for each in one.decorator_list)])
