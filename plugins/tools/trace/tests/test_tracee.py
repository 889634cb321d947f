"""What is seen of a call, on each interpreter."""

from __future__ import annotations

import re

import pytest
from following import Follow
from support import repeated
from traced_programs import PROGRAMS


def dedented(text: str) -> list[str]:
    """The lines of a text that is written with a bar before each."""
    return [line.split("|", 1)[1] for line in text.strip().splitlines()]


def numbers(lines: list[str], statement: str, name: str) -> list[int]:
    """What a statement made of a variable, each time that it is told."""
    return [int(line.split(f"| {name} = ")[1]) for line in lines if statement in line]


def test_each_statement_is_told_with_what_it_changed(trace: Follow) -> None:
    found = trace(PROGRAMS["loop"][1])
    assert found.lines[:6] == dedented("""
        |  n = 20
        |4  total = 0              | total = 0
        |5  for i in range(n):     | i = 0
        |6      if i % 2:
        |5  for i in range(n):     | i = 1
        |6      if i % 2:
    """)
    assert found.lines[6:8] == ["7          total += g(i)  | total = 2", "       > g(x=1) -> 2"]
    assert "   ... 10 more passes of the loop at line 5 ..." in found.lines
    assert found.lines[-2:] == ["8  return total", "returned 200 (line 8)"]
    assert found.story.caller is not None and str(found.story.caller) == "app.py:9 in <module>"


def test_passes_are_counted_and_the_last_five_are_the_last(trace: Follow) -> None:
    text = "def f(n):\n    for i in range(n):\n        x = i\n    while x:\n        x -= 1\n\n\nf(100)\n"
    lines = trace(text).lines
    assert [line for line in lines if "more passes" in line] == [
        "   ... 90 more passes of the loop at line 2 ...",
        "   ... 89 more passes of the loop at line 4 ...",
    ]
    assert [line.split("| i = ")[1] for line in lines if "| i = " in line] == [
        "0",
        "1",
        "2",
        "3",
        "4",
        "95",
        "96",
        "97",
        "98",
        "99",
    ]
    assert [line.split("| x = ")[1] for line in lines if "x -= 1" in line] == [
        "98",
        "97",
        "96",
        "95",
        "94",
        "4",
        "3",
        "2",
        "1",
        "0",
    ]


def test_a_loop_without_a_test_has_passes(trace: Follow) -> None:
    lines = trace(PROGRAMS["loops without a test"][1]).lines
    assert "    ... 2 more passes of the loop at line 3 ..." in lines
    assert [line.split("| n = ")[1] for line in lines if "n += 1" in line] == [
        "1",
        "2",
        "3",
        "4",
        "5",
        "8",
        "9",
        "10",
        "11",
        "12",
    ]
    assert lines[-1] == "returned -3 (line 12)"


def test_a_statement_of_several_lines_is_one_step(trace: Follow, version: tuple[int, int]) -> None:
    lines = [line.split("  | ")[0].rstrip() for line in trace(PROGRAMS["statements of several lines"][1]).lines]
    assert [line.split()[0] for line in lines if line[:2].strip().isdigit()] == ["7", "16", "18", "22"]
    if version >= (3, 8):
        assert "22      return [ x, y, ]" in lines


def test_exceptions_are_told_where_they_pass(trace: Follow) -> None:
    lines = trace(PROGRAMS["exceptions"][1]).lines
    first = lines.index(" 6      bad(x)")
    assert lines[first : first + 3] == [
        " 6      bad(x)",
        "        > bad(x=3) raises ValueError: no 3",
        "        ! ValueError: no 3",
    ]
    assert "        ! ZeroDivisionError: division by zero" in lines
    assert lines[-1].startswith("raised KeyError: 'k'")
    assert sum(line.startswith("15  with") for line in lines) == 1


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("generator", "returned 'end' after 4 yields (line 6)"),
        ("closed generator", "raised GeneratorExit after 4 yields (line "),
        ("coroutine", "returned 6 (line 13)"),
        ("asynchronous generator", "returned None after 3 yields (line "),
        ("recursion", "returned 8 (line 4)"),
        ("decorated", "returned 1 (line 10)"),
        *repeated(
            "debugger",
            ("property", "returned None (line 7)"),
            ("lambda", "returned 3 (line 1)"),
            ("one line", "returned 3 (line 1)"),
            ("inner function", "returned 9 (line 6)"),
            ("thread", "returned [1] (line 7)"),
            ("exit", "raised SystemExit: 3 (line 4)"),
            ("death", "it was not over"),
            ("else of a loop", "returned 12 (line 9)"),
        ),
    ],
)
def test_every_kind_of_call_has_one_life(name: str, last: str, trace: Follow) -> None:
    target, text = PROGRAMS[name]
    found = trace(text, target)
    assert found.lines[-1].startswith(last), found.text
    assert not found.last["problem"]
    assert found.last["calls"] == 1


def test_a_generator_that_ends_in_another_line_than_made_it_says_so(trace: Follow) -> None:
    source = "def numbers():\n    yield 1\n    return 6\ndef f():\n    it = numbers(); a = next(it)\n    try:\n"
    source += "        next(it)\n    except StopIteration as error:\n        return error.value\nf()\n"
    assert "       > numbers() yields 1, -> 6 in line 7" in trace(source).lines


def test_a_generator_is_told_with_what_it_yields_and_is_sent(trace: Follow) -> None:
    lines = trace(PROGRAMS["generator"][1]).lines
    assert "3      got = yield i   | got = 'x', yields 0" in lines
    assert "5          yield got   | yields 'x'" in lines
    lines = trace("def f():\n    yield 1\n    yield 2\n\n\ndef g(it):\n    return list(it)\n\n\ng(f())\n", "g").lines
    assert lines[-3:] == ["7  return list(it)", "       > f() yields 1, 2", "returned [1, 2] (line 7)"]


def test_attributes_and_globals_are_told(trace: Follow) -> None:
    lines = trace(PROGRAMS["method"][1], "A.f").lines
    assert lines[:4] == [
        "  self = <A n=1, items=[]>",
        "  x = 5",
        "  uses self.kind = 'base', self.seen = []",
        " 8  self.n += x           | self.n = 6",
    ]
    assert "11  del x                 | x is gone" in lines
    lines = trace(PROGRAMS["globals"][1]).lines
    assert lines[1] == "  uses counts = {}, LIMIT = 3, total = 0"
    assert lines[2:4] == [
        "6  counts[x] = counts.get(x, 0) + LIMIT  | counts = {'a': 3}",
        "7  total += 1                            | total = 1",
    ]


def test_of_a_long_container_what_changed_is_told(trace: Follow) -> None:
    text = (
        "def f(xs, d):\n    xs.append('new')\n    xs[30] = 'three'\n    d['key 7'] = None\n    del d['key 8']\n"
        "    xs = list(xs)\n    xs[-1] = 0\n\n\nf(list(range(60)), {'key %d' % i: 'value' for i in range(20)})\n"
    )
    beside = [line.split("| ")[1] for line in trace(text).lines if "| " in line]
    assert beside == ["xs[60] = 'new'", "xs[30] = 'three'", "d['key 7'] = None", "d['key 8'] is gone", "xs[60] = 0"]


def test_hostile_values_cost_little_and_harm_nobody(trace: Follow) -> None:
    found = trace(PROGRAMS["hostile values"][1])
    shown = dict(found.story.arguments)
    assert shown["a"] == "<Slow, whose repr takes too long>"
    assert shown["b"] == "<Raises, whose repr raises SystemExit>"
    assert shown["d"].startswith("xxxx") and len(shown["d"]) < 300
    assert shown["e"] == "calls"
    assert found.last["calls"] == 1 and found.status == 0
    assert "number = <int of 16610 bits>" in found.text
    assert len(found.text) < 5000


def test_calls_below_are_followed_as_deep_as_asked(trace: Follow) -> None:
    text = (
        "def h(x):\n    y = x + 1\n    return y\n\n\ndef g(x):\n    return h(x) * 2\n\n\n"
        "def f(x):\n    z = g(x)\n    return z\n\n\nf(1)\n"
    )
    assert trace(text, depth=1).lines[1:6] == [
        "11  z = g(x)  | z = 4",
        "        > g(x=1), app.py:6:",
        "          7  return h(x) * 2",
        "                 > h(x=1) -> 2",
        "        > g -> 4",
    ]
    assert "2  y = x + 1  | y = 2" in trace(text, depth=2).text
    assert trace(text, depth=0).lines[2] == "        > g(x=1) -> 4"


def test_many_calls_of_one_step_are_counted(trace: Follow) -> None:
    lines = trace(PROGRAMS["many calls"][1]).lines
    assert lines[2] == "       > key(x=0) -> 0"
    assert lines[8] == "       > ... 94 more calls"


def test_a_later_call_is_followed(trace: Follow) -> None:
    text = "def f(n):\n    return n\n\n\nfor i in range(1000):\n    f(i)\n"
    found = trace(text, call=701)
    assert found.lines[0] == "  n = 700" and found.story.call == 701
    found = trace(text, call=1001)
    assert found.last["story"] is None and found.last["calls"] == 1000


def test_what_happens_outside_of_the_repository_is_not_told(trace: Follow) -> None:
    text = (
        "import json\n\n\ndef hook(pair):\n    return len(pair)\n\n\ndef f(text):\n"
        "    return json.loads(text, object_pairs_hook=hook)\n\n\nf('{\"a\": 1}')\n"
    )
    assert trace(text).lines[1:] == [
        "9  return json.loads(text, object_pairs_hook=hook)",
        "       > hook(pair=[('a', 1)]) -> 1",
        "returned 1 (line 9)",
    ]
    hidden = {"secret.py": "def s(x):\n    return x\n"}
    text = "from secret import s\n\n\ndef f():\n    return s(2)\n\n\nf()\n"
    assert "s(x=2)" in trace(text, files=hidden).text
    assert "s(x=2)" not in trace(text, files=hidden, ignored=["secret.py"]).text


def test_what_is_more_than_can_be_followed_is_counted(trace: Follow) -> None:
    text = "def f(n):\n    t = 0\n    for i in range(n):\n        t += i\n    return t\n\n\nf(20000)\n"
    lines = trace(text).lines
    assert re.fullmatch("... 2000[0-9] more lines were carried out, too many to be followed ...", lines[-3])
    assert lines[-2:] == [
        "after them t = 199990000, i = 19999",
        "returned 199990000 (line 5)",
    ]


@pytest.mark.debugger
def test_what_is_more_than_can_be_counted_is_not_listened_to(trace: Follow) -> None:
    text = (
        "def g(x):\n    return x\n\n\ndef f(n):\n    t = 0\n    for i in range(n):\n        t = g(i)\n    return t\n"
        "\n\nf(250000)\n"
    )
    lines = trace(text).lines
    assert lines[-3] == "... more than 200000 more lines were carried out, too many to be followed ..."
    assert lines[-2:] == ["after them t = 249999, i = 249999", "returned 249999 (line 9)"]


def test_infinite_recursion_is_survived(trace: Follow, version: tuple[int, int]) -> None:
    text = "def f(n):\n    return f(n + 1)\n\n\ntry:\n    f(0)\nexcept RecursionError:\n    print('deep')\n"
    found = trace(text)
    assert found.printed == "deep\n"
    assert "RecursionError" in found.lines[-1] if version >= (3, 12) else "was not seen" in found.lines[-1]


def test_an_endless_loop_is_told_when_asked(trace: Follow) -> None:
    text = (
        "def f():\n    n = 0\n    while True:\n        n += 1\n        if n == 100:\n"
        "            print('now', flush=True)\n\n\nf()\n"
    )
    found = trace(text, interrupt_when="now")
    assert found.last["now"]["function"] == "f" and found.last["now"]["line"] in (3, 4, 5)
    assert "4      n += 1  | n = 1" in found.lines
    assert found.lines[-1] == "it was not over"


def test_a_sleeping_program_is_told_when_asked(trace: Follow) -> None:
    text = "import time\n\n\ndef f():\n    x = 1\n    print('now', flush=True)\n    time.sleep(60)\n\n\nf()\n"
    found = trace(text, interrupt_when="now")
    assert str(found.last["now"]["line"]) == "7"
    assert found.lines[0] == "5  x = 1  | x = 1"


@pytest.mark.parametrize(
    ("wanted", "function"),
    [
        ("Cart.add", "Cart.add"),
        ("add", "Cart.add"),
        ("outer.inner", "outer.inner"),
        ("outer.<locals>.inner", "outer.inner"),
        ("inner", "outer.inner"),
        *repeated(
            "debugger",
            ("3", "Cart.add"),
            ("9", "outer.inner"),
            ("Cart", "Cart"),
            ("<module>", "<module>"),
            ("double", "double"),
        ),
    ],
)
def test_functions_are_found_by_how_they_are_called(wanted: str, function: str, trace: Follow) -> None:
    text = (
        "class Cart:\n    def add(self, x):\n        return x\n\n    def drop(self): pass\n\n\ndef outer(x):\n"
        "    def inner(y): return y\n    return inner(x)\n\n\ndouble = lambda x: 2 * x\nCart().add(double(outer(1)))\n"
    )
    found = trace(text, wanted)
    assert found.story.function == function, found.messages
    assert found.lines[-1].startswith("returned ")


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("ad", "app.py has no function ad; it has A.add, B.add, A, B"),
        ("add", "app.py has several: A.add, B.add; say which"),
        ("A.sub", "app.py has no function A.sub; it has B, A, "),
        ("99", "line 99 of app.py is in no function; it has"),
    ],
)
def test_a_function_that_is_not_there_is_refused(wanted: str, why: str, trace: Follow) -> None:
    text = "class A:\n    def add(self): pass\n\n\nclass B:\n    def add(self): pass\n"
    refused = trace(text, wanted).refused
    assert set(why.split()) <= set(refused.replace(",", ", ").split()) or refused.startswith(why), refused
