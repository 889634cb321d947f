"""Commands for the differential test, drawn by hypothesis."""

from __future__ import annotations

import ast
import re

from differential_expressions import Version
from differential_programs import Program
from hypothesis import strategies as st

Command = list[str]
"""A command, and the lines that belong to it."""

CONDITIONS = (
    "True",
    "False",
    "a > 1",
    "n > 1",
    "x",
    "total > 0",
    "b % 2 == 0",
    "nosuch",
    "1 / 0",
    "a == 1 or x == 1",
    "len(locals()) > 1",
    "'a' in locals()",
    "[y for y in (1, 2)]",
    "[y for y in (1, 2) if y == a]",
    "any(y == n for y in range(3))",
    "(lambda: x)()",
    "(lambda y: y)(1)",
    "{total for y in (1, 2)}",
    "__name__ == '__main__'",
    "self.__x",
    "self._mC1__x > 0",
    "str(total)",
    "globals()['total']",
    "max(a, b)",
    "mi1",
    "' # not a comment'",
)
NEWER_CONDITIONS = ("(w := 1)", "(a := 2) and b")
PRINTED = (
    *(
        "p a",
        "p b",
        "p c",
        "p n",
        "p x",
        "p total",
        "p w",
        "pp total",
        "p __name__",
        "p items",
        "a",
        "p sorted(y for y in locals() if y[0] != '_')",
    ),
    *("p [a for y in (1,)]", "whatis total", "p rest", "p mn1", "p mi1", "p names.get('x')", "retval"),
)
CHANGES = (
    "!a = 5",
    "!n = 1",
    "!x = 0",
    "!total = 7",
    "!b += 1",
    "!c = a",
    "n_ = 3",
    "!import math",
    "a = 4",
    "n = 1",
    "b += 1",
)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
RECURSION = re.compile(r"[mo]r\d")
GOING = ("c", "c", "c", "n", "n", "n", "s", "s", "r", "unt")


def headers(program: Program) -> set[int]:
    """Lines of the headers of functions in any file."""
    found: set[int] = set()
    for source in program.files.values():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                found |= set(range(first, max(first + 1, node.body[0].lineno)))
    return found


def scopes(program: Program) -> list[list[int]]:
    """Lines of the main script's code by the function that they are in.

    Of a function that calls itself there is nothing: jumped past what ends it, it would go on for ever.
    """
    tree = ast.parse(program.files["main.py"])
    found: list[list[int]] = []

    def visit(body: list[ast.stmt], last: int) -> None:
        inside = [node for node in ast.walk(ast.Module(body, [])) if isinstance(node, SCOPES)]
        theirs = {line for node in inside for line in range(node.lineno + 1, (node.end_lineno or 0) + 1)}
        found.append([line for line in range(body[0].lineno, last + 1) if line not in theirs])

    visit(tree.body, len(program.files["main.py"].splitlines()))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not RECURSION.match(node.name):
            visit(node.body, node.end_lineno or 0)
    return found


@st.composite
def commands(draw: st.DrawFn, program: Program, version: Version, most: int = 14) -> list[Command]:
    """Commands that a person might give; those that pdb refuses are among them."""
    main, mod = (len(program.files[name].splitlines()) for name in ("main.py", "mod.py"))

    jumps = [lines for lines in scopes(program) if len(lines) > 1]
    in_headers = headers(program)
    targets = [number for number in range(1, main + 1) if number not in in_headers]

    def pick(values: tuple[str, ...] | list[str]) -> str:
        return values[draw(st.integers(0, len(values) - 1))]

    def line() -> str:
        number = draw(st.integers(1, main + mod))
        return f"main.py:{number}" if number <= main else f"mod.py:{number - main}"

    def condition() -> str:
        return pick(CONDITIONS + (NEWER_CONDITIONS if version >= (3, 8) else ()))

    def breakpoint() -> Command:
        name = pick(["b", "b", "b", "b", "tbreak"])
        kind = draw(st.integers(0, 5))
        where = pick(program.functions) if kind == 4 and program.functions else line()
        return [f"{name} {where}, {condition()}" if kind == 5 or draw(st.booleans()) else f"{name} {where}"]

    def number() -> str:
        return str(draw(st.integers(1, max(1, count + draw(st.integers(0, 9)) // 9))))

    def manage() -> Command:
        kind = draw(st.integers(0, 9))
        if kind == 0:
            return ["b"]
        if kind == 1:
            return [f"disable {number()}"]
        if kind == 2:
            return [f"enable {number()}"]
        if kind == 3:
            return [f"ignore {number()} {draw(st.integers(0, 3))}"]
        if kind == 4:
            return [f"condition {number()} {condition()}"]
        if kind == 5:
            return [f"condition {number()}"]
        if kind == 6:
            return [f"cl {number()}"]
        if kind == 7:
            return [f"cl {line()}"]
        lines = [pick(["silent", "p a", "p total", "w"]) for _ in range(draw(st.integers(0, 2)))]
        return [f"commands {number()}", *lines, pick(["end", "end", "c", "n"])]

    def move() -> Command:
        kind = draw(st.integers(0, 13))
        if kind < 10:
            return [GOING[kind]]
        if kind == 10:
            return [f"unt {draw(st.integers(1, main))}"]
        if kind == 11:
            return [f"unt {targets[draw(st.integers(0, len(targets) - 1))]}"]
        return [pick(["u", "d", "u 2"])]

    def jump() -> list[Command]:
        """A jump, mostly from where a breakpoint is to a line of the same function."""
        kind = draw(st.integers(0, 9))
        if kind == 0:
            return [[pick(["j", "j x", "j 0", "j -1", f"j {main + 1}", "j 1 2"])]]
        if kind <= 2 or not jumps:
            return [[f"j {draw(st.integers(1, main))}"]]
        lines = jumps[draw(st.integers(0, len(jumps) - 1))]
        here, there = (lines[draw(st.integers(0, len(lines) - 1))] for _ in range(2))
        return [[f"b main.py:{here}"], ["c"], [f"j {there}"]]

    made: list[Command] = []
    count = 0
    for _ in range(draw(st.integers(0, 4))):
        made.append(breakpoint())
        count += 1
    for _ in range(draw(st.integers(2, most))):
        kind = draw(st.integers(0, 21))
        if kind > 19:
            made += jump()
            count += len(made[-3:]) == 3 and made[-3][0].startswith("b ")
        elif kind < 10:
            made.append(move())
        elif kind < 13:
            made.append([pick(PRINTED)])
        elif kind < 14:
            made.append([pick(CHANGES)])
        elif kind < 17:
            made.append(manage())
        elif kind < 19:
            made.append(breakpoint())
            count += 1
        else:
            made.append([pick(["w", "l", "ll", "w", f"l {draw(st.integers(1, main))}"])])
    return made
