"""What the text of a test module names: what statements use, imports bind and texts say."""

import ast
import builtins

from .bindings import Bindings, bound_by, called, parameters
from .imports import IMPORTS
from .library import is_standard
from .owners import REPLACED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Mapping, Set
    from typing import Union

    from .imports import Import

    Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]
    Source = tuple[int, str]

LATER = (ast.Lambda, ast.GeneratorExp)
"""What is evaluated elsewhere than it stands, and can have no statements of ours in it."""


CASES = frozenset(("object", "TestCase", "IsolatedAsyncioTestCase"))
"""Bases that leave methods as they are written."""

_ASKED = [name for name in vars(builtins) if not name.startswith("__") and name not in REPLACED["builtins"]]
PYTHONS = {name: vars(builtins)[name] for name in _ASKED}
"""Python's own by their names."""


class Names(object):
    """What the names of a module of the tests stand for, as its text says.

    Attributes:
        imported: those that it has from the library alone: of what module, and what they are there; nothing: it itself
        functions: those of functions that it defines, once and as they are written
        methods: likewise, those of methods, with the names of their classes
        inherited: those of such methods, with the names of classes that have them of another alone
        pythons: those of Python's own functions to which it gives nothing else
        loads: modules of the library that it imports, and what may be such a module
        sources: the modules of which names are that imports bind, and nothing else does: how many packages above, and
            which
        stars: modules of which it imports all names
        later: names that are used by what variables of it stand for, when that is called
    """

    __slots__ = ("functions", "imported", "inherited", "later", "loads", "methods", "pythons", "sources", "stars")

    def __init__(self, tree: ast.Module, bindings: Bindings, said: "Set[str]", later: "dict[str, set[str]]") -> None:
        """Learn them.

        Args:
            tree: the module
            bindings: see there
            said: names that the module says in a text
            later: names that are used by what its variables stand for, when that is called
        """
        first = set(map(id, top_level(tree.body)))
        once = {name for name, times in bindings.bound.items() if times == 1}
        self.sources = {one.name: (one.level, one.home) for one in bindings.imports if one.name in once}
        # Of what a function imports the test may ask whether it is there.
        asked = {id(one.node) for one in bindings.imports if says(one, said)} - first
        named = [one for one in bindings.imports if not one.level and id(one.node) not in asked]
        library = [one for one in named if is_standard(one.home)]
        self.loads = sorted({name for one in library for name in (one.module, one.home, dotted(one.home, one.inside))})
        self.later = later
        self.stars = [one.home for one in named if one.name == "*"]
        self.imported = {one.name: (one.home, one.inside) for one in library if one.name in once}
        plain = [one for one in plain_in(tree.body) if one.name in once]
        self.functions = frozenset(one.name for one in plain if not isinstance(one, ast.ClassDef))
        self.methods = {}  # type: dict[str, list[str]]
        self.inherited = {}  # type: dict[str, list[str]]
        attributes = [one for one in bindings.nodes if isinstance(one, ast.Attribute)]
        stored = {one.attr for one in attributes if isinstance(one.ctx, ast.Store)}
        has = {name: set() for name in CASES}  # type: dict[str, set[str]]
        for kind in plain:
            bases = [called(one) for one in kind.bases] if isinstance(kind, ast.ClassDef) else []
            if isinstance(kind, ast.ClassDef) and not kind.keywords and has.keys() >= set(bases):
                bound = [name for one in kind.body for inner in ast.walk(one) for name in bound_by(inner)]
                methods = [one.name for one in plain_in(kind.body) if not isinstance(one, ast.ClassDef)]
                own = {name for name in methods if bound.count(name) == 1} - stored
                others = set().union(*(has[one] for one in bases)).difference(bound)  # type: set[str]
                has[kind.name] = own | others
                for table, names in ((self.methods, own), (self.inherited, others)):
                    for name in names:
                        table.setdefault(name, []).append(kind.name)
        self.pythons = frozenset(PYTHONS).difference(bindings.bound)


def plain_in(body: "list[ast.stmt]") -> "Iterator[Definition]":
    """The functions and classes that statements define as they are written: nothing decorates them."""
    for one in body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not one.decorator_list:
            yield one


def names_in(statement: ast.AST) -> "Iterator[str]":
    """The names and attributes that a statement uses itself, and not in the statements that it is made of."""
    left = [statement]
    while left:
        node = left.pop()
        if isinstance(node, ast.Attribute):
            if not node.attr.startswith("__"):  # which all classes have
                yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.name
        elif isinstance(node, IMPORTS):
            yield "__import__"
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module
        left += [one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.stmt)]


def top_level(body: "list[ast.stmt]") -> "Iterator[ast.stmt]":
    """The statements of a module that run as it is loaded, without those of classes."""
    left = list(body)  # type: list[ast.AST]
    while left:
        node = left.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            left += [one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr)]


def texts_in(nodes: "Collection[ast.AST]") -> "Iterator[str]":
    """The texts that are written in a module."""
    for node in nodes:
        text = getattr(node, {"Constant": "value", "Str": "s"}.get(type(node).__name__, ""), None)
        if type(text) is str:
            yield text


def says(one: "Import", texts: "Set[str]") -> bool:
    """Whether the module that an import names is one that a text does."""
    return not one.level and not texts.isdisjoint((one.home, one.home.partition(".")[0]))


def said_in(nodes: "Collection[ast.AST]", imported: "Container[str]") -> "Iterator[str]":
    """The names that a module says in a text, as the last part of one with dots, or gives something in the library.

    Args:
        nodes: all of the module
        imported: the names that it has from the library
    """
    for text in texts_in(nodes):
        yield text.rpartition(".")[2]
    for node in nodes:
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            # `os.getcwd = ...`, and `shop.time.sleep = ...`
            if isinstance(node.value, ast.Attribute) or getattr(node.value, "id", None) in imported:
                yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "multiple":  # of `mock.patch`
            for one in node.keywords:
                yield one.arg or ""


def later_in(nodes: "Collection[ast.AST]") -> "tuple[dict[str, set[str]], dict[str, set[str]]]":
    """The names that are used by what is called later, by the names that have it.

    Args:
        nodes: all of a module

    Returns:
        those of variables and parameters, and those of functions, which other modules may call or be given, as fixtures
    """
    own, shared = {}, {}  # type: dict[str, set[str]], dict[str, set[str]]
    if not any(isinstance(one, LATER) for one in nodes):
        return own, shared
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            add(shared, [node.name], used_by(node.body))
            given = [one for one in node.decorator_list if isinstance(one, ast.Call)]
            if given:
                # What is given may have a name in the module.
                add(own, parameters(node), used_by(given).union(*map(names_in, given)))
        elif isinstance(node, ast.ClassDef):
            add(own, parameters(node), used_by(node.decorator_list))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = [name for target in targets for one in ast.walk(target) for name in bound_by(one)]
            add(own, bound, used_by([node.value]))
    return own, shared


def add(table: "dict[str, set[str]]", names: "Collection[str]", used: "Set[str]") -> None:
    """Add names that others use."""
    for name in names if used else ():
        table.setdefault(name, set()).update(used)


def used_by(nodes: "Collection[ast.AST]") -> "set[str]":
    """The names that are used later by what stands in some nodes."""
    return {name for node in nodes for one in ast.walk(node) if isinstance(one, LATER) for name in names_in(one)}


def with_later(names: "Collection[str]", *tables: "Mapping[str, Set[str]]") -> "frozenset[str]":
    """Names, and those that are used when what has one is called, and so on.

    Args:
        names: those of a statement
        tables: see `later_in`
    """
    found = set(names)
    left = list(names)
    while left:
        name = left.pop()
        more = set().union(*(table.get(name, ()) for table in tables)) - found
        found |= more
        left += more
    return frozenset(found)


def dotted(home: str, name: str) -> str:
    """What is called by a name in a module, or that itself."""
    return "{}.{}".format(home, name) if name else home
