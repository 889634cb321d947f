"""Keeps what a test expects out of its code and variables, where what it calls could read it.

`assert f(3) == 6` becomes `assert f(3) == E.literal(0, 13)`: `f` finds a 13 in the code that calls it, and if it
returns that, it is found out. A variable or parameter that is only compared with is kept likewise, and so is what
`approx`, `Decimal` and their like are called with.
"""

import ast
import re

from .bindings import bound_by, called

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any, Union

    Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]

EQUALITIES = frozenset((
    "assertEqual", "assertEquals", "assertAlmostEqual", "assertCountEqual", "assertSequenceEqual", "assertListEqual",
    "assertTupleEqual", "assertSetEqual", "assertDictEqual", "assertMultiLineEqual",
))  # fmt: skip
"""Assertion methods of unittest that compare their first two arguments."""

MAKERS = frozenset((
    "approx", "Decimal", "Fraction", "Path", "PurePath", "date", "datetime", "timedelta", "UUID", "array", "set",
    "frozenset", "OrderedDict", "Counter", "deque",
))  # fmt: skip
"""Functions and classes that make what is expected of literals."""

FRAMES_OWN = frozenset(("super", "locals", "globals", "vars", "dir", "eval", "exec"))
"""Functions of Python's that look at the frame that calls them."""


class Literals(object):
    """The literals that are kept.

    Args:
        name: of the global that gives them back
        values: those of other modules, to which this one's are added
    """

    def __init__(self, name: str, values: "list[object]") -> None:
        self.name = name
        self.values = values
        self.variables = {}  # type: dict[str, Union[int, None]]
        self.taken = []  # type: list[ast.expr]

    def begin(self, function: "Function", is_test: bool) -> "list[ast.stmt]":
        """Look at a function before it is rewritten.

        Args:
            function: with the lines as they are written
            is_test: whether it is a test; a helper has its variables for others, too

        Returns:
            what is to be done at its beginning
        """
        self.variables = {}
        first = []  # type: list[ast.stmt]
        read = _read_names(function)
        if not is_test or read is None:
            return first
        nodes = list(ast.walk(function))
        sides = [one for node in nodes for one in _sides(node) if isinstance(one, ast.Name)]
        if not sides:
            return first
        bound = [name for node in nodes if node is not function for name in bound_by(node)]
        parameters = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
        for name in sorted({one.id for one in sides} - read):
            uses = [one for one in nodes if isinstance(one, ast.Name) and one.id == name]
            loads = [one for one in uses if isinstance(one.ctx, ast.Load)]
            if len(loads) != len([one for one in sides if one.id == name]) or _is_declared(function, name):
                continue
            if bound.count(name) != 1:
                continue
            if len(loads) == len(uses) and name in parameters:
                self.variables[name] = None
                asked = self.ask("hide", [ast.Name(name, ast.Load())], function.body[0])
                made = ast.Assign([ast.Name(name, ast.Store())], asked)
                first.append(ast.copy_location(made, function.body[0]))
            elif len(uses) == len(loads) + 1 and name not in parameters:
                self.assigned(nodes, name)
        return first

    def assigned(self, nodes: "list[ast.AST]", name: str) -> None:
        """Keep the literal that a variable of a function, of which all nodes are given, is made of."""
        for one in nodes:
            if not isinstance(one, (ast.Assign, ast.AnnAssign)):
                continue
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            written = one.value
            value = literal(written) if written is not None else None
            if written is not None and value is not None and [getattr(to, "id", "") for to in targets] == [name]:
                self.variables[name] = len(self.values)
                self.values.append(value[0])
                self.taken.append(written)
                one.value = ast.copy_location(_written(changed(value[0])), written)

    def kept(self, sides: "list[ast.expr]") -> "list[ast.expr]":
        """Both sides of a comparison, with what is expected to be asked for."""
        return [self.side(one) for one in sides] if is_kept(sides) else sides

    def side(self, node: "ast.expr") -> "ast.expr":
        """One side."""
        if isinstance(node, ast.Name) and node.id in self.variables:
            number = self.variables[node.id]
            return self.ask("shown", [node], node) if number is None else self.asked(number, node)
        made = _making(node)
        if made is not None:
            made.args = [self.side(one) for one in made.args]
            return node
        value = literal(node)
        if value is None:
            return node
        self.values.append(value[0])
        return self.asked(len(self.values) - 1, _written(changed(value[0])))

    def asked(self, number: int, instead: "ast.expr") -> ast.expr:
        """What gives back a literal."""
        return self.ask("literal", [_written(number), instead], instead)

    def asks(self, call: ast.Call) -> bool:
        """Whether a call is one of the module's `Expectations`."""
        return getattr(getattr(call.func, "value", None), "id", "") == self.name

    def ask(self, method: str, arguments: "list[ast.expr]", place: "Any") -> ast.expr:
        """A call of the module's `Expectations`."""
        function = ast.Attribute(ast.Name(self.name, ast.Load()), method, ast.Load())
        made = ast.Call(function, arguments, [])
        return ast.copy_location(made, place) if hasattr(place, "lineno") else made


def is_kept(sides: "list[ast.expr]") -> bool:
    """Whether two sides that are compared are not both literals."""
    return any(literal(one) is None for one in sides)


def literal(node: ast.AST) -> "Union[tuple[Any], None]":
    """The value of a literal, if another one can stand in its place; None: it is none."""
    try:
        value = ast.literal_eval(node)
        ast.literal_eval(repr(changed(value)))  # which has to be written: an infinity has no literal
        return (value,) if changed(value) != value else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def changed(value: "Any") -> "Any":
    """Another value that looks like this one; what cannot be told from others stays."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float, complex)):
        return value + 7
    if isinstance(value, str):
        return value + "7"
    if isinstance(value, bytes):
        return value + b"7"
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
    assigned = Literals("", [])
    sides = []  # type: list[ast.expr]
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in tests:
            sides += [one for inner in ast.walk(node) for side in _all_sides(inner) for one in _parts(side)]
            assigned.begin(node, True)
    places = {}
    for one in [*sides, *assigned.taken]:
        value = literal(one)
        if value is not None:
            last, written = one.end_lineno or one.lineno, ascii(changed(value[0])).encode("ascii")
            if last > one.lineno:
                written = b"(" + written + b"\n" * (last - one.lineno) + b")"
            places[one.lineno, one.col_offset] = last, one.end_col_offset, written
    for (line, start), (last, end, written) in sorted(places.items(), reverse=True):
        joined = lines[line - 1][:start] + written + lines[last - 1][end:]
        lines[line - 1 : last] = [joined, *[b""] * (last - line)]
    return b"".join(lines)


def _sides(node: ast.AST) -> "list[ast.expr]":
    """Both sides of the equality that a statement expects, where one of them is called; none where it is another."""
    sides = []  # type: list[ast.expr]
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        sides = [node.test.left, *node.test.comparators] if isinstance(node.test.ops[0], ast.Eq) else []
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and is_plain(node.value):
        sides = node.value.args[:2] if getattr(node.value.func, "attr", "") in EQUALITIES else []
    return sides if len(sides) == 2 and is_kept(sides) else []


def _all_sides(node: ast.AST) -> "Iterator[ast.expr]":
    """The same, and both sides of each equality that a statement of that kind rests on, as of `a == b and c == d`."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call):
        yield from _sides(node)
    if isinstance(node, ast.Assert) or (isinstance(call, ast.Call) and called(call.func).startswith("assert")):
        for one in ast.walk(node):
            if isinstance(one, ast.Compare) and len(one.ops) == 1 and isinstance(one.ops[0], ast.Eq):
                sides = [one.left, one.comparators[0]]
                yield from sides if is_kept(sides) else ()


def _parts(side: ast.expr) -> "list[ast.expr]":
    """What may be a literal in a side."""
    made = _making(side)
    return [side] if made is None else made.args


def _making(side: ast.AST) -> "Union[ast.Call, None]":
    """The call that makes what is expected, as `Decimal("1.5")` does; `keep` is asked for it in a turned module."""
    while isinstance(side, ast.Call) and called(side.func) == "keep" and side.args:
        side = side.args[0]
    return side if isinstance(side, ast.Call) and is_plain(side) and called(side.func) in MAKERS else None


def is_plain(call: ast.Call) -> bool:
    """Whether all arguments of a call are written in it."""
    return not any(isinstance(one, ast.Starred) for one in call.args) and all(one.arg for one in call.keywords)


def _read_names(function: "Function") -> "Union[frozenset[str], None]":
    """Names of variables in texts that are evaluated, as by `eval`, or pandas' `query`; None: any may be read."""
    found = set()  # type: set[str]
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if isinstance(node.func, ast.Name) and name in ("locals", "vars", "dir") and not node.args:
            return None
        if name in ("eval", "exec", "query"):
            for one in (inner for argument in node.args for inner in ast.walk(argument)):
                text = getattr(one, "value", getattr(one, "s", None))  # `s`: Python 3.7
                found.update(re.findall(r"\w+", text) if isinstance(text, str) else ())
    return frozenset(found)


def _is_declared(function: "Function", name: str) -> bool:
    """Whether a function says that a name is another's, or has functions or classes in which it could be another."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    inner = [node for node in ast.walk(function) if isinstance(node, kinds) and node is not function]
    declared = [node for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal))]
    return any(name in node.names for node in declared) or any(
        getattr(one, "id", "") == name for node in inner for one in ast.walk(node)
    )


def _written(value: "Any") -> ast.expr:
    return ast.parse(repr(value), mode="eval").body
