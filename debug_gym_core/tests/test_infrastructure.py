"""Which of an agent's changes the clean grading takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from debug_gym_core.grading.infrastructure import Infrastructure
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import FileState, Snapshot

PRISTINE = {
    "shop.py": "x = 1\n",
    "calendar.py": "the shop's own, in spite of its name\n",
    "data/rows.json": "[]\n",
    "spec/test-data/deep/rows.json": "[]\n",
    "spec/test-data/build.py": "makes them\n",
    "contest/rows.json": "[]\n",
    "shopping/testing/__init__.py": "",
    "shopping/testing/page.html": "for users' tests, part of the product\n",
    "src/shop2/__init__.py": "",
    "src/shop2/test/client.py": "a helper for users' tests, part of the product\n",
    "pkg/__init__.py": "",
    "pkg/tests/__init__.py": "",
    "pkg/tests/helpers.py": "",
    "pkg/tests/test_inside.py": "",
    "plain/spec_shape.py": "",
    "test_shop.py": "",
    "conftest.py": 'pytest_plugins = ["plugins.reporting"]\n',
    "plugins/__init__.py": "",
    "plugins/reporting.py": "",
    "named_by_p.py": "",
    "by_configuration.py": 'pytest_plugins = "named_in_turn"\n',
    "named_in_turn.py": "",
    "by_pytest_toml.py": "",
    "pytest.toml": '[pytest]\naddopts = ["-p", "by_pytest_toml"]\n',
    "settings/ci.ini": "[pytest]\n",
    "notes.txt": "secret\n",
    "locked.py": "",
    "Makefile": "test:\n\tpython -m pytest\n",
    "run.sh": "make test\n",
    "noxfile.py": "",
    "tox.ini": "[tox]\nenvlist = py\n[pytest]\naddopts = -q\npython_files = spec_*.py\n[flake8]\nignore = E1\n",
    "setup.cfg": "[metadata]\nname = shop\n",
    "pyproject.toml": '[project]\nname = "shop"\n\n'
    '[tool.pytest.ini_options]\naddopts = "-q"\n\n[tool.black]\nline = 1\n',
    ".pytest.ini": "[pytest]\naddopts =\n    -q -pby_configuration\n    -p not_here_but_named -p no:shop\n",
    ".debugreadonly": "locked.py\n",
    ".debugignore": "notes.txt\n",
}
TESTS = ("test_shop.py::test_a", "pkg/tests/test_inside.py::TestB::test_c", "plain/spec_shape.py::test_d")

Build = Callable[..., Infrastructure]


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    for name, text in PRISTINE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    snapshot = Snapshot.take(tmp_path)

    def build(
        entrypoint: str = "python -m pytest -p named_by_p -c settings/ci.ini",
        allowed: Sequence[str] = (),
        installed: Sequence[str] = (),
    ) -> Infrastructure:
        return Infrastructure(
            snapshot, Rules.of(snapshot), entrypoint, tests=TESTS, allowed=allowed, installed=installed
        )

    yield build
    snapshot.close()


KEPT = [
    "shop.py",
    "new.py",
    "calendar.py",
    "data/rows.json",
    "spec/test-data/build.py",
    "contest/rows.json",
    "shopping/testing/page.html",
    "new_test_data/rows.json",
    "src/shop2/new.py",
    "src/shop2/test/client.py",
    "src/shop2/json.py",
    "data/json.txt",
    "docs/conf.py",
    "deep/er/types.py",
    "contest.py",
    "plugins/other.py",
    "setup.py",
    "README.md",
    "Makefile",
    "json.txt",
    "tokens/__init__.py",
    "tools/tests2/__init__.py",
    "pkg/__init__.py",
    "new/lib",
]
DROPPED = {
    "locked.py": "read-only",
    "notes.txt": "ignored",
    ".debugignore": "read-only",
    "test_shop.py": "test file",
    "test_new.py": "test file",
    "deep/shop_test.py": "test file",
    "plain/spec_shape.py": "test file",
    "plain/spec_new.py": "test file",
    "pkg/tests/helpers.py": "belongs to the tests",
    "spec/test-data/deep/rows.json": "tests' data",
    "spec/test-data/new.json": "tests' data",
    "pkg/tests/new/data.json": "belongs to the tests",
    "test_shop/__init__.py": "shadows a test file",
    "test_shop.cpython-311-x86_64-linux-gnu.so": "shadows a test file",
    "conftest.py": "configures pytest",
    "deep/conftest.py": "configures pytest",
    "conftest/__init__.py": "configures pytest",
    "conftest.abi3.so": "configures pytest",
    "pytest.ini": "configures pytest",
    ".pytest.ini": "configures pytest",
    "pytest.toml": "configures pytest",
    "sitecustomize.py": "runs it by itself",
    "deep/usercustomize.py": "runs it by itself",
    "sitecustomize/__init__.py": "runs it by itself",
    "evil.pth": "runs it by itself",
    "evil.egg-link": "runs it by itself",
    "shop.pyc": "ignored",
    "evil.egg-info/entry_points.txt": "installed distribution",
    "src/evil-1.0.dist-info/entry_points.txt": "installed distribution",
    "src/evil-1.0.DIST-INFO/entry_points.txt": "installed distribution",
    "evil.Egg-Info/entry_points.txt": "installed distribution",
    "evil-1.0.Dist-Info": "installed distribution",
    "evil.egg": "installed distribution",
    "src/evil.egg/EGG-INFO/entry_points.txt": "installed distribution",
    "__init__.py": "rename the modules of the tests",
    "__init__.abi3.so": "rename the modules of the tests",
    "plain/__init__.py": "rename the modules of the tests",
    "by_configuration.py": "names it",
    "named_in_turn.py": "names it",
    "by_pytest_toml.py": "names it",
    "src/by_configuration.py": "shadows an installed module",
    "plain/by_configuration/__init__.py": "shadows an installed module",
    "not_here_but_named/__init__.py": "shadows an installed module",
    "json.py": "shadows",
    "json/__init__.py": "shadows",
    "src/json.py": "shadows",
    "pytest.py": "shadows",
    "_pytest/__init__.py": "shadows",
    "pytest_cov/__init__.py": "shadows",
    "unittest.py": "shadows",
    "random.abi3.so": "shadows",
    "plain/pluggy.py": "shadows",
    "numpy/__init__.py": "shadows",
    "plugins/reporting.py": "names it",
    "named_by_p.py": "names it",
    "settings/ci.ini": "names it",
}


@pytest.mark.parametrize("path", KEPT)
def test_product_code_is_taken_over(build: Build, path: str) -> None:
    infrastructure = build(installed=["numpy"])
    for state in (FileState(b"changed"), None):
        filtered = infrastructure.filter({path: state})
        assert (filtered.kept, filtered.dropped) == ({path: state}, {})


@pytest.mark.parametrize(("path", "reason"), DROPPED.items(), ids=DROPPED)
def test_test_infrastructure_is_not(build: Build, path: str, reason: str) -> None:
    infrastructure = build(installed=["numpy"])
    for state in (FileState(b"changed"), None, FileState(b"shop.py", 0o777, "link")):
        filtered = infrastructure.filter({path: state})
        assert filtered.kept == {}
        assert reason in filtered.dropped[path]


def test_what_is_allowed_is_taken_over_but_for_readonly_files(build: Build) -> None:
    infrastructure = build(allowed=["conftest.py", "/json.py", "pkg/tests/", "tox.ini", "locked.py"])
    new = FileState(b"[pytest]\naddopts = -k nothing\n")
    paths = ["conftest.py", "deep/conftest.py", "json.py", "pkg/tests/helpers.py", "tox.ini"]
    filtered = infrastructure.filter({**dict.fromkeys(paths, new), "locked.py": new, "src/json.py": new})
    assert filtered.kept == dict.fromkeys(paths, new)
    assert set(filtered.dropped) == {"locked.py", "src/json.py"}


@pytest.mark.parametrize(
    ("entrypoint", "dropped"),
    [
        ("make test", {"Makefile", "GNUmakefile", "rules.mk"}),
        ("sh run.sh", {"run.sh"}),
        ("./run.sh && echo fine", {"run.sh"}),
        ("nox -s tests", {"noxfile.py"}),
        ("pytest --doctest-modules shop.py", set()),
        ("pytest --ignore=shop.py --cov=shop.py --ignore shop.py shop.py::shop.f", set()),
        ("python -m doctest -v shop.py", {"shop.py"}),
        ("pytest -c shop.py --cov-config=Makefile shop.py", {"shop.py", "Makefile"}),
        ("pytest -q --envfile Makefile --with=noxfile.py", {"Makefile", "noxfile.py"}),
        ("PYTEST_PLUGINS=named_by_p pytest", {"named_by_p.py"}),
        ("pytest -pnamed_by_p", {"named_by_p.py"}),
        ("PYTHONPATH=data pytest", {"data/json.py"}),
        ("PYTHONPATH=/usr/share/python:../up:data pytest", {"data/json.py"}),
    ],
)
def test_files_that_the_entrypoint_names_are_restored(build: Build, entrypoint: str, dropped: set[str]) -> None:
    paths = ["GNUmakefile", "rules.mk", "Makefile", "run.sh", "noxfile.py", "named_by_p.py", "shop.py", "data/json.py"]
    filtered = build(entrypoint).filter(dict.fromkeys(paths, FileState(b"changed")))
    assert set(filtered.dropped) == dropped


PRODUCT = {
    "web/__init__.py": "",
    "web/test.py": '"""A client.\n\nclass T(Case):\n    def test(self): ...\n"""\n\nasync def test(): pass\n',
    "web/tests.py": "functions of templates",
    "web/test_utils.py": "more for users' tests",
    "web/own/test_shop.py": "",
    "web/own/test_base.py": "what the tests beside it are made of",
    "web/suite/test_cases.py": "class Cases:\n    def test_a(self): pass\n",
    "web/suite/test_case.py": "class Case:\r\f    def\\\r runTest(self): pass\r",
    "web/suite/test_made.py": "def make(expected):\n    def test(): assert expected()\n    return test\n",
    "web/suite/test_later.py": "def make():\n    class Cases:\n        if 1:\n            async def test(self): pass\n",
    "web/suite/test_old.py": "if 1:\n    class Cases:\n        def test_a(self): print 'of Python 2'\n",
}
BY_NAME = ["web/test_utils.py"]


@pytest.mark.parametrize(
    ("entrypoint", "tests", "dropped"),
    [
        ("pytest", ["web/own/test_shop.py::test_a"], []),
        ("pytest", ["web/own/test_shop.py::test_a", "web/test_utils.py"], BY_NAME),
        ("pytest", ["../web/own/test_shop.py::test_a"], BY_NAME),
        ("python -m unittest", ["web.own.test_shop.T.test_a"], ["web/test.py", "web/tests.py", *BY_NAME]),
        ("make test", [], ["web/test.py", "web/tests.py", *BY_NAME]),
    ],
)
def test_files_with_test_names_are_the_products_where_pytest_finds_no_test_in_them(
    tmp_path: Path, entrypoint: str, tests: list[str], dropped: list[str]
) -> None:
    for path, text in PRODUCT.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    with Snapshot.take(tmp_path) as snapshot:
        infrastructure = Infrastructure(snapshot, Rules.of(snapshot), entrypoint, tests=tests)
        filtered = infrastructure.filter(dict.fromkeys([*PRODUCT, "web/new/test_x.py"], FileState(b"changed")))
    always = ["web/own/test_shop.py", "web/own/test_base.py", "web/new/test_x.py"]
    always += [path for path in PRODUCT if path.startswith("web/suite/")]
    assert set(filtered.dropped) == {*always, *dropped}


def test_nothing_takes_the_place_of_directories_with_tests(build: Build) -> None:
    changes = {
        "pkg": FileState(b"elsewhere", 0o777, "link"),
        "pkg/__init__.py": None,
        "pkg/tests/test_inside.py": None,
        "data": FileState(b"a file now"),
        "data/rows.json": None,
    }
    filtered = build().filter(changes)
    assert set(filtered.kept) == {"pkg/__init__.py", "data", "data/rows.json"}


@pytest.mark.parametrize("path", ["src", "lib", "plain"])
def test_nothing_takes_the_place_of_directories_that_are_imported_from(build: Build, path: str) -> None:
    for state in (FileState(b"PK"), FileState(b"elsewhere", 0o777, "link")):
        filtered = build().filter({path: state})
        assert (filtered.kept, [*filtered.dropped]) == ({}, [path])
        assert build(allowed=["/src", "/lib", "/plain"]).filter({path: state}).kept == {path: state}
    assert build().filter({path: None}).kept == {path: None}


def test_nothing_is_written_below_a_restored_file(build: Build) -> None:
    changes = {"locked.py": None, "locked.py/new.txt": FileState(b""), "shop.py": None, "shop.py/a": FileState(b"")}
    filtered = build().filter(changes)
    assert set(filtered.kept) == {"shop.py", "shop.py/a"}
    assert set(filtered.dropped) == {"locked.py", "locked.py/new.txt"}


SECTIONS = {
    "nothing of pytest's changed": (
        "tox.ini",
        "[tox]\nenvlist = py3\n[pytest]\naddopts = -q\npython_files = spec_*.py\n",
        "[tox]\nenvlist = py3\n[pytest]\naddopts = -q\npython_files = spec_*.py\n",
    ),
    "changed": (
        "tox.ini",
        "[pytest]\naddopts = -k nothing\n[tox]\nenvlist = py3\n",
        "[tox]\nenvlist = py3\n[pytest]\naddopts = -q\npython_files = spec_*.py\n",
    ),
    "removed": (
        "tox.ini",
        "[tox]\nenvlist = py3",
        "[tox]\nenvlist = py3\n[pytest]\naddopts = -q\npython_files = spec_*.py\n",
    ),
    "after a BOM": (
        "tox.ini",
        "\ufeff[pytest]\naddopts = -k nothing\n[tox]\nenvlist = py3\n",
        "[tox]\nenvlist = py3\n[pytest]\naddopts = -q\npython_files = spec_*.py\n",
    ),
    "after a BOM that would come first": (
        "setup.cfg",
        "\ufeff\ufeff[pytest]\naddopts = -k nothing\n[tool:pytest]\naddopts = -x\n[metadata]\nname = shop\n",
        "[metadata]\nname = shop\n",
    ),
    "nothing after a BOM": (
        "setup.cfg",
        "\ufeff[metadata]\nname = shop\nversion = 2\n",
        "\ufeff[metadata]\nname = shop\nversion = 2\n",
    ),
    "added": (
        "setup.cfg",
        "[metadata]\nname = shop\nversion = 2\n[tool:pytest]\naddopts = -k nothing\n",
        "[metadata]\nname = shop\nversion = 2\n",
    ),
    "table changed": (
        "pyproject.toml",
        '[project]\nname = "shop"\nversion = "2"\n[tool.pytest.ini_options]\naddopts = "-k nothing"\n',
        '[project]\nname = "shop"\nversion = "2"\n[tool.pytest.ini_options]\naddopts = "-q"\n\n',
    ),
    "native table added": (
        "pyproject.toml",
        PRISTINE["pyproject.toml"] + '\n[tool.pytest]\naddopts = ["-k", "nothing"]\n',
        '[project]\nname = "shop"\n\n[tool.black]\nline = 1\n\n[tool.pytest.ini_options]\naddopts = "-q"\n\n',
    ),
}


@pytest.mark.parametrize(("path", "new", "expected"), SECTIONS.values(), ids=SECTIONS)
def test_only_pytests_sections_of_shared_files_are_restored(build: Build, path: str, new: str, expected: str) -> None:
    filtered = build().filter({path: FileState(new.encode())})
    state = filtered.kept[path]
    assert state is not None
    assert state.data.decode() == expected
    assert (path in filtered.dropped) == (new != expected)


WHOLE = {
    "no TOML": b"[project\n",
    "an inline table": b'[project]\nname = "shop"\n[tool]\npytest = {ini_options = {addopts = "-k nothing"}}\n',
    "dotted keys": b'tool.pytest.ini_options.addopts = "-k nothing"\n',
    "keys that take minutes to read": b"a." * 50_000 + b"b = 1\n",
    "quotes that take minutes to tell apart": b"a" + b'\\"' * 500_000,
    "quoted keys that take minutes to read": b'"\\"".' + b"a." * 50_000 + b'"b" = 1\n',
    "more than anybody reads": b"# more\n" * 200_000,
    "a table that is none": b"a = '''\n[tool.pytest.x]\n'''\ntool = 3\nb = '''\n[tool.pytest]\n'''\n",
    "a header in a string": b'[project]\nname = """\n[tool.pytest.x]\n"""\n[tool.pytest.ini_options]\naddopts = ""\n',
}


@pytest.mark.parametrize("new", WHOLE.values(), ids=WHOLE)
def test_a_pyproject_that_cannot_be_mended_is_restored_whole(build: Build, new: bytes) -> None:
    filtered = build().filter({"pyproject.toml": FileState(new)})
    assert filtered.kept == {}
    assert set(filtered.dropped) == {"pyproject.toml"}


def test_deleted_configuration_stays_only_where_it_configures_pytest(build: Build) -> None:
    filtered = build().filter(dict.fromkeys(["tox.ini", "setup.cfg", "pyproject.toml"]))
    assert filtered.kept == {"setup.cfg": None}
    assert set(filtered.dropped) == {"tox.ini", "pyproject.toml"}


def test_test_infrastructure_is_trusted_and_product_code_is_not(build: Build) -> None:
    trusted = build(allowed=["shop.py"]).trusted()
    assert trusted[0] == "pkg/tests/"
    assert {"conftest.py", "test_shop.py", "plugins/reporting.py", "shop.py"} <= set(trusted)
    assert not {"src/shop2/test/client.py", "calendar.py"} & set(trusted)


@pytest.mark.parametrize("depth", [500, 900, 990, 998])
def test_tables_that_lie_deep_in_each_other_raise_nothing(build: Build, depth: int) -> None:
    new = f"[tool.black]\nb.{'a.' * depth}a = 1\n[tool.pytest.ini_options]\naddopts = '-k x'\n"
    filtered = build().filter({"pyproject.toml": FileState(new.encode())})
    assert b"-k x" not in b"".join(state.data for state in filtered.kept.values() if state is not None)
    assert set(filtered.dropped) == {"pyproject.toml"}
