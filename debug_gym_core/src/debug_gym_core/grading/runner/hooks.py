"""Who takes part when pytest runs tests: the hooks that were there at the beginning, and those that may come later."""

import os
import re
from collections.abc import Sequence

from .given import space_of
from .origins import NOBODY, TAKING_PART
from .tampering import HOOK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Union

    from .tampering import Watch

FINDING = (
    "pytest_collection",
    "pytest_collect_directory",
    "pytest_collect_file",
    "pytest_collectstart",
    "pytest_make_collect_report",
    "pytest_pycollect_makemodule",
    "pytest_pycollect_makeitem",
    "pytest_generate_tests",
    "pytest_itemcollected",
    "pytest_collectreport",
    "pytest_collection_finish",
)
"""By which tests are found."""

KEY_HOOKS = (
    *FINDING,
    "pytest_runtestloop",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
    "pytest_runtest_logreport",
    "pytest_pyfunc_call",
    "pytest_fixture_setup",
    "pytest_collection_modifyitems",
    "pytest_sessionfinish",
)
"""By which tests are found and run; those that a version does not have are passed over."""

FIXTURES = frozenset((
    "cache", "capfd", "capfdbinary", "caplog", "capsys", "capsysbinary", "capteesys", "monkeypatch", "pytestconfig",
    "pytester", "recwarn", "request", "subtests", "testdir", "tmp_path", "tmp_path_factory", "tmpdir", "tmpdir_factory",
))  # fmt: skip
"""By which pytest itself tells tests what became of what they try."""

HOW_CALLED = "_inner_hookexec"
"""What a plugin manager has of its own, by which it calls hooks; not every pluggy's has it."""

ADDRESS = re.compile(r"\d{6}|0x[0-9a-f]+|^\d+$")
"""In a name that no module has, the number of an object, which differs in each run."""


class Hooks(object):
    """Only pytest, installed plugins and the repository's test infrastructure may take part in running.

    Attributes:
        first: the functions that were there before any code of the repository was imported, by hook and id
        named: modules that command line, environment or test infrastructure name as plugins, once pytest has them
    """

    def __init__(self, watch: "Watch") -> None:
        self.watch = watch
        self.first = {}  # type: dict[str, dict[int, Any]]
        self.names = set()  # type: set[str]
        self.named = []  # type: list[Any]

    def remember(self, config: "Any") -> None:
        """Take in what there is before any code of the repository is imported, but for plugins that are named.

        Args:
            config: pytest's, early
        """
        manager = vars(config.pluginmanager)
        if HOW_CALLED in manager:
            self.watch.vital.append((manager, HOW_CALLED, manager[HOW_CALLED], "pluggy"))
        for name in KEY_HOOKS:
            # Kept: what is made after one is gone may have its id.
            self.first[name] = {id(one.function): one.function for one in implementations(config, name)}
        self.names.update(getattr(config.known_args_namespace, "plugins", None) or ())
        self.names.update(one for one in os.environ.get("PYTEST_PLUGINS", "").split(",") if one)
        plugins = [(config.pluginmanager.get_name(one), one) for one in config.pluginmanager.get_plugins()]
        known = -1
        while known != len(self.named):  # They are in no order, and one names others.
            known = len(self.named)
            for name, plugin in plugins:
                self.meet(name, plugin)

    def meet(self, name: "Union[str, None]", plugin: "Any") -> None:
        """Take in a plugin as it is registered: what it names is registered next, and nobody can name himself later.

        Args:
            name: under which it is registered
            plugin: it
        """
        space = space_of(plugin)
        if space is None or self.is_named(space):
            return
        if name in self.names and name == space.get("__name__"):
            self.named.append(plugin)
        elif not self.watch.origins.is_conftest(space):
            return
        listed = space.get("pytest_plugins")
        if isinstance(listed, Sequence):  # what else has that name pytest goes past, as a module
            self.names.update(listed.split(",") if isinstance(listed, str) else listed)

    def is_named(self, space: "Any") -> bool:
        """Whether a namespace is that of a plugin which was named."""
        return any(space_of(one) is space for one in self.named)

    def check(self, config: "Any", ours: object, only: object = None) -> None:
        """Report hooks of others.

        Args:
            config: pytest's
            ours: the plugin of ours
            only: a plugin whose hooks alone are looked at; None: those of all
        """
        for text in self.others(config, ours, only):
            self.watch.report(text, HOOK)

    def others(self, config: "Any", ours: object, only: object = None) -> "Iterator[str]":
        """Tell of hooks of others that were not told before; see `check`."""
        for name in KEY_HOOKS:
            for one in implementations(config, name):
                if only is not None and one.plugin is not only:
                    continue
                if id(one.function) in self.first.get(name, ()) or one.plugin is ours:
                    continue
                if self.is_named(one.function.__globals__) or self.watch.origins.may_replace(one.function, TAKING_PART):
                    continue
                if name in FINDING and self.is_in_conftest(name, one.plugin):
                    continue
                text = "a hook {} was added by {}".format(name, name_of(one))
                if (HOOK, text) not in self.watch.problems:
                    yield text

    def check_fixture(self, fixture: "Any") -> None:
        """Report a fixture of the tested code's in the place of pytest's, as a conftest may import it.

        Args:
            fixture: that is about to run, as pytest has it
        """
        name, origins = str(fixture.argname), self.watch.origins
        if name not in FIXTURES or origins.origin_of(fixture.func) is not NOBODY:
            return
        space = getattr(origins.function_of(fixture.func), "__globals__", {})
        if not self.is_named(space):
            self.watch.report("the fixture {} is that of {}".format(name, space.get("__name__")), HOOK)

    def is_in_conftest(self, name: str, plugin: object) -> bool:
        """Whether a plugin is a conftest whose own text has a hook, which it may import from the repository's package.

        Whoever finds tests by it is known before any runs: it is no other that comes as tests are found.

        Args:
            name: of the hook
            plugin: it
        """
        space, origins = space_of(plugin), self.watch.origins
        if space is None or not origins.is_conftest(space):
            return False
        modules = (one for one in origins.codes_of(space["__file__"]) if one.co_name == "<module>")
        return any(name in one.co_names for one in modules)


def implementations(config: "Any", name: str) -> "list[Any]":
    """Who implements a hook, as pluggy has it; nobody, where pytest has no such."""
    hook = getattr(config.pluginmanager.hook, name, None)  # pytest 7 and 8 have functions around some in `config.hook`
    if hook is None:
        return []
    if hasattr(hook, "get_hookimpls"):
        return list(hook.get_hookimpls())
    return list(hook._nonwrappers + hook._wrappers)  # pluggy 0.6, of pytest 3.3


def name_of(implementation: "Any") -> str:
    """What a plugin is called that implements a hook: an object without a name by its class, and not by its number."""
    name, plugin = str(implementation.plugin_name), implementation.plugin
    if not ADDRESS.search(name) or space_of(plugin) is not None:
        return name
    return "{}.{}".format(type(plugin).__module__, type(plugin).__name__)
