"""Of an agent's changes, those to what entry points name and links lead to: which the clean grading takes over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from debug_gym_core.grading.infrastructure import Infrastructure
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import FileState, Snapshot

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
        ({"setup.py": 'SHOP = dict(name="shop", entry_points={"pytest11": ["shop = plugin"]})\nsetup(**SHOP)'}, True),
    ],
    ids=[
        "a name that is not written",
        "a name of a part",
        "a module's name",
        "a name in another file",
        "in another call",
    ],
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


def test_what_shadows_where_a_linked_import_root_leads_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "shop.py").write_text("")
    (tmp_path / "src").symlink_to("code")
    with Snapshot.take(tmp_path) as snapshot:
        filtered = Infrastructure(snapshot, Rules.of(snapshot), "pytest").filter(
            dict.fromkeys(["code/random.py", "code/shop.py"], FileState(b"changed"))
        )
    assert (set(filtered.kept), set(filtered.dropped)) == ({"code/shop.py"}, {"code/random.py"})
