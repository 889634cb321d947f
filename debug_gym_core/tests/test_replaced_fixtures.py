"""Fixtures of the tested code's in the place of pytest's own."""

from __future__ import annotations

from grading_bench import ENTRYPOINT, Make

FIXTURES = """
import pytest
@pytest.fixture
def client(): return 5
"""
OF_FIXTURES = """
import calc
def test_x(client, tmp_path):
    calc.save(tmp_path)
    assert list(tmp_path.iterdir()) == [5]
"""
OWN_PATH = """
@pytest.fixture
def tmp_path(tmp_path): return Path(tmp_path)
class Path:
    def __init__(self, path): pass
    def iterdir(self): return [5]
"""


def test_pytests_fixtures_are_not_the_tested_codes(make: Make) -> None:
    files = {"calc.py": FIXTURES + "def save(path): pass\n", "conftest.py": "from calc import *\n"}
    bench = make({**files, "test_calc.py": OF_FIXTURES}, ENTRYPOINT)
    found = bench.grade({"calc.py": files["calc.py"] + OWN_PATH}, bench.tests())
    assert (found.resolved, found.reason) == (False, "the fixture tmp_path is that of calc"), found


def test_but_where_the_repository_has_them_so(make: Make) -> None:
    calc = FIXTURES + OWN_PATH.replace("[5]", "[self.saved]") + "def save(path): path.saved = 4\n"
    bench = make({"calc.py": calc, "conftest.py": "from calc import *\n", "test_calc.py": OF_FIXTURES}, ENTRYPOINT)
    found = bench.grade({"calc.py": calc.replace("= 4", "= 5")}, bench.tests())
    assert (found.resolved, dict(found.doubts), found.twins) == (True, {}, 1), found
