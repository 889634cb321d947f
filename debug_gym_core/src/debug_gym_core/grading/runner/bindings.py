"""What names of a test module stand for, as far as its text says: what equals anything, what is gone through."""

import ast
import os
import re
import sys

from .imports import imports_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from typing import Union

    Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]

WRAPPERS = frozenset(("enumerate", "list", "reversed", "sorted", "tuple"))
"""Functions whose result has as many elements as their first argument."""

EMPTYING = frozenset(("clear", "pop", "popitem", "remove", "discard"))
"""Methods after which a container may have no element any more."""

KEEPING = frozenset(("dict", "frozenset", "keep", "list", "set", "sorted", "tuple"))
"""Functions whose result has the elements of their first argument; `keep` is ours."""

PATTERNS = frozenset(("MatchAs", "MatchStar", "MatchMapping"))
"""Nodes of `match` that bind names; from Python 3.10."""

OF_TESTS = re.compile("test|helper")
"""In the name of a module that belongs to the tests."""

_LIBRARY = os.path.dirname(os.__file__)
STANDARD = frozenset(sys.builtin_module_names).union(
    name.partition(".")[0]
    for place in (_LIBRARY, os.path.join(_LIBRARY, "lib-dynload"))
    for name in (os.listdir(place) if os.path.isdir(place) else ())
)
"""Modules of the standard library, which are nobody's code that is tested."""

LARGEST = 1000000
"""Numbers that a range may have for us to count them."""


class Bindings(object):
    """The names of one module.

    Args:
        tree: the module
        anything: whether it may have `mock.ANY` from another one, of the tests' too

    Attributes:
        nodes: all of the module
        imports: the names that its imports bind, see `Import`
        bound: how often each name is bound
    """

    def __init__(self, tree: ast.Module, anything: bool = False) -> None:
        self.nodes = tuple(ast.walk(tree))
        self.imports = tuple(imports_in(self.nodes))
        self.gets_anything = anything
        self.has_anything = anything or any(map(_is_named_any, self.nodes))
        self.bound = {}  # type: dict[str, int]
        emptied = set()  # type: set[str]
        for node in self.nodes:
            for name in bound_by(node):
                self.bound[name] = self.bound.get(name, 0) + 1
            if isinstance(node, ast.Attribute) and node.attr in EMPTYING and isinstance(node.value, ast.Name):
                emptied.add(node.value.id)
            if isinstance(node, ast.Delete):
                emptied.update(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        self.constants = frozenset(
            one.targets[0].id
            for one in tree.body
            if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
            if self.bound[one.targets[0].id] == 1 and one.targets[0].id not in emptied and _has_elements(one.value)
        )
        self.assigned = [
            (one.targets[0].id, one.value)
            for one in self.nodes
            if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
        ]
        self.assigned_names = frozenset(name for name, _ in self.assigned)
        self.with_any = self._with_any()
        self.displays = self._displays()
        self.imported = self._imported()
        self.tested = self._imported(STANDARD)
        self.answers = self._answers()

    def free(self, sides: "list[ast.expr]", names: "frozenset[str]") -> str:
        """Which sides of a comparison, `l` or `r`, may be what equals anything, as `mock.ANY` does.

        Only what the test itself has made so: what is called that, or has one of some names. Any other variable may
        hold what the tested code has returned.

        Args:
            sides: both
            names: of what was made so

        Returns:
            `E` as well where the first side is what is expected: it alone is a container that is written in the test,
            or the other alone is what the tested code has returned; and `A` where `mock.ANY` may be in what is expected
        """
        if not self.has_anything:
            names = frozenset()
        free = [is_any(side) or getattr(side, "id", None) in names for side in sides]
        known = [
            is_written_out(one) or getattr(one, "id", None) in self.displays or self._writes_any(one) for one in sides
        ]
        answers = [self._is_answer(side) for side in sides]
        first = (known[0] or answers[1]) and not (known[1] or answers[0])
        return "l" * free[0] + "r" * free[1] + "E" * first + self.inside

    @property
    def inside(self) -> str:
        """`A` where `mock.ANY` may be in what is expected, wherever that is."""
        return "A" * self.has_anything

    @property
    def anything(self) -> "frozenset[str]":
        """Names to which nothing is bound but `mock.ANY`, and elements that are written in the module."""
        plain = []  # type: list[str]
        for node in self.nodes:
            if isinstance(node, ast.Assign) and is_any(node.value):
                targets = node.targets  # type: list[ast.expr]
            elif isinstance(node, ast.For) and self.is_full(node.iter) and self._holds_any(node.iter):
                targets = [node.target]
            else:
                continue
            for one in (inner for target in targets for inner in ast.walk(target)):
                # What gets an element or an attribute is loaded.
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    plain.append(one.id)
        return self._only(plain)

    def _holds_any(self, expression: ast.AST) -> bool:
        """Whether `mock.ANY` is written in an expression, or in what is bound to a name in it, or may be there."""
        unknown = _names_in(expression).difference(self.imported, self.assigned_names)
        return self._writes_any(expression) or (self.gets_anything and bool(unknown))

    def _writes_any(self, expression: ast.AST) -> bool:
        """Whether `mock.ANY` is written in an expression, or in what is bound to a name in it, and so on."""
        # Nothing is gone through for what is named nowhere: that took minutes in a module of five thousand lines.
        return self.has_anything and (_names_any(expression) or not self.with_any.isdisjoint(_names_in(expression)))

    def _with_any(self) -> "frozenset[str]":
        """Names to which something is bound in which `mock.ANY` is written, or such a name."""
        users = {}  # type: dict[str, list[str]]
        left = []  # type: list[str]
        for name, value in self.assigned if self.has_anything else ():
            for one in _names_in(value):
                users.setdefault(one, []).append(name)
            left += [name] * _names_any(value)
        found = set()  # type: set[str]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += users.get(name, ())
        return frozenset(found)

    def given(self, definition: "Definition") -> "frozenset[str]":
        """The parameters of a test, or of a class of tests, that may be `mock.ANY`: it is among what they are given."""
        may = self.has_anything and any(map(self._holds_any, definition.decorator_list))
        return parameters(definition) if may else frozenset()

    def _displays(self) -> "frozenset[str]":
        """Names to which nothing is bound but containers that are written out, and which are only compared.

        What gets it otherwise may change it, or give it to the tested code.
        """
        sides = [one for node in self.nodes for one in _compared(node) if isinstance(one, ast.Name)]
        loads = [one for one in self.nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
        used = {one.id for one in set(loads).difference(sides)}
        return self._only(name for name, value in self.assigned if name not in used and is_written_out(value))

    def _imported(self, but: "Container[str]" = ()) -> "frozenset[str]":
        """Names of modules and what is in them, of others than belong to the tests.

        Args:
            but: packages whose names are left out
        """
        others = [one for one in self.imports if not one.level and not OF_TESTS.search(one.module)]
        return self._only(one.name for one in others if one.module.partition(".")[0] not in but)

    def _answers(self) -> "frozenset[str]":
        """Names to which nothing is bound but what functions return that are imported, and what is in that."""
        users = {}  # type: dict[str, list[str]]
        left = []  # type: list[str]
        for name, value in self.assigned:
            origin, is_called = _origin(value)
            if is_called and origin in self.tested:
                left.append(name)
            else:
                users.setdefault(origin, []).append(name)
        counts, found = {}, set()  # type: dict[str, int], set[str]
        while left:
            name = left.pop()
            counts[name] = counts.get(name, 0) + 1
            if counts[name] == self.bound[name]:
                found.add(name)
                left += users.get(name, ())
        return frozenset(found)

    def _is_answer(self, expression: ast.expr) -> bool:
        """Whether an expression is what a function that is imported returns, or something in it."""
        name, is_called = _origin(expression)
        return name in self.answers or (is_called and name in self.tested)

    def _only(self, names: "Iterable[str]") -> "frozenset[str]":
        """Names to which nothing else is bound than what they are given for, once for each time that they are."""
        counts = {}  # type: dict[str, int]
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        return frozenset(name for name, count in counts.items() if count == self.bound[name])

    def goes_round(self, loop: ast.For) -> bool:
        """Whether a loop's body runs to its end at least once in every run that passes: its elements are written there.

        Code that is tested may take them away as it runs, which no honest code does.
        """
        inside = [one for statement in loop.body for one in ast.walk(statement)]
        leaves = any(isinstance(one, (ast.Break, ast.Continue, ast.Return)) for one in inside)
        return not leaves and self.is_full(loop.iter)

    def is_full(self, iterable: ast.expr) -> bool:
        """Whether what an expression makes has an element, whatever the tested code is."""
        if isinstance(iterable, ast.Name):
            return iterable.id in self.constants
        if not isinstance(iterable, ast.Call):
            return _has_elements(iterable)
        function = iterable.func
        if isinstance(function, ast.Attribute):
            return function.attr in ("items", "keys", "values") and not iterable.args and self.is_full(function.value)
        if not isinstance(function, ast.Name) or function.id in self.bound or not iterable.args:
            return False
        if function.id == "range":
            return _counts(iterable)
        if function.id == "zip":
            return all(self.is_full(one) for one in iterable.args)
        return function.id in WRAPPERS and self.is_full(iterable.args[0])


def _origin(expression: ast.AST) -> "tuple[str, bool]":
    """The name that an expression has something of, and whether what is there is called; no name: it is of others."""
    is_called = False
    while not isinstance(expression, ast.Name):
        if isinstance(expression, ast.Call) and called(expression.func) in KEEPING and expression.args:
            is_called, expression = False, expression.args[0]
        elif isinstance(expression, ast.Call):
            is_called, expression = True, expression.func
        elif isinstance(expression, (ast.Attribute, ast.Subscript, ast.Await)):
            expression = expression.value
        else:
            return "", False
    return expression.id, is_called


def is_any(expression: ast.expr) -> bool:
    """Whether an expression is called as `mock.ANY` is."""
    return isinstance(expression, (ast.Name, ast.Attribute)) and called(expression) == "ANY"


def _names_any(tree: ast.AST) -> bool:
    """Whether something in a tree is called as `mock.ANY` is, or imported by that name."""
    return any(map(_is_named_any, ast.walk(tree)))


def _is_named_any(node: ast.AST) -> bool:
    return "ANY" in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", ""))


def _names_in(tree: ast.AST) -> "set[str]":
    return {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}


def is_written_out(expression: ast.expr) -> bool:
    """Whether an expression is a container of which everything is written there: constants, and `mock.ANY`."""
    return isinstance(expression, (ast.Dict, ast.List, ast.Tuple, ast.Set)) and _is_written(expression)


def _is_written(part: "Union[ast.expr, None]") -> bool:
    if isinstance(part, ast.Dict):
        return all(_is_written(one) for one in (*part.keys, *part.values))  # None is the key of `**`
    if isinstance(part, (ast.List, ast.Tuple, ast.Set)):
        return all(_is_written(one) for one in part.elts)
    return part is not None and (is_any(part) or _is_literal(part))


def _is_literal(expression: ast.expr) -> bool:
    try:
        ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _compared(node: ast.AST) -> "list[ast.expr]":
    """What a node of the tree does no more with than compare it."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return node.args if isinstance(node, ast.Call) and called(node.func).startswith("assert") else []


def called(function: ast.expr) -> str:
    """The last part of what a call names."""
    return str(getattr(function, "attr", getattr(function, "id", "")))


def parameters(definition: "Definition") -> "frozenset[str]":
    """The names that decorators of a test, or of a class of them, give values as `pytest.mark.parametrize` does."""
    calls = [one for one in definition.decorator_list if isinstance(one, ast.Call) and one.args]
    named = [one.args[0] for one in calls if called(one.func) == "parametrize"]
    named += [
        one.value
        for call in definition.decorator_list
        if isinstance(call, ast.Call) and called(call.func) == "parametrize"
        for one in call.keywords
        if one.arg == "argnames"
    ]
    texts = [part for one in named for part in (one.elts if isinstance(one, (ast.List, ast.Tuple)) else [one])]
    values = [written_text(one) for one in texts]
    if not values:
        return frozenset()
    bound = {one.id for one in ast.walk(definition) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    return frozenset(word.strip() for text in values for word in text.split(",")) - bound


def written_text(expression: ast.expr) -> str:
    """The text that a literal is; empty: it is none."""
    try:
        value = ast.literal_eval(expression)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def bound_by(node: ast.AST) -> "list[str]":
    """The names that a node of the tree itself binds."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    if isinstance(node, ast.ExceptHandler) or type(node).__name__ in PATTERNS:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        return [name] if name else []
    return []


def _has_elements(expression: ast.expr) -> bool:
    if isinstance(expression, (ast.List, ast.Tuple, ast.Set)):
        return any(not isinstance(one, ast.Starred) for one in expression.elts)
    return isinstance(expression, ast.Dict) and any(one is not None for one in expression.keys)


def _counts(call: ast.Call) -> bool:
    """Whether a call of `range` with literals makes a number."""
    try:
        given = [ast.literal_eval(one) for one in call.args]
        return 0 < len(range(*given)) <= LARGEST
    except (ValueError, TypeError, OverflowError):
        return False
