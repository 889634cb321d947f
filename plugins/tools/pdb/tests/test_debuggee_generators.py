"""Generators: where steps in and out of them stop."""

from __future__ import annotations

import gc
import sys
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import pytest
from debugged_programs import dedent
from support import repeated

from debug_gym_tool_pdb.debuggee import leaving

GENERATORS = """\
    def numbers():
        for n in range(2):
            yield n
            after = n
        last = 1

    def outer():
        yield from numbers()
        done = 1

    total = 0
    for number in outer():
        total += number
    after = 1
    total = sum(numbers())
    generator = numbers()
    next(generator)
    generator.close()
    end = 1
"""


def lines(program: Any, command: str, count: int) -> list[int]:
    return [program.do(command)["stop"]["line"] for _ in range(count)]


def test_steps_over_yield_stay_in_the_generator(debug: Any) -> None:
    program = debug("python app.py", dedent(GENERATORS))
    program.do("tbreak 3")
    program.do("c")
    assert lines(program, "n", 6) == [4, 2, 3, 4, 2, 5]
    # Then out of it, and out of the one around it, to what runs that.
    seen: list[int] = []
    while not seen or seen[-1] != 14:
        seen += lines(program, "n", 1)
        assert len(seen) < 6
    assert set(seen) <= {8, 9, 12, 14}


def test_return_from_a_generator_stops_in_what_runs_it(debug: Any) -> None:
    program = debug("python app.py", dedent(GENERATORS))
    program.do("tbreak 3")
    program.do("c")
    stop = program.do("r")["stop"]
    assert stop["function"] == "outer" and stop["line"] in (8, 9)
    stop = program.do("r")["stop"]
    assert stop["function"] == "<module>" and stop["line"] in (12, 14)


def test_a_generator_that_c_code_runs(debug: Any) -> None:
    program = debug("python app.py", dedent(GENERATORS))
    program.do("b 15")
    program.do("c")
    program.do("tbreak 5")
    program.do("c")
    assert lines(program, "n", 2) == [16, 17]


def test_a_generator_that_raises(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            def fails():
                yield 1
                raise KeyError("in generator")
            try:
                for one in fails():
                    here = one
            except KeyError:
                caught = 1
            """
        ),
    )
    program.do("b 3")
    program.do("c")
    assert program.do("n")["stop"]["reason"] == "exception"
    assert program.do("n")["stop"]["line"] in (5, 7)
    assert program.do("n")["stop"]["line"] in (7, 8)


def test_a_step_out_of_a_generator_that_ends_in_a_return_statement_stops_there(debug: Any) -> None:
    source = "def numbers():\n    yield 1\n    x = 2\ndef f():\n    return sum(numbers())\nf()\n"
    program = debug("python app.py", {"app.py": source})
    program.do("b 3")
    program.do("c")
    stop = program.do("n")["stop"]
    assert (stop["reason"], stop["function"], stop["return"]) == ("return", "f", "1")


SUSPENDED = """\
def gen():
    try:
        for i in range(5):
            yield i
    finally:
        done = True

def first():
    g = gen()
    x = next(g)
    return x

def main():
    a = first()
    b = list(map(lambda n: n, gen()))
    return b
main()
"""


def test_a_step_out_of_a_function_goes_past_the_generators_that_it_leaves(debug: Any) -> None:
    program = debug("python app.py", {"app.py": SUSPENDED})
    program.do("b 11")
    assert program.lines("c", "n", "n", "n") == [11, 11, 15, 16]


def test_a_generator_that_was_returned_is_stepped_into(debug: Any) -> None:
    """By who called the function as well, so that its caller has gone on by nothing."""
    source = (
        "def rows(n):\n    made = (x for x in range(n))\n    return made\ntotal = sum(map(sum, map(rows, [2, 3])))\n"
    )
    program = debug("python app.py", {"app.py": source})
    program.do("b 3")
    program.do("c")
    stops = [program.do("s")["stop"] for _ in range(2)]
    assert [stop["function"] for stop in stops] == ["rows", "<genexpr>"]


def test_a_generator_that_goes_on_while_its_caller_does_not_is_stepped_into(debug: Any) -> None:
    program = debug("python app.py", {"app.py": SUSPENDED})
    program.do("b 15")
    program.do("c")
    stops = [program.do("s")["stop"] for _ in range(10)]
    assert [stop["line"] for stop in stops if stop["function"] == "gen"][-2:] == [4, 3]


IN_ITS_PLACE = """\
def numbers({}):
    try:
        yield 1
    finally:
        pass

class First:
    def __radd__(self, other):
        one, two = numbers(), numbers()
        next(one), next(two)
        return other

class Second:
    def __radd__(self, other):
        return other + 1

sum([First(), Second()])
"""


@pytest.mark.parametrize(
    "variables", ["", *repeated("debugger", "a=0", "a=0, b=0, c=0")]
)  # by which frames are as large as others
def test_a_call_that_follows_the_end_of_a_generator_is_stepped_into(debug: Any, variables: str) -> None:
    """Though its frame may be where that of the generator was, which is gone."""
    program = debug("python app.py", {"app.py": IN_ITS_PLACE.format(variables)})
    program.do("b 11")
    program.do("c")
    assert program.do("n")["stop"]["reason"] == "return"
    assert program.do("s")["stop"]["line"] == 14


ALIKE = """\
from itertools import chain

def numbers(n):
    yield n
    yield n

def begun(n):
    one = numbers(n)
    next(one)
    return one

def rows(n):
    gone = begun(n)
    return begun(n)

sum(chain.from_iterable(map(rows, [2, 3])))
"""


def test_a_generator_like_one_that_is_gone_is_stepped_into(debug: Any) -> None:
    program = debug("python app.py", {"app.py": ALIKE})
    program.do("b 14")
    program.do("c")
    assert program.do("r")["stop"]["function"] == "rows"
    assert program.do("s")["stop"]["line"] == 4


DEEPER = """\
class Thing:
    pass

def inner():
    try:
        yield 1
    finally:
        closed = 1

def outer():
    yield from inner()

def f(n):
    made = outer() if n == 0 else inner()
    next(made)
    thing = Thing()
    thing.held = [made] if n == 1 else made
    del made
    return n

f(0)
f(1)
f(2)
end = 1
"""


def test_a_step_out_of_a_function_goes_past_generators_that_are_held_by_what_it_leaves(debug: Any) -> None:
    program = debug("python app.py", {"app.py": DEEPER})
    program.do("b 19")
    assert [program.lines("c", "s", "s") for _ in range(3)] == [[19, 19, line] for line in (22, 23, 24)]


@pytest.mark.parametrize(
    "returned", ["[begun(n)]", "(begun(n),)", *repeated("debugger", "{begun(n): 1}", "map(int, begun(n))")]
)
def test_a_generator_in_what_is_returned_is_stepped_into_though_it_is_like_one_that_is_gone(
    debug: Any, returned: str
) -> None:
    source = ALIKE.replace("    return begun(n)", f"    return {returned}")
    if not returned.startswith("map"):
        source = source.replace("map(rows, [2, 3])", "chain.from_iterable(map(rows, [2, 3]))")
    program = debug("python app.py", {"app.py": source})
    program.do("b 14")
    program.do("c")
    assert program.do("r")["stop"]["function"] == "rows"
    assert program.do("s")["stop"]["line"] == 4


def test_a_generator_of_elsewhere_is_stepped_into_though_it_is_like_one_that_is_gone(debug: Any) -> None:
    source = ALIKE.replace("return begun(n)", "return n").replace(
        "sum(chain.from_iterable(map(rows, [2, 3])))", "other = begun(5)\nlist(zip(map(rows, [2, 3]), other))"
    )
    program = debug("python app.py", {"app.py": source})
    program.do("b 14")
    program.do("c")
    assert program.do("r")["stop"]["function"] == "rows"
    assert program.do("s")["stop"]["line"] == 4


def test_a_step_out_of_a_function_goes_past_a_generator_that_is_held_beside_many_numbers(debug: Any) -> None:
    source = DEEPER.replace("    thing = Thing()\n", "    data = [float(i) for i in range(999)]; thing = Thing()\n")
    program = debug("python app.py", {"app.py": source})
    program.do("b 19")
    assert [program.lines("c", "s", "s") for _ in range(3)] == [[19, 19, line] for line in (22, 23, 24)]


@pytest.mark.parametrize("kind", [deque, frozenset, Counter, dict.fromkeys, type("Rows", (list,), {})])
def test_what_a_step_out_of_a_function_leaves_is_looked_at_within_bounds(
    monkeypatch: pytest.MonkeyPatch, kind: Callable[[Any], Any]
) -> None:
    found = 0

    def referents(*values: Any) -> list[Any]:
        nonlocal found
        of_these = gc.get_referents(*values)
        found += len(of_these)
        return of_these

    def f() -> None:
        large = [kind((i,) for i in range(2000)) for _ in range(100)]  # noqa: F841
        many = [kind((i,) for i in range(990)) for _ in range(100)]  # noqa: F841
        leaving.Left(sys._getframe())

    monkeypatch.setattr(leaving, "_referents", referents)
    f()
    assert 0 < found < 25_000


def test_until_after_a_return_in_a_with_statement_goes_on_in_the_program(debug: Any) -> None:
    source = "import contextlib\n@contextlib.contextmanager\ndef cm():\n    yield 1\n"
    source += "def f():\n    with cm() as one:\n        return one\nwith cm() as two:\n    two = f()\nend = 1\n"
    program = debug("python app.py", {"app.py": source})
    if program.hello["python"] < [3, 10]:
        pytest.skip("the end of a with statement has no line there: pdb goes into contextlib too")
    program.do("b 7")
    program.do("c")
    assert program.do("r")["stop"]["reason"] == "return"
    stops = [program.do("unt")["stop"] for _ in range(2)]
    assert [(stop["file"], stop["line"]) for stop in stops][-1] == ("app.py", 10)
    assert {stop["file"] for stop in stops} == {"app.py"}
