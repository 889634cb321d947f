"""Which of an agent's changes the clean grading takes over."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.grading import pytest_sections
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


def test_what_shadows_where_a_linked_import_root_leads_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "shop.py").write_text("")
    (tmp_path / "src").symlink_to("code")
    with Snapshot.take(tmp_path) as snapshot:
        filtered = Infrastructure(snapshot, Rules.of(snapshot), "pytest").filter(
            dict.fromkeys(["code/random.py", "code/shop.py"], FileState(b"changed"))
        )
    assert (set(filtered.kept), set(filtered.dropped)) == ({"code/shop.py"}, {"code/random.py"})


PLUGINS = {
    "pyproject.toml": '[project]\nname = "NAME"\n[project.entry-points.pytest11]\nshop = "shop.plugin"\n',
    "sub/pyproject.toml": '[tool.poetry]\nname = "NAME"\n[tool.poetry.plugins.pytest11]\nshop = "shop.plugin"\n',
    "setup.cfg": "[metadata]\nname = NAME\n[options.entry_points]\npytest11 =\n    shop = shop.plugin:Shop [fast]\n",
    "setup.py": 'setup(name="NAME", entry_points={"console": ["a = b"], "pytest11": ["shop = shop.plugin"]})\n',
    "sub/setup.py": 'setup(name="NAME", entry_points="[console]\\na = b\\n[pytest11]\\nshop = shop.plugin\\n")\n',
    "src/NAME.egg-info/entry_points.txt": "[pytest11]\nshop = shop.plugin\n",
    "flit/pyproject.toml": '[tool.flit]\nmetadata.module = "NAME"\nentrypoints.pytest11.shop = "shop.plugin"\n',
    "sub/setup.cfg": "[metadata]\nname: NAME\n[options.entry_points]\npytest11:\n    shop = shop.plugin:Shop\n",
    "words/setup.py": 'setup(name="NAME", entry_points=dict(console=["a = b"], pytest11=["shop = shop.plugin"]))\n',
}
FIX = b"--- a/src/shop/plugin.py\n+++ b/src/shop/plugin.py\n@@ -1 +1 @@\n-\n+x = 1\n"


@pytest.mark.parametrize("path", PLUGINS)
@pytest.mark.parametrize(("name", "fix"), [("Shop", b"not for here"), ("Pytest-Shop", b""), ("Shop", FIX)])
def test_plugins_of_the_repositorys_own_may_change_where_they_are_what_is_to_be_fixed(
    tmp_path: Path, path: str, name: str, fix: bytes
) -> None:
    top = path.split("/")[0]
    place = f"{top}/src" if top in ("sub", "flit", "words") else "src"
    plugin, more, package = (f"{place}/shop/{one}.py" for one in ("plugin", "more", "__init__"))
    files = {plugin: 'pytest_plugins = "shop.more"', more: "", package: "", "plugin.py": ""}
    for one, text in {**files, path.replace("NAME", name): PLUGINS[path].replace("NAME", name)}.items():
        (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one).write_text(text)
    with Snapshot.take(tmp_path) as snapshot:
        patch = fix.replace(b"src/", f"{place}/".encode())
        infrastructure = Infrastructure(snapshot, Rules.of(snapshot), "pytest", gold_patch=patch)
        filtered = infrastructure.filter(dict.fromkeys(files, FileState(b"changed")))
    dropped = {plugin, more} if name == "Shop" and fix != FIX else set()
    assert (set(filtered.dropped), dropped & set(infrastructure.trusted())) == (dropped, dropped)


FOR_PYTEST = "setuptools.setup(name='pytest-shop', entry_points={'pytest11': ['shop = plugin']})"


@pytest.mark.parametrize(
    ("files", "dropped"),
    [
        ({"setup.py": 'NAME = "pytest-shop"\nsetup(name=NAME, entry_points={"pytest11": ["shop = plugin"]})'}, False),
        ({"setup.py": f"Extension(name='shop')\n{FOR_PYTEST}"}, False),
        ({"setup.cfg": "[metadata]\nname = shop\n[options.entry_points]\npytest11 = shop = pytest_shop.plugin"}, False),
        ({"setup.py": 'setup(name="shop")', "setup.cfg": "[options.entry_points]\npytest11 = shop = plugin"}, True),
    ],
    ids=["a name that is not written", "a name of a part", "a module's name", "a name in another file"],
)
def test_plugins_of_a_distribution_that_may_be_for_pytest_may_change(
    tmp_path: Path, files: Mapping[str, str], dropped: bool
) -> None:
    plugins = dict.fromkeys(["plugin.py", "pytest_shop/plugin.py"], "")
    (tmp_path / "pytest_shop").mkdir()
    for one, text in {**files, **plugins}.items():
        (tmp_path / one).write_text(text)
    with Snapshot.take(tmp_path) as snapshot:
        filtered = Infrastructure(snapshot, Rules.of(snapshot), "pytest").filter(
            dict.fromkeys(plugins, FileState(b"changed"))
        )
    assert set(filtered.dropped) == ({"plugin.py"} if dropped else set())


def test_files_that_name_no_plugin_are_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in ("pyproject.toml", "sub/pyproject.toml", "sub/setup.py"):
        (tmp_path / one).parent.mkdir(exist_ok=True)
        (tmp_path / one).write_text("name = 1\n")
    parsed: list[str] = []
    for name in ("read_toml", "parse"):
        monkeypatch.setattr(f"debug_gym_core.grading.entry_points.{name}", parsed.append)
    with Snapshot.take(tmp_path) as snapshot:
        assert Infrastructure(snapshot, Rules.of(snapshot), "pytest").reason("sub/setup.py") is None
    assert parsed == []


LINKS = {
    "conftest.py": "conf/base.py",
    "deep/conftest.py": "../later.py",
    "pytest.ini": "linked/./base.ini",
    "linked": "spec/../settings",
    "shown.py": "code/shown.py",
    "bare": "code",
    "sitecustomize.py": "round.py",
    "round.py": "sitecustomize.py",
    "usercustomize.py": "/etc/shop.py",
    "far.pth": "../../far",
    "tests/product.py": "../shop.py",
    "tests/conftest": "..",
    "docs/conftest": "../code",
    "shop.egg-info": "code",
    "build/shop-1.0.DIST-INFO": "../conf",
    "far/usercustomize": "../spec",
    "tox.ini": "bare/tox",
}
LINKED = {
    "shop.py": "x = 1\n",
    "conf/base.py": "",
    "spec/a.txt": "",
    "settings/base.ini": "[pytest]\naddopts = -p shown -p bare.other -c linked/more.ini\n",
    "settings/more.ini": "",
    "code/shown.py": "",
    "code/other.py": 'pytest_plugins = "code.third"\n',
    "code/third.py": "",
    "code/tox": "[pytest]\naddopts = -q\n",
    "tests/test_a.py": "",
}
LOADED = {"__init__.py", "code/__init__.py", "code/entry_points.txt", "conf/entry_points.txt", "spec/__init__.py"}
FREE = {"code/sub/__init__.py", "conf/__init__.py", "conf/sub/entry_points.txt", "spec/entry_points.txt"}
"""Of directories that such links lead to."""


def test_where_links_lead_that_tell_how_tests_are_run_is_not_taken_over(tmp_path: Path) -> None:
    for path, text in LINKED.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for path, target in LINKS.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).symlink_to(target)
    with Snapshot.take(tmp_path) as snapshot:
        infrastructure = Infrastructure(
            snapshot, Rules.of(snapshot), "pytest -c linked/more.ini", tests=["tests/test_a.py::test_a"]
        )
        changes = dict.fromkeys([*LINKED, *LINKS, "later.py", "code/new.py", *LOADED, *FREE], FileState(b"[pytest]\n"))
        filtered = infrastructure.filter(changes)
    assert set(filtered.kept) == {"shop.py", "spec/a.txt", "code/new.py", "code/tox", "tox.ini", *FREE}
    assert filtered.kept["code/tox"] == filtered.kept["tox.ini"] == FileState(LINKED["code/tox"].encode())
    assert "conf/base.py" in infrastructure.trusted()


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


NAMES = st.sampled_from(["pytest", "tool:pytest", "flake8", "tox", "x"])
LINES = st.sampled_from(["a = 1", "b = [pytest]", "# [pytest]", "", "  more", "addopts = -x", "key: value"])
INI = st.lists(st.tuples(NAMES, st.lists(LINES, max_size=3)), max_size=4, unique_by=lambda one: one[0]).map(
    lambda blocks: "".join(f"[{name}]\nfirst = 1\n" + "".join(f"{line}\n" for line in lines) for name, lines in blocks)
)


def read_ini(text: str) -> Mapping[str, dict[str, str]]:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


@given(INI, INI)
def test_restored_ini_files_have_the_old_pytest_and_the_new_rest(new: str, old: str) -> None:
    made = pytest_sections.restore("tox.ini", new, old)
    assert made is not None
    sections = pytest_sections.INI_SECTIONS["tox.ini"]
    before, after, result = read_ini(old), read_ini(new), read_ini(made)
    assert {name: result.get(name) for name in sections} == {name: before.get(name) for name in sections}
    others = set(after) | set(result)
    assert {n: result.get(n) for n in others - set(sections)} == {n: after.get(n) for n in others - set(sections)}


TABLES = st.sampled_from(
    [
        "[tool.pytest.ini_options]\na = 1\n",
        "[tool.pytest]\nb = 2\n",
        "[tool.black]\nc = 3\n",
        "[[bin]]\nd = 4\n",
        "e = 5\n",
    ]
)
TOML = st.lists(TABLES, unique=True, max_size=4).map(lambda tables: "".join(sorted(tables, key=lambda t: t[0] == "[")))


@given(TOML, TOML)
def test_restored_toml_has_the_old_pytest_and_the_new_rest(new: str, old: str) -> None:
    made = pytest_sections.restore("pyproject.toml", new, old)
    result, before, after = (tomllib.loads(text) for text in (old if made is None else made, old, new))
    assert result.get("tool", {}).get("pytest") == before.get("tool", {}).get("pytest")
    if made is not None:
        assert result.get("tool", {}).get("black") == after.get("tool", {}).get("black")
        assert (result.get("bin"), result.get("e")) == (after.get("bin"), after.get("e"))


@pytest.mark.parametrize("parting", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_what_only_some_take_for_a_line_end_restores_the_whole_file(parting: str) -> None:
    """To one version of iniconfig what follows it is a section of another name, to another it is the old value's."""
    old = "[tool:pytest]\npython_files = test_*.py\n"
    assert pytest_sections.restore("setup.cfg", f"{old}{parting}[other]\naddopts = -p evil\n", old) is None
    assert (
        pytest_sections.restore("setup.cfg", f"[other]\nx = 1{parting}[tool:pytest]{parting}addopts = -p evil\n", "")
        is None
    )
    assert pytest_sections.restore("setup.cfg", f"{old}[other]\na = 1\n", old) is not None


@pytest.mark.parametrize("depth", [500, 900, 990, 998])
def test_tables_that_lie_deep_in_each_other_raise_nothing(build: Build, depth: int) -> None:
    new = f"[tool.black]\nb.{'a.' * depth}a = 1\n[tool.pytest.ini_options]\naddopts = '-k x'\n"
    filtered = build().filter({"pyproject.toml": FileState(new.encode())})
    assert b"-k x" not in b"".join(state.data for state in filtered.kept.values() if state is not None)
    assert set(filtered.dropped) == {"pyproject.toml"}


@pytest.mark.parametrize("table", ['ini_options = "x"', "ini_options = 3"])
def test_options_that_are_none_are_passed_over(table: str) -> None:
    assert pytest_sections.options(f"[tool.pytest]\n{table}\n", {})["addopts"] == []


def test_a_number_that_is_too_long_for_python_is_no_toml() -> None:
    text = f"number = {'9' * 5000}\n"
    assert pytest_sections.has_section("pyproject.toml", text)
    assert pytest_sections.restore("pyproject.toml", text, "") is None
    assert pytest_sections.options(text, {}) == {"python_files": [], "pythonpath": [], "addopts": []}


def test_keys_of_thousands_of_parts_are_not_read_wherever_they_hide() -> None:
    text = f"x = ['''\n#''', {{{'.'.join('a' * 5000)} = 1}}]\n"
    assert pytest_sections.has_section("pyproject.toml", text)
    assert pytest_sections.restore("pyproject.toml", text, "") is None


def test_lines_of_dots_are_no_keys() -> None:
    text = f'art = """\n{"." * 500}\n"""\n'
    assert not pytest_sections.has_section("pyproject.toml", text)
    assert pytest_sections.restore("pyproject.toml", text, "") == text


@pytest.mark.parametrize("value", ["1", "1.5", "true", "1979-05-27", "{a = 1}", "[1, 'x']", "''"])
def test_values_of_any_kind_are_taken_as_words(value: str) -> None:
    found = pytest_sections.options(f"[tool.pytest.ini_options]\naddopts = {value}\npythonpath = 'src lib'\n", {})
    assert found["pythonpath"] == ["src", "lib"]
    assert all(isinstance(word, str) for word in found["addopts"])
