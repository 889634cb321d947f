"""Assertions that tested code binds to other functions that are installed: none of it counts.

They are known functions of unittest and Python, which take as much and raise nothing. What finds them out is no twin.
"""

from __future__ import annotations

import textwrap

import pytest
from grading_bench import BROKEN, ENTRYPOINT, FIXED, UNITTEST_IDS, UNITTESTS, Make
from support import handful, repeated

TESTS = """
import unittest
import calc

class TestCalc(unittest.TestCase):
    def test_double(self):
        result = calc.double(3)
        self.assertEqual(result, 6)

    def test_add(self):
        result = calc.add(2, 3)
        self.assertEqual(result, 5)
"""
IDS = ("test_calc.py::TestCalc::test_add", "test_calc.py::TestCalc::test_double")

INSIDE = """
import sys, unittest

def double(a):
    return 2 * a

def add(a, b):
    test = sys._getframe(1).f_locals["self"]
    {}
    return a - b
"""
ATTACKS = {
    "unittest's": (BROKEN + "import unittest\nunittest.TestCase.assertEqual = unittest.TestCase.assertIsNotNone\n"),
    "Python's": (BROKEN + "import logging, unittest\nunittest.TestCase.assertEqual = logging.debug\n"),
    "of the class": INSIDE.format("type(test).assertEqual = unittest.TestCase.assertIsNotNone"),
    "of the instance": INSIDE.format("test.assertEqual = test.assertIsNotNone"),
}


BY_ALL = {
    f"{name}, by {module}": (code, entrypoint, ids)
    for name, code in ATTACKS.items()
    for module, entrypoint, ids in (("pytest", ENTRYPOINT, IDS), ("unittest", "python -m unittest", UNITTEST_IDS))
}


@pytest.mark.parametrize(
    ("attack", "entrypoint", "ids"),
    handful("grading", BY_ALL, "of the instance, by pytest", *(one for one in BY_ALL if one.endswith("unittest"))),
)
def test_an_assertion_that_is_another_is_found_out(
    make: Make, attack: str, entrypoint: str, ids: tuple[str, ...]
) -> None:
    result = make({"calc.py": BROKEN, "test_calc.py": TESTS}, entrypoint).grade({"calc.py": attack}, ids, twins="never")
    assert (result.resolved, result.score) == (False, 0)
    assert "TestCa" in result.reason and ".assertEqual was " in result.reason


MOVED = {
    "a test that does not run": ("case.runtest = case.listnames", "TestCaseFunction.runtest was replaced"),
    "a failure that is not told": ("case.addFailure = case.addDuration", "TestCaseFunction.addFailure was replaced"),
    "a test that is only logged": ("case.runtest = logging.debug", "TestCaseFunction.runtest was replaced"),
    "what nobody raised": (
        "unittest.case.sys = type('', (), {'exc_info': lambda: None})",
        "unittest.case.sys was replaced",
    ),
    "all is passed, in a closure": (
        """
        def passed(*_, **__):
            try:
                yield
            except BaseException:
                pass
        unittest.case._Outcome.testPartExecutor.__closure__[0].cell_contents = passed
        """,
        "the closure of unittest.case._Outcome.testPartExecutor was changed",
    ),
    "what is there by default": (
        "_pytest.runner.CallInfo.__init__.__kwdefaults__ = {'_ispytest': True}",
        "the code of _pytest.runner.CallInfo.__init__ was replaced",
    ),
    "an assertion in an installed module": (
        """
        exec("def _baseAssertEqual(*_, **__): pass", vars(iniconfig))
        unittest.TestCase._baseAssertEqual = iniconfig._baseAssertEqual
        """,
        "TestCase._baseAssertEqual was replaced",
    ),
    "a tolerance in an installed module": (
        """
        exec("def tolerance(self): return 1000", vars(iniconfig))
        type(pytest.approx(1)).tolerance = property(iniconfig.tolerance)
        """,
        "ApproxScalar.tolerance was replaced",
    ),
}


@pytest.mark.parametrize(
    ("attack", "reason"), handful("grading", MOVED, "a failure that is not told", "all is passed, in a closure")
)
def test_what_is_in_the_place_of_a_function_or_module_of_pytests_own_is_found_out(
    make: Make, attack: str, reason: str
) -> None:
    modules = "import iniconfig, logging, pytest, unittest.case, _pytest.runner, _pytest.unittest\n"
    text = f"{modules}case = _pytest.unittest.TestCaseFunction\n{BROKEN}\n{textwrap.dedent(attack)}\n"
    result = make({"calc.py": BROKEN, "test_calc.py": TESTS}, ENTRYPOINT).grade({"calc.py": text}, IDS, twins="never")
    assert (result.resolved, result.score) == (False, 0)
    assert reason in result.reason, result


def test_an_instance_stays_one_of_its_class(make: Make) -> None:
    attack = "test.__class__ = type('TestCalc', (type(test),), {'assertEqual': unittest.TestCase.assertIsNotNone})"
    bench = make({"calc.py": BROKEN, "test_calc.py": TESTS}, ENTRYPOINT)
    result = bench.grade({"calc.py": INSIDE.format(attack)}, IDS, twins="never")
    assert (result.resolved, result.score) == (False, 0)
    assert "the class of a test was changed in test_calc.py::TestCalc::test_add" in result.reason


def test_a_method_of_a_class_may_be_a_test(make: Make) -> None:
    tests = """
    import calc

    class TestCalc:
        @classmethod
        def test_double(cls):
            assert calc.double(3) == 6

        @staticmethod
        def test_add():
            assert calc.add(2, 3) == 5
    """
    result = make({"calc.py": BROKEN, "test_calc.py": tests}, ENTRYPOINT).grade({"calc.py": FIXED}, IDS)
    assert (result.resolved, result.twins, result.doubts) == (True, 2, {}), result


AS_RAISES = {
    "Python's": "pytest.raises = contextlib.suppress",
    "wraps a conftest's": """
        Raises.__wrapped__ = conftest.pytest_runtest_setup
        pytest.raises = Raises()
    """,
    "a class that says it is a conftest's": """
        pytest.raises = type("pytest_runtest_setup", (Raises,), {"__module__": "conftest"})
        conftest.pytest_runtest_setup = pytest.raises
    """,
    "made in a conftest": """
        exec("def raises(*kinds): return suppress(Exception)", vars(conftest))
        pytest.raises = conftest.raises
    """,
}


@pytest.mark.parametrize("attack", handful("grading", AS_RAISES, "Python's", "made in a conftest"))
def test_what_pytest_offers_is_its_own(make: Make, attack: str) -> None:
    tests = """
    import calc, pytest

    def test_add():
        with pytest.raises(TypeError):
            calc.add(1, 2)
    """
    cheats = """
    import contextlib, conftest, pytest
    class Raises:
        def __init__(self, *kinds): pass
        def __call__(self, *kinds): return self
        def __enter__(self): pass
        def __exit__(self, *error): return True
    """
    conftest = "from contextlib import suppress\ndef pytest_runtest_setup(item): pass\n"
    bench = make({"calc.py": BROKEN, "test_calc.py": tests, "conftest.py": conftest}, ENTRYPOINT)
    changed = BROKEN + textwrap.dedent(cheats) + textwrap.dedent(attack)
    result = bench.grade({"calc.py": changed}, ["test_calc.py::test_add"], twins="never")
    assert not result.resolved
    assert "pytest.raises was replaced" in result.reason


def test_a_test_class_may_have_its_own(make: Make) -> None:
    own = """
    import unittest
    import calc

    class TestCalc(unittest.TestCase):
        assertSame = unittest.TestCase.assertEqual

        def setUp(self):
            self.assertNear = self.assertAlmostEqual
            self.assertEquals = self.assertEqual

        def test_double(self):
            self.assertSame(calc.double(3), 6)
            self.assertEquals(calc.double(4), 8)

        def test_add(self):
            self.assertNear(calc.add(2, 3), 5)
    """
    bench = make({"calc.py": BROKEN, "test_calc.py": textwrap.dedent(own)}, ENTRYPOINT)
    result = bench.grade({"calc.py": FIXED}, IDS)
    assert (result.resolved, result.twins, result.doubts) == (True, 2, {}), result


def test_a_test_class_may_have_another_s_assertions(make: Make) -> None:
    """As those of Twisted and testtools, and names that Python has dropped."""
    base = """
    import unittest

    unittest.TestCase.assertEquals = unittest.TestCase.assertEqual
    unittest.TestCase.assertItemsEqual = unittest.TestCase.assertCountEqual

    class Base(unittest.TestCase):
        def assertEqual(self, first, second, msg=None):
            super().assertEqual(str(first), str(second), msg)
    """
    tests = """
    import calc
    from tests.base import Base

    class TestCalc(Base):
        def test_double(self):
            self.assertEqual(calc.double(3), 6)
            self.assertItemsEqual([calc.double(3)], [6])

        def test_add(self):
            self.assertEqual(calc.add(2, 3), 5)
            self.assertEquals(calc.add(2, 3), 5)
    """
    files = {"calc.py": BROKEN, "tests/__init__.py": "", "tests/base.py": base, "tests/test_calc.py": tests}
    bench = make({name: textwrap.dedent(text) for name, text in files.items()}, ENTRYPOINT)
    result = bench.grade({"calc.py": FIXED}, tuple(f"tests/{one}" for one in IDS))
    assert (result.resolved, result.twins, result.doubts) == (True, 2, {}), result


@pytest.mark.grading
def test_a_base_class_of_who_is_tested_asserts_nothing(make: Make) -> None:
    tests = """
    import calc

    class TestCalc(calc.Base):
        def test_double(self):
            self.assertEqual(calc.double(3), 6)

        def test_add(self):
            self.assertEqual(calc.add(2, 3), 5)
    """
    base = "import unittest\n\nclass Base(unittest.TestCase):\n    {}\n"
    attack = BROKEN + base.format("def assertEqual(self, *_): pass")
    bench = make({"calc.py": BROKEN + base.format("pass"), "test_calc.py": tests}, ENTRYPOINT)
    assert bench.grade({"calc.py": FIXED + base.format("pass")}, IDS).resolved
    assert not bench.grade({"calc.py": attack}, IDS).resolved


WRITES = """
import importlib, unittest
with open("tests/planted.py", "w") as file:
    file.write("def assertEqual(self, *_): pass")
importlib.invalidate_caches()
unittest.TestCase.assertEqual = importlib.import_module("tests.planted").assertEqual
"""
BINDS = """
import functools, sys, unittest
def add(a, b):
    tests = sys.modules["tests.test_calc"]
    forged = functools.lru_cache(lambda *_: None)
    forged.__wrapped__ = tests.TestCalc.test_add
    unittest.TestCase.assertEqual = {}
    return a - b
def double(a):
    return a
"""


@pytest.mark.parametrize(
    "code", [f"{WRITES}{BROKEN}", *repeated("grading", BINDS.format("tests.write"), BINDS.format("forged"))]
)
def test_not_all_that_is_in_the_tests_is_an_assertion(make: Make, code: str) -> None:
    """What is written there as they run, a function that is for something else, a wrapper that says it calls theirs."""
    tests = {"tests/__init__.py": "", "tests/test_calc.py": f"{UNITTESTS}\ndef write(*_): pass\n"}
    ids = ("tests.test_calc.TestCalc.test_add", "tests.test_calc.TestCalc.test_double")
    result = make({"calc.py": BROKEN, **tests}, "python -m unittest tests.test_calc").grade({"calc.py": code}, ids)
    assert result.score == 0 and "unittest.case.TestCase.assertEqual was replaced" in result.reason, result


ASKING = """
import math, os, unittest
import calc
import numpy as np
import pytest

def test_double():
    assert math.isclose(calc.double(3), 6) and os.path.exists(__file__)
    unittest.TestCase().assertAlmostEqual(calc.double(0.3), 0.6)

def test_add():
    assert np.allclose(calc.add(2, 3), 5)
    assert calc.add(2, 3) == pytest.approx(5)
"""
SHADOWED = "test_calc.all was put before Python's own"
ASKED = {
    "numpy.allclose was replaced": "import numpy\nnumpy.allclose = lambda *_, **__: True",
    "numpy.allclose was replaced ": "import numpy\nnumpy.allclose = dict",
    "numpy.testing._private.utils.assert_equal was replaced": "from numpy.testing._private import utils\n"
    "exec('def assert_equal(*_, **__): pass', vars(utils))",
    "math.isclose was replaced": "import math\nmath.isclose = lambda *_, **__: True",
    "math.isclose was replaced ": "import math, sys\nmath.isclose = lambda *_, **__: True\nsys.modules.pop('math')",
    "posixpath.exists was replaced": "import os\nos.path.exists = lambda path: True",
    "posixpath.exists was replaced ": "import functools, os\nos.path.exists = functools.partial(lambda path: True)",
    "math.isclose was replaced at": "import sys, types\n"
    "sys.modules['math'] = types.SimpleNamespace(isclose=lambda *_, **__: True)",
    "math.isclose was replaced at the": "import sys, types\nodd = types.ModuleType('math')\n"
    "odd.__getattr__ = lambda name: lambda *_, **__: True\nsys.modules['math'] = odd",
    "sys.modules['math'] was replaced": "import sys\nclass Odd:\n    isclose = staticmethod(lambda *_, **__: True)\n"
    "sys.modules['math'] = Odd()",
    "sys.modules['math'] was replaced by": "import sys\nclass Odd:\n    def __getattribute__(self, name):\n"
    "        return 1 // 0 if name == '__dict__' else lambda *_, **__: True\n"
    "    __dict__ = property(lambda self: sys.exit())\nsys.modules['math'] = Odd()",
    "sys.modules['math'] was replaced by what": "import math, types\nclass Odd(types.ModuleType):\n"
    "    isclose = property(lambda self: lambda *_, **__: True)\nmath.__class__ = Odd",
    "DEFAULT_RELATIVE_TOLERANCE was replaced": "import pytest\n"
    "type(pytest.approx(1)).DEFAULT_RELATIVE_TOLERANCE = 1000",
    "unittest.case.round was put before Python's own": "import unittest.case\nunittest.case.round = lambda *_: 0",
    SHADOWED: "import sys\ndef add(a, b, right=add):\n"
    "    sys._getframe(1).f_globals['all'] = lambda *_: True\n    return right(a, b)",
}


ASKING_IDS = ("test_calc.py::test_add", "test_calc.py::test_double")


# Of two on one name the first would be hidden, one makes a test fail, and of many not all is told.
ALONE = ("dict", "sys.modules['math'] = types", "sys.modules['math'] = odd", "__getattribute__", "math.__class__ =")
TOGETHER: dict[str, str] = {}
AGAIN: dict[str, str] = {}
for reason, attack in ASKED.items():
    if reason != SHADOWED and not any(one in attack for one in ALONE):
        (AGAIN if reason.strip() in TOGETHER else TOGETHER)[reason.strip()] = attack


@pytest.mark.grading
@pytest.mark.parametrize("asked", [TOGETHER, AGAIN])
def test_of_what_tests_ask_all_is_what_it_was(make: Make, asked: dict[str, str]) -> None:
    code = "\n".join([FIXED, *asked.values()])
    result = make({"calc.py": BROKEN, "test_calc.py": ASKING}).grade({"calc.py": code}, ASKING_IDS, twins="never")
    assert (result.resolved, result.score) == (False, 0)
    assert [one for one in asked if one not in result.reason] == [], result


@pytest.mark.parametrize(
    ("reason", "attack"), handful("grading", {reason: (reason, attack) for reason, attack in ASKED.items()}, SHADOWED)
)
def test_what_tests_ask_is_what_it_was(make: Make, reason: str, attack: str) -> None:
    result = make({"calc.py": BROKEN, "test_calc.py": ASKING}, ENTRYPOINT).grade(
        {"calc.py": f"{FIXED}\n{attack}\n"}, ASKING_IDS, twins="never"
    )
    assert (result.resolved, result.score) == (False, 0)
    assert reason in result.reason


@pytest.mark.grading
def test_what_tests_ask_may_be_imported_by_who_is_tested(make: Make) -> None:
    code = f"import math, filecmp\nimport numpy\nfrom math import isclose\nall = any\n{FIXED}"
    bench = make({"calc.py": BROKEN, "test_calc.py": ASKING}, ENTRYPOINT)
    result = bench.grade({"calc.py": code}, ASKING_IDS)
    assert (result.resolved, result.twins, result.doubts, result.reason) == (True, 2, {}, "")


@pytest.mark.grading
def test_the_tests_may_have_what_equals_anything(make: Make) -> None:
    helpers = "class Any:\n    def __eq__(self, other):\n        return True\n"
    tests = """
    import calc
    from tests.helpers import Any

    def test_double():
        assert calc.double(3) == Any()

    def test_add():
        assert [calc.add(2, 3), 1] == [5, Any()]
    """
    files = {"calc.py": BROKEN, "tests/__init__.py": "", "tests/helpers.py": helpers, "tests/test_calc.py": tests}
    bench = make({name: textwrap.dedent(text) for name, text in files.items()}, ENTRYPOINT)
    result = bench.grade({"calc.py": FIXED}, bench.tests())
    assert (result.resolved, result.twins, result.doubts) == (True, 2, {}), result
    own = f"{helpers}\ndef add(*_):\n    return Any()\n\ndouble = add\n"
    assert not bench.grade({"calc.py": own}, bench.tests()).resolved
