"""Code that changes how later test modules are read, found or compiled: they run as they were before it.

Each row wins where they are loaded as Python and pytest do, which is seen first.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attacked_imports import ATTACKS, EARLIER, FILES, IDS, LATER, UNITTESTS, code, wins_otherwise
from grading_bench import BROKEN, ENTRYPOINT, FIXED, Make
from support import has

from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.twins import When
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_local import LocalTerminal

UNITTEST = "python -m unittest"
IN_THE_GATE = ("the parser", "a finder before all others", "a file that restores itself")

BELOW = {"calc.py": BROKEN, "test_earlier.py": EARLIER, "zone/conftest.py": "", "zone/test_later.py": LATER}
BELOW_IDS = (IDS[0], "zone/test_later.py::test_add")
UNITTEST_IDS = ("test_earlier.Test.test_it", "test_later.Test.test_it")
ON_UNITTEST = (
    "a finder before all others",
    "a module that is there already",
    "a file that restores itself",
    "bytecode",
)


@pytest.mark.parametrize(
    "attack", [pytest.param(one, marks=() if one in IN_THE_GATE else pytest.mark.grading) for one in ATTACKS]
)
def test_the_importer_is_attacked(make: Make, attack: str) -> None:
    files, ids = (BELOW, BELOW_IDS) if "conftest" in attack else (FILES, IDS)
    bench = make(files, ENTRYPOINT)
    assert wins_otherwise(bench, {"calc.py": code(attack)}, ids)
    result = bench.grade({"calc.py": code(attack)}, ids, twins="never")
    assert not result.resolved and result.score <= 1, result


@pytest.mark.grading
def test_a_module_that_is_planted_by_the_import_of_the_very_one(make: Make) -> None:
    """There is a module of that name by then, and what it puts in its own place is its own affair, not its imports'."""
    attack = "a module that is there already"
    bench = make({"calc.py": BROKEN, "test_later.py": LATER}, ENTRYPOINT)
    assert wins_otherwise(bench, {"calc.py": code(attack)}, IDS[1:])
    result = bench.grade({"calc.py": code(attack)}, IDS[1:], twins="never")
    assert (result.resolved, result.score) == (False, 0), result


@pytest.mark.grading
def test_a_plugin_that_imports_what_is_tested_before_anything_else(make: Make) -> None:
    early = {"plug.py": "import calc\n", "pytest.ini": "[pytest]\naddopts = -p plug\n"}
    bench = make({"calc.py": BROKEN, "test_later.py": LATER, **early}, ENTRYPOINT)
    assert wins_otherwise(bench, {"calc.py": code("a file that restores itself")}, IDS[1:])
    result = bench.grade({"calc.py": code("a file that restores itself")}, IDS[1:], twins="never")
    assert (result.resolved, result.score) == (False, 0), result


@pytest.mark.parametrize(
    "attack", [pytest.param(one, marks=() if one == ON_UNITTEST[1] else pytest.mark.grading) for one in ON_UNITTEST]
)
def test_so_it_is_with_unittest(make: Make, attack: str) -> None:
    bench = make({"calc.py": BROKEN, **UNITTESTS}, UNITTEST)
    assert wins_otherwise(bench, {"calc.py": code(attack)}, UNITTEST_IDS)
    result = bench.grade({"calc.py": code(attack)}, UNITTEST_IDS, twins="never")
    assert not result.resolved and result.score <= 1, result


def test_a_module_without_a_file_stands_for_none(make: Make) -> None:
    attack = code("a module that is there already").replace("module.__file__ = LATER\n", "")
    bench = make({"calc.py": BROKEN, **UNITTESTS}, UNITTEST)
    result = bench.grade({"calc.py": attack}, UNITTEST_IDS, twins="never")
    assert (result.score, result.reason) == (0, "the tests of test_later were not loaded from its file")


HONEST: Mapping[str, str] = {
    "calc.py": BROKEN,
    "conftest.py": "import pytest\n\n@pytest.fixture\ndef two():\n    return 2\n",
    "tests/__init__.py": "",
    "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef three(two):\n    return two + 1\n",
    "tests/helpers.py": "FIVE = 5\n",
    "tests/test_relative.py": """
        from .helpers import FIVE
        import calc
        def test_it(two, three):
            assert calc.add(two, three) == FIVE
        """,
    "tests/test_other.py": """
        from tests import test_relative
        from tests.test_relative import FIVE
        def test_it():
            assert test_relative.__file__.endswith("test_relative.py") and FIVE == 5
        """,
    "tests/test_rewritten.py": """
        import calc, pytest
        def test_it():
            with pytest.raises(AssertionError, match="assert 5 == 6"):
                assert calc.add(2, 3) == 6
        """,
    "tests/test_plain.py": '''
        """PYTEST_DONT_REWRITE"""
        import calc, pytest
        def test_it():
            with pytest.raises(AssertionError) as raised:
                assert calc.add(2, 3) == 6
            assert str(raised.value) == ""
        ''',
    "tests/test_replaces_itself.py": """
        import sys, types
        import calc
        def test_it():
            assert calc.add(2, 3) == 5
        class Module(types.ModuleType):
            pass
        sys.modules[__name__] = new = Module(__name__)
        vars(new).update(globals())
        """,
    "tests/test_reloads.py": """
        import importlib, inspect, sys
        def test_it():
            module = importlib.reload(sys.modules[__name__])
            assert inspect.getsource(module.test_it).startswith("def test_it")
        """,
    "tests/test_annotated.py": """
        from __future__ import annotations
        import calc
        def test_it(two: Nothing):
            assert calc.add(two, 3) == 5
        """,
    "tests/test_escape.py": r"""
        import calc
        def test_it():
            assert calc.add(2, 3) == 5, "\d"
        """,
    "tests/test_builtins.py": """
        import pytest
        from unittest import mock
        import calc
        def test_it(monkeypatch):
            with mock.patch("builtins.print") as printed:
                print(calc.add(2, 3))
            printed.assert_called_once_with(5)
            monkeypatch.setattr("builtins.input", lambda: 7)
            assert input() == 7
        """,
    "tests/test_latin.py": """
        # coding: latin-1
        import calc
        def test_it():
            assert calc.add(2, 3) == 5
        """,
}


@pytest.mark.parametrize(
    "options",
    [
        "",
        pytest.param(" --import-mode=importlib", marks=pytest.mark.grading),
        pytest.param(" --import-mode=append", marks=pytest.mark.grading),
        pytest.param(" --doctest-modules", marks=pytest.mark.grading),
        pytest.param(" tests/test_relative.py tests/test_rewritten.py", marks=pytest.mark.grading),
    ],
)
def test_what_test_modules_are_is_not_changed(make: Make, options: str) -> None:
    bench = make(HONEST, ENTRYPOINT + options)
    ids = bench.tests()
    result = bench.grade({"calc.py": FIXED}, ids, twins="never")  # which some of these cannot have
    assert (result.resolved, result.score, result.reason) == (True, len(ids), "")


@pytest.mark.parametrize("twins", [pytest.param("never", marks=pytest.mark.grading), "auto"])
@pytest.mark.parametrize("entrypoint", [ENTRYPOINT, UNITTEST])
def test_a_test_may_replace_what_is_built_in(make: Make, entrypoint: str, twins: When) -> None:
    test = """
        import unittest
        from unittest import mock
        import calc
        class Test(unittest.TestCase):
            @mock.patch("builtins.print")
            def test_it(self, printed):
                print(calc.add(2, 3))
                printed.assert_called_once_with(5)
                self.assertEqual(calc.add(2, 3), 5)
        """
    bench = make({"calc.py": BROKEN, "test_it.py": test}, entrypoint)
    result = bench.grade({"calc.py": FIXED}, bench.tests(), twins=twins)
    assert (result.resolved, result.reason, result.doubts) == (True, "", {})


@pytest.mark.grading
@pytest.mark.parametrize("options", ["", " --assert=plain"])
def test_assertions_are_rewritten_unless_the_command_says_otherwise(make: Make, options: str) -> None:
    test = """
        import calc
        def test_it():
            try:
                assert calc.add(2, 3) == 6
            except AssertionError as error:
                assert str(error).startswith("assert 5 == 6") is REWRITTEN
        """.replace("REWRITTEN", str(not options))
    bench = make({"calc.py": BROKEN, "test_it.py": test}, ENTRYPOINT + options)
    result = bench.grade({"calc.py": FIXED}, ["test_it.py::test_it"], twins="never")
    assert (result.resolved, result.reason) == (True, "")


CHANGES_LATER_TESTS = """
import os
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "test_later.py")
with open(path, "w") as file:
    file.write("def test_it():\\n    assert False\\n")
"""


@pytest.mark.parametrize(
    ("entrypoint", "files"), [(ENTRYPOINT, {"test_earlier.py": EARLIER, "test_later.py": LATER}), (UNITTEST, UNITTESTS)]
)
def test_each_interpreter_loads_what_was_there_at_first(python: str, entrypoint: str, files: Mapping[str, str]) -> None:
    if "pytest" in entrypoint and not has(python, "pytest"):
        pytest.skip(f"{python} has no pytest")
    with Session.start(LocalTerminal(), SandboxSpec(run="test")) as session:
        for name, text in {**files, "calc.py": FIXED + CHANGES_LATER_TESTS}.items():
            session.write(name, text.encode())
        result = measure(session, entrypoint, timeout=60, python=python, given=["test_later.py"])
        assert [test.outcome for test in result.tests] == ["passed", "passed"], result
        assert b"assert False" in session.read("test_later.py")
