"""Keeps what a test expects out of its code and variables, where what it calls could read it.

`assert f(3) == 6` becomes `assert f(E.literal(0, 10)) == E.literal(1, 13)`: `f` finds a 13 in the code that calls it,
and if it returns that, it is found out. A variable or parameter that is only compared with is kept likewise, and so is
the class of an exception that is expected.
"""

import ast
import re
import sys
from collections import Counter

from .assertions import asserted_by, assertion, expecting, own_arguments
from .bindings import bound_by, called
from .opposites import OPPOSITES
from .unlike import SCALARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterator
    from typing import Any, Union

    Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
NEXT = str.maketrans(
    _LETTERS + _LETTERS.upper() + "0123456789",
    _LETTERS[1:] + "a" + _LETTERS[1:].upper() + "A" + "1234567890",
)
"""Of each letter and digit the next one."""

SPELT = frozenset(("Constant", "Num", "Str", "Bytes", "List", "Tuple", "Set", "Dict", "UnaryOp", "BinOp"))
"""Nodes that a literal can be."""

FRAMES_OWN = frozenset(("super", "locals", "globals", "vars", "dir", "eval", "exec"))
"""Functions of Python's that look at the frame that calls them."""


class Literals(object):
    """The literals that are kept.

    Args:
        name: of the global that gives them back
        values: what makes those of other modules, to which this one's are added

    Attributes:
        nodes: of the function at hand, with all in it
    """

    def __init__(self, name: str, values: "list[Callable[[], Any]]") -> None:
        self.name = name
        self.values = values
        self.variables = {}  # type: dict[str, Union[int, None]]
        self.taken = []  # type: list[ast.expr]
        self.bound = frozenset()  # type: frozenset[str]
        self.nodes = []  # type: list[ast.AST]

    def begin(self, function: "Function", is_test: bool) -> "list[ast.stmt]":
        """Look at a function before it is rewritten.

        Args:
            function: with the lines as they are written
            is_test: whether it is a test; a helper has its variables for others, too

        Returns:
            what is to be done at its beginning
        """
        self.variables = {}
        self.nodes = nodes = list(ast.walk(function))
        first = []  # type: list[ast.stmt]
        made_of = set()  # type: set[str]
        self.bound = _bound_in(nodes)
        read = _read_names(nodes) if is_test else None
        if read is None:
            return first
        sides = [one for node in nodes for one in _sides(node) if isinstance(one, ast.Name)]
        if not sides:
            return first
        uses = Counter(one.id for one in nodes if isinstance(one, ast.Name))
        loads = Counter(one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
        compared, bound = Counter(one.id for one in sides), Counter(n for one in nodes[1:] for n in bound_by(one))
        others = _others(nodes)
        parameters = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
        for name in sorted(set(compared) - read - others):
            if loads[name] != compared[name] or bound[name] != 1:
                continue
            if loads[name] == uses[name] and name in parameters:
                self.variables[name] = None
                asked = self.ask("hide", [ast.Name(name, ast.Load())], function.body[0])
                made = ast.Assign([ast.Name(name, ast.Store())], asked)
                first.append(ast.copy_location(made, function.body[0]))
            elif uses[name] == loads[name] + 1 and name not in parameters:
                made_of.add(name)
        self.assigned(nodes, made_of)
        return first

    def assigned(self, nodes: "list[ast.AST]", names: "Container[str]") -> None:
        """Keep the literals that variables of a function, of which all nodes are given, are made of.

        Not where a helper is given what it may change in place: each that is given back is a new one.
        """
        given = {getattr(one, "id", "") for node in nodes for one in _given_to_helpers(node)}
        for one in nodes:
            if not isinstance(one, (ast.Assign, ast.AnnAssign)):
                continue
            targets = [getattr(to, "id", "") for to in (one.targets if isinstance(one, ast.Assign) else [one.target])]
            if len(targets) != 1 or targets[0] not in names or one.value is None:
                continue
            written, value = one.value, literal(one.value)
            if value is not None and not (targets[0] in given and isinstance(value[0], (list, dict, set))):
                self.variables[targets[0]] = self.add(value[0])
                self.taken.append(written)
                one.value = ast.copy_location(constant(changed(value[0])), written)

    def hidden(self, node: ast.AST) -> "Union[ast.expr, None]":
        """What gives back a literal, or a variable that is kept; None for any other part of an expectation."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.variables:
            number = self.variables[node.id]
            return self.ask("shown", [node], node) if number is None else self.asked(number, node)
        value = literal(node)
        return self.asked(self.add(value[0]), ast.copy_location(constant(changed(value[0])), node)) if value else None

    def kind(self, node: ast.expr) -> ast.expr:
        """A class that is expected, or several, without its name."""
        if isinstance(node, ast.Tuple):
            node.elts = [self.kind(one) for one in node.elts]
            return node
        names = _global_name(node, self.bound)
        return self.ask("named", [constant(self.add(names))], node) if names else self.hidden(node) or node

    def add(self, value: object) -> int:
        """Keep a value; its number."""
        self.values.append(maker(sys.intern(value) if type(value) is str else value))  # as those in code are
        return len(self.values) - 1

    def asked(self, number: int, instead: "ast.expr") -> ast.expr:
        """What gives back a literal."""
        return self.ask("literal", [constant(number), instead], instead)

    def ask(self, method: str, arguments: "list[ast.expr]", place: "Any") -> ast.expr:
        """A call of the module's `Expectations`."""
        function = ast.Attribute(ast.Name(self.name, ast.Load()), method, ast.Load())
        made = ast.Call(function, arguments, [])
        return ast.copy_location(made, place) if hasattr(place, "lineno") else made


def is_kept(sides: "list[ast.expr]") -> bool:
    """Whether two sides that are compared are not both literals."""
    return any(literal(one) is None for one in sides)


def is_equality(node: ast.AST) -> bool:
    """Whether two sides are equal, is asked."""
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq)


def is_false(node: ast.AST) -> bool:
    """Whether an expression is a literal that does not hold, as in `assert False`."""
    try:
        return type(node).__name__ in (*SPELT, "NameConstant") and not ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def literal(node: ast.AST) -> "Union[tuple[Any], None]":
    """The value of a literal, if another one can stand in its place; None: it is none."""
    if type(node).__name__ not in SPELT:
        return None
    try:
        value = ast.literal_eval(node)
        other = changed(value)
        if type(value) not in (str, bytes):
            ast.literal_eval(repr(other))  # which has to be written: an infinity has no literal
        return (value,) if other != value else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def maker(value: "Any") -> "Callable[[], Any]":
    """What makes a literal's value: a new one each time, where who is given it could change it."""
    if is_fixed(value):
        return lambda: value
    if type(value) is set:  # of what can be hashed, which is fixed
        return value.copy
    parts = [maker(one) for one in (value.values() if type(value) is dict else value)]
    if type(value) is dict:
        return lambda: {key: make() for key, make in zip(value, parts)}  # noqa: B905 - Python 3.6
    kind = type(value)
    return lambda: kind([make() for make in parts])


def is_fixed(value: "Any") -> bool:
    """Whether nothing in a literal's value can be changed."""
    return type(value) in SCALARS or value is ... or (type(value) is tuple and all(map(is_fixed, value)))


def changed(value: "Any") -> "Any":
    """Another value that looks like this one; what cannot be told from others stays."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float, complex)):
        return value + 7
    if isinstance(value, str):
        other = value.translate(NEXT)  # No more than by chance is it in the other, nor that in it.
        return other if other != value else "7" * (len(value) or 1)
    if isinstance(value, bytes):
        return changed(value.decode("latin-1")).encode("latin-1")
    if isinstance(value, (list, tuple, set)):
        return type(value)(changed(one) for one in value)
    if isinstance(value, dict):
        return {key: changed(one) for key, one in value.items()}
    return value


def blurred(text: bytes, tree: ast.AST, tests: "Collection[str]") -> bytes:
    """The text of a test module with other literals in the place of those that its tests expect, on the same lines.

    Only in the tests: what else is in the module may run as it is written, in a process that a test starts.

    Args:
        text: of the module
        tree: of that
        tests: names of its functions and methods that are tests

    Raises:
        ValueError: it is not UTF-8
    """
    text.decode("utf-8")
    lines = text.splitlines(True)
    literals = Literals("", [])
    places = {}
    for function in _functions_in(tree):
        if function.name not in tests:
            continue
        del literals.taken[:]
        literals.begin(function, True)
        unplaced = {id(part) for one in literals.nodes if isinstance(one, ast.JoinedStr) for part in ast.walk(one)}
        nodes = [one for one in literals.nodes if id(one) not in unplaced]
        for one in [*literals.taken, *(part for node in nodes for part in _expected(node))]:
            value, names = literal(one), _global_name(one, literals.bound)
            if value is None and not names:
                continue
            other = ascii(changed(value[0])) if value is not None else ".".join(names) + "7"
            last, written = one.end_lineno or one.lineno, other.encode("ascii", "replace")
            if last > one.lineno:
                written = b"(" + written + b"\n" * (last - one.lineno) + b")"
            places[one.lineno, one.col_offset] = last, one.end_col_offset, written
    for (line, start), (last, end, written) in sorted(places.items(), reverse=True):
        joined = lines[line - 1][:start] + written + lines[last - 1][end:]
        lines[line - 1 : last] = [joined, *[b""] * (last - line)]
    return b"".join(lines)


def _functions_in(node: ast.AST) -> "Iterator[Function]":
    """The functions and methods of a module, and none that are in others."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield one
        elif not isinstance(one, ast.expr):
            yield from _functions_in(one)


def _sides(node: ast.AST) -> "list[ast.expr]":
    """What something is expected of, as it stands there; an equality may be one wherever it stands."""
    if not isinstance(node, (ast.Assert, ast.Compare, ast.Expr, ast.With)):
        return []
    asked = node.test if isinstance(node, ast.Assert) and not is_equality(node.test) else node
    if isinstance(asked, ast.Compare) and (asked is not node or is_equality(node)):
        sides = [asked.left, *asked.comparators]
        return sides if is_kept(sides) else []
    return [*asserted_by(node), *(one for call in expecting(node) for one in call.args[: own_arguments(call)])]


def _expected(node: ast.AST) -> "Iterator[ast.expr]":
    """Literals in what is expected, as it may be wherever something is equal, and classes that are to be raised."""
    parts = [node.test] if isinstance(node, ast.Assert) else [node] if is_equality(node) else asserted_by(node)
    for call in expecting(node):
        kind = call.args[0]
        yield from kind.elts if isinstance(kind, ast.Tuple) else [kind]
        parts = [*parts, *call.args[1 : own_arguments(call)]]
        parts += [one.value for one in call.keywords if isinstance(node, ast.With)]
    for part in parts:
        yield from _literals(part)


def _literals(node: ast.AST) -> "Iterator[ast.expr]":
    """The literals in an expression, which are in no others.

    None of an f-string, where no Python says their places, nor of a function, which is its author's to look at.
    """
    left = [node]
    while left:
        one = left.pop()
        if literal(one) is not None:
            yield one  # type: ignore[misc]
        elif not isinstance(one, (ast.JoinedStr, ast.Lambda)) and (
            not isinstance(one, ast.Compare) or is_kept([one.left, *one.comparators])
        ):
            left += ast.iter_child_nodes(one)


def _bound_in(nodes: "list[ast.AST]") -> "frozenset[str]":
    """The names that a function, of which all nodes are given, may have for itself, or changes."""
    declared = [name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names]
    return frozenset(name for node in nodes[1:] for name in bound_by(node)).union(declared)


def _global_name(node: ast.AST, bound: "Container[str]") -> "tuple[str, ...]":
    """The parts of a dotted name that begins with a global one; none of anything else.

    Args:
        node: the expression
        bound: names that are not
    """
    parts = []  # type: list[str]
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id in bound or any(one.startswith("__") for one in (node.id, *parts)):
        return ()
    return (node.id, *reversed(parts))


def _read_names(nodes: "list[ast.AST]") -> "Union[frozenset[str], None]":
    """Names of variables in texts that are evaluated, as by `eval`, or pandas' `query`; None: any may be read."""
    found = set()  # type: set[str]
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if isinstance(node.func, ast.Name) and name in ("locals", "vars", "dir") and not node.args:
            return None
        if name in ("eval", "exec", "query"):
            for one in (inner for argument in node.args for inner in ast.walk(argument)):
                text = one.value if hasattr(one, "value") else getattr(one, "s", None)  # the latter: Python 3.7
                found.update(re.findall(r"\w+", text) if isinstance(text, str) else ())
    return frozenset(found)


def _others(nodes: "list[ast.AST]") -> "set[str]":
    """Names that a function, of which all nodes are given, says are another's, or that are in functions within it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    found = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    left = [node for node in nodes[1:] if isinstance(node, kinds)]  # type: list[ast.AST]
    seen = set()  # type: set[int]
    while left:
        node = left.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found.add(getattr(node, "id", ""))
            left += ast.iter_child_nodes(node)
    return found


def _given_to_helpers(node: ast.AST) -> "list[ast.expr]":
    """What an assertion is given that is none of unittest's."""
    call = assertion(node)
    return [] if call is None or called(call.func) in OPPOSITES else asserted_by(node)


def constant(value: "Any") -> ast.expr:
    """A literal, as this version writes it."""
    return ast.parse(repr(value), mode="eval").body
