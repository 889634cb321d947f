"""Code that looks up what is expected in the test that calls it: each row is resolved where no twins are run."""

from __future__ import annotations

import pytest
from grading_bench import ASSERTS, BROKEN, RAISES, UNITTESTS, Make, bench_of

PARAMETERS = """
import calc
import pytest

@pytest.mark.parametrize("given, expected", [(3, 6)])
def test_double(given, expected):
    assert calc.double(given) == expected

@pytest.mark.parametrize("given, expected", [(2, 5)])
def test_add(given, expected):
    assert calc.add(given, 3) == expected
"""
LOCALS = ASSERTS.replace(
    "    assert calc.double(3) == 6", "    expected = 6\n    assert calc.double(3) == expected"
).replace("    assert calc.add(2, 3) == 5", "    expected = 5\n    assert calc.add(2, 3) == expected")
TYPED = LOCALS.replace("expected =", "expected: int =")
LOOPED = LOCALS.replace("    ", "        ").replace("():", "():\n    for _ in range(1):")
TOGETHER = ASSERTS.replace("== 6", "== 6 and calc").replace("== 5", "== 5 and calc")
HOLDING = UNITTESTS.replace("assertEqual(calc.double(3), 6)", "assertTrue(calc.double(3) == 6)")
HOLDING = HOLDING.replace("assertEqual(calc.add(2, 3), 5)", "assertTrue(calc.add(2, 3) == 5)")
MADE = ASSERTS.replace("== 6", "== Decimal(6)").replace("== 5", "== pytest.approx(5)")
MADE = MADE.replace("import calc", "import calc\nimport pytest\nfrom decimal import Decimal")
QUERIED = (
    LOCALS.replace(
        "import calc",
        """
import calc
class Table:
    def query(self, text): return calc.double(3) if text == "double" else calc.add(2, 3)
""",
    )
    .replace("calc.double(3) ==", "Table().query('double') ==")
    .replace("calc.add(2, 3) ==", "Table().query('add') ==")
)
CONSTANTS = """
import sys
def double(a):
    return [one for one in sys._getframe(1).f_code.co_consts if type(one) is int and one > 3][-1]
def add(a, b):
    return [one for one in sys._getframe(1).f_code.co_consts if type(one) is int and one > 3][-1]
"""
VARIABLES = """
import sys
def double(a):
    return sys._getframe(1).f_locals["expected"]
def add(a, b):
    return sys._getframe(1).f_locals["expected"]
"""
TEXT = """
import linecache, sys
def read(frame):
    return int(linecache.getline(frame.f_code.co_filename, frame.f_lineno).split("==")[1])
def double(a):
    return read(sys._getframe(1))
def add(a, b):
    return read(sys._getframe(1))
"""
LAMBDAS = """
import calc

def test_double():
    assert (lambda: calc.double(3) == 6)()

def test_add():
    assert all(map(lambda found: found == 5, [calc.add(2, 3)]))
"""
FLAGS = ASSERTS.replace("assert calc.double(3) == 6", "same = calc.double(3) == 6\n    assert same").replace(
    "assert calc.add(2, 3) == 5", "same = calc.add(2, 3) == 5\n    assert same"
)
NESTED_CONSTANTS = """
import sys
def double(*_):
    codes, found = [sys._getframe(1).f_code], []
    for code in codes:
        found += [one for one in code.co_consts if type(one) is int and one > 3]
        codes += [one for one in code.co_consts if type(one) is type(code)]
    return found[-1]
add = double
"""
LONG = ASSERTS.replace("== 6", "== [\n        6,\n    ]").replace("== 5", "== [\n        5,\n    ]")
PARSED = """
import ast, sys
def double(a):
    return read(sys._getframe(1))
def add(a, b):
    return read(sys._getframe(1))
def read(frame):
    tree = ast.parse(open(frame.f_code.co_filename).read())
    return next(
        ast.literal_eval(one.comparators[0])
        for one in ast.walk(tree)
        if isinstance(one, ast.Compare) and one.lineno <= frame.f_lineno <= one.end_lineno
    )
"""
TEXTS = """
import re
import calc

def test_double():
    assert calc.double("a").startswith("aa")

def test_add():
    assert "bc" in calc.add("b", "c") and re.search("b.$", calc.add("b", "c"))
"""
TOLD_TEXTS = """
import sys
def double(a):
    return " ".join(one for one in sys._getframe(1).f_code.co_consts if isinstance(one, str) and len(one) > 1)
add = lambda a, b: " ".join(one for one in sys._getframe(1).f_code.co_consts if one == "bc")
"""
RAISED = """
import builtins, sys
def double(a):
    code = sys._getframe(1).f_code
    for name in code.co_names:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            raise kind(" ".join(one for one in code.co_consts if isinstance(one, str)))
add = lambda a, b: double_from(sys._getframe(1).f_code)
def double_from(code):
    raise next(getattr(builtins, name) for name in code.co_names if name.endswith("Error"))
"""
MATCHED = RAISES.replace("TypeError)", "TypeError, match='unsupported')")
NEARLY = ASSERTS.replace("calc.double(3) == 6", "abs(calc.double(3) - 6) < 1e-9").replace(
    "calc.add(2, 3) == 5", "4.5 < calc.add(2, 3) and not calc.add(2, 3) != 5"
)
READS = {
    "the constants of the test's code": (ASSERTS, CONSTANTS),
    "the same, with unittest": (UNITTESTS, CONSTANTS),
    "texts among the constants": (TEXTS, TOLD_TEXTS),
    "the constants of a lambda": (LAMBDAS, NESTED_CONSTANTS),
    "the constants beside what is asserted later": (FLAGS, CONSTANTS),
    "the names of exceptions": (MATCHED, RAISED),
    "numbers that are near": (NEARLY, CONSTANTS),
    "the test's text": (ASSERTS, TEXT),
    "the test's text, on disk": (
        ASSERTS,
        TEXT.replace("linecache.getline(", "line(").replace(
            "import linecache, sys",
            """
import sys
def line(path, number):
    return open(path).read().splitlines()[number - 1]
""",
        ),
    ),
    "the test's text, of what is assigned": (
        LOCALS,
        TEXT.replace("frame.f_lineno)", "frame.f_lineno - 1)").replace('"=="', '"="'),
    ),
    "the test's text, of several lines": (LONG, PARSED),
    "the test's parameters": (PARAMETERS, VARIABLES),
    "what the test makes of a constant": (MADE, CONSTANTS),
    "a constant below `and`": (TOGETHER, CONSTANTS),
    "a constant in what holds": (HOLDING, CONSTANTS),
    "the test's variables with a type": (TYPED, VARIABLES),
    "the test's variables in a loop": (LOOPED, VARIABLES),
    "the test's variables": (LOCALS, VARIABLES),
    "the test's variables, past what may look at them": (QUERIED, VARIABLES.replace("_getframe(1)", "_getframe(2)")),
}
"""Looks the result up in the test that calls it, whatever it is that runs it."""


def test_none_that_reads_what_is_expected_is_believed(make: Make) -> None:
    """Each in a module of its own, all graded at once."""
    files: dict[str, str] = {}
    reading: dict[str, str] = {}
    ids: dict[str, str] = {}
    for number, (name, (tests, code)) in enumerate(READS.items()):
        files[f"test_{number}.py"] = tests.replace("import calc", f"import calc_{number} as calc")
        files[f"calc_{number}.py"], reading[f"calc_{number}.py"] = BROKEN, code
        within = "::TestCalc" if "class TestCalc" in tests else ""
        given = {"test_double": "[3-6]", "test_add": "[2-5]"} if tests == PARAMETERS else {}
        for test in ("test_double", "test_add"):
            ids[f"test_{number}.py{within}::{test}{given.get(test, '')}"] = name
    result = make(files).grade(reading, [*ids])
    assert (result.score, [name for one, name in ids.items() if one not in result.doubts]) == (0, []), result


@pytest.mark.grading
@pytest.mark.parametrize(("tests", "code"), READS.values(), ids=READS)
def test_code_that_reads_what_is_expected_is_not_believed(make: Make, tests: str, code: str) -> None:
    bench, ids = bench_of(make, tests)
    result = bench.disbelieved({"calc.py": code}, ids)
    assert (result.score, len(result.doubts)) == (0, 2), result
