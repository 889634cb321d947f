"""Programs and commands for the differential test, drawn by hypothesis.

A program ends after a bounded number of steps and prints the same each time: functions call only those defined before
them (or themselves, with a counter), loops count, and what a call costs times how often it is made stays below a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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


@dataclass
class Program:
    """Files, and what commands can name.

    Attributes:
        files: by name; `main.py` is run
        functions: as `b` takes them
    """

    files: dict[str, str]
    functions: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        texts = "".join(
            f"\n--- {name}\n" + "".join(f"{number:3} {line}\n" for number, line in enumerate(text.splitlines(), 1))
            for name, text in self.files.items()
        )
        return f"Program({texts})"


class Writer:
    """Writes one module."""

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

    # ---- statements

    def block(self, scope: Scope, most: int = 3) -> None:
        """One or more statements; the room for steps that is left decides how many."""
        count = self.number(1, most)
        for _ in range(count):
            if self.statement(scope):
                return

    def statement(self, scope: Scope) -> bool:
        """One statement; returns whether nothing can follow it."""
        simple = ["assign", "assign", "augmented", "print", "tuple", "chained", "annotated", "semicolon", "backslash"]
        simple += ["assert", "pass", "delete", "string", "comprehension", "starred", "fstring"]
        compound = ["if", "if", "for", "while", "try", "try", "with", "inline_if", "inline_for", "inline_while"]
        compound += ["closure", "lambda_name", "exec", "raise_caught", "match", "try_finally", "local_import"]
        if scope.generator:
            simple += ["yield_", "yield_", "yield_"]
        if scope.coroutine:
            simple += ["await_", "await_"]
        if scope.loops and scope.depth:
            compound += ["leave_loop"]
        if scope.result and scope.depth:
            compound += ["leave_function"]
        enough = scope.depth >= 3 or self.steps > MOST_STEPS or len(self.lines) > 60
        kind = self.pick(simple if enough or self.chance(45) else compound)
        return bool(getattr(self, "write_" + kind)(scope))

    def target(self, scope: Scope) -> str:
        return self.pick(scope.names)

    def know(self, scope: Scope, name: str) -> None:
        if name not in scope.known:
            scope.known.append(name)

    def write_assign(self, scope: Scope) -> None:
        name = self.target(scope)
        self.line(scope, f"{name} = {self.expression(scope)}")
        self.know(scope, name)

    def write_augmented(self, scope: Scope) -> None:
        known = [name for name in scope.known if name in scope.names]
        if known:
            self.line(scope, f"{self.pick(known)} += {self.expression(scope)}")
        else:
            self.write_assign(scope)

    def write_print(self, scope: Scope) -> None:
        one = self.expression(scope)
        self.line(scope, self.pick([f"print({one})", f"print(\n'value',\n{one},\n)"]))

    def write_tuple(self, scope: Scope) -> None:
        a, b = scope.names[:2]
        one, two = self.expression(scope), self.atom(scope)
        self.line(scope, self.pick([f"{a}, {b} = {one}, {two}", f"({a},\n{b}) = ({one},\n{two})"]))
        self.know(scope, scope.names[0])
        self.know(scope, scope.names[1])

    def write_chained(self, scope: Scope) -> None:
        a, b = scope.names[:2]
        self.line(scope, f"{a} = {b} = {self.expression(scope)}")
        self.know(scope, scope.names[0])
        self.know(scope, scope.names[1])

    def write_annotated(self, scope: Scope) -> None:
        self.line(scope, f"{scope.names[1]}: int = {self.expression(scope)}")
        self.know(scope, scope.names[1])

    def write_semicolon(self, scope: Scope) -> None:
        a, b = scope.names[:2]
        one = self.expression(scope, flat=True)
        self.line(scope, f"{a} = {one}; {b} = {a} + 1")
        self.know(scope, a)
        self.know(scope, b)

    def write_backslash(self, scope: Scope) -> None:
        self.line(scope, f"{scope.names[0]} = {self.expression(scope, flat=True)} + \\\n{self.atom(scope)}")
        self.know(scope, scope.names[0])

    def write_assert(self, scope: Scope) -> None:
        self.line(scope, self.pick(["assert True", f"assert (\n{self.expression(scope, 1)} < 10000\n), 'too much'"]))

    def write_pass(self, scope: Scope) -> None:
        self.line(scope, "pass")

    def write_delete(self, scope: Scope) -> None:
        self.line(scope, f"d = {self.expression(scope, 1)}")
        self.line(scope, "del d")

    def write_string(self, scope: Scope) -> None:
        self.line(
            scope,
            self.pick(
                [
                    "print('''one\ntwo\n''')",
                    "'''a string\nof two lines'''",
                    f"print('''x\n{{}}'''.format(\n{self.atom(scope)}))",
                ]
            ),
        )

    def write_comprehension(self, scope: Scope) -> None:
        one = self.expression(scope, 1)
        text = self.pick(
            [
                f"[x + y for x in range(2) for y in (1, {one})]",
                f"[\nx\nfor x in range({self.number(0, 3)})\nif x != {one}\n]",
                f"{{x: {one} for x in range(2)}}",
                f"sorted({{x % 2 for x in (1, 2, {one})}})",
                f"list(x + {self.atom(scope)} for x in range(2))",
            ]
        )
        self.line(scope, f"items = {text}")
        self.line(scope, self.pick(["print(items)", f"{scope.names[0]} = len(items)"]))

    def write_starred(self, scope: Scope) -> None:
        self.line(scope, f"{scope.names[0]}, *rest = [{self.expression(scope)}, 1, 2]")
        self.know(scope, scope.names[0])

    def write_fstring(self, scope: Scope) -> None:
        self.line(
            scope,
            f"print(f'{{{self.atom(scope)}!r}} and {{{self.expression(scope, 1, flat=True)} }}')"
            if scope.known
            else "print(f'{1}')",
        )

    def write_yield_(self, scope: Scope) -> None:
        self.line(
            scope, self.pick([f"yield {self.atom(scope)}", f"yield (\n{self.atom(scope)}\n)", "yield from (1, 2)"])
        )

    def write_await_(self, scope: Scope) -> None:
        affordable = [one for one in self.coroutines if one.cost * scope.weight <= MOST_STEPS - self.steps]
        if affordable and self.chance(70):
            coroutine = self.pick(affordable)
            self.steps += coroutine.cost * scope.weight
            self.line(scope, f"{scope.names[0]} = await {coroutine.name}({self.atom(scope)})")
            self.know(scope, scope.names[0])
        else:
            self.line(
                scope,
                self.pick(["await asyncio.sleep(0)", "await asyncio.gather(\nasyncio.sleep(0),\nasyncio.sleep(0),\n)"]),
            )

    def write_if(self, scope: Scope) -> None:
        self.line(scope, f"if {self.condition(scope)}:")
        self.block(scope.inner())
        for _ in range(self.number(0, 1)):
            self.line(scope, f"elif {self.condition(scope)}:")
            self.block(scope.inner(), 2)
        if self.chance(40):
            self.lines.append(" " * scope.indent + "else:")
            self.block(scope.inner(), 2)

    def loop_body(self, scope: Scope, times: int, name: str) -> None:
        known = [*scope.known, name] if name else list(scope.known)
        self.block(scope.inner(known=known, loops=scope.loops + 1, weight=scope.weight * max(times, 1)))

    def write_for(self, scope: Scope) -> None:
        times = self.number(0, 3)
        name = self.fresh("i")
        over = self.pick(
            [f"range({times})", f"[1, 2, 3][:{times}]", f"(\n{self.atom(scope)},\n{self.atom(scope)},\n)", "'xy'"]
        )
        if scope.coroutine and self.chance(30):
            over = f"[{self.expression(scope)}]"
        self.line(scope, f"for {name} in {over}:")
        self.loop_body(scope, 3, "" if over == "'xy'" else name)
        if self.chance(25):
            self.lines.append(" " * scope.indent + "else:")
            self.block(scope.inner(), 1)

    def write_while(self, scope: Scope) -> None:
        name = self.fresh("n")
        self.line(scope, f"{name} = {self.number(0, 3)}")
        both = f"while {name} > 0 and {self.condition(scope)}:"
        self.line(scope, self.pick([f"while {name} > 0:", f"while ({name}\n> 0):", both]))
        self.line(scope.inner(weight=scope.weight * 3), f"{name} -= 1")
        self.loop_body(scope, 3, name)
        if self.chance(25):
            self.lines.append(" " * scope.indent + "else:")
            self.block(scope.inner(), 1)

    def write_leave_loop(self, scope: Scope) -> bool:
        if self.chance(50):
            self.line(scope, f"if {self.condition(scope, flat=True)}: {self.pick(['continue', 'break'])}")
            return False
        self.line(scope, self.pick(["continue", "break"]))
        return True

    def write_leave_function(self, scope: Scope) -> bool:
        self.line(scope, "return" if scope.generator else f"return {self.expression(scope)}")
        return True

    def raising(self, scope: Scope) -> str:
        return self.pick(
            ["raise ValueError('no')", "raise KeyError(\n'key'\n)", "1 / 0", "int('x')", "[][1]", "raise RuntimeError"]
        )

    def write_try(self, scope: Scope) -> None:
        self.line(scope, "try:")
        inner = scope.inner()
        if self.chance(60):
            self.block(inner, 2)
        if self.chance(60):
            self.line(inner, self.raising(inner))
        else:
            self.line(inner, "pass")
        kinds = self.pick(["Exception", "(ValueError, KeyError)", "ZeroDivisionError", "(\nTypeError,\nIndexError,\n)"])
        if kinds != "Exception":
            self.line(scope, f"except {kinds}:")
            self.block(scope.inner(), 1)
        name = self.pick(["Exception", "Exception as error", "BaseException as error"])
        self.line(scope, f"except {name}:")
        handler = scope.inner()
        if "as" in name:
            self.line(handler, "print(type(error).__name__)")
        self.block(handler, 2)
        if self.chance(30):
            self.lines.append(" " * scope.indent + "else:")
            self.block(scope.inner(), 1)
        if self.chance(30):
            self.lines.append(" " * scope.indent + "finally:")
            self.block(scope.inner(final=True, loops=0, result=False), 1)

    def write_try_finally(self, scope: Scope) -> bool:
        self.line(scope, "try:")
        self.block(scope.inner(), 2)
        self.lines.append(" " * scope.indent + "finally:")
        self.block(scope.inner(final=True, loops=0, result=False), 2)
        if scope.result and not scope.generator and self.version < (3, 14) and self.chance(25):
            self.line(scope.inner(), f"return {self.atom(scope)}")
        return False

    def write_raise_caught(self, scope: Scope) -> None:
        self.line(scope, "try:")
        self.line(scope.inner(), self.raising(scope))
        self.line(scope, "except Exception: pass" if self.chance(30) else "except Exception:")
        if not self.lines[-1].endswith("pass"):
            self.block(scope.inner(), 2)

    def write_with(self, scope: Scope) -> None:
        name = self.fresh("m")
        manager = self.pick(["Manager(1)", "manager(2)", "Manager(\n3\n)"])
        text = self.pick([f"with {manager} as {name}:", f"with {manager}:", f"with {manager} as {name}, Manager(4):"])
        self.line(scope, text)
        self.steps += 8 * scope.weight
        self.block(scope.inner(known=[*scope.known, *([name] if f"as {name}" in text else [])]), 2)

    def write_inline_if(self, scope: Scope) -> None:
        self.line(
            scope, f"if {self.condition(scope, flat=True)}: {scope.names[1]} = {self.expression(scope, flat=True)}"
        )
        if self.chance(30):
            self.line(scope, f"else: {scope.names[1]} = 1")
            self.know(scope, scope.names[1])

    def write_inline_for(self, scope: Scope) -> None:
        name = self.fresh("i")
        inner = scope.inner(known=[*scope.known, name], weight=scope.weight * 2)
        body = self.pick(
            [f"{scope.names[0]} = {self.expression(inner, flat=True)}", f"print({name}); {scope.names[1]} = {name}"]
        )
        self.line(scope, f"for {name} in range({self.number(0, 2)}): {body}")

    def write_inline_while(self, scope: Scope) -> None:
        name = self.fresh("n")
        self.line(scope, f"{name} = {self.number(0, 2)}")
        self.line(scope, f"while {name} > 0: {name} -= 1")

    def write_closure(self, scope: Scope) -> None:
        name = self.fresh("inner")
        mine = [one for one in scope.known if one in scope.names and one not in ("x", "y", "w")]
        before = self.steps
        changes = scope.result and mine and self.chance(40)
        if not changes and self.chance(20):
            self.line(scope, f"def {name}(x): return x + {self.atom(scope)}")
        else:
            self.line(scope, f"def {name}(x, y=2):")
            inner = Scope([*scope.known, "x"], scope.functions, scope.indent + 4, result=True, depth=scope.depth + 1)
            inner.weight = scope.weight
            inner.names = ("x", "y")
            if changes:
                changed = self.pick(mine)
                self.line(inner, f"nonlocal {changed}")
                self.line(inner, f"{changed} += x")
            self.block(inner, 2)
            self.line(inner, f"return {self.atom(inner)}")
        cost = max(1, (self.steps - before) // scope.weight)
        only = scope.inner(functions=[Function(name, 1, cost)])
        self.line(scope, f"{scope.names[0]} = {self.call(only, self.atom(scope), 0, False)}")
        self.know(scope, scope.names[0])

    def write_lambda_name(self, scope: Scope) -> None:
        name = self.fresh("f")
        body = self.expression(scope, 1)
        self.line(
            scope, self.pick([f"{name} = lambda x: x + {self.atom(scope)}", f"{name} = (\nlambda x:\nx + {body}\n)"])
        )
        self.line(scope, f"{scope.names[1]} = {name}({self.atom(scope)})")
        self.know(scope, scope.names[1])

    def write_exec(self, scope: Scope) -> None:
        self.line(scope, "names = {}")
        self.line(scope, "exec(compile('x = 1\\nfor y in range(2):\\n    x += y\\n', '<generated>', 'exec'), names)")
        self.line(scope, f"{scope.names[0]} = names['x']")
        self.steps += 6 * scope.weight
        self.know(scope, scope.names[0])

    def write_match(self, scope: Scope) -> None:
        if self.version < (3, 10):
            self.write_assign(scope)
            return
        self.line(scope, f"match {self.pick([self.expression(scope, 1, flat=True), '(1, 2)', '[a for a in (1,)]'])}:")
        cases = ["0", "1 | 2", "int(q) if q > 3", "(1, q)", "[q]", "{'k': q}"]
        inner = scope.inner(indent=scope.indent + 4)
        for _ in range(self.number(1, 2)):
            self.line(inner, f"case {self.pick(cases)}:")
            self.block(inner.inner(), 1)
        if self.chance(50):
            self.line(inner, "case _:")
            self.block(inner.inner(), 1)

    def write_local_import(self, scope: Scope) -> None:
        self.line(
            scope, self.pick(["import mod", "from mod import total as there"]) if self.prefix == "m" else "import math"
        )

    # ---- definitions

    def header(self, scope: Scope, name: str, parameters: list[str], kind: str = "def") -> None:
        text = ", ".join(parameters)
        if parameters and self.chance(20):
            text = "\n" + ",\n".join(parameters) + ",\n" if self.version >= (3, 6) and "**options" not in text else text
        self.line(scope, f"{kind} {name}({text}):", "  # noqa" if self.chance(5) else "")
        if self.chance(20):
            self.line(Scope([], [], scope.indent + 4), self.pick(["'''Do it.'''", "'''Do it.\n\nWell.\n'''"]))

    def decorator(self, scope: Scope) -> None:
        if self.chance(15):
            self.line(scope, self.pick(["@decorated", "@decorating(1)", "@decorating(\n2,\n)"]))

    def body(self, scope: Scope, start: int) -> int:
        """A function's body; returns what a call costs."""
        if self.chance(20) and SHARED not in scope.known:
            self.line(scope, f"global {SHARED}")
            self.line(scope, f"{SHARED} += 1")
        self.block(scope, 4)
        if not scope.generator and not self.chance(10):
            self.line(scope, f"return {self.expression(scope)}" if scope.known else "return 1")
        else:
            self.line(
                scope, "return" if scope.generator and self.chance(30) else "pass" if scope.generator else "return 0"
            )
        cost = max(1, self.steps - start)
        self.steps = start
        return cost + 3

    def function(self, functions: list[Function]) -> Function:
        top = Scope([], [])
        kind = self.number(0, 7)
        if kind == 5:
            return self.recursion(functions)
        if kind == 6:
            return self.generator(functions)
        if kind == 7:
            return self.coroutine(functions)
        name = self.fresh("f")
        self.named.append(name)
        self.decorator(top)
        if kind == 4 and self.chance(50):
            self.line(top, f"def {name}(a, b=2): return a + b")
            return Function(name, self.number(1, 2), 2)
        parameters = self.pick([["a"], ["a", "b"], ["a", "b=3"], ["a", "*others"], ["a", "b=1", "**options"], []])
        self.header(top, name, parameters)
        known = [one[0] for one in parameters if one[0] in "ab"]
        names = (*NAMES, "w")
        scope = Scope(known, functions, 4, result=True, names=names)
        count = sum(one in ("a", "b") for one in parameters)
        return Function(name, count, self.body(scope, self.steps))

    def recursion(self, functions: list[Function]) -> Function:
        name = self.fresh("r")
        self.named.append(name)
        top, scope = Scope([], []), Scope(["n"], functions, 4, result=True)
        before = self.steps
        self.line(top, f"def {name}(n):")
        self.line(scope, "if not 0 < n < 4: return 0")
        if self.chance(60):
            self.block(scope.inner(indent=4, weight=3), 2)
        self.line(scope, self.pick([f"return n + {name}(n - 1)", f"return (\nn\n+ {name}(\nn - 1\n)\n)"]))
        cost, self.steps = max(4, self.steps - before) * 2, before
        return Function(name, 1, cost)

    def generator(self, functions: list[Function]) -> Function:
        name = self.fresh("g")
        self.named.append(name)
        before = self.steps
        self.header(Scope([], []), name, ["n"])
        scope = Scope(["n"], [], 4, result=True, generator=True)
        self.block(scope, 3)
        self.line(scope, "yield n")
        cost = max(4, self.steps - before)
        self.steps = before
        user = self.fresh("u")
        self.named.append(user)
        self.line(Scope([], []), f"def {user}(n):")
        scope = Scope(["n"], functions, 4, result=True)
        way = self.number(0, 3)
        if way == 0:
            self.line(scope, f"return sum({name}(n))")
        elif way == 1:
            self.line(scope, "a = 0")
            self.line(scope, f"for x in {name}(n):")
            inner = scope.inner(known=["n", "x", "a"], weight=3)
            self.line(inner, "a += x")
            self.block(inner, 2)
            self.line(scope, "return a")
        elif way == 2:
            self.line(scope, f"items = {name}(n)")
            self.line(scope, "a = next(items, 0)")
            self.line(scope, "b = next(items, 1)")
            self.line(scope, "items.close()")
            self.line(scope, "return a + b")
        else:
            self.line(scope, f"return sum(x for x in {name}(\nn\n) if x)")
        cost += max(4, self.steps - before)
        self.steps = before
        return Function(user, 1, cost)

    def coroutine(self, functions: list[Function]) -> Function:
        if self.version < (3, 7):
            return self.recursion(functions)
        name, user = self.fresh("co"), self.fresh("v")
        self.named += [name, user]
        before = self.steps
        self.header(Scope([], []), name, ["n"], "async def")
        scope = Scope(["n"], [one for one in functions if not one.loop], 4, result=True, coroutine=True)
        self.line(scope, "await asyncio.sleep(0)")
        cost = self.body(scope, before) + 10
        self.coroutines.append(Function(name, 1, cost))
        self.line(Scope([], []), f"def {user}(n):")
        inner = Scope(["n"], functions, 4, result=True)
        self.line(inner, f"return asyncio.run({name}(n))")
        self.steps = before
        return Function(user, 1, cost, loop=True)

    def klass(self, functions: list[Function]) -> Function:
        name, maker = self.fresh("C"), self.fresh("k")
        before = self.steps
        top, inside = Scope([], []), Scope([], [], 4, names=("p", "q"), depth=2)
        self.decorator_of_class(top)
        self.line(top, f"class {name}{self.pick(['', '(object)', '(Base)'])}:")
        if self.chance(30):
            self.line(inside, "'''A class.'''")
        if self.chance(50):
            self.line(inside, "size = 2")
        if self.chance(40):
            self.line(inside, f"items = [x for x in range({self.number(0, 3)})]")
        if self.chance(30):
            self.line(inside, "for each in range(2):")
            self.line(inside.inner(), "last = each")
        if self.chance(30):
            self.line(inside, "def small(self): return 1")
        self.line(inside, self.pick(["def __init__(self, a=1):", "def __init__(\nself,\na=2,\n):"]))
        method = Scope(["a", "self.__x"], functions, 8, result=True, names=(*NAMES, "w"))
        self.line(method, "self.__x = a")
        if self.chance(40):
            self.block(method.inner(indent=8, result=False), 2)
        self.lines.append("")
        if self.chance(25):
            self.line(inside, "@property")
            self.line(inside, "def twice(self):")
            self.line(method, "return self.__x * 2")
        self.line(inside, "def get(self, b=1):")
        method = Scope(["b", "self.__x"], functions, 8, result=True, names=(*NAMES, "w"))
        self.named += [f"{name}.get", f"{name}.__init__"]
        cost = self.body(method, before)
        self.line(top, f"def {maker}(n):")
        self.line(Scope([], [], 4), f"made = {name}(n)")
        self.line(
            Scope([], [], 4),
            self.pick(["return made.get()", "return made.get(n)", f"return {name}().get(b=n) + made.get()"]),
        )
        self.steps = before
        return Function(maker, 1, 2 * cost + 8)

    def decorator_of_class(self, scope: Scope) -> None:
        if self.chance(10):
            self.line(scope, "@marked")


PRELUDE = {
    "manager": """\
class Manager:
    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self.value

    def __exit__(self, *error):
        return error[0] is KeyError


@contextlib.contextmanager
def manager(value):
    try:
        yield value
    finally:
        value = 0
""",
    "decorated": """\
def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **options):
        return function(*args, **options)
    return wrapper


def decorating(count):
    def decorate(function):
        function.count = count
        return function
    return decorate


def marked(kind):
    kind.mark = 1
    return kind


class Base:
    pass
""",
}


def module(
    draw: st.DrawFn, version: Version, main: bool, others: list[Function]
) -> tuple[str, list[Function], list[str]]:
    """One module's text, its functions, and their names as `b` takes them."""
    writer = Writer(draw, version, "m" if main else "o")
    functions = list(others)
    for _ in range(writer.number(1, 3)):
        writer.loop = False
        function = (writer.klass if writer.chance(25) else writer.function)(list(functions))
        function.loop = function.loop or writer.loop
        functions.append(function)
        if writer.chance(40):
            writer.lines.append("")
    writer.steps = 0
    scope = Scope([SHARED], functions, names=(*NAMES, "w"))
    if main and writer.chance(40):
        writer.line(scope, 'if __name__ == "__main__":')
        scope = scope.inner()
    count = writer.number(1, 5) if main else writer.number(0, 2)
    for _ in range(count):
        if writer.chance(50) and writer.affordable(scope):
            call = writer.call(scope, writer.atom(scope), 0, False)
            writer.line(scope, writer.pick([f"{SHARED} = {call}", f"print({call})", call]))
        else:
            writer.statement(scope)
    if main:
        if writer.chance(12):
            writer.line(scope, writer.raising(scope))
        if writer.chance(5):
            writer.line(scope, "sys.exit(3)")
        writer.line(scope, f"print('end', {SHARED})")
    body = "\n".join(writer.lines) + "\n"
    wanted = [("asyncio.", "import asyncio"), ("manager(", "import contextlib"), ("decorated", "import functools")]
    wanted += [("sys.", "import sys")]
    imports = [statement for word, statement in wanted if word in body or word.title() in body]
    text = []
    if writer.chance(15):
        text.append(writer.pick(['"""A module."""', '"""A module\nwith two lines.\n"""', "# A comment."]))
    if main and writer.chance(70):
        imports += [writer.pick(["import mod", "from mod import *", "from mod import (\n    total as there,\n)"])]
    text += imports
    text.append(f"{SHARED} = 0")
    if "anager(" in body:
        text.append(PRELUDE["manager"])
        if "import contextlib" not in imports:
            text.insert(text.index(f"{SHARED} = 0"), "import contextlib")
    if any(word in body for word in ("@decorat", "@marked", "(Base)")):
        text.append(PRELUDE["decorated"])
        if "import functools" not in imports:
            text.insert(text.index(f"{SHARED} = 0"), "import functools")
    return "\n".join(text) + "\n" + body, [one for one in functions if one not in others], writer.named


@st.composite
def programs(draw: st.DrawFn, version: Version) -> Program:
    """Programs of a main script and a module, for a version of Python."""
    other, theirs, named = module(draw, version, False, [])
    callable_ = [Function(f"mod.{one.name}", one.parameters, one.cost, one.loop) for one in theirs]
    main, _, mine = module(draw, version, True, callable_)
    if any(f"mod.{one.name}(" in main for one in theirs) and "import mod\n" not in main:
        main = main.replace(f"{SHARED} = 0\n", f"import mod\n{SHARED} = 0\n", 1)
    return Program({"main.py": main, "mod.py": other}, [*mine, *[f"mod.{name}" for name in named]])
