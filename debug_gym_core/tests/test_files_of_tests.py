"""Which file a test is of: where ids begin, paths that lie, links, and files of one name."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from attacked_imports import EARLIER, FILES, IDS, LATER, UNITTESTS, code, wins_otherwise
from grading_bench import BROKEN, ENTRYPOINT, FIXED, Make

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
