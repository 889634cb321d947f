"""What the repository itself replaces of Python's own library, which is held against no change."""

from __future__ import annotations

import pytest
from grading_bench import ENTRYPOINT, Make
from support import repeated

from debug_gym_core.grading.runner.statements import STRANGE

CLOCK = """
import contextlib, time
@contextlib.contextmanager
def frozen(at):
    before, time.time = time.time, lambda: at
    yield
    time.time = before
def seconds(): return time.time() - 1
"""
OF_CLOCK = """
import time, unittest
import calc
class T(unittest.TestCase):
    def test_frozen(self):
        with calc.frozen(5):
            self.assertEqual(time.time(), 5)
    def test_seconds(self):
        with calc.frozen(5):
            self.assertEqual(time.time(), calc.seconds())
"""


@pytest.mark.parametrize(
    ("forgiving", "entrypoint"),
    [
        (True, "python -m unittest"),
        *repeated("grading", (False, "python -m unittest"), (True, ENTRYPOINT), (False, ENTRYPOINT)),
    ],
)
def test_what_the_repository_replaces_itself_it_may(make: Make, forgiving: bool, entrypoint: str) -> None:
    """A test that failed before is believed as well, where another one shows it."""
    bench = make({"calc.py": CLOCK, "test_calc.py": OF_CLOCK}, entrypoint)
    tests = bench.tests()
    found = bench.grade({"calc.py": CLOCK.replace(" - 1", "")}, tests, forgiving=forgiving)
    assert (found.resolved, len(found.doubts)) == ((True, 0) if forgiving else (False, 2)), found


OWN = """
import json
own = json.JSONEncoder.default
json.JSONEncoder.default = lambda self, value: own(self, value)
def add(a, b): return a - b
"""
OF_OWN = """
import json, unittest
import calc
class T(unittest.TestCase):
    def test_add(self):
        json.dumps([1])
        self.assertEqual(calc.add(1, 2), 3)
    def test_text(self): self.assertEqual(json.dumps([1]), "[1]")
"""


@pytest.mark.parametrize(
    ("entrypoint", "tests"),
    [
        ("python -m unittest", ["test_calc.T.test_add", "test_calc.T.test_text"]),
        *repeated("grading", (ENTRYPOINT, ["test_calc.py::T::test_add", "test_calc.py::T::test_text"])),
    ],
)
def test_what_is_forgiven_hides_nothing_else(make: Make, entrypoint: str, tests: list[str]) -> None:
    """Of a test that uses what the repository replaces itself it is seen whether it passes whatever it expects."""
    bench = make({"calc.py": OWN, "test_calc.py": OF_OWN}, entrypoint)
    found = bench.grade({"calc.py": OWN.replace("a - b", "a + b")}, tests, forgiving=True)
    assert (found.resolved, dict(found.doubts), found.twins) == (True, {}, 2), found
    lying = OWN.replace("return a - b", "return type('Same', (), {'__eq__': lambda *_: True})()")
    found = bench.grade({"calc.py": lying}, tests, forgiving=True)
    told = f"its expectations tell nothing, and {STRANGE}json.encoder.JSONEncoder.default"
    assert (found.resolved, dict(found.doubts)) == (False, {tests[0]: told}), found


UNLOADED = """
import json, unittest
from calc import add
class T(unittest.TestCase):
    def test_add(self): self.assertEqual(json.dumps([add(1, 2)]), "[3]")
"""


@pytest.mark.parametrize(
    ("entrypoint", "test"),
    [*repeated("grading", (ENTRYPOINT, "test_calc.py::T::test_add")), ("python -m unittest", "test_calc.T.test_add")],
)
def test_so_it_is_where_the_tests_could_not_be_loaded_before(make: Make, entrypoint: str, test: str) -> None:
    bench = make({"calc.py": OWN.replace("def add", "def added"), "test_calc.py": UNLOADED}, entrypoint)
    fixed = OWN.replace("a - b", "a + b")
    found = bench.grade({"calc.py": fixed}, [test], forgiving=True)
    assert (found.resolved, dict(found.doubts), found.twins) == (True, {}, 1), found
    found = bench.grade({"calc.py": fixed + "json.JSONEncoder.encode = lambda *_: '[3]'\n"}, [test], forgiving=True)
    told = f"{STRANGE}json.encoder.JSONEncoder.default, json.encoder.JSONEncoder.encode"
    assert (found.resolved, dict(found.doubts)) == (False, {test: told}), found


BOTH = """
import json
own = json.JSONEncoder.default
json.JSONEncoder.default = lambda self, value: own(self, value)
json.JSONDecoder.decode = lambda self, text: []
def add(a, b): return a - b
"""
OF_ADD = """
import json, unittest
import calc
class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(json.loads("[3]"), [])
        self.assertEqual(json.dumps([calc.add(1, 2)]), "[3]")
"""
OF_SUB = """
import json, unittest
import calc
if not hasattr(calc, "sub"):
    raise unittest.SkipTest("there is none")
class T(unittest.TestCase):
    def test_sub(self): self.assertEqual(json.dumps([calc.sub(3, 2)]), "[1]")
"""


@pytest.mark.parametrize(
    ("entrypoint", "tests"),
    [
        *repeated("grading", (ENTRYPOINT, ["test_add.py::T::test_add", "test_sub.py::T::test_sub"])),
        ("python -m unittest", ["test_add.T.test_add", "test_sub.T.test_sub"]),
    ],
)
def test_a_module_that_skips_itself_ends_no_run(make: Make, entrypoint: str, tests: list[str]) -> None:
    bench = make({"calc.py": BOTH, "test_add.py": OF_ADD, "test_sub.py": OF_SUB}, entrypoint)
    fixed = BOTH.replace("a - b", "a + b") + "def sub(a, b): return a - b\n"
    found = bench.grade({"calc.py": fixed}, tests, forgiving=True)
    assert (found.resolved, dict(found.doubts), found.twins) == (True, {}, 2), found
