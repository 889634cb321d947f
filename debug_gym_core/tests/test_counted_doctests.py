"""Doctests that count in a module of the product: its code may be fixed, they stay what they are."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from grading_bench import ENTRYPOINT, Bench, Make
from hypothesis import given
from hypothesis import strategies as st

import debug_gym_core
from debug_gym_core import Tool, ToolCall
from debug_gym_core.grading.infrastructure import Infrastructure
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import FileState, Snapshot

BROKEN = '''\
"""Sums and products.

>>> triple(2)
6
"""

def double(a):
    """Twice as much.

    >>> double(3)
    6
    >>> double("a")  # of a text, too
    'aa'
    """
    return 2 * a

def triple(a):
    return 3 * a

def add(a, b):
    """Not tested here."""
    return a - b

class Sum:
    """No examples."""

    @property
    def value(self):
        """
        >>> Sum().value
        0
        """
        return 0

    @value.setter
    def value(self, new):
        pass
'''
FIXED = BROKEN.replace("a - b", "a + b")
DOUBLE = BROKEN[BROKEN.index("def double") : BROKEN.index("def triple")]
TESTS = """\
import calc

def test_add():
    assert calc.add(2, 3) == 5
"""
CONFIGURATION = "[pytest]\naddopts = --doctest-modules\npythonpath = .\n"
REPOSITORY = {"calc.py": BROKEN, "tests/test_calc.py": TESTS, "pytest.ini": CONFIGURATION}
DOCTESTS = ("calc.py::calc", "calc.py::calc.Sum.value", "calc.py::calc.double")
IDS = (*DOCTESTS, "tests/test_calc.py::test_add")


@pytest.fixture
def doctested(make: Make) -> Bench:
    return make(REPOSITORY, ENTRYPOINT)


LOADED = """
import doctest
import unittest
import calc

def load_tests(loader, tests, ignore):
    tests.addTests(doctest.DocTestSuite(calc))
    return tests

class TestCalc(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(2, 3), 5)
"""


def test_a_fix_beside_doctests_that_unittest_runs_counts(make: Make) -> None:
    bench = make({"calc.py": BROKEN, "test_calc.py": LOADED}, "python -m unittest")
    tests = bench.tests()
    assert "calc.double" in tests
    result = bench.grade({"calc.py": BROKEN.replace("a - b", "a + b")}, tests)
    assert (result.resolved, result.dropped, result.twins) == (True, {}, 1), result
    fitted = BROKEN.replace("a - b", "a + b").replace("    6\n", "    9\n").replace("2 * a", "3 * a")
    assert bench.grade({"calc.py": fitted}, tests).dropped == {
        "calc.py": "it changes the doctest calc.double, which counts"
    }


@pytest.mark.grading
def test_a_fix_beside_doctests_counts(doctested: Bench) -> None:
    ids = doctested.tests()
    assert ids == IDS
    result = doctested.grade({"calc.py": FIXED}, ids)
    assert (result.resolved, result.score, result.reason, result.dropped) == (True, 4, "", {})
    assert result.twins == 4


def test_a_doctest_changed_to_fit_the_bug_does_not_count(make: Make) -> None:
    bench = make({**REPOSITORY, "calc.py": BROKEN.replace("2 * a", "a")}, ENTRYPOINT)
    fitted = FIXED.replace("2 * a", "a").replace("    6\n    >>>", "    3\n    >>>").replace("'aa'", "'a'")
    result = bench.grade({"calc.py": fitted}, IDS)
    assert (result.resolved, result.tests["calc.py::calc.double"]) == (False, "failed")
    assert result.dropped == {"calc.py": "it changes the doctest calc.double, which counts"}


@pytest.mark.grading
def test_doctests_of_the_changed_module_are_run(doctested: Bench) -> None:
    result = doctested.grade({"calc.py": FIXED.replace("2 * a", "a")}, IDS)
    assert (result.resolved, result.score, result.dropped) == (False, 3, {})
    assert result.tests["calc.py::calc.double"] == "failed"


def test_a_run_that_writes_to_doctests_does_not_count(doctested: Bench) -> None:
    writes = f"{FIXED}\nopen(__file__, 'a').write('#')\n"
    result = doctested.grade({"calc.py": writes}, IDS)
    assert (result.resolved, result.score, result.reason) == (False, 0, "the run wrote to the tests: calc.py")


@pytest.mark.grading
def test_a_function_called_as_its_module_is_not_taken_for_a_test(make: Make) -> None:
    name = "add.py::add.add"
    text = 'def add(a, b):\n    """\n    >>> add(2, 3)\n    5\n    """\n    return a - b\n'
    bench = make({"add.py": text, "pytest.ini": CONFIGURATION}, ENTRYPOINT)
    result = bench.grade({"add.py": text.replace("a - b", "a + b")}, [name])
    assert (result.resolved, result.score, result.doubts, result.twins) == (True, 1, {}, 1)


@pytest.mark.grading
def test_a_package_with_doctests_is_imported_once(make: Make) -> None:
    package = '"""\n>>> pay(2)\n4\n"""\nfrom .state import pay\ndel state\n'
    files = {"shop/__init__.py": package, "shop/state.py": "def pay(a): return a + a\n", "pytest.ini": CONFIGURATION}
    files["first.py"] = "import shop\n"  # before its own doctests are found
    bench = make({**files, "test_it.py": "import shop\ndef test_it(): assert shop.pay(2) == 4\n"}, ENTRYPOINT)
    ids = bench.tests()
    assert ids == ("shop/__init__.py::shop", "test_it.py::test_it")
    result = bench.grade({"shop/state.py": "def pay(a): return 2 * a\n"}, ids)
    assert (result.resolved, result.score, result.twins) == (True, 2, 2)


def test_files_with_other_tests_that_count_are_restored(make: Make) -> None:
    mixed = BROKEN + "\ndef test_itself():\n    assert double(2) == 4\n"
    options = "[pytest]\naddopts = --doctest-modules\npythonpath = .\npython_files = calc.py test_*.py\n"
    bench = make({**REPOSITORY, "calc.py": mixed, "pytest.ini": options}, ENTRYPOINT)
    ids = bench.tests()
    assert {"calc.py::calc.double", "calc.py::test_itself"} <= {*ids}
    result = bench.grade({"calc.py": mixed.replace("a - b", "a + b")}, ids)
    assert (result.resolved, result.dropped) == (False, {"calc.py": "it is a test file"})


class Write(Tool):
    """Write a file."""

    name = "write"

    def use(self, env: Any, path: str, text: str) -> str:
        """Write."""
        env.workspace.write_bytes(path, text.encode())
        return "written"


def test_the_agent_is_told_what_the_grade_has(tmp_path: Path) -> None:
    write(tmp_path, REPOSITORY)
    place: Any = {"path": tmp_path, "allow_unsandboxed": True, "entrypoint": ENTRYPOINT, "twins": "never"}
    with contextlib.closing(debug_gym_core.make("repo", [Write()], "local", **place)) as env:
        env.reset(seed=0)
        changed = FIXED.replace("    6\n", "    7\n")
        told = env.step(ToolCall("write", {"path": "calc.py", "text": changed}))[0]["text"]
        why = "it changes the doctest calc.double, which counts"
        assert f"Grading drops the change of calc.py ({why})" in told
        grade = env.grade()
        assert (grade.resolved, grade.max_score, grade.dropped) == (False, 4, {"calc.py": why})
        assert "Grading drops" not in env.step(ToolCall("write", {"path": "calc.py", "text": FIXED}))[0]["text"]
        grade = env.grade()
        assert (grade.resolved, grade.dropped, env.dropped) == (True, {}, {})


# Without a sandbox


def write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


@contextlib.contextmanager
def taken(
    directory: Path, files: Mapping[str, str] = REPOSITORY, tests: Sequence[str] = IDS, allowed: Sequence[str] = ()
) -> Iterator[Infrastructure]:
    write(directory, files)
    with Snapshot.take(directory) as snapshot:
        yield Infrastructure(snapshot, Rules.of(snapshot), ENTRYPOINT, tests=tests, allowed=allowed)


@pytest.fixture(scope="module")
def infrastructure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Infrastructure]:
    with taken(tmp_path_factory.mktemp("repository")) as one:
        yield one


KEPT = {
    "a fix": FIXED,
    "prose": BROKEN.replace("Twice as much.", "The double."),
    "prose of the module": BROKEN.replace("Sums and products.", "Sums."),
    "prose around the examples": BROKEN.replace("    'aa'\n", "    'aa'\n\n    And so on.\n"),
    "a longer fix": BROKEN.replace("class Sum", "LIMIT = 3\n\ndef other(double):\n    double = 2\n\nclass Sum"),
    "another doctest": BROKEN.replace("Not tested here.", ">>> add(1, 1)\n    2\n    "),
    "another indentation": BROKEN.replace(DOUBLE, DOUBLE.replace("\n    ", "\n  ")),
    "a method": BROKEN.replace("    @property", "    def more(self):\n        '''>>> 1\n        1'''\n\n    @property"),
}
DROPPED = {
    "what is expected": (BROKEN.replace("    6\n", "    7\n"), "double"),
    "what is run": (BROKEN.replace("double(3)", "double(2 + 1)"), "double"),
    "an example is skipped": (BROKEN.replace("# of a text, too", "# doctest: +SKIP"), "double"),
    "an example less": (BROKEN.replace("    >>> double(3)\n    6\n", ""), "double"),
    "an example more": (BROKEN.replace("    >>> double(3)\n", "    >>> double = abs\n    >>> double(3)\n"), "double"),
    "no docstring": (BROKEN.replace(DOUBLE, "def double(a):\n    return 2 * a\n"), "double"),
    "malformed": (BROKEN.replace(">>> double(3)", ">>>double(3)"), "double"),
    "no function": (BROKEN.replace(DOUBLE, "double = lambda a: 2 * a\n"), "double"),
    "another name": (BROKEN.replace("def double", "def twice"), "double"),
    "inside a function": (BROKEN.replace(DOUBLE, "def outer():\n" + textwrap.indent(DOUBLE, "    ")), "double"),
    "a second one": (f'{BROKEN}\ndef double(a):\n    """\n    >>> 1\n    1\n    """\n', "double"),
    "bound anew": (f'{BROKEN}\ndef easy():\n    """\n    >>> 1\n    1\n    """\ndouble = easy\n', "double"),
    "bound anew in a block": (f"{BROKEN}\nfor double in [abs]: pass\n", "double"),
    "its class bound anew": (f"{BROKEN}\nSum = type(1)\n", "Sum.value"),
    "its docstring is set": (f"{BROKEN}\ndouble.__doc__ = 'none'\n", ""),
    "the module's docstring is set": (f"{BROKEN}\n__doc__ = 'none'\n", ""),
    "the module's": (BROKEN.replace(">>> triple(2)\n6", ">>> triple(2)\n7"), ""),
    "a property's": (BROKEN.replace("        0\n", "        1\n"), "Sum.value"),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_changes_that_leave_doctests_alone_are_taken_over(infrastructure: Infrastructure, text: str) -> None:
    assert text != BROKEN
    state = FileState(text.encode())
    filtered = infrastructure.filter({"calc.py": state})
    assert (filtered.kept, filtered.dropped) == ({"calc.py": state}, {})


@pytest.mark.parametrize(("text", "name"), DROPPED.values(), ids=DROPPED)
def test_changes_of_doctests_are_dropped(infrastructure: Infrastructure, text: str, name: str) -> None:
    assert text != BROKEN
    filtered = infrastructure.filter({"calc.py": FileState(text.encode())})
    assert filtered.kept == {}
    assert filtered.dropped["calc.py"].startswith("it changes the doctest calc")
    assert f"calc.{name}" in filtered.dropped["calc.py"] or not name


HOSTILE = {
    "nothing": b"",
    "no Python": b"def",
    "NUL": b"\0" + BROKEN.encode(),
    "no UTF-8": b"\xff\xfe" + BROKEN.encode(),
    "no encoding": b"# coding: nonsense\n" + BROKEN.encode(),
    "undefined": b"# coding: undefined\n" + BROKEN.encode(),
    "brackets": b"(" * 100_000,
    "signs": b"x = " + b"-" * 300_000 + b"1",
    "attributes": b"a" + b".b" * 200_000,
    "sums": b"1" + b"+1" * 200_000,
    "branches": b"if a: pass\n" + b"elif a: pass\n" * 20_000,
    "large": b"#" * 2_000_000 + b"\n" + BROKEN.encode(),
    "options": BROKEN.replace(">>> double(3)", ">>> double(3) " + "# doctest:" * 60_000 + "'").encode(),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_no_text_is_too_hostile(infrastructure: Infrastructure, data: bytes) -> None:
    filtered = infrastructure.filter({"calc.py": FileState(data)})
    assert filtered.kept == {}
    assert "doctest" in filtered.dropped["calc.py"]


@given(
    st.binary()
    | st.text().map(lambda text: text.encode("utf-8", "replace"))
    | st.lists(
        st.sampled_from([*BROKEN.splitlines(True), ">>> ", "...", "'''", "\0", "\t", "(", "# coding: idna\n"])
    ).map(lambda lines: "".join(lines).encode())
)
def test_no_text_raises(infrastructure: Infrastructure, data: bytes) -> None:
    filtered = infrastructure.filter({"calc.py": FileState(data)})
    assert {*filtered.kept, *filtered.dropped} == {"calc.py"}


def test_a_module_with_doctests_is_neither_deleted_nor_replaced(infrastructure: Infrastructure) -> None:
    link = FileState(b"elsewhere.py", 0o777, "link")
    changes = {"calc/__init__.py": FileState(FIXED.encode()), "calc.abi3.so": FileState(b"")}
    for state in (None, link):
        filtered = infrastructure.filter({**changes, "calc.py": state})
        assert filtered.kept == {}
        assert filtered.dropped["calc.py"] == "doctests in it count"
        assert {filtered.dropped[path] for path in changes} == {"it shadows a test file"}


def test_a_package_with_doctests_is_not_replaced(tmp_path: Path) -> None:
    files = {"src/shop/__init__.py": "", "src/shop/calc.py": BROKEN}
    with taken(tmp_path, files, ["src/shop/calc.py::shop.calc.double"]) as infrastructure:
        changes = {"src/shop": FileState(b"x"), "src/shop/__init__.py": None, "src/shop/calc.py": None}
        assert set(infrastructure.filter(changes).kept) == {"src/shop/__init__.py"}


def test_what_is_allowed_may_change_its_doctests(tmp_path: Path) -> None:
    with taken(tmp_path, allowed=["calc.py"]) as infrastructure:
        assert infrastructure.filter({"calc.py": None}).kept == {"calc.py": None}


def test_only_doctests_that_count_must_stay(tmp_path: Path) -> None:
    with taken(tmp_path, tests=["calc.py::calc.double"]) as infrastructure:
        state = FileState(BROKEN.replace("triple(2)\n6", "triple(2)\n7").encode())
        assert infrastructure.filter({"calc.py": state}).kept == {"calc.py": state}


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("src/shop/calc.py", "shop.calc.double"),
        ("src/shop/calc.py", "src.shop.calc.double"),  # with --import-mode=importlib
        ("src/calc/calc.py", "calc.calc.double"),
        ("calc/__init__.py", "calc.double"),
        ("calc/__init__.py", "calc.__init__.double"),
    ],
)
def test_modules_of_any_place_may_change(tmp_path: Path, path: str, test: str) -> None:
    with taken(tmp_path, {path: BROKEN}, [f"{path}::{test}"]) as infrastructure:
        state = FileState(FIXED.encode())
        assert infrastructure.filter({path: state}).kept == {path: state}
        changed = FileState(BROKEN.replace("    6\n", "    7\n").encode())
        assert infrastructure.filter({path: changed}).dropped == {path: f"it changes the doctest {test}, which counts"}


@pytest.mark.parametrize(
    ("path", "text", "tests"),
    [
        ("calc.py", BROKEN, ["calc.double", "double"]),  # the latter is no doctest
        ("calc.py", BROKEN.replace("def add", "def calc"), ["calc"]),  # which may be the function
        ("calc.py", BROKEN + "\n__test__ = {'more': '>>> 1'}\n", ["calc.__test__.more"]),
        ("calc.py", BROKEN + "\nadd.__doc__ = double.__doc__\n", ["calc.add"]),
        ("calc.py", BROKEN + "(\n", ["calc.double"]),
        ("calc.py", BROKEN, ["calc.double", "TestSum::test_it"]),
        ("tests/calc.py", BROKEN, ["calc.double"]),
        ("test_calc.py", BROKEN, ["test_calc.double"]),
        ("conftest.py", BROKEN, ["conftest.double"]),
        ("README.rst", BROKEN, ["README.rst"]),
    ],
)
def test_all_else_is_restored_as_before(tmp_path: Path, path: str, text: str, tests: list[str]) -> None:
    with taken(tmp_path, {path: text}, [f"{path}::{one}" for one in tests]) as infrastructure:
        assert infrastructure.filter({path: FileState(text.replace("a - b", "a + b").encode())}).kept == {}


def test_a_method_of_a_test_case_that_unittest_runs_is_no_doctest(tmp_path: Path) -> None:
    text = BROKEN.replace("def value", "def test_value")
    with taken(tmp_path, {"calc.py": text}, ["calc.Sum.test_value"]) as infrastructure:
        assert infrastructure.filter({"calc.py": FileState(b"")}).dropped == {"calc.py": "it is a test file"}


def test_a_module_with_doctests_is_not_trusted_with_hooks(infrastructure: Infrastructure) -> None:
    assert "calc.py" not in infrastructure.trusted()
    assert infrastructure.test_files() - infrastructure.test_modules().keys() == {"calc.py"}
