"""Code that was written against the twins: each row is resolved where none are run."""

from __future__ import annotations

import textwrap

import pytest
from grading_bench import ASSERTS, BROKEN, FIXED, RAISES, UNITTESTS, Make, bench_of
from support import handful, repeated

from debug_gym_core.grading import twin_run

EXPECTED_FIRST = ASSERTS.replace("calc.double(3) == 6", "6 == calc.double(3)").replace(
    "calc.add(2, 3) == 5", "5 == calc.add(2, 3)"
)
HELPERS = """
import calc

def same(one, other):
    return one == other

def test_double():
    assert same(calc.double(3), 6)

def test_add():
    assert same(calc.add(2, 3), 5)
"""
APPROX = """
import calc
import pytest

def test_double():
    assert calc.double(3) == pytest.approx(6)

def test_add():
    assert calc.add(2, 3) == pytest.approx(5)
"""
POINTS = """
import calc

def test_double():
    assert calc.double(3) == calc.Number(6)

def test_add():
    assert calc.add(2, 3) == calc.Number(5)
"""
CONTAINS = """
import calc

def test_double():
    assert 6 in calc.multiples(3)

def test_add():
    assert 5 in calc.sums(2, 3)
"""
ORDER = """
import calc

def test_double():
    assert calc.double(3) > 5

def test_add():
    assert calc.add(2, 3) > 4
"""
UNEQUAL = """
import calc

def test_double():
    assert calc.double(3) != 5

def test_add():
    assert calc.add(2, 3) != -1
"""
SWAPPED = UNITTESTS.replace("calc.double(3), 6", "6, calc.double(3)").replace("calc.add(2, 3), 5", "5, calc.add(2, 3)")
ALMOST = UNITTESTS.replace("assertEqual", "assertAlmostEqual")
INSIDE = SWAPPED.replace("assertEqual", "assertIn")

SAME = """
class Same(int):
    __hash__ = int.__hash__
    def __eq__(self, other):
        {eq}
    def __ne__(self, other):
        return not self == other
def double(a):
    {call}
    return Same(0)
add = lambda a, b: double(a)
Number = multiples = Same
sums = add
"""


def same(eq: str = "return True", call: str = "pass", head: str = "") -> str:
    """Code of functions that return what equals everything."""
    return textwrap.dedent(head) + SAME.format(
        eq=textwrap.indent(textwrap.dedent(eq).strip(), " " * 8).strip(),
        call=textwrap.indent(textwrap.dedent(call).strip(), " " * 4).strip(),
    )


WHERE = """
import gc, os, sys, time
def frames():
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
"""
ONCE = "self.n = getattr(self, 'n', 0) + 1\n"
ANY = "from unittest.mock import ANY\ndef double(a): return ANY\ndef add(a, b): return ANY\n"
EVERY = """
class Every(TypeError, ValueError, KeyError, IndexError, OverflowError, ZeroDivisionError,
            RecursionError, NotImplementedError, AssertionError, EOFError, BufferError):
    pass
"""

OBJECTS = {
    "equal once": (ASSERTS, same(ONCE + "return self.n == 1")),
    "equal once, then raises": (ASSERTS, same(ONCE + "return self.n == 1 or 1 / 0")),
    "equal once, then hangs": (ASSERTS, same(ONCE + "while self.n > 1: pass\nreturn True")),
    "equal once, then dies": (ASSERTS, same(ONCE + "if self.n > 1: os._exit(0)\nreturn True", head="import os\n")),
    "equal once, then interrupts": (ASSERTS, same(ONCE + "if self.n > 1: raise KeyboardInterrupt\nreturn True")),
    "equal once, then leaves": (
        ASSERTS,
        same(ONCE + "if self.n > 1: pytest.exit('enough')\nreturn True", head="import pytest\n"),
    ),
    "knows what is far": (ASSERTS, same("return other > -900000000")),
    "equal now and then": (ASSERTS, same(ONCE + "return self.n % 2 == 1")),
    "equal, of a module of mocks": (ASSERTS, same() + "Same.__module__ = 'unittest.mock'\n"),
    "equal, and says 1": (HELPERS, same("return 1")),
    "equal, and says something true": (HELPERS, same("return (0,)")),
    "equal, and says an object": (HELPERS, same("return object()")),
    "equal to what approximates": (APPROX, same()),
    "equal to another of its kind": (POINTS, same()),
    "mock.ANY": (ASSERTS, ANY),
    "mock.ANY, expected first": (EXPECTED_FIRST, ANY),
    "contains everything": (CONTAINS, same() + "Same.__contains__ = lambda self, other: True\n"),
    "greater than everything": (ORDER, same() + "Same.__gt__ = Same.__lt__ = lambda self, other: True\n"),
    "unequal to everything": (UNEQUAL, same() + "Same.__ne__ = lambda self, other: True\n"),
    "an exception of every kind": (
        RAISES,
        EVERY + "def double(a): raise Every\ndef add(a, b): raise Every\n",
    ),
    "an exception that lies about its class": (
        RAISES,
        EVERY + "class Lie(Exception):\n    __class__ = property(lambda self: Every)\n"
        "def double(a): raise Lie\ndef add(a, b): raise Lie\n",
    ),
    "unittest, expected first": (SWAPPED, same()),
    "unittest, almost equal": (ALMOST, same()),
    "unittest, contains everything": (INSIDE, same() + "Same.__contains__ = lambda self, other: True\n"),
    "unittest, equal once": (UNITTESTS, same(ONCE + "return self.n == 1")),
    "unittest, mock.ANY": (UNITTESTS, ANY),
    "unittest, mock.ANY, expected first": (SWAPPED, ANY),
}
"""What answers by how often it is asked, or by what it is asked for."""

TELLS = {
    "the finders": "any('twins' in type(one).__module__ for one in sys.meta_path)",
    "names of globals": "any(len(name) == 17 and name[1:].isalnum() for one in frames()"
    " if 'test_calc' in one.f_code.co_filename for name in one.f_globals)",
    "names in the code": "any('compare' in one.f_code.co_names for one in frames())",
    "asserts that pytest rewrote": "not any('@pytest_ar' in one.f_globals for one in frames())",
    "pytest's options": "any(type(one).__name__ == 'Config' and one.option.tbstyle == 'no'"
    " for one in gc.get_objects())",
    "what the host asked for": "any((one.f_locals.get('config') or {}).get('turned') for one in frames()"
    " if one.f_code.co_name == 'run_pytest')",
    "the loader": "'twins' in str([type(getattr(one, '__loader__', 0)).__module__ for one in sys.modules.values()])",
    "memory": "any(type(one).__name__ == 'Expectations' for one in gc.get_objects())",
}
ACTS = {
    "hangs": "time.sleep(1000)",
    "dies": "os._exit(0)",
    "skips": "import unittest; raise unittest.SkipTest",
    "interrupts": "raise KeyboardInterrupt",
    "raises the secret": "raise AssertionError(next(one.expectations.secret for one in sys.meta_path"
    " if hasattr(one, 'expectations')))",
    "skips with the secret": "import unittest; raise unittest.SkipTest(next(one.expectations.secret"
    " for one in sys.meta_path if hasattr(one, 'expectations')))",
    "answers for who asks": "[setattr(one.expectations, 'is_believed', lambda *_: True)"
    " for one in sys.meta_path if hasattr(one, 'expectations')]",
    "changes who asks": "[setattr(type(one.expectations), 'is_believed', lambda *_: True)"
    " for one in sys.meta_path if hasattr(one, 'expectations')]",
}
TOLD = {
    **{name: (ASSERTS, same(call=f"if {tell}: raise OSError", head=WHERE)) for name, tell in TELLS.items()},
    **{
        f"{name} in the twin": (ASSERTS, same(call=f"if {TELLS['names in the code']}: {act}", head=WHERE))
        for name, act in ACTS.items()
    },
}
"""What finds out that it runs in a twin: there is nothing that it could do then but be right."""


BELIEVED = {
    "equal only to another of its kind": (POINTS, same("return type(other) is Same")),
    "reports what the host wants to hear": (
        ASSERTS,
        """
        import os, sys
        frame = sys._getframe()
        while "send" not in frame.f_locals:
            frame = frame.f_back
        send = frame.f_locals["send"]
        secrets = [one.expectations.secret for one in sys.meta_path if hasattr(one, "expectations")]
        outcome, message = ("failed", secrets[0]) if secrets else ("passed", "")
        for name in ["test_double", "test_add"]:
            send("test", id="test_calc.py::" + name, outcome=outcome, message=message)
        status = len(secrets)
        send("end", status=status)
        os._exit(status)
        """,
    ),
    "puts another in the place of who asks": (
        ASSERTS,
        WHERE
        + """
for space in [one.f_globals for one in frames() if "test_calc" in one.f_code.co_filename]:
    for name, real in list(space.items()):
        if type(real).__name__ == "Expectations":
            class Forged:
                def compare(self, *_, real=real):
                    real.note(1, True)
                def __getattr__(self, name, real=real):
                    return getattr(real, name)
            space[name] = Forged()
"""
        + same(),
    ),
}
"""What is not covered."""


@pytest.mark.parametrize(
    ("tests", "code"),
    handful(
        "grading",
        {**OBJECTS, **TOLD},
        "dies in the twin",
        "answers for who asks in the twin",
    ),
)
def test_code_against_twins_is_not_believed(make: Make, tests: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin_run, "LEAST", 4.0)  # What hangs is not to hang for long.
    bench, ids = bench_of(make, tests)
    result = bench.disbelieved({"calc.py": code}, ids)
    assert (result.score, set(result.doubts)) == (0, set(result.tests)), result


@pytest.mark.parametrize(("tests", "code"), handful("grading", BELIEVED))
@pytest.mark.xfail(strict=True, raises=AssertionError, reason="documented as not covered")
def test_code_that_forges_who_asks_is_not_believed(make: Make, tests: str, code: str) -> None:
    bench, ids = bench_of(make, tests)
    assert not bench.grade({"calc.py": code}, ids).resolved


REPORTS = """
import os, sys
frame = sys._getframe()
while "send" not in frame.f_locals:
    frame = frame.f_back
send = frame.f_locals["send"]
for name in ["test_double{0}", "test_add{0}", "odd:one", "." * 100000]:
    send("test", id="test_calc.py::" + name, outcome="passed")
send("end", status=0)
os._exit(0)
"""


@pytest.mark.parametrize("part", ["[0]", *repeated("grading", "::part", "[0]::part", ".part", "::test_part[0]")])
def test_parts_of_tests_that_there_are_not_are_not_believed(make: Make, part: str) -> None:
    bench = make({"calc.py": BROKEN, "test_calc.py": ASSERTS})
    result = bench.disbelieved({"calc.py": REPORTS.format(part)})
    assert (result.score, len(result.doubts)) == (0, 2), result


PLANTS = """
import os, sys, types
planted = types.ModuleType("test_calc")
planted.__file__ = os.path.abspath("test_calc.py")
planted.test_double = planted.test_add = lambda: None
sys.modules["test_calc"] = planted
"""


def test_a_module_in_the_place_of_the_tests_is_not_run(make: Make) -> None:
    bench = make({"calc.py": BROKEN, "conftest.py": "import calc\n", "test_calc.py": ASSERTS})
    result = bench.grade({"calc.py": PLANTS}, twins="never")
    assert (result.resolved, result.score) == (False, 0)


@pytest.mark.grading
def test_a_run_that_is_nearly_too_slow_is_asked_all_the_same(make: Make) -> None:
    result = make({"calc.py": BROKEN, "test_calc.py": ASSERTS}).grade(
        {"calc.py": same("time.sleep(0.8)\nreturn True", "time.sleep(0.8)", "import time\n")}, timeout=5
    )
    assert (result.resolved, result.score) == (False, 0), result


HONEST = {
    "calc.py": BROKEN,
    "checks.py": """
        import calc
        class Checks:
            def test_double(self):
                assert calc.double(3) == 6
        """,
    "test_calc.py": """
        import os
        import pytest
        import calc
        from checks import Checks

        class Base:
            def test_add(self):
                assert calc.add(2, 3) == 5

        class TestOwn(Base):
            pass

        class TestOthers(Checks):
            pass

        @pytest.mark.parametrize("path", [os.path.abspath("calc.py")])
        def test_path(path):
            assert calc.add(path, "") == path

        @pytest.mark.xfail
        def test_unexpectedly():
            assert calc.add(1, 1) == 2

        def test_of_tests():
            TestOwn().test_add()

        def test_nothing():
            "There is only this."
        """,
    "test_deep.py": f"""
        import calc

        class Chain:
            def then(self):
                return self

        def test_sum():
            found = calc.double(1){" + 0" * 400}
            assert found == 2

        def test_chain():
            chain = Chain(){".then()" * 300}
            assert type(chain) is Chain
        """,
    "test_script.py": """
        import calc

        def test_double():
            result = calc.double(2)
            assert result == 4

        test_double()
        """,
}


@pytest.mark.grading
def test_a_right_fix_is_not_doubted_however_its_tests_are_written(make: Make) -> None:
    bench = make(HONEST)
    tests = [*bench.tests(), "test_calc.py::test_unexpectedly"]
    result = bench.grade({"calc.py": FIXED}, tests)
    assert (result.resolved, result.twins, result.doubts) == (True, 7, {}), result
    assert "test_calc.py::TestOthers::test_double" in tests
