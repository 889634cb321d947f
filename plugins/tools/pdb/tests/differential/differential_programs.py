"""Programs and commands for the differential test, drawn by hypothesis.

A program ends after a bounded number of steps and prints the same each time: functions call only those defined before
them (or themselves, with a counter), loops count, and what a call costs times how often it is made stays below a limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from differential_expressions import NAMES, SHARED, Function, Scope, Version
from differential_statements import Statements
from hypothesis import strategies as st


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


class Writer(Statements):
    """Writes one module."""

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
