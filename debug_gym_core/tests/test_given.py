"""Code that changes how later test modules are read, found or compiled: they run as they were before it.

Each row wins where they are loaded as Python and pytest do, which is seen first.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from grading_bench import BROKEN, ENTRYPOINT, FIXED, Bench, Make
from support import has

from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.twins import When
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_local import LocalTerminal

PREPARED = """
import builtins, importlib.abc, importlib.machinery, importlib.util, os, sys, types

HERE = os.path.dirname(os.path.abspath(__file__))
LATER = os.path.join(HERE, "test_later.py")

def text():
    with open(LATER) as file:
        return file.read()

def bent():
    return text().replace("2, 3", "4, -1")

def write(path, new):
    with open(path, "w") as file:
        file.write(new)

class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, name):
        return compile(bent(), LATER, "exec")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "test_later":
            return importlib.util.spec_from_file_location(name, LATER, loader=Loader(name, LATER))
"""
"""`bent` is a test that the broken code passes."""

ATTACKS = {
    "the parser": """
        import ast
        parse = ast.parse
        def changed(source, *args, **kwargs):
            if b"add(2, 3)" in (source if isinstance(source, bytes) else str(source).encode()):
                source = bent()
            return parse(source, *args, **kwargs)
        ast.parse = changed
        """,
    "the reader of files": """
        import pathlib
        read = pathlib.Path.read_bytes
        def changed(self):
            return bent().encode() if self.name == "test_later.py" else read(self)
        pathlib.Path.read_bytes = changed
        """,
    "the compiler": """
        compiler = builtins.compile
        def changed(source, path, *args, **kwargs):
            return compiler(bent() if str(path) == LATER else source, path, *args, **kwargs)
        builtins.compile = changed
        """,
    "a finder before all others": """
        sys.meta_path.insert(0, Finder())
        """,
    "the finder of paths": """
        find = importlib.machinery.PathFinder.find_spec
        def changed(name, path=None, target=None):
            if name == "test_later":
                return importlib.util.spec_from_file_location(name, LATER, loader=Loader(name, LATER))
            return find(name, path, target)
        importlib.machinery.PathFinder.find_spec = changed
        sys.meta_path[:] = [importlib.machinery.PathFinder]
        """,
    "the cache of finders": """
        class Loader(importlib.abc.Loader):
            def exec_module(self, module):
                exec(compile(bent(), LATER, "exec"), vars(module))
        class Finder:
            def find_spec(self, name, target=None):
                if name == "test_later":
                    return importlib.util.spec_from_file_location(name, LATER, loader=Loader())
            def invalidate_caches(self):
                pass
        sys.path_importer_cache[HERE] = Finder()
        """,
    "a module that is there already": """
        module = types.ModuleType("test_later")
        module.__file__ = LATER
        exec(compile(bent(), LATER, "exec"), vars(module))
        sys.modules["test_later"] = module
        """,
    "a file that restores itself": """
        write(LATER, "open(%r, 'w').write(%r)\\n%s" % (LATER, text(), bent()))
        """,
    "bytecode": """
        import marshal
        from _pytest.assertion import rewrite
        head = importlib.util.MAGIC_NUMBER + b"\\3\\0\\0\\0" + importlib.util.source_hash(text().encode())
        places = [importlib.util.cache_from_source(LATER)]
        places.append(os.path.join(os.path.dirname(places[0]), "test_later" + rewrite.PYC_TAIL))
        for place in places:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(head + marshal.dumps(compile(bent(), LATER, "exec")))
        """,
    "a new list of finders": """
        sys.meta_path = [Finder()] + sys.meta_path
        """,
    "a conftest below": """
        write(os.path.join(HERE, "zone", "conftest.py"), "import sys\\nsys.modules['calc'].add = lambda a, b: a + b\\n")
        """,
}
UNITTEST = "python -m unittest"
IN_THE_GATE = ("the parser", "a finder before all others", "a file that restores itself")

EARLIER = """
import calc

def test_double():
    assert calc.double(3) == 6
"""
LATER = """
import calc

def test_add():
    assert calc.add(2, 3) == 5
"""
FILES = {"calc.py": BROKEN, "test_earlier.py": EARLIER, "test_later.py": LATER}
IDS = ("test_earlier.py::test_double", "test_later.py::test_add")
BELOW = {"calc.py": BROKEN, "test_earlier.py": EARLIER, "zone/conftest.py": "", "zone/test_later.py": LATER}
BELOW_IDS = (IDS[0], "zone/test_later.py::test_add")
UNITTESTS = {
    name: f"import unittest\nimport calc\n\nclass Test(unittest.TestCase):\n    def test_it(self):\n        {line}\n"
    for name, line in (
        ("test_earlier.py", "self.assertEqual(calc.double(3), 6)"),
        ("test_later.py", "self.assertEqual(calc.add(2, 3), 5)"),
    )
}
UNITTEST_IDS = ("test_earlier.Test.test_it", "test_later.Test.test_it")
ON_UNITTEST = (
    "a finder before all others",
    "a module that is there already",
    "a file that restores itself",
    "bytecode",
)


def code(attack: str) -> str:
    return PREPARED + textwrap.dedent(ATTACKS[attack]) + BROKEN


def wins_otherwise(bench: Bench, changes: Mapping[str, str], ids: tuple[str, ...]) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("debug_gym_core.grading.grade.given_modules", lambda members, test_files, changed: [])
        result = bench.grade(changes, ids, twins="never")
    return all(outcome == "passed" for outcome in result.tests.values())


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


LYING_PATHS = {
    "how a path is written": """
        import pathlib
        written = pathlib.PurePath.__str__
        def changed(self):
            found = written(self)
            return HERE if found == LATER and not is_asked_by_pytest() else found
        pathlib.PurePath.__str__ = changed
        """,
    "what a node has for its path": """
        import pathlib
        from _pytest import nodes
        had = vars(nodes.Node)["path"]
        def changed(self):
            found = had.__get__(self)
            return pathlib.Path(HERE) if str(found) == LATER and not is_asked_by_pytest() else found
        nodes.Node.path = property(changed, had.__set__)
        """,
}
ASKED_BY = """
def is_asked_by_pytest():
    return sys._getframe(2).f_globals["__name__"].partition(".")[0] in ("_pytest", "pathlib", "posixpath", "importlib")
"""


@pytest.mark.grading
@pytest.mark.parametrize("below", ["", "project/"])
@pytest.mark.parametrize("lie", LYING_PATHS)
def test_a_module_that_is_there_already_and_whose_path_is_said_to_be_another(make: Make, lie: str, below: str) -> None:
    files = {below + path: text for path, text in {**FILES, "pytest.ini": "[pytest]\n"}.items()}  # ids begin there
    bench = make(files, f"{ENTRYPOINT} {below}")
    told = code("a module that is there already") + ASKED_BY + textwrap.dedent(LYING_PATHS[lie])
    assert wins_otherwise(bench, {below + "calc.py": told}, IDS)
    result = bench.grade({below + "calc.py": told}, IDS, twins="never")
    assert not result.resolved and result.score <= 1, result


@pytest.mark.grading
@pytest.mark.parametrize("option", ["--rootdir=conf", "-c conf/pytest.ini"])
def test_ids_that_begin_at_what_pytest_is_told_to_run(make: Make, option: str) -> None:
    files = {path if path == "calc.py" else f"tests/{path}": text for path, text in FILES.items()}
    bench = make({**files, "conf/pytest.ini": "[pytest]\n"}, f"{ENTRYPOINT} {option} tests")
    told = {"calc.py": code("a module that is there already").replace('(HERE, "test_', '(HERE, "tests", "test_')}
    assert wins_otherwise(bench, told, bench.tests())
    result = bench.grade(told, bench.tests(), twins="never")
    assert not result.resolved and result.score <= 1, result


@pytest.mark.grading
def test_tests_of_one_name_in_directories_that_ids_begin_at(make: Make) -> None:
    files = {"calc.py": BROKEN, "a/test_it.py": LATER, "a/pytest.ini": "[pytest]\n", "b/test_it.py": EARLIER}
    bench = make(files, f"{ENTRYPOINT} --import-mode=importlib -c a/pytest.ini a b")
    [counted] = [one for one in bench.tests() if one.endswith("::test_add")]
    result = bench.grade({"calc.py": FIXED}, [counted], twins="never")
    assert result.resolved, result


@pytest.mark.grading
@pytest.mark.parametrize("attack", ["a module that is there already", "the reader of files"])
def test_tests_beside_a_directory_of_their_data(make: Make, attack: str) -> None:
    bench = make({**FILES, "test_later/data.txt": "5"}, ENTRYPOINT)
    assert wins_otherwise(bench, {"calc.py": code(attack)}, IDS)
    result = bench.grade({"calc.py": code(attack)}, IDS, twins="never")
    assert not result.resolved and result.score <= 1, result


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


@pytest.mark.grading
def test_links_to_tests(make: Make, tmp_path: Path) -> None:
    (tmp_path / "test_link.py").symlink_to("test_later.py")
    (tmp_path / "linked").symlink_to("zone")
    bench = make({"calc.py": BROKEN, "test_later.py": LATER, "zone/test_far.py": LATER}, ENTRYPOINT)
    ids = bench.tests()
    assert "test_link.py::test_add" in ids
    result = bench.grade({"calc.py": FIXED}, ids)
    assert (result.resolved, result.score, result.doubts, result.reason) == (True, len(ids), {}, "")


WARNS = """
import warnings
import calc
def test_add():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert calc.add(2, 3) == 5
    assert seen[0].filename == __file__
"""


@pytest.mark.grading
@pytest.mark.parametrize("link", ["tests", "tests/test_it.py"])
def test_tests_that_are_found_through_links(make: Make, tmp_path: Path, link: str) -> None:
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to("zone" if link == "tests" else "../zone/test_it.py")
    warns = "import warnings\n" + BROKEN.replace("return a - b", "warnings.warn('old', stacklevel=2); return a - b")
    bench = make({"calc.py": warns, "conftest.py": "import calc\n", "zone/test_it.py": WARNS}, f"{ENTRYPOINT} tests")
    ids = ["tests/test_it.py::test_add"]
    result = bench.grade({"calc.py": warns.replace("a - b", "a + b")}, ids)
    assert (result.resolved, result.doubts, result.twins, result.reason) == (True, {}, 1, "")
    equal = warns.replace("a - b", "Equal()") + "class Equal:\n    def __eq__(self, other): return True\n"
    assert not bench.grade({"calc.py": equal}, ids).resolved
    written = "\nwith open('tests/test_it.py', 'w') as file: file.write('def test_add(): pass')\n"
    result = bench.grade({"calc.py": warns + written, "zone/test_it.py": WARNS.replace("== 5", "")}, ids, twins="never")
    assert (result.resolved, dict(result.dropped)) == (False, {"zone/test_it.py": "it is a test file"})


def test_what_a_link_to_tests_leads_to_is_restored(make: Make, tmp_path: Path) -> None:
    (tmp_path / "test_link.py").symlink_to("cases.py")
    bench = make({"calc.py": BROKEN, "cases.py": LATER}, ENTRYPOINT)
    result = bench.grade({"cases.py": LATER.replace("calc.add(2, 3)", "5")}, ["test_link.py::test_add"])
    assert (result.score, dict(result.dropped)) == (0, {"cases.py": "it is a test file"})


@pytest.mark.grading
def test_what_a_link_to_tests_leads_to_belongs_to_them(make: Make, tmp_path: Path) -> None:
    (tmp_path / "test_link.py").symlink_to("cases.py")
    (tmp_path / "conftest.py").symlink_to("base.py")
    base, early = "def pytest_runtest_setup(): pass", "import calc\ndef test_double(): assert calc.double(2) == 4"
    files = {"calc.py": BROKEN, "cases.py": LATER, "base.py": base, "test_early.py": early}
    bench = make(files, ENTRYPOINT)
    result = bench.grade({"cases.py": LATER.replace("calc.add(2, 3)", "5")}, ["test_link.py::test_add"])
    assert (result.score, dict(result.dropped)) == (0, {"cases.py": "it is a test file"})
    replaced = """
        import atexit
        with open("cases.py") as file:
            old = file.read()
        def write(text):
            with open("cases.py", "w") as file:
                file.write(text)
        atexit.register(write, old)
        write("def test_add(): pass")
        """
    result = bench.grade({"calc.py": BROKEN + textwrap.dedent(replaced)}, bench.tests(), twins="never")
    assert result.tests == {"test_early.py::test_double": "passed", "test_link.py::test_add": "failed"}
    assert bench.grade({"calc.py": FIXED}, bench.tests(), twins="never").resolved


@pytest.mark.grading
def test_two_test_modules_of_one_name(make: Make) -> None:
    files = {"calc.py": BROKEN}
    for place in ("tests", "backend/tests"):
        files |= {f"{place}/__init__.py": "", f"{place}/test_later.py": UNITTESTS["test_later.py"]}
    bench = make(files, "python -m unittest discover -s backend")
    ids = bench.tests()
    result = bench.grade({"calc.py": FIXED}, ids, twins="never")
    assert (result.score, result.reason, len(ids)) == (1, "", 1)


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
