"""Steps out of functions: past what the end of their variables calls, into what is called next."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from support import handful, repeated


@pytest.mark.parametrize("command", ["n", *repeated("debugger", "s")])
def test_a_step_out_of_a_function_goes_to_its_caller(debug: Any, command: str) -> None:
    """Not into what is called because the function's variables are gone."""
    source = """\
    import weakref

    def log(name):
        print(name)

    class Thing:
        def __del__(self):
            log("del")

    def f(kept):
        a = Thing()
        kept.add(a)
        weakref.finalize(a, log, "finalize")
        return 1

    f(weakref.WeakSet())
    b = 2
    """
    files = {"app.py": textwrap.dedent(source)}
    program = debug("python app.py", files)
    program.do("b 14")
    program.do("c")
    assert "--Return--" in program.do("r")["out"]
    assert program.do(command)["stop"]["line"] == 17
    assert b"del" in program.printed and b"finalize" in program.printed
    program = debug("python app.py", files)  # a breakpoint there is one
    program.do("b 14")
    program.do("b 8")
    program.do("c")
    program.do("r")
    assert program.do(command)["stop"]["line"] == 8
    assert program.do("s")["stop"]["function"] == "log"


LEAVES_WHAT_RAISES = """\
class Thing:
    def __del__(self):
        raise ValueError
def f():
    left = Thing()
"""

NOT_MEANT = {
    "a coroutine that was never awaited": """\
async def forgotten():
    pass
def f():
    left = forgotten()
    return 1
f()
b = 2
""",
    "a destructor that raises": f"""\
{LEAVES_WHAT_RAISES}    return 1
f()
b = 2
""",
    "a hook for what a destructor raises": f"""\
import sys
def hook(lost):
    a = 1
sys.unraisablehook = hook
{LEAVES_WHAT_RAISES}    return 1
f()
b = 2
""",
    "a hook that is no function": f"""\
import functools, sys
class Hook:
    def __call__(self, kept, lost):
        a = 1
sys.unraisablehook = functools.partial(Hook(), 1)
{LEAVES_WHAT_RAISES}    return 1
f()
b = 2
""",
    "a hook for what a generator raises at its end": """\
import sys
def hook(lost):
    a = 1
sys.unraisablehook = hook
def numbers():
    try:
        yield 1
    finally:
        raise ValueError
def f():
    left = numbers()
    next(left)
    return 1
f()
b = 2
""",
    "functions of weak references": """\
import weakref
class Thing:
    pass
def gone(reference):
    a = 1
def f(kept):
    left = Thing()
    kept.append(weakref.ref(left, lambda reference: gone(reference)))
    kept.append(weakref.ref(left, gone))
    return 1
kept = []
f(kept)
b = 2
""",
    "a file that was not closed": """\
def f():
    left = open(__file__)
    return 1
f()
b = 2
""",
    "an asynchronous generator": """\
import asyncio
async def numbers():
    yield 1
def f(held):
    left = held.pop()
    return 1
async def main():
    held = [numbers()]
    await held[0].__anext__()
    f(held)
    b = 2
asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
""",
}


@pytest.mark.parametrize(
    "left",
    handful(
        "debugger",
        list(NOT_MEANT),
        "a coroutine that was never awaited",
        "a destructor that raises",
        "a hook for what a destructor raises",
    ),
)
def test_a_step_out_of_a_function_goes_not_to_what_the_interpreter_calls(debug: Any, left: str) -> None:
    lines = [line.strip() for line in NOT_MEANT[left].splitlines()]
    program = debug("python -W default app.py", {"app.py": NOT_MEANT[left]})
    program.do(f"b {1 + lines.index('return 1')}")
    program.do("c")
    assert "--Return--" in program.do("s")["out"]
    stop = program.do("s")["stop"]
    assert (stop["file"], stop["line"]) == ("app.py", 1 + lines.index("b = 2"))


CALLED_NEXT = {
    "a hook": """\
import sys
def meant(lost):
    a = 1
sys.unraisablehook = meant
def f():
    return 1
meant(f())
""",
    "what decodes files": f"""\
import codecs
{LEAVES_WHAT_RAISES}    return "strict"
codecs.IncrementalDecoder(f())
""",
    "a function that is given a dead reference": """\
import weakref
class Thing:
    pass
def meant(reference, given):
    a = 1
def f(kept):
    left = Thing()
    kept.append(weakref.ref(left, lambda reference: None))
    return 1
kept = []
meant(f(kept), kept[0])
""",
    "a method after another": """\
class Thing:
    def __new__(cls):
        return object.__new__(cls)
    def __init__(self):
        a = 1
Thing()
""",
    "the same function": """\
import weakref
def meant(reference):
    return 1
sorted([weakref.ref(set()), weakref.ref(set())], key=meant)
""",
}


@pytest.mark.parametrize("called", handful("debugger", list(CALLED_NEXT), "a hook", "what decodes files"))
def test_a_step_out_of_a_function_goes_into_what_is_called_next(debug: Any, called: str) -> None:
    lines = [line.split()[0] for line in CALLED_NEXT[called].splitlines()]
    program = debug("python app.py", {"app.py": CALLED_NEXT[called]})
    program.do(f"b {1 + lines.index('return')}")
    program.do("c")
    assert "--Return--" in program.do("s")["out"]
    stop = program.do("s")["stop"]
    assert stop["reason"] == "call" and stop["function"] in ("meant", "__init__")


def test_a_step_goes_into_a_destructor(debug: Any) -> None:
    source = "class Thing:\n    def __del__(self):\n        x = 1\na = Thing()\ndel a\nb = 2\n"
    program = debug("python app.py", {"app.py": source})
    program.do("b 5")
    program.do("c")
    assert program.do("s")["stop"]["function"] == "__del__"
