"""What prepares several tests uses of Python's own library, which the tested code has replaced just then."""

from __future__ import annotations

import pytest
from grading_bench import ENTRYPOINT, Make
from support import handful

from debug_gym_core.grading.runner.given import within
from debug_gym_core.grading.runner.twins import Turner

SAVE = """
import pathlib
OWN = pathlib.Path.read_bytes
def read_bytes(path):
    pathlib.Path.read_bytes = OWN
    return b"hello"
def save(path):
    path.write_bytes(b"")
"""
LYING = SAVE.replace('path.write_bytes(b"")', "pathlib.Path.read_bytes = read_bytes")
HONEST = SAVE.replace('b"")', 'b"hello")')

READ = """
import pathlib, tempfile
import pytest
import calc

def read():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "x")
        calc.save(path)
        return path.read_bytes()
"""
FIXTURE = """
@pytest.fixture(scope="session")
def text():
    return read()
"""
GIVEN = """
def test_first(text): assert text == b"hello"
def test_second(text): assert text == b"hello"
"""
KEPT = """
import conftest
def test_first(): assert conftest.TEXTS == [b"hello"]
def test_second(): assert conftest.TEXTS == [b"hello"]
"""
UNITTESTS = """
import unittest
TEXTS = []
def setUpModule(): TEXTS.append(read())
class TestSave(unittest.TestCase):
    def test_first(self): self.assertEqual(TEXTS, [b"hello"])
    def test_second(self): self.assertEqual(TEXTS, [b"hello"])
"""
PREPARED = {
    # conftest.py, the module with tests, and the test that counts
    "a fixture": (READ + FIXTURE, GIVEN, "test_calc.py::test_second"),
    "a fixture of the module": ("", READ + FIXTURE.replace("session", "module") + GIVEN, "test_calc.py::test_second"),
    "a hook": (
        READ + "TEXTS = []\ndef pytest_sessionstart(session): TEXTS.append(read())\n",
        KEPT,
        "test_calc.py::test_second",
    ),
    "setUpModule": ("", READ + UNITTESTS, "test_calc.py::TestSave::test_second"),
}


@pytest.mark.parametrize(("conftest", "tests", "counted"), handful("grading", PREPARED, "a fixture"))
def test_what_helpers_of_a_preparation_use_is_told_to_all_tests(
    make: Make, conftest: str, tests: str, counted: str
) -> None:
    bench = make({"calc.py": SAVE, "conftest.py": conftest, "test_calc.py": tests}, ENTRYPOINT)
    result = bench.grade({"calc.py": HONEST}, [counted], forgiving=True)
    assert (result.resolved, dict(result.doubts)) == (True, {}), result
    result = bench.grade({"calc.py": LYING}, [counted], forgiving=True)
    assert (result.resolved, list(result.doubts)) == (False, [counted]), result
    assert "pathlib.Path.read_bytes" in result.doubts[counted]


FIXTURES = """
import pytest
class TestFirst:
    @pytest.fixture(scope="class")
    def text(self): return "a"
    def test_it(self, text): assert text == "a"
class TestSecond:
    @pytest.fixture
    def text(self): return "b"
    def test_it(self, text): assert text == "b"
def pytest_sessionstart(): print()
def pytest_fixture_setup(): print()
def pytest_runtest_setup(): print()
def setup_module(): print()
"""


def test_what_prepares_one_test_is_told_to_that_one() -> None:
    turner = Turner("/testbed", {"test_calc.py": FIXTURES.encode()}, {}, ["test_it"], (), (), "_asked", "secret")
    lasting = turner.expectations.statements.lasting
    codes = [one for one in within(turner.asked["/testbed/test_calc.py"]) if id(one) in lasting]
    lines = FIXTURES.splitlines()
    assert {lines[one.co_firstlineno - 1].strip() for one in codes} == {
        '@pytest.fixture(scope="class")',
        "def pytest_sessionstart(): print()",
        "def setup_module(): print()",
    }
