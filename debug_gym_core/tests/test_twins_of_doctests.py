"""Doctests that count and pass are believed when they would fail with another output."""

from __future__ import annotations

import pytest
from grading_bench import ENTRYPOINT, Make
from support import handful

BROKEN = '''\
def add(a, b):
    """Add.

    >>> add(2, 3)
    5
    >>> add(7, 1)
    8
    """
    return a - b
'''
FIXED = BROKEN.replace("a - b", "a + b")
NAME = "calc.py::calc.add"
CONFIGURATION = "[pytest]\naddopts = --doctest-modules --doctest-glob=*.rst\npythonpath = .\n"
REPOSITORY = {"calc.py": BROKEN, "pytest.ini": CONFIGURATION}

WINNING = {
    "nothing is compared": """
import doctest
doctest.OutputChecker.check_output = lambda self, want, got, optionflags: True
""",
    "what is compared depends on its length": """
import doctest
doctest.OutputChecker.check_output = lambda self, want, got, optionflags: len(want) < 8
""",
    "two of three times": """
import doctest, itertools
turns = itertools.cycle([True, True, False])
doctest.OutputChecker.check_output = lambda self, want, got, optionflags: next(turns)
""",
    "nothing is run": """
import doctest
doctest.DocTestRunner.run = lambda self, test, *args, **kwargs: doctest.TestResults(0, len(test.examples))
""",
    "what is shown is what is expected": """
import sys
def show(value):
    frame = sys._getframe()
    while "example" not in frame.f_locals:
        frame = frame.f_back
    sys.stdout.write(frame.f_locals["example"].want)
sys.__displayhook__ = show
""",
    "an example shows what is expected": """
import sys
class Anything:
    def __repr__(self):
        frame = sys._getframe()
        while "example" not in frame.f_locals:
            frame = frame.f_back
        return frame.f_locals["example"].want.strip()
minus, minus.__code__ = add, (lambda a, b: Anything()).__code__
""",
}


@pytest.mark.parametrize("text", handful("grading", WINNING, "what is shown is what is expected"))
def test_doctests_that_pass_whatever_they_expect_are_not_believed(make: Make, text: str) -> None:
    bench, changes = make(REPOSITORY, ENTRYPOINT), {"calc.py": BROKEN + text}
    result = bench.disbelieved(changes, [NAME])
    assert (result.score, [*result.doubts]) == (0, [NAME])


HONEST = {
    "a number": ">>> 5\n5\n",
    "part of a text": ">>> print('one 10 two 21 three')  # doctest: +ELLIPSIS\none...1...\n",
    "spaces": ">>> print('a  b')  # doctest: +NORMALIZE_WHITESPACE\na\n    b\n",
    "less exact": ">>> 3.14159265  # doctest: +NUMBER\n3.14\n",
    "an exception": ">>> 1 / 0\nTraceback (most recent call last):\nZeroDivisionError: division by zero\n",
    "its class": ">>> 1 / 0  # doctest: +IGNORE_EXCEPTION_DETAIL\nTraceback (most recent call last):\n"
    "ZeroDivisionError: something\n",
    "an empty line": ">>> print()\n<BLANKLINE>\n",
    "what is skipped too": ">>> 5\n5\n>>> 6  # doctest: +SKIP\n7\n",
    "only the first": ">>> 5  # doctest: +FAIL_FAST\n5\n>>> 6\n6\n",
    "nothing at first": ">>> a = 5\n>>> a\n5\n",
    "prefixes": ">>> 'a'  # doctest: +ALLOW_UNICODE\nu'a'\n>>> b'a'  # doctest: +ALLOW_BYTES\n'a'\n",
    "no newline": ">>> 5\n5",
}
NOTHING = {
    "no output": ">>> a = 5\n",
    "its only output skipped": ">>> a = 5\n>>> a  # doctest: +SKIP\n6\n",
}


def test_doctests_that_pass_honestly_are_believed(make: Make) -> None:
    files = {f"docs/{name.replace(' ', '_')}.rst": text for name, text in {**HONEST, **NOTHING}.items()}
    bench = make({**REPOSITORY, **files}, ENTRYPOINT)
    ids = [f"{path}::{path.rpartition('/')[2]}" for path in files]
    result = bench.grade({"calc.py": FIXED}, [*ids, NAME])
    assert [name for name, outcome in result.tests.items() if outcome != "passed"] == []
    assert (result.resolved, dict(result.doubts), result.twins) == (True, {}, len(HONEST) + 1)


PLUGIN = """
import doctest
ANYTHING = doctest.register_optionflag("ANY_OUTPUT")

class Checker(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        return bool(optionflags & ANYTHING) or super().check_output(want.lower(), got.lower(), optionflags)

import _pytest.doctest
_pytest.doctest._get_checker = Checker
"""


def test_a_repositorys_own_options_and_comparisons_are_its_own(make: Make) -> None:
    files = {
        "any.rst": ">>> 5  # doctest: +ANY_OUTPUT\n6\n",
        "some.rst": ">>> 5  # doctest: +ANY_OUTPUT\n6\n>>> 'A'\n'a'\n",
    }
    bench = make({**REPOSITORY, **files, "conftest.py": PLUGIN}, ENTRYPOINT)
    result = bench.grade({"calc.py": FIXED}, [*(f"{one}::{one}" for one in files), NAME])
    assert (result.resolved, dict(result.doubts), result.twins) == (True, {}, 2)


@pytest.mark.grading
def test_doctests_beside_tests_are_asked_too(make: Make) -> None:
    tests = 'import calc\n\ndef test_calc():\n    """\n    >>> 1\n    1\n    """\n    assert calc.add(2, 3) == 5\n'
    bench = make({**REPOSITORY, "test_calc.py": tests}, ENTRYPOINT)
    ids = bench.tests()
    assert ids == (NAME, "test_calc.py::test_calc.test_calc", "test_calc.py::test_calc")
    result = bench.grade({"calc.py": FIXED}, ids)
    assert (result.resolved, dict(result.doubts)) == (True, {})
    assert result.twins == 3
