"""Rewrites the expressions of a turned test module: what they compare, call and spell out is asked or kept."""

import ast

from .bindings import Bindings
from .literals import FRAMES_OWN, Literals, constant, is_equality, is_kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Comparisons(ast.NodeTransformer):
    """Lets each `a == b` that is no expectation itself, but may be part of one, be looked at.

    Args:
        literals: of what is expected
        bindings: what the names of the module stand for
        anything: names of what the tests themselves have made to equal anything
    """

    def __init__(self, literals: Literals, bindings: Bindings, anything: "frozenset[str]") -> None:
        self.literals, self.bindings, self.anything = literals, bindings, anything
        self.hides = False

    def hidden(self, node: ast.expr) -> "Any":
        """What an expectation is made of, with the literals in it, and what is only compared, out of its code."""
        self.hides = True
        made = self.visit(node)
        self.hides = False
        return made

    def visit(self, node: "Any") -> "Any":
        """A node, or what gives back what it is."""
        instead = self.literals.hidden(node) if self.hides else None
        return instead or ast.NodeTransformer.visit(self, node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A comparison, in which literals are kept wherever it is asked; of literals alone there is nothing to keep."""
        sides = [node.left, *node.comparators]
        free = constant(self.bindings.free(sides, self.anything))
        is_asked = is_equality(node)
        if is_kept(sides):
            hides, self.hides = self.hides, self.hides or is_asked
            self.generic_visit(node)
            self.hides = hides
        if not is_asked:
            return node
        return self.literals.ask("equal", [node.left, node.comparators[0], free], node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """A function, whose code is its author's to look at, but for what is asked in it."""
        hides, self.hides = self.hides, False
        self.generic_visit(node)
        self.hides = hides
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """An f-string, whose own text is put in as its values are."""
        for place, one in enumerate(node.values):
            if isinstance(one, ast.FormattedValue):
                one.value = self.visit(one.value)
            else:
                kept = self.literals.hidden(one) if self.hides else None
                if kept is not None:
                    node.values[place] = ast.copy_location(ast.FormattedValue(kept, -1, None), one)
        return node

    def visit_TemplateStr(self, node: ast.expr) -> ast.expr:
        """A template, whose text can be looked at."""
        return node


class Calls(ast.NodeTransformer):
    """Lets what is called within an expectation be kept as long as it is asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    def inside(self, node: ast.expr) -> ast.expr:
        """An expression, in which what is called is kept, but for the outermost."""
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call, unless it looks at the frame that it is in."""
        if isinstance(node.func, ast.Name) and node.func.id in FRAMES_OWN:
            return node
        self.generic_visit(node)
        function = ast.Attribute(ast.Name(self.name, ast.Load()), "keep", ast.Load())
        return ast.copy_location(ast.Call(function, [node], []), node)

    def _leave(self, node: ast.expr) -> ast.expr:
        """What is evaluated in a frame of its own, later or often."""
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _leave
