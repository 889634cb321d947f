"""Whose a function is, and who may name plugins, as the runner tells it: by itself, without a sandbox."""

from __future__ import annotations

import gc
import os
import sys
import types
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from debug_gym_core.grading.runner import files
from debug_gym_core.grading.runner.describe import Describer
from debug_gym_core.grading.runner.hooks import Hooks, name_of
from debug_gym_core.grading.runner.origins import DECIDING, TAKING_PART, Origins
from debug_gym_core.grading.runner.tampering import Watch

HELPER = "def hook(): return 1\n\ndef made(other):\n    def hook(): return other()\n    return hook\n"


class Repository:
    """A repository with modules that help its tests, and what tells of their functions."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for path in ("tests/helper.py", "other/helper.py", "shop.py"):
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(HELPER)
        self.root, self.monkeypatch = root, monkeypatch
        self.origins = Origins(str(root), Describer(str(root)).inside, ["tests/"])
        self.origins.began = float("inf")

    def module(self, path: str = "tests/helper.py", name: str = "helper") -> Any:
        """A module as it is imported."""
        module = types.ModuleType(name)
        module.__file__ = str(self.root / path)
        exec(compile((self.root / path).read_text(), module.__file__, "exec", dont_inherit=True), vars(module))
        self.monkeypatch.setitem(sys.modules, name, module)
        return module


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return Repository(tmp_path, monkeypatch)


def moved(repository: Repository) -> Any:
    (repository.root / "tests").rename(repository.root / "aside")
    (repository.root / "other").rename(repository.root / "tests")
    return repository.module().hook


def around_its_own(repository: Repository) -> Any:
    module = repository.module()
    return module.made(module.hook)


def around_a_part(repository: Repository, module: Callable[[], Any]) -> Any:
    part = partial(module().hook, 1)
    part.keywords["whole"] = part
    made = repository.module("tests/helper.py", "other").made
    return made(part)


def written_since(repository: Repository, writable: bool = True) -> Any:
    repository.origins.began = 0
    if not writable:
        repository.monkeypatch.setattr(files, "_statvfs", lambda path: types.SimpleNamespace(f_flag=os.ST_RDONLY))
    return repository.module().hook


def of_another_code(repository: Repository) -> Any:
    module = repository.module()
    exec(compile("def hook(): return 2\n", str(module.__file__), "exec"), vars(module))
    return module.hook


def of_a_module_that_is_none(repository: Repository) -> Any:
    module = repository.module()
    repository.monkeypatch.setitem(sys.modules, "helper", types.ModuleType("helper"))
    return module.hook


def that_says_it_is_another_files(repository: Repository) -> Any:
    module = repository.module("shop.py", "shop")
    module.__file__ = str(repository.root / "tests" / "gone.py")
    return module.hook


def of_a_file_that_was_given(repository: Repository) -> Any:
    module = repository.module()
    repository.origins.given = {str(repository.root / "tests" / "helper.py"): module.hook.__code__}
    return module.hook


def installed(repository: Repository, *, place: str) -> Any:
    repository.origins.inside = lambda path: None
    repository.origins.places = (place,)
    return repository.module().hook


MAY_TAKE_PART: dict[str, tuple[Callable[[Repository], Any], bool]] = {
    "of the tests": (lambda one: one.module().hook, True),
    "installed": (lambda one: installed(one, place=f"{one.root}/"), True),
    "around one of the tests": (around_its_own, True),
    "around one of the repository": (lambda one: one.module().made(one.module("shop.py", "shop").hook), False),
    "around a part of the tests": (lambda one: around_a_part(one, one.module), True),
    "around a part of the repository": (lambda one: around_a_part(one, lambda: one.module("shop.py", "shop")), False),
    "around a part's part": (
        lambda one: one.module().made(partial(map, partial(print, end=one.module("shop.py", "shop").hook))),
        False,
    ),
    "of the repository": (lambda one: one.module("shop.py", "shop").hook, False),
    "outside, and not installed": (lambda one: installed(one, place="/nowhere/"), False),
    "of a file that was written since": (written_since, False),
    "of one that nobody can write to": (lambda one: written_since(one, writable=False), True),
    "of code that its file has not": (of_another_code, False),
    "of a module that is not imported": (of_a_module_that_is_none, False),
    "of a file that is none": (that_says_it_is_another_files, False),
    "of a module that was given and not loaded from that": (of_a_file_that_was_given, False),
    "no function": (lambda one: print, False),
    "of a directory that was moved to theirs": (moved, False),
}


@pytest.mark.parametrize(("function", "may"), MAY_TAKE_PART.values(), ids=MAY_TAKE_PART)
def test_who_may_take_part(repository: Repository, function: Callable[[Repository], Any], may: bool) -> None:
    assert repository.origins.may_replace(function(repository), TAKING_PART) is may


@pytest.mark.parametrize(
    ("path", "kind", "may"),
    [
        ("", DECIDING, True),
        ("tests/helper.py", DECIDING, False),
        ("other/../tests/helper.py", DECIDING, False),
        ("tests/helper.py", TAKING_PART, True),
        ("other/helper.py", DECIDING, True),
    ],
)
def test_a_module_that_is_loaded_anew_decides_on_nothing(
    repository: Repository, path: str, kind: str, may: bool
) -> None:
    hook = installed(repository, place=f"{repository.root}/")
    repository.origins.remember([])
    if path:
        hook = repository.module(path, "own").hook
    assert repository.origins.may_replace(hook, kind) is may


NAMES_PLUGINS = {
    "a conftest": ("tests/conftest.py", "conftest", ["one", "two"], {"named", "one", "two"}),
    "a conftest's text": ("tests/conftest.py", "conftest", "one,two", {"named", "one", "two"}),
    "a conftest with a module of that name": ("tests/conftest.py", "conftest", types, {"named"}),
    "who was named": ("shop.py", "named", ["one"], {"named", "one"}),
    "who was not": ("shop.py", "shop", ["one"], {"named"}),
    "a conftest that is not the tests'": ("conftest.py", "conftest", ["one"], {"named"}),
}


@pytest.mark.parametrize(("path", "name", "listed", "names"), NAMES_PLUGINS.values(), ids=NAMES_PLUGINS)
def test_only_conftests_and_who_was_named_name_plugins(
    repository: Repository, path: str, name: str, listed: object, names: set[str]
) -> None:
    (repository.root / path).write_text(HELPER)
    module = repository.module(path, name)
    module.pytest_plugins = listed
    hooks = Hooks(cast(Watch, types.SimpleNamespace(origins=repository.origins)))
    hooks.names = {"named"}
    hooks.meet(name, module)
    assert (hooks.names, hooks.is_named(vars(module))) == (names, name == "named")


class Around:
    """The hooks of a config of pytest 7 and 8: some of them are functions around what the plugin manager has."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda **given: None


class Pytest:
    """What `Hooks` asks of pytest, and those that watch its hooks."""

    def __init__(self, repository: Repository) -> None:
        self.manager = pytest.PytestPluginManager()
        self.config = types.SimpleNamespace(
            pluginmanager=self.manager, hook=Around(), known_args_namespace=types.SimpleNamespace(plugins=[])
        )
        self.asked: list[str] = []
        self.told: list[str] = []
        self.repository = repository
        watch = types.SimpleNamespace(origins=self, vital=[], problems=[], report=lambda text, kind: self.tell(text))
        self.hooks = Hooks(cast(Watch, watch))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.repository.origins, name)

    def tell(self, text: str) -> None:
        self.told.append(text)

    def may_replace(self, function: Any, kind: str) -> bool:
        self.asked.append(function.__module__)
        return self.repository.origins.may_replace(function, kind)

    def register(self, path: str, text: str, name: str = "") -> Any:
        """Have a file be a plugin whose hooks alone are looked at."""
        (self.repository.root / path).parent.mkdir(exist_ok=True)
        (self.repository.root / path).write_text(text)
        module = self.repository.module(path, name or path)
        self.manager.register(module, name or path)
        self.hooks.check(self.config, None, module)
        return module


HOOK_OF_TESTS = "def pytest_runtest_setup(item): pass\n"


def test_of_a_plugin_that_is_registered_only_its_own_hooks_are_looked_at(repository: Repository) -> None:
    pytests = Pytest(repository)
    for number in range(3):
        pytests.register(f"tests/{number}.py", HOOK_OF_TESTS)
    assert pytests.asked == ["tests/0.py", "tests/1.py", "tests/2.py"]
    pytests.register("shop.py", HOOK_OF_TESTS)
    assert pytests.told == ["a hook pytest_runtest_setup was added by shop.py"]


def test_a_hook_that_was_there_at_first_leaves_its_id_to_no_other(repository: Repository) -> None:
    pytests = Pytest(repository)
    module = pytests.register("tests/helper.py", HOOK_OF_TESTS)
    pytests.hooks.remember(pytests.config)
    function = weakref.ref(module.pytest_runtest_setup)
    pytests.manager.unregister(module)
    del module.pytest_runtest_setup
    gc.collect()
    assert function() is not None


ADDED = "a hook pytest_generate_tests was added by {}"
IMPORTS = "from shop import pytest_generate_tests\n"
HOOK_THAT_FINDS = """
def pytest_generate_tests(metafunc): pass
def pytest_runtest_setup(item): pass
def add(space): space["pytest_generate_tests"] = pytest_generate_tests
"""


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("tests/conftest.py", IMPORTS, []),
        ("tests/conftest.py", f"try:\n    {IMPORTS}except ImportError:\n    pass\n", []),
        ("tests/conftest.py", "import shop\nshop.add(globals())\n", [ADDED.format("tests/conftest.py")]),
        (
            "tests/conftest.py",
            "from shop import pytest_runtest_setup\n",
            ["a hook pytest_runtest_setup was added by tests/conftest.py"],
        ),
        ("tests/helper.py", IMPORTS, [ADDED.format("tests/helper.py")]),
        ("conftest.py", IMPORTS, [ADDED.format("conftest.py")]),
    ],
)
def test_what_finds_tests_a_conftest_may_import_from_the_repository(
    repository: Repository, path: str, text: str, told: list[str]
) -> None:
    (repository.root / "shop.py").write_text(HOOK_THAT_FINDS)
    repository.module("shop.py", "shop")
    pytests = Pytest(repository)
    pytests.register(path, text)
    assert pytests.told == told


def test_nobody_registers_himself_under_the_name_of_a_plugin(repository: Repository) -> None:
    module = repository.module("shop.py", "shop")
    hooks = Hooks(cast(Watch, types.SimpleNamespace(origins=repository.origins)))
    hooks.names = {"named"}
    for plugin in (module, types.SimpleNamespace(__name__="named", pytest_plugins=["one"])):
        hooks.meet("named", plugin)
    assert (hooks.names, hooks.named) == ({"named"}, [])


@pytest.mark.parametrize(
    ("name", "plugin", "told"),
    [
        ("/testbed/20261127/conftest.py", types, "/testbed/20261127/conftest.py"),
        ("shop.plugin_202611", types, "shop.plugin_202611"),
        ("shop.plugin_202612", types.ModuleType("other"), "shop.plugin_202612"),
        ("139872345678912", Path(), f"{type(Path()).__module__}.{type(Path()).__name__}"),
        ("cache of 0x7f00", Path(), f"{type(Path()).__module__}.{type(Path()).__name__}"),
        ("shop", Path(), "shop"),
    ],
)
def test_a_plugin_has_one_name_in_all_runs_and_modules_have_their_own(name: str, plugin: object, told: str) -> None:
    assert name_of(types.SimpleNamespace(plugin_name=name, plugin=plugin)) == told
