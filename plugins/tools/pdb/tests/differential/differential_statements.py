"""Statements of the programs for the differential test."""

from __future__ import annotations

from differential_expressions import MOST_STEPS, Expressions, Function, Scope


class Statements(Expressions):
    """Writes statements, simple and compound."""

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
