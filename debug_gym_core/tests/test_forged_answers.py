"""Code that answers with what equals all, or leaves where it is asked, in ways that look like the tests' own."""

from __future__ import annotations

import re
import textwrap

import pytest
from grading_bench import ASSERTS as TESTS
from grading_bench import BROKEN, ENTRYPOINT, FIXED, UNITTESTS, Bench, Make
from support import repeated

APPROXIMATE = """
import pytest
import calc

def test_double():
    result = calc.double(3)
    assert result == pytest.approx(6)

def test_add():
    result = calc.add(2, 3)
    assert result == int("5")
"""
CALLED = UNITTESTS.replace("self.assertEqual(calc", "result = (calc").replace("3), 6)", "3))").replace("3), 5)", "3))")
CALLED = CALLED.replace("3))", "3))\n        self.assertEqual(result, int('6'))", 1)
CALLED = CALLED.replace("(2, 3))", "(2, 3))\n        self.assertEqual(result, int('5'))", 1)
ARRAYS = """
import numpy
import calc

def test_double():
    assert (calc.double(numpy.array([1, 2])) == numpy.array([2, 4])).all()

def test_add():
    assert numpy.all(calc.add(numpy.array([1, 2]), 1) == numpy.array([2, 3]))
"""
IN_PARTS = """
import unittest
import calc

class TestCalc(unittest.TestCase):
    def test_double(self):
        for number in (1, 2):
            with self.subTest(number=number):
                self.assertEqual(calc.double(number), number + number)

    def test_add(self):
        for number in (1, 2):
            with self.subTest(number=number):
                self.assertEqual(calc.add(number, 1), number + 1)
"""
IN_LISTS = """
from decimal import Decimal
import calc

def test_double():
    assert [calc.double(3)] == [Decimal(6)]

def test_add():
    found = []
    found.append(calc.add(2, 3))
    assert found == [Decimal(5)]
"""
FIRST = """
import calc
import pytest

@pytest.mark.parametrize("given, expected", [([3], [3, 3])])
def test_double(given, expected):
    assert expected == calc.double(given)

def test_add():
    for one in ([4],):
        expected = [*one, 5]
        result = calc.add(one, [5])
        assert expected == result
"""
FIRST_OF_UNITTEST = """
import unittest
import calc

class TestCalc(unittest.TestCase):
    def test_double(self):
        for expected in ([3, 3],):
            self.assertEqual(expected, calc.double([3]))

    def test_add(self):
        for expected in ([4, 5],):
            self.assertListEqual(expected, calc.add([4], [5]))
"""
CHAINS = """
import calc

def test_double():
    assert 5 < (number := calc.double(3)) < 7
    assert number

def test_add():
    all = 6
    assert 4 < calc.add(2, 3) < all
"""
COUNTED = """
import unittest
import calc

class TestCalc(unittest.TestCase):
    def test_double(self):
        self.assertCountEqual(calc.double([3]), [3, 3])

    def test_add(self):
        self.assertCountEqual(calc.add([4], [5]), [5, 4])
"""
SAME = """
def double(a): return Same(1)
add = lambda a, b: double(a)
class Same(int):
    __eq__ = __lt__ = __gt__ = lambda self, other: True
    __hash__ = int.__hash__
"""
SAME_ARRAY = """
import numpy
def double(a): return numpy.zeros(2).view(Same)
add = lambda a, b: double(a)
class Same(numpy.ndarray):
    def __eq__(self, other): return numpy.ones(self.shape, bool)
"""
ANY = "from unittest.mock import ANY\ndef double(a): return ANY\nadd = lambda a, b: ANY\n"

FORGED = {
    "a class in the namespace of the tests": (
        TESTS,
        """
        import sys
        def double(a):
            space = sys._getframe(1).f_globals
            if "calc" not in space:
                space = sys._getframe(2).f_globals
            exec("class Same(int):\\n    __eq__ = lambda self, other: True\\n    __hash__ = int.__hash__", space)
            return space.pop("Same")(0)
        add = lambda a, b: double(a)
        """,
    ),
    "what says that its code is the test's": (
        TESTS,
        """
        import sys
        class Equal:
            def __call__(self, other): return True
        class Same(int):
            __eq__ = Equal()
            __hash__ = int.__hash__
        def double(a):
            Equal.__code__ = sys._getframe(1).f_code
            return Same(0)
        def add(a, b):
            Equal.__code__ = sys._getframe(1).f_code
            return Same(0)
        """,
    ),
    "what a class of classes says of its code": (
        TESTS.replace("import calc", "import calc\nclass Own:\n    def __eq__(self, other): return self is other"),
        """
        import sys
        class Meta(type):
            @property
            def __eq__(cls):
                return cls.space["Own"].__dict__["__eq__"]
            __hash__ = type.__hash__
        class Same(int, metaclass=Meta):
            __hash__ = int.__hash__
            def __eq__(self, other): return True
        def double(a):
            Same.space = sys._getframe(1).f_globals
            return Same(0)
        def add(a, b):
            Same.space = sys._getframe(1).f_globals
            return Same(0)
        """,
    ),
    "ANY for a variable": (APPROXIMATE, ANY),
    "ANY for a variable of unittest": (CALLED, ANY),
    "in a list that something is called in": (IN_LISTS, SAME),
    "in a list that is compared with what is expected": (FIRST, SAME.replace("Same(1)", "[Same(1), Same(1)]")),
    "ANY in a list that is compared with what is expected": (
        FIRST,
        ANY.replace("return ANY", "return [ANY, ANY]").replace("b: ANY", "b: [ANY, ANY]"),
    ),
    "in a list that unittest compares with what is expected": (
        FIRST_OF_UNITTEST,
        SAME.replace("Same(1)", "[Same(1), Same(1)]"),
    ),
    "between two numbers, and has a name then": (CHAINS, SAME),
    "an iterator, by its class": (UNITTESTS, SAME + "    __next__ = None\n"),
    "elements of an iterator": (
        COUNTED,
        SAME.replace("Same(1)", "iter([Same(1), Same(1)])").replace("int.__hash__", "None"),
    ),
    "an array that equals what is expected, which comes first": (
        ARRAYS.replace(
            "calc.double(numpy.array([1, 2])) == numpy.array([2, 4])",
            "numpy.array([2, 4]) == calc.double(numpy.array([1, 2]))",
        ).replace(
            "calc.add(numpy.array([1, 2]), 1) == numpy.array([2, 3])", "[2, 3] == calc.add(numpy.array([1, 2]), 1)"
        ),
        SAME_ARRAY,
    ),
    "an array that equals each other": (
        ARRAYS,
        SAME_ARRAY,
    ),
}


def believing(make: Make, tests: str, entrypoint: str = ENTRYPOINT) -> tuple[Bench, tuple[str, ...]]:
    """A bench that believes the right fix, and the tests that count."""
    bench = make({"calc.py": BROKEN, "test_calc.py": tests}, entrypoint)
    ids = ids_in("test_calc", tests, by_unittest="unittest" in entrypoint)
    assert bench.grade({"calc.py": FIXED}, ids).resolved
    return bench, ids


def ids_in(module: str, tests: str, *, by_unittest: bool = False) -> tuple[str, ...]:
    """The ids of `test_double` and `test_add`."""
    [within] = re.findall(r"^class (\w+)\(unittest.TestCase\)", tests, re.MULTILINE) or [""]
    if by_unittest:
        return (f"{module}.{within}.test_double", f"{module}.{within}.test_add")
    place = f"{module}.py::{within}::" if within else f"{module}.py::"
    return (f"{place}test_double", f"{place}test_add")


@pytest.mark.grading
def test_what_equals_all_is_not_taken_for_the_tests_own(make: Make) -> None:
    """Each in a module of its own, all graded at once."""
    files: dict[str, str] = {}
    fixed: dict[str, str] = {}
    forged: dict[str, str] = {}
    names: dict[str, str] = {}
    for number, (attack, (tests, code)) in enumerate(FORGED.items()):
        given = {"test_double": "[given0-expected0]"} if tests == FIRST else {}
        for one in ids_in(f"test_{number}", tests):
            names[one + given.get(one.rpartition("::")[2], "")] = attack
        files[f"test_{number}.py"] = tests.replace("import calc", f"import calc_{number} as calc")
        name = f"calc_{number}.py"
        files[name], fixed[name], forged[name] = BROKEN, FIXED, code
    bench = make(files, ENTRYPOINT)
    assert bench.grade(fixed, [*names]).resolved
    found = bench.grade(forged, [*names])  # asked whether it lies: it was resolved until then
    missed = [name for one, name in names.items() if one not in found.doubts]
    assert (found.score, missed) == (0, []), found


WRITTEN = """
import io
import itertools
import unittest
from unittest import mock
from unittest.mock import ANY
import calc
import pytest

EXPECTED = {"id": ANY, "sum": 6}

def user():
    return {"id": object(), "sum": calc.double(3), "more": [1, {"x": calc.add(2, 3)}]}

class Base:
    @property
    def v(self):
        return calc.double(1)

def test_any_in_containers():
    assert {"id": ANY, "sum": 6, "more": [1, {"x": 5}]} == user()
    assert [ANY, 6] == [object(), calc.double(3)]
    assert (1, ANY) == (1, calc.double(3))
    assert {"id": ANY, "sum": 6, "more": [ANY, {"x": 5}]} == user()

def test_any_in_a_name():
    assert EXPECTED == {key: value for key, value in user().items() if key != "more"}

def test_any_in_a_variable():
    wanted = {"id": ANY, "sum": 6, "more": ANY}
    assert user() == wanted
    assert wanted == user()
    wanted = [ANY, 2, ANY, 2]
    result = calc.double([1, 2])
    assert wanted == result
    assert result == wanted

def test_chains():
    assert 0 < (y := calc.double(1)) < 3
    assert y == 2

def test_variables_by_their_names():
    three = 3
    assert locals()["three"] == 3
    assert eval("three") == three
    assert calc.double(3) == 6

class TestCases(unittest.TestCase):
    def test_any(self):
        self.assertEqual({"id": mock.ANY, "sum": 6, "more": mock.ANY}, user())
        self.assertDictEqual({"id": mock.ANY, "sum": 6, "more": mock.ANY}, user())

    def test_iterators(self):
        self.assertIn(calc.double(3), itertools.chain([5], [6]))
        self.assertIn("a\\n", io.StringIO("b\\na\\n"))
        self.assertCountEqual(itertools.chain([6], [5]), [calc.add(2, 3), calc.double(3)])

    def test_options(self):
        expected, about = 6, {"places": 3}
        self.assertAlmostEqual(calc.double(3), expected, **about)

class TestOwn(Base):
    def test_super(self):
        assert 1 < super().v < 3
"""

CASES = """
import calc

def test_cases():
    expected = 6
    match calc.double(3):
        case number:
            assert number == expected
"""


def test_what_tests_write_is_not_doubted(make: Make) -> None:
    files = {
        "calc.py": BROKEN,
        "test_calc.py": WRITTEN,
        "test_cases.py": CASES,
        "conftest.py": "pytest_plugins = None\n",
    }
    bench = make(files, ENTRYPOINT)
    found = bench.grade({"calc.py": FIXED}, bench.tests())
    assert (found.resolved, found.doubts) == (True, {}), found


CASE = """
import unittest, calc
class T(unittest.TestCase):
    def test_it(self):
        self.assertEqual(calc.add(3, 3), 6)
"""
ASSIGNED = """
import unittest, calc, help
class T(unittest.TestCase):
    test_it = help.made(lambda self: self.assertEqual(calc.add(3, 3), 6))
"""


@pytest.mark.parametrize(
    ("entrypoint", "files", "test"),
    [
        (
            "python -m unittest discover -s tests/unit",
            {"tests/unit/test_a.py": 1, "tests/unit/help.py": 0},
            "test_a.T.test_it",
        ),
        *repeated(
            "grading",
            (
                "python -m unittest discover -s checks -p check_a.py",
                {"checks/check_a.py": 1, "checks/help.py": 0, "check_a.py": 0},
                "check_a.T.test_it",
            ),
            (
                f"{ENTRYPOINT} packages/foo/tests",
                {"packages/foo/tests/test_a.py": 1, "packages/foo/pyproject.toml": 2, "tests/test_a.py": 0},
                "tests/test_a.py::T::test_it",
            ),
        ),
    ],
)
def test_tests_whose_ids_begin_at_another_directory_are_restored_and_have_twins(
    make: Make, entrypoint: str, files: dict[str, int], test: str
) -> None:
    texts = ["", CASE, "[tool.pytest.ini_options]\naddopts = ''\n"]
    written = {path: texts[kind] for path, kind in files.items()}
    bench = make({"calc.py": BROKEN, **written}, f"PYTHONPATH=. {entrypoint}")
    assert bench.tests() == (test,)
    changed = {path: CASE.replace(", 6)", ", calc.add(3, 3))") for path, kind in files.items() if kind == 1}
    found = bench.grade(changed, (test,))
    assert not found.resolved and set(found.dropped) == set(changed), found
    found = bench.grade({"calc.py": FIXED}, (test,))
    assert (found.resolved, found.twins) == (True, 1), found


def test_a_test_that_is_no_function_of_its_file_is_restored_too(make: Make) -> None:
    files = {"calc.py": BROKEN, "src/checks/check_a.py": ASSIGNED, "src/checks/help.py": "made = lambda test: test\n"}
    bench = make(files, "PYTHONPATH=. python -m unittest discover -s src/checks -p check_a.py")
    assert bench.tests() == ("check_a.T.test_it",)
    changed = {"src/checks/check_a.py": ASSIGNED.replace(", 6)", ", calc.add(3, 3))")}
    found = bench.grade(changed, bench.tests())
    assert not found.resolved and set(found.dropped) == set(changed), found
    assert bench.grade({"calc.py": FIXED}, bench.tests()).resolved


@pytest.mark.grading
def test_all_files_are_restored_that_an_id_may_mean(make: Make) -> None:
    """Its end alone is known, and two modules end so: both have a twin, whichever it is."""
    files = {"calc.py": BROKEN, "a/unit/test_a.py": CASE.replace("3, 3), 6", "2, 2), 4"), "b/unit/test_a.py": CASE}
    bench = make(files, "PYTHONPATH=. python -m unittest discover -s b/unit")
    changed = {"b/unit/test_a.py": CASE.replace(", 6)", ", calc.add(3, 3))")}
    found = bench.grade(changed, bench.tests())
    assert not found.resolved and set(found.dropped) == set(changed), found
    found = bench.grade({"calc.py": FIXED}, bench.tests())
    assert (found.resolved, found.twins) == (True, 1), found
    found = bench.grade({"calc.py": SAME}, bench.tests())
    assert not found.resolved and len(found.doubts) == 1, found


@pytest.mark.grading
def test_a_test_that_does_not_count_is_no_other_files(make: Make) -> None:
    files = {"calc.py": BROKEN, "tests/test_a.py": CASE.replace("3, 3), 6", "2, 2), 4"), "pkg/tests/test_a.py": CASE}
    bench = make(files, ENTRYPOINT.replace("-q", "-q --import-mode=importlib"))
    counted = ("pkg/tests/test_a.py::T::test_it",)
    assert set(bench.tests()) == {*counted, "tests/test_a.py::T::test_it"}
    found = bench.grade({"calc.py": FIXED}, counted)
    assert (found.resolved, found.twins) == (True, 1), found
    found = bench.grade({"calc.py": SAME}, counted)
    assert not found.resolved and set(found.doubts) == set(counted), found


@pytest.mark.parametrize("entrypoint", ["python -m unittest", *repeated("grading", ENTRYPOINT)])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("raise unittest.SkipTest", "pytest.skip()"),
        *repeated(
            "grading",
            ("pytest.xfail()", "pytest.xfail()"),
            ("raise unittest.case._ShouldStop", "raise type('Stop', (unittest.case._ShouldStop,), {})"),
        ),
    ],
    ids=["skipped", "expected to fail", "stopped"],
)
def test_a_test_of_which_a_part_is_skipped_or_stopped_has_not_passed(
    make: Make, one: str, other: str, entrypoint: str
) -> None:
    bench = make({"calc.py": BROKEN, "test_calc.py": IN_PARTS}, entrypoint)
    ids = ids_in("test_calc", IN_PARTS, by_unittest="unittest" in entrypoint)
    assert bench.grade({"calc.py": FIXED}, ids, twins="never").resolved
    code = f"import unittest, pytest\ndef double(a): {one}\ndef add(a, b): {other}\n"
    found = bench.grade({"calc.py": code}, ids, twins="never")
    assert (found.resolved, found.score) == (False, 0), found


@pytest.mark.parametrize("entrypoint", ["python -m unittest", *repeated("grading", ENTRYPOINT)])
def test_a_table_that_is_emptied_while_its_test_runs(make: Make, entrypoint: str) -> None:
    tests = "import unittest, calc\nCASES = [(1, 2), (2, 4)]\nclass TestCalc(unittest.TestCase):\n"
    for name, function in (("test_double", "calc.double(given)"), ("test_add", "calc.add(given, given)")):
        tests += f"    def {name}(self):\n        for given, expected in CASES:\n"
        tests += f"            self.assertEqual({function}, expected)\n"
    code = """
    import sys
    def watch(frame, event, argument):
        if frame.f_code.co_name in ("test_double", "test_add"):
            frame.f_globals["CASES"] = []
    sys.settrace(watch)
    """
    bench, ids = believing(make, tests, entrypoint)
    found = bench.disbelieved({"calc.py": code}, ids)
    assert (found.score, len(found.doubts)) == (0, 2), found


@pytest.mark.parametrize("watcher", ["watch", *repeated("grading", "Watcher()", "functools.partial(watch)")])
def test_a_profile_function_that_waits_for_tests_is_seen(make: Make, watcher: str) -> None:
    tests = "import calc\nCASES = [(1, 2), (2, 4)]\ndef test_double():\n    for given, expected in CASES:\n"
    tests += "        assert calc.double(given) == expected\n"
    tests += "def test_add():\n    for given, expected in CASES:\n        assert calc.add(given, given) == expected\n"
    code = """
    import functools, sys
    def watch(frame, event, argument):
        if frame.f_code.co_name in ("test_double", "test_add"):
            frame.f_globals["CASES"] = []
    class Watcher:
        def __call__(self, *given): watch(*given)
    """
    bench = make({"calc.py": BROKEN, "test_calc.py": tests})
    found = bench.grade({"calc.py": f"{textwrap.dedent(code)}sys.setprofile({watcher})\n"}, ids_in("test_calc", tests))
    assert (found.resolved, found.score) == (False, 0), found
    assert "a profile function of the tested code's was there before test_calc.py::test_double" in found.reason
