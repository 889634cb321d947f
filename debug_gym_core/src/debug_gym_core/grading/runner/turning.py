"""Rewrites a test module so that each expectation in it is asked of an `Expectations`, by syntax tree.

`assert a == b` becomes `E.compare(number, "==", a, b)`, any other `a == b` becomes `E.equal(a, b)`, an assertion method
or function `E.call(...)`, `raises` `E.raises(...)`; each test's body runs below `with E.test(...)`. Every line keeps
its number, every name its meaning.
"""

import ast

from .arrays import COMPARING
from .assertions import assertion, expecting, own_arguments
from .bindings import Bindings, called
from .expressions import Calls, Comparisons
from .literals import FRAMES_OWN, Literals, constant, is_false, is_kept
from .opposites import OPPOSITES
from .taking import Taking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator
    from typing import Any, Union

    from .expectations import Expectations

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

YIELDS = (ast.Yield, ast.YieldFrom)


def turn(
    tree: ast.Module, name: str, tests: "Collection[str]", asked: "Expectations", anything: bool = False
) -> "dict[str, int]":
    """Rewrite a test module in place.

    Args:
        tree: the module
        name: of the global that is the `Expectations` when the module runs
        tests: names of its functions and methods that are tests
        asked: that one; what makes what is expected is added to its literals, and what is used to its statements
        anything: see `Bindings`

    Returns:
        of each test, by its qualified name, how many expectations it asks in every run that passes
    """
    turner = _Turner(tree, name, tests, asked, Bindings(tree, anything))
    uses = [list(turner.uses(one)) for one in tree.body]
    turner.scope(tree.body, "", frozenset())
    looked = []  # type: list[ast.stmt]
    for node, use in zip(tree.body, uses):  # noqa: B905 - Python 3.6
        looked += [*(() if isinstance(node, (ast.Import, ast.ImportFrom)) else use), node]  # one may be of `__future__`
    tree.body = looked
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
        asked: "Expectations",
        bindings: Bindings,
    ) -> None:
        self.name = name
        self.names = names
        self.literals = literals = Literals(name, asked.literals)
        self.asked = asked.statements
        self.names_of = asked.statements.meet(tree, bindings)
        self.comparing = frozenset(_imported(tree.body, COMPARING))
        self.pytests = frozenset(_imported(tree.body, ("pytest",)))
        self.bindings = bindings
        self.taking = Taking(bindings.nodes)
        self.anything = self.everywhere = bindings.anything
        self.tests = {}  # type: dict[str, int]
        self.certain = 0
        self.maybe = 0
        self.shielded = 0
        self.number = 0
        self.comparisons = Comparisons(literals, bindings, self.anything)

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
        self.comparisons = Comparisons(self.literals, self.bindings, self.anything)
        first = self.literals.begin(function, is_test)
        body = first + [self.comparisons.visit(one) for one in self.statements(function.body[head:])]
        if is_test and not body:  # There is but a docstring.
            body = [ast.copy_location(ast.Pass(), function.body[0])]
        if is_test:
            qualified = prefix + function.name
            self.tests[qualified] = self.certain
            # Few are generators: no other is gone through once more for that.
            yields = any(isinstance(one, YIELDS) for one in self.literals.nodes) and _yields(function)
            where = self.ask("test", [constant(self.certain), constant(yields)], body[0])
            body = [ast.copy_location(ast.With([ast.withitem(where, None)], body), body[0])]
        function.body[head:] = body

    def statements(self, body: "list[ast.stmt]") -> "list[ast.stmt]":
        """Rewrite statements in their order; after one that may leave the test nothing is certain."""
        before = self.maybe
        made = []  # type: list[ast.stmt]
        for statement in body:
            made += self.uses(statement)
            made.append(self.visit(statement))
            self.maybe += _returns(statement)
        self.maybe = before
        return made

    def uses(self, statement: ast.AST) -> "Iterator[ast.stmt]":
        """What looks, before a statement, at what this uses."""
        if isinstance(statement, ast.stmt):
            number = self.asked.number(statement, self.names_of)
            if number is not None:
                yield ast.copy_location(ast.Expr(self.ask("uses", [constant(number)], statement)), statement)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Any other statement: what stands in it is not certain, and below `try` or in a function it may fail."""
        shield = not isinstance(node, UNSHIELDED)
        self.maybe += 1
        self.shielded += shield
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, part, None)
            if isinstance(inner, list):
                setattr(node, part, [made for one in inner for made in (*self.uses(one), self.visit(one))])
        self.shielded -= shield
        self.maybe -= 1
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        """A loop that goes round is as certain as what stands before it."""
        if not self.bindings.goes_round(node):
            return self.generic_visit(node)  # type: ignore[return-value]
        node.body = self.statements(node.body)
        self.maybe += 1
        node.orelse = [made for one in node.orelse for made in (*self.uses(one), self.visit(one))]
        self.maybe -= 1
        return node

    # What asks

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        if is_false(node.test):  # A test that passes never comes by.
            return node
        test = node.test = Calls(self.name).inside(node.test)
        chained = isinstance(test, ast.Compare) and not any(map(_is_own, test.comparators[1:]))
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            sides = [test.left, test.comparators[0]]
            operator, free = OPERATORS[type(test.ops[0])], constant(self.bindings.free(sides, self.anything))
            asked = self.ask("compare", [self.one(), constant(operator), *self.sides(sides), free], node)
        elif isinstance(test, ast.Compare) and chained:
            operators = constant(tuple(OPERATORS[type(one)] for one in test.ops))
            left, right, *others = self.sides([test.left, *test.comparators])
            sides = [left, right, *map(_later, others)]
            asked = self.ask("chain", [self.one(), operators, constant(self.bindings.inside), *sides], node)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            asked = self.ask("holds", [self.one(), self.comparisons.hidden(test.operand), constant(False)], node)
        else:
            asked = self.ask("holds", [self.one(), self.comparisons.hidden(test), constant(True)], node)
        if node.msg is not None and self.shielded and not _is_own(node.msg):
            asked.keywords = [ast.keyword("says", _later(node.msg))]
        return ast.copy_location(ast.Expr(asked), node)

    def sides(self, sides: "list[ast.expr]") -> "list[ast.expr]":
        """What is compared, with literals kept unless there is nothing else."""
        return [self.comparisons.hidden(one) for one in sides] if is_kept(sides) else sides

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        for raising in expecting(node):
            return self.raising_call(node, raising)
        call = assertion(node)
        if call is None:
            return node
        function = call.func
        name = called(function)
        number = self.one(counted=(name in OPPOSITES and _is_self(function)) or self.compares(call))
        sides = call.args[:2]
        free = constant(self.bindings.free(sides, self.anything) if len(sides) > 1 else self.bindings.inside)
        number = ast.copy_location(ast.Tuple([number, free], ast.Load()), node)
        arguments = [self.comparisons.hidden(one) for one in call.args]
        if isinstance(function, ast.Attribute):
            asked = self.ask("method", [number, function.value, constant(function.attr), *arguments], node)
        else:
            asked = self.ask("call", [number, function, *arguments], node)
        asked.keywords = [ast.keyword(one.arg, self.comparisons.hidden(one.value)) for one in call.keywords]
        return ast.copy_location(ast.Expr(asked), node)

    def compares(self, call: ast.Call) -> bool:
        """Whether a function of numpy or pandas is called with two things that it compares."""
        return len(call.args) > 1 and self.is_of(call.func, self.comparing)

    def is_of(self, function: ast.expr, names: "frozenset[str]") -> bool:
        """Whether a function is one of some names, or something in them."""
        while isinstance(function, ast.Attribute):
            function = function.value
        return isinstance(function, ast.Name) and function.id in names

    def raising_call(self, node: ast.stmt, call: ast.Call) -> ast.stmt:
        """`raises(E, function, ...)`, which may be another's than pytest's or unittest's."""
        number = self.one(counted=_is_self(call.func) or self.is_of(call.func, self.pytests))
        own = own_arguments(call)
        self.hide(call, own)
        asked = self.ask("raising", [number, constant(own), call.func, *call.args], node)
        asked.keywords = call.keywords
        return ast.copy_location(ast.Expr(asked), node)

    def hide(self, call: ast.Call, own: int) -> None:
        """Keep what a call expects of an exception, and not what its function is called with."""
        kind, *others = call.args[:own]
        call.args[:own] = [self.literals.kind(kind), *map(self.comparisons.hidden, others)]

    def visit_With(self, node: ast.With) -> ast.stmt:
        takes = any(self.taking.may(item.context_expr) for item in node.items)
        expected = list(expecting(node))
        for item in node.items:
            if item.context_expr in expected:
                item.context_expr = self.raises(item.context_expr)
        self.maybe += takes
        self.shielded += takes
        node.body = self.statements(node.body)
        self.shielded -= takes
        self.maybe -= takes
        return node

    def raises(self, call: ast.Call) -> ast.expr:
        """What expects an exception, and the same of a class that nobody raises."""
        number = self.one()
        self.hide(call, len(call.args))
        for one in call.keywords:
            one.value = self.comparisons.hidden(one.value)
        nobody = ast.Attribute(ast.Name(self.name, ast.Load()), "Nobody", ast.Load())
        pattern = call.args[1:2] if called(call.func) == "assertRaisesRegex" else []
        turned = ast.Call(call.func, [nobody, *pattern], [])
        return self.ask("raises", [number, call, _later(turned)], call)

    # Making nodes

    def one(self, counted: bool = True) -> ast.expr:
        """The number of an expectation, negative for one that may fail in a test that passes."""
        self.number += 1
        self.certain += counted and not self.maybe and not self.shielded
        return constant(-self.number if self.shielded else self.number)

    def ask(self, method: str, arguments: "list[ast.expr]", place: "Union[ast.stmt, ast.expr]") -> ast.Call:
        """A call of the module's `Expectations`."""
        function = ast.Attribute(ast.Name(self.name, ast.Load()), method, ast.Load())
        return ast.copy_location(ast.Call(function, arguments, []), place)


def _imported(body: "list[ast.stmt]", packages: "Container[str]") -> "Iterator[str]":
    """The names that imports of a module give to some packages, and to what is in them."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                package = getattr(node, "module", None) or one.name
                if package.partition(".")[0] in packages and not getattr(node, "level", 0):
                    yield one.asname or one.name.partition(".")[0]


def _yields(function: "Function") -> bool:
    return any(isinstance(one, YIELDS) for part in function.body for one in _own(part))


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


def _is_self(function: ast.expr) -> bool:
    """Whether a method of `self` is called."""
    value = getattr(function, "value", None)
    return isinstance(value, ast.Name) and value.id == "self"


def _own(node: ast.AST, leaves: "tuple[type[ast.AST], ...]" = ()) -> "Iterator[ast.AST]":
    """A node and what is in it, without functions and classes that it defines, and not what is in some kinds."""
    leaves += (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    left = [node]
    while left:
        one = left.pop()
        yield one
        if not isinstance(one, leaves):
            left += ast.iter_child_nodes(one)


def _returns(statement: ast.stmt) -> bool:
    return any(isinstance(one, ast.Return) for one in _own(statement, (ast.expr,)))
