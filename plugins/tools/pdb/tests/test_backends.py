"""How breakpoints are found: compiled into the program, by sys.monitoring, or by a trace function."""

from __future__ import annotations

import os
import subprocess
from textwrap import dedent
from typing import Any

import pytest
from support import repeated, version_of

TRACED = """\
import sys

def cold():
    x = 1
    return x

def hot(n):
    total = 0
    for i in range(n):
        total += i
    return total

print("traced:", sys.gettrace.__wrapped__() is not None)
hot(3)
cold()
print("traced:", sys.gettrace.__wrapped__() is not None)
"""


@pytest.mark.parametrize("command", ["b 4", "b 10, total < 0", "b cold", "tbreak 11"])
def test_breakpoints_need_no_trace_function(debug: Any, command: str) -> None:
    program = debug("python app.py", {"app.py": TRACED})
    program.do(command)
    while program.do("c")["t"] == "prompt":
        pass
    assert program.printed.count(b"traced: False") == 2


def test_next_needs_no_trace_function_from_3_12_on(debug: Any, python: str) -> None:
    source = """\
    import sys

    def called():
        print("traced:", sys.gettrace.__wrapped__() is not None)
        return 1

    def caller():
        x = called()
        return x

    caller()
    """
    program = debug("python app.py", {"app.py": dedent(source)})
    program.do("b 8")
    assert program.lines("c", "n") == [8, 9]
    assert (b"traced: True" if version_of(python) < (3, 12) else b"traced: False") in program.printed


def test_lines_that_cannot_be_compiled_into_are_traced(debug: Any, python: str) -> None:
    source = """\
    import sys
    for i in range(3):
        x = i
    print("traced:", sys.gettrace.__wrapped__() is not None)
    """
    program = debug("python app.py", {"app.py": dedent(source)})
    program.do("b 2")
    assert program.lines("c", "c", "c", "c", "c") == [2, 2, 2, 2, 0]
    assert (b"traced: True" if version_of(python) < (3, 12) else b"traced: False") in program.printed


def test_the_cache_of_modules_is_neither_used_nor_written(debug: Any, python: str, tmp_path: Any) -> None:
    files = {"app.py": "import other\nother.f()\n", "other.py": "def f():\n    x = 1\n    return x\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([python, "app.py"], cwd=tmp_path, check=True, env=environment)
    cached = {path: path.read_bytes() for path in tmp_path.rglob("*.pyc")}
    assert cached
    program = debug("python app.py", backends=["instrument", "settrace"])
    program.do("b other.py:2")
    assert program.lines("c", "c") == [2, 0]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.pyc")} == cached


def test_jumps_and_assignments_work_at_every_stop(debug: Any, backends: list[str]) -> None:
    source = "def f(n):\n    a = n\n    b = a\n    print('b is', b)\n    return b\nf(1)\nf(1)\n"
    program = debug("python app.py", {"app.py": source}, backends=backends)
    program.do("b 3, a == 1")
    assert program.lines("c") == [3]
    program.do("!a = 7")
    assert program.lines("c") == [3]
    assert b"b is 7" in program.printed
    program.do("!b = 9")
    assert "app.py(4)" in program.do("j 4")["out"]
    assert program.lines("c") == [0]
    assert b"b is 9" in program.printed


def test_what_the_program_sees_of_itself_is_unchanged(debug: Any, backends: list[str]) -> None:
    source = '''\
    """Doc."""
    from __future__ import division
    import inspect, traceback

    def f(a):
        """About f."""
        try:
            a.missing
        except AttributeError:
            print(traceback.format_exc().splitlines()[1].split("line ")[1])
        print(f.__doc__, __doc__, f.__code__.co_firstlineno, sorted(locals()))
        print(len(inspect.getsource(f).splitlines()))
        print(eval(compile("1 / 2", "text", "eval")))

    f(0)
    '''
    program = debug("python app.py", {"app.py": dedent(source)}, backends=backends)
    program.do("b 7, a == 1")
    program.do("b 8, a == 1")
    program.do("b 13, a == 1")
    assert program.lines("c") == [0]
    printed = program.printed.decode().split("\r\n")
    assert printed[:4] == ["8, in f", "About f. Doc. 5 ['a']", "9", "0.5"]


def test_breakpoints_of_a_file_that_is_loaded_already(debug: Any, backends: list[str]) -> None:
    files = {
        "app.py": "import other\nfor n in range(4):\n    y = other.f(n)\nprint(y)\n",
        "other.py": "def f(n):\n    x = n\n    return x\n",
    }
    program = debug("python app.py", files, backends=backends)
    program.do("b 3")
    assert program.lines("c") == [3]
    program.do("b other.py:2, n == 1")
    program.do("cl 1")
    assert program.lines("c") == [2]
    program.do("cl 2")
    program.do("b other.py:3")
    assert program.lines("c") == [3]
    program.do("disable 3")
    assert program.lines("c") == [0]


def test_a_module_that_is_loaded_again(debug: Any, backends: list[str]) -> None:
    files = {
        "app.py": "import importlib, other\nold = other.f\nold(1)\nimportlib.reload(other)\nold(2)\nother.f(3)\n",
        "other.py": "def f(n):\n    x = n\n    return x\n",
    }
    program = debug("python app.py", files, backends=backends)
    program.do("b other.py:2, n > 0")
    seen = []
    while program.do("c")["t"] == "prompt":
        seen.append(int(program.do("p n")["out"]))
        if seen == [1]:
            program.do("condition 1 n > 1")
    assert seen == [1, 2, 3]


def test_a_line_inside_a_statement_stands_for_its_first(debug: Any, backends: list[str]) -> None:
    source = """\
    def f(a,
          b):
        x = max(
            a,
            b,
        )
        return [x,
                a]

    f(1,
      2)
    """
    program = debug("python app.py", {"app.py": dedent(source)}, backends=backends)
    assert program.do("b 5")["out"].strip().endswith("app.py:3")
    assert program.do("b 8")["out"].strip().endswith("app.py:7")
    assert program.do("b 11")["out"].strip().endswith("app.py:10")
    assert program.lines("c", "c", "c", "c") == [10, 3, 7, 0]


def test_all_kinds_of_code(debug: Any, backends: list[str]) -> None:
    source = """\
    import functools

    def decorate(f):
        @functools.wraps(f)
        def inner(*args):
            return f(*args)
        return inner

    class Base(object):
        kind = "base"
        def method(self):
            yield 1
            value = 2
            yield value

    @decorate
    def g(n):
        with open(__file__) as file:
            text = file.read(n)
        try:
            return [one for one in text]
        finally:
            del text

    def outer(n):
        count = 0
        def nested():
            nonlocal count
            count += n
            return count
        return nested

    print(list(Base().method()))
    print(len(g(3)))
    print(outer(2)())
    while True:
        if True: break
    assert g(1)
    """
    text = dedent(source)

    def stops(allowed: list[str]) -> list[tuple[int, str]]:
        program = debug("python app.py", {"app.py": text}, backends=allowed)
        for line in range(1, text.count("\n") + 1):
            program.do(f"b {line}")
        found = []
        while (message := program.do("c"))["t"] == "prompt":
            found.append((message["stop"]["line"], message["stop"]["function"]))
        return found

    assert len(stops(["settrace"])) > 30
    assert stops(backends) == stops(["settrace"])


def test_frames_that_are_traced_no_more_know_their_lines(debug: Any) -> None:
    """Up to Python 3.9 a frame with a trace function keeps the line at which the thread was last traced."""
    app = "import other\nx = 1\nclass A:\n    pass\n\ndef f():\n    return other.g()\n\nf()\n"
    files = {"app.py": app, "other.py": "def g():\n    x = 1\n    return x\n"}
    program = debug("python app.py", files, backends=["instrument", "settrace"])
    program.do("tbreak app.py:3, str(x)")
    program.do("b other.py:2")
    assert program.do("c")["stop"]["line"] == 3
    assert [place["line"] for place in program.do("c")["stop"]["stack"]] == [2, 7, 9]


def test_a_generator_that_comes_back_is_the_same_frame(debug: Any, backends: list[str], python: str) -> None:
    source = """\
    def g(n):
        x = n
        yield x
        yield n

    def f():
        items = g(3)
        a = next(items)
        b = next(items)
        return a + b

    f()
    """
    program = debug("python app.py", {"app.py": dedent(source)}, backends=backends)
    program.do("b 3")
    program.do("b 4")
    assert program.do("c")["stop"]["locals"]["changed"] == {"n": "3", "x": "3"}
    program.do("u")
    assert program.lines("n") == [9]
    found = program.do("n")["stop"]
    assert (found["line"], found["function"]) == (4, "g")
    # Before Python 3.10 nothing tells when a frame is gone that is not traced: what is suspended is forgotten.
    new = version_of(python) < (3, 10)
    assert found["locals"] == {
        "first": new,
        "changed": {"n": "3", "x": "3"} if new else {},
        "unchanged": 0 if new else 2,
        "omitted": 0,
    }


@pytest.mark.parametrize(("end", "depth"), [("sum(g(3))", 1), ("next(g(3))", 1), ("failed(g(3))", 2)])
def test_a_generator_in_the_place_of_one_that_is_gone_is_new(
    debug: Any, backends: list[str], end: str, depth: int
) -> None:
    source = f"""\
    def g(n):
        x = n
        yield x

    def failed(items):
        try:
            return next(items) + items.throw(ValueError)
        except ValueError:
            return 1

    def f():
        a = {end} + {end} + {end}
        return a

    f()
    """
    program = debug("python app.py", {"app.py": dedent(source)}, backends=backends)
    program.do("b 3")
    seen = [program.do("c")["stop"]]
    for _ in range(2):
        program.do(f"u {depth}")  # to `f`
        seen.append(program.do("n")["stop"])
    assert [one["line"] for one in seen] == [3, 3, 3]
    for one in seen:
        assert one["locals"] == {"first": True, "changed": {"n": "3", "x": "3"}, "unchanged": 0, "omitted": 0}


ONE_LINERS = """\
def kept(function):
    return function

class A:
    def s(self): return 1
    @kept
    def t(self): return 2
    @property
    def p(self): return self.s()
    def __init__(self,
                 n=kept(1)): self.n = n

def g(n): return n
@kept
def h():
    \"\"\"Nothing but this.\"\"\"

a = A()
for n in range(3):
    g(n)
    h()
    a.s(), a.t(), a.p
"""


@pytest.mark.parametrize(
    ("function", "stops"),
    [
        ("g", [("g", 13)] * 3),
        ("A.s", [("s", 5)] * 6),
        ("A.t", [("t", 7)] * 3),
        *repeated(
            "debugger",
            ("A.p", [("p", 9)] * 3),
            ("A", [("__init__", 11)]),
            ("g, n == 1", [("g", 13)]),
            ("h", [("h", None)] * 3),
        ),
    ],
)
@pytest.mark.parametrize("first", ["", "c"], ids=["before", "after"])
def test_a_function_on_the_line_of_its_definition_is_stopped_at_when_it_is_called(
    debug: Any, backends: list[str], function: str, stops: list[tuple[str, int]], first: str
) -> None:
    program = debug("python app.py", {"app.py": ONE_LINERS}, backends=backends)
    if first:  # with the functions there, as pdb finds them
        program.do("tbreak 18" if function == "A" else "tbreak 19")
        program.do("c")
        assert not program.do(f"b {function}")["failed"]
    else:
        assert not program.do(f"b {function}")["failed"]
        program = debug("python app.py", backends=backends, breakpoints=program.breakpoints)  # as after a restart
    found = []
    while (message := program.do("c"))["t"] == "prompt":
        found.append((message["stop"]["function"].rpartition(".")[2], message["stop"]["line"]))
    assert [(name, line) for name, line in found] == [
        (name, line or seen) for (name, line), (_, seen) in zip(stops, found, strict=True)
    ]
