"""Choices, lines and expressions of the programs for the differential test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Version = tuple[int, ...]

MOST_STEPS = 250
NAMES = ("a", "b", "c")
SHARED = "total"
"""A global of each module."""


@dataclass
class Function:
    """A function that can be called with integers, and gives one.

    Attributes:
        cost: steps of a call
        loop: whether it runs an event loop, directly or not; a coroutine must not call it
    """

    name: str
    parameters: int
    cost: int
    loop: bool = False


@dataclass
class Scope:
    """Where statements are written.

    Attributes:
        known: variables that have an integer for sure
        functions: what can be called
        indent: spaces
        loops: how many loops one is in, within this function
        weight: how often a statement here runs in one call
        result: whether it is a function
        coroutine: whether it may await
        generator: whether it may yield
        changes: variables that are not its own, which it may assign
    """

    known: list[str]
    functions: list[Function]
    indent: int = 0
    loops: int = 0
    weight: int = 1
    result: bool = False
    coroutine: bool = False
    generator: bool = False
    depth: int = 0
    final: bool = False
    names: tuple[str, ...] = NAMES

    def inner(self, **changes: object) -> Scope:
        """A block in it: what becomes known there need not be known after it."""
        values = {**self.__dict__, "known": list(self.known), "indent": self.indent + 4, "depth": self.depth + 1}
        return Scope(**{**values, **changes})  # type: ignore[arg-type]


class Expressions:
    """Writes lines, and expressions of integers, from choices that are drawn."""

    def __init__(self, draw: st.DrawFn, version: Version, prefix: str) -> None:
        self.draw = draw
        self.version = version
        self.prefix = prefix
        self.lines: list[str] = []
        self.steps = 0
        self.serial = 0
        self.named: list[str] = []
        self.loop = False
        self.coroutines: list[Function] = []

    # ---- choices

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def pick(self, values: Sequence[T]) -> T:
        return values[self.draw(st.integers(0, len(values) - 1))]

    def fresh(self, kind: str) -> str:
        self.serial += 1
        return f"{self.prefix}{kind}{self.serial}"

    # ---- lines

    def line(self, scope: Scope, text: str, after: str = "") -> None:
        """A statement or a header; its first line gets the indentation, the others twice that of a block more."""
        first, *others = text.split("\n")
        if self.chance(6):
            self.lines.append(self.pick(["", " " * scope.indent + "# comment"]))
        self.lines.append(" " * scope.indent + first)
        self.lines += [" " * (scope.indent + 8) + other for other in others]
        if after:
            self.lines[-1] += after
        self.steps += scope.weight * len(text.split("\n"))

    # ---- expressions: of integers

    def atom(self, scope: Scope) -> str:
        if scope.known and self.chance(70):
            return self.pick(scope.known)
        return str(self.number(0, 5))

    def affordable(self, scope: Scope) -> list[Function]:
        room = MOST_STEPS - self.steps
        return [one for one in scope.functions if one.cost * scope.weight <= room]

    def expression(self, scope: Scope, depth: int = 0, flat: bool = False) -> str:
        if depth > 1:
            return self.atom(scope)
        kind = self.number(0, 21)
        if kind <= 4:
            return self.atom(scope)
        one = self.expression(scope, depth + 1, flat)
        if kind <= 7:
            return f"{one} {self.pick(['+', '-'])} {self.atom(scope)}"
        if kind == 8:
            return f"({one} * 3 % 7)"
        if kind <= 12:
            return self.call(scope, one, depth, flat)
        two = self.expression(scope, depth + 1, flat)
        if kind == 13:
            return f"({one} if {two} else {self.atom(scope)})"
        if kind == 14 and not flat:
            return f"(\n{one}\n+ {two}\n)"
        if kind == 15 and not flat:
            return f"sum([\n{one},\n{two},\n])"
        if kind == 16:
            return f"sum([x + {self.atom(scope)} for x in range({self.number(0, 3)})])"
        if kind == 17:
            return f"sum(x * 2 for x in ({one}, {two}) if x > 1)"
        if kind == 18:
            return f"(lambda x, y=1: x + y{'' if not scope.known else ' + ' + self.atom(scope)})({one})"
        if kind == 19:
            return f"max(*[{one}, {two}])"
        if kind == 20 and self.version >= (3, 8) and depth == 0 and "w" in scope.names:
            return f"((w := {one}) + {two})"
        if kind == 21:
            return f"len({{{one}: 1, **{{5: 2}}}})"
        return f"min({one}, {two})"

    def call(self, scope: Scope, argument: str, depth: int, flat: bool) -> str:
        functions = self.affordable(scope)
        if not functions:
            return f"abs({argument})"
        function = self.pick(functions)
        self.steps += function.cost * scope.weight
        arguments = [argument] + [self.atom(scope) for _ in range(function.parameters - 1)]
        if not function.parameters:
            arguments = []
        text = ", ".join(arguments)
        if arguments and not flat and self.chance(25):
            text = "\n" + ",\n".join(arguments) + self.pick(["\n", ",\n"])
        elif arguments and self.chance(10):
            text = f"*[{text}]"
        self.loop = self.loop or function.loop
        return f"{function.name}({text})"

    def condition(self, scope: Scope, flat: bool = False) -> str:
        kind = self.number(0, 5)
        one, two = self.atom(scope), self.expression(scope, 1, flat)
        if kind == 3 and not flat:
            return f"({one} > 1\nand {two} < 9)"
        if kind == 4:
            return f"{one} < 3 or not {two} > 2"
        if kind == 5:
            return f"{one} in [x for x in (1, 2, {self.atom(scope)})]"
        return f"{one} {self.pick(['>', '<', '==', '!='])} {two}"
