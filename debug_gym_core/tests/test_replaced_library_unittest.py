"""What methods of unittest ask by Python's own library, or by their own helpers, which the tested code has replaced."""

from __future__ import annotations

from grading_bench import Make

from debug_gym_core.grading.runner.statements import STRANGE

BY_UNITTEST = """
import os, unittest
import calc

class Case(unittest.TestCase):
    def check(self, found):
        self.assertEqual(found, 5)

class T(Case):
    def test_x(self):
        self.assertTrue(os.access(calc.f(), os.R_OK))
        self.assertEqual(calc.f(), "?")

    def test_y(self):
        calc.replace(Case)
        self.check(calc.f())

    def test_z(self):
        calc.put(T)
        self.check(calc.f())

class Z(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        calc.save()
        cls.there = os.path.sameopenfile(100, 101)

    def test_m(self):
        self.assertEqual(calc.f(), "?")

    def test_n(self):
        self.assertIs(self.there, True)
"""
OF_UNITTEST = """
import os
own = os.access
os.access = lambda path, *mode: path == "?" or own(path, *mode)
f = lambda: "?"
def replace(case):
    own = case.check
    def check(self, found): case.check = own
    case.check = check
def put(case):
    def check(self, found): del case.check
    case.check = check
def save():
    own = os.path.sameopenfile
    def sameopenfile(*_):
        os.path.sameopenfile = own
        return True
    os.path.sameopenfile = sameopenfile
"""


def test_what_methods_of_unittest_ask_by_the_library_is_the_librarys(make: Make) -> None:
    bench = make({"calc.py": "f = lambda: 0\n", "test_calc.py": BY_UNITTEST}, "python -m unittest")
    found = bench.grade({"calc.py": OF_UNITTEST}, bench.tests())
    names = {"Z.test_m": "posixpath.sameopenfile", "Z.test_n": "posixpath.sameopenfile"}
    names |= {"T.test_x": "os.access", "T.test_y": "Case.check", "T.test_z": "T.check"}
    told = {f"test_calc.{test}": STRANGE + name for test, name in names.items()}
    assert (found.resolved, dict(found.doubts)) == (False, told), found
