"""Rewrites a test module so that each expectation in it is asked of an `Expectations`, by syntax tree.

`assert a == b` becomes `E.compare(number, "==", a, b)`, any other `a == b` becomes `E.equal(a, b)`, an assertion method
or function `E.call(...)`, `raises` `E.raises(...)`; each test's body runs below `with E.test(...)`. Every line keeps
its number, every name its meaning.
"""

import ast

from .arrays import COMPARING
from .bindings import Bindings, called, written_text
from .literals import EQUALITIES, FRAMES_OWN, Literals, is_plain
from .opposites import OPPOSITES
from .taking import Taking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator
    from typing import Any, Union

    Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]

OPERATORS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}  # type: dict[type[ast.cmpop], str]

UNSHIELDED = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith),
    *(getattr(ast, name) for name in ("Match", "match_case") if hasattr(ast, name)),
)
"""Statements in whose bodies an expectation fails the test; what they are made of, too."""

RAISES = frozenset(("raises", "assertRaises", "assertRaisesRegex"))
"""Functions and methods that expect an exception, whose class is their first argument."""

UNTURNED = frozenset((
    "assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs", "assert_", "assert_raises", "assert_raises_regex",
    "assert_warns", "assert_no_warnings", "assert_no_gc_cycles",
))  # fmt: skip
"""Assertions that stay as they are: those of which no opposite can be made, and numpy's that compare nothing."""


def turn(
    tree: ast.Module, name: str, tests: "Collection[str]", literals: "list[object]", anything: bool = False
) -> "dict[str, int]":
    """Rewrite a test module in place.

    Args:
        tree: the module
        name: of the global that is the `Expectations` when the module runs
        tests: names of its functions and methods that are tests
        literals: of what is expected, for `Expectations.literal`; those of this module are added
        anything: see `Bindings`

    Returns:
        of each test, by its qualified name, how many expectations it asks in every run that passes
    """
    turner = _Turner(tree, name, tests, Literals(name, literals), Bindings(tree, anything))
    turner.scope(tree.body, "", frozenset())
    ast.fix_missing_locations(tree)
    return turner.tests


class _Turner(ast.NodeTransformer):
    """Rewrites function by function.

    Attributes:
        comparing: names that numpy and pandas, and what is in them, have in the module
        pytests: those of pytest
        bindings: what the names of the module stand for
        taking: which of them may take exceptions
        anything: names of what the tests themselves have made to equal anything, as `mock.ANY` does
        tests: of each test met so far, how many expectations it asks in every run that passes
        certain: how many of the function at hand
        maybe: above zero where a run that passes may not come by
        shielded: above zero where an expectation may fail in a test that passes
    """

    def __init__(
        self,
        tree: ast.Module,
        name: str,
        names: "Collection[str]",
        literals: Literals,
        bindings: Bindings,
    ) -> None:
        self.name = name
        self.names = names
        self.literals = literals
        self.comparing = frozenset(_imported(tree.body, COMPARING))
        self.pytests = frozenset(_imported(tree.body, ("pytest",)))
        self.bindings = bindings
        self.taking = Taking(tree)
        self.anything = self.everywhere = bindings.anything
        self.tests = {}  # type: dict[str, int]
        self.certain = 0
        self.maybe = 0
        self.shielded = 0
        self.number = 0

    def scope(self, body: "list[Any]", prefix: str, given: "frozenset[str]") -> None:
        """Rewrite the functions of a module or class, whose tests are all given some parameters."""
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                self.scope(statement.body, prefix + statement.name + ".", given | self.bindings.given(statement))
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.anything = self.everywhere | given | self.bindings.given(statement)
                self.function(statement, prefix)
            else:
                for part in ("body", "orelse", "handlers", "finalbody"):
                    self.scope(getattr(statement, part, []), prefix, given)

    def function(self, function: "Function", prefix: str) -> None:
        """Rewrite what a function of a module or class expects; put a test below `with`."""
        head = 0 if ast.get_docstring(function, clean=False) is None else 1
        is_test = function.name in self.names
        # Who calls a helper may take what it raises.
        self.certain, self.maybe, self.shielded = 0, 0, int(not is_test)
        comparisons = _Comparisons(self.literals, self.bindings, self.anything)
        first = self.literals.begin(function, is_test)
        body = first + [comparisons.visit(one) for one in self.statements(function.body[head:])]
        if is_test and not body:  # There is but a docstring.
            body = [ast.copy_location(ast.Pass(), function.body[0])]
        if is_test:
            qualified = prefix + function.name
            self.tests[qualified] = self.certain
            where = self.ask("test", [_constant(self.certain), _constant(_yields(function))], body[0])
            body = [ast.copy_location(ast.With([ast.withitem(where, None)], body), body[0])]
        function.body[head:] = body

    def statements(self, body: "list[ast.stmt]") -> "list[ast.stmt]":
        """Rewrite statements in their order; after one that may leave the test nothing is certain."""
        before = self.maybe
        made = []
        for statement in body:
            made.append(self.visit(statement))
            self.maybe += _returns(statement)
        self.maybe = before
        return made

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Any other statement: what stands in it is not certain, and below `try` or in a function it may fail."""
        shield = not isinstance(node, UNSHIELDED)
        self.maybe += 1
        self.shielded += shield
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, part, None)
            if isinstance(inner, list):
                setattr(node, part, [self.visit(one) for one in inner])
        self.shielded -= shield
        self.maybe -= 1
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        """A loop that goes round is as certain as what stands before it."""
        if not self.bindings.goes_round(node):
            return self.generic_visit(node)  # type: ignore[return-value]
        node.body = self.statements(node.body)
        self.maybe += 1
        node.orelse = [self.visit(one) for one in node.orelse]
        self.maybe -= 1
        return node

    # What asks

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        test = node.test = _Calls(self.name).inside(node.test)
        chained = isinstance(test, ast.Compare) and not any(map(_is_own, test.comparators[1:]))
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            sides = [test.left, test.comparators[0]]
            operator, free = OPERATORS[type(test.ops[0])], _constant(self.bindings.free(sides, self.anything))
            sides = self.literals.kept(sides) if operator == "==" else sides
            asked = self.ask("compare", [self.one(), _constant(operator), *sides, free], node)
        elif isinstance(test, ast.Compare) and chained:
            operators = _constant(tuple(OPERATORS[type(one)] for one in test.ops))
            second, *others = test.comparators
            sides = [test.left, second, *map(_later, others)]
            asked = self.ask("chain", [self.one(), operators, _constant(self.bindings.inside), *sides], node)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            asked = self.ask("holds", [self.one(), test.operand, _constant(False)], node)
        else:
            asked = self.ask("holds", [self.one(), test, _constant(True)], node)
        if node.msg is not None and self.shielded and not _is_own(node.msg):
            asked.keywords = [ast.keyword("says", _later(node.msg))]
        return ast.copy_location(ast.Expr(asked), node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if not isinstance(call, ast.Call):
            return node
        name = called(call.func)
        if name in RAISES:
            own = 2 if name == "assertRaisesRegex" else 1
            return self.raising_call(node, call, own) if len(call.args) > own and is_plain(call) else node
        if not name.startswith("assert") or name in UNTURNED or not is_plain(call):
            return node
        function = call.func
        number = self.one(counted=(name in OPPOSITES and _is_self(function)) or self.compares(call))
        free = _constant(
            self.bindings.free(call.args[:2], self.anything) if len(call.args) > 1 else self.bindings.inside
        )
        number = ast.copy_location(ast.Tuple([number, free], ast.Load()), node)
        if name in EQUALITIES:
            call.args[:2] = self.literals.kept(call.args[:2])
        if isinstance(function, ast.Attribute):
            first = [number, function.value, _constant(function.attr)]  # type: list[ast.expr]
            asked = self.ask("method", first + call.args, node)
        else:
            asked = self.ask("call", [number, function, *call.args], node)
        asked.keywords = call.keywords
        return ast.copy_location(ast.Expr(asked), node)

    def compares(self, call: ast.Call) -> bool:
        """Whether a function of numpy or pandas is called with two things that it compares."""
        return len(call.args) > 1 and self.is_of(call.func, self.comparing)

    def is_of(self, function: ast.expr, names: "frozenset[str]") -> bool:
        """Whether a function is one of some names, or something in them."""
        while isinstance(function, ast.Attribute):
            function = function.value
        return isinstance(function, ast.Name) and function.id in names

    def raising_call(self, node: ast.stmt, call: ast.Call, own: int) -> ast.stmt:
        """`raises(E, function, ...)`, which may be another's than pytest's or unittest's."""
        if written_text(call.args[own]):  # Code, for a pytest before 5; it runs in the frame that calls.
            return node
        number = self.one(counted=_is_self(call.func) or self.is_of(call.func, self.pytests))
        asked = self.ask("raising", [number, _constant(own), call.func, *call.args], node)
        asked.keywords = call.keywords
        return ast.copy_location(ast.Expr(asked), node)

    def visit_With(self, node: ast.With) -> ast.stmt:
        takes = any(self.taking.may(item.context_expr) for item in node.items)
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and called(call.func) in RAISES and call.args:
                item.context_expr = self.raises(call)
        self.maybe += takes
        self.shielded += takes
        node.body = self.statements(node.body)
        self.shielded -= takes
        self.maybe -= takes
        return node

    def raises(self, call: ast.Call) -> ast.expr:
        """What expects an exception, and the same of a class that nobody raises."""
        number = self.one()
        nobody = ast.Attribute(ast.Name(self.name, ast.Load()), "Nobody", ast.Load())
        pattern = call.args[1:2] if called(call.func) == "assertRaisesRegex" else []
        turned = ast.Call(call.func, [nobody, *pattern], [])
        return self.ask("raises", [number, call, _later(turned)], call)

    # Making nodes

    def one(self, counted: bool = True) -> ast.expr:
        """The number of an expectation, negative for one that may fail in a test that passes."""
        self.number += 1
        self.certain += counted and not self.maybe and not self.shielded
        return _constant(-self.number if self.shielded else self.number)

    def ask(self, method: str, arguments: "list[ast.expr]", place: "Union[ast.stmt, ast.expr]") -> ast.Call:
        """A call of the module's `Expectations`."""
        function = ast.Attribute(ast.Name(self.name, ast.Load()), method, ast.Load())
        return ast.copy_location(ast.Call(function, arguments, []), place)


class _Comparisons(ast.NodeTransformer):
    """Lets each `a == b` that is no expectation itself, but may be part of one, be looked at."""

    def __init__(self, literals: Literals, bindings: Bindings, anything: "frozenset[str]") -> None:
        self.literals, self.bindings, self.anything = literals, bindings, anything
        self.asserted = False

    def visit_Call(self, node: ast.Call) -> ast.expr:
        before = self.asserted
        if called(node.func) in ("holds", "method") and self.literals.asks(node):
            self.asserted = True
        self.generic_visit(node)
        self.asserted = before
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) > 1 or not isinstance(node.ops[0], ast.Eq):
            return node
        sides = [node.left, node.comparators[0]]
        free = _constant(self.bindings.free(sides, self.anything))
        if self.asserted:
            sides = self.literals.kept(sides)
        return self.literals.ask("equal", [*sides, free], node)


class _Calls(ast.NodeTransformer):
    """Lets what is called within an expectation be kept as long as it is asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    def inside(self, node: ast.expr) -> ast.expr:
        """An expression, in which what is called is kept, but for the outermost."""
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id in FRAMES_OWN:
            return node
        self.generic_visit(node)
        function = ast.Attribute(ast.Name(self.name, ast.Load()), "keep", ast.Load())
        return ast.copy_location(ast.Call(function, [node], []), node)

    def _leave(self, node: ast.expr) -> ast.expr:
        """What is evaluated in a frame of its own, later or often."""
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _leave


def _imported(body: "list[ast.stmt]", packages: "Container[str]") -> "Iterator[str]":
    """The names that imports of a module give to some packages, and to what is in them."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                package = getattr(node, "module", None) or one.name
                if package.partition(".")[0] in packages and not getattr(node, "level", 0):
                    yield one.asname or one.name.partition(".")[0]


def _yields(function: "Function") -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for part in function.body for one in _own(part))


def _later(expression: ast.expr) -> ast.expr:
    """A function that evaluates an expression."""
    made = ast.parse("lambda: 0", mode="eval").body
    assert isinstance(made, ast.Lambda)
    made.body = expression
    return made


def _is_own(expression: ast.expr) -> bool:
    """Whether an expression must be evaluated in the function that it stands in."""
    kinds = (ast.Await, ast.Yield, ast.YieldFrom, getattr(ast, "NamedExpr", ast.Yield))
    calls = [one.func for one in ast.walk(expression) if isinstance(one, ast.Call)]
    return any(isinstance(one, kinds) for one in ast.walk(expression)) or any(
        getattr(one, "id", "") in FRAMES_OWN for one in calls
    )


def _constant(value: "Union[bool, int, str, tuple[str, ...]]") -> ast.expr:
    """A literal, as this version writes it."""
    return ast.parse(repr(value), mode="eval").body


def _is_self(function: ast.expr) -> bool:
    """Whether a method of `self` is called."""
    value = getattr(function, "value", None)
    return isinstance(value, ast.Name) and value.id == "self"


def _own(node: ast.AST) -> "Iterator[ast.AST]":
    """A node and what is in it, without functions and classes that it defines."""
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            for one in _own(child):
                yield one


def _returns(statement: ast.stmt) -> bool:
    return any(isinstance(one, ast.Return) for one in _own(statement))
