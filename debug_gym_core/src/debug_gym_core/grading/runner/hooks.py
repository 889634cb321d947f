"""Who takes part when pytest runs tests: the hooks that were there at the beginning, and those that may come later."""

import os
import sys

from .tampering import HOOK, OTHER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .tampering import Watch

KEY_HOOKS = (
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


class Hooks(object):
    """Only pytest, installed plugins and the repository's test infrastructure may take part in running."""

    def __init__(self, watch: "Watch") -> None:
        self.watch = watch
        self.first = {}  # type: dict[str, set[int]]

    def remember(self, config: "Any") -> None:
        """Take in the hooks that there are before any code of the repository is imported."""
        for name in KEY_HOOKS:
            self.first[name] = set(id(one.function) for one in implementations(config, name))

    def check(self, config: "Any", ours: object) -> None:
        """Report hooks of others.

        Args:
            config: pytest's
            ours: the plugin of ours
        """
        named = named_plugins(config)
        for name in KEY_HOOKS:
            for one in implementations(config, name):
                if id(one.function) in self.first.get(name, ()) or one.plugin is ours:
                    continue
                if one.function.__globals__.get("__name__") in named or self.watch.may_replace(one.function, OTHER):
                    continue
                self.watch.report("a hook {} was added by {}".format(name, name_of(one)), HOOK)


def implementations(config: "Any", name: str) -> "list[Any]":
    """Who implements a hook, as pluggy has it."""
    hook = getattr(config.hook, name)
    if hasattr(hook, "get_hookimpls"):
        return list(hook.get_hookimpls())
    return list(hook._nonwrappers + hook._wrappers)  # pluggy 0.6, of pytest 3.3


def name_of(implementation: "Any") -> str:
    """What a plugin is called that implements a hook: an object without a name by its class, and not by its number."""
    name, kind = str(implementation.plugin_name), type(implementation.plugin)
    return "{}.{}".format(kind.__module__, kind.__name__) if name.isdigit() else name


def named_plugins(config: "Any") -> "set[str]":
    """Names of modules that command line, environment or test infrastructure name as plugins."""
    names = set(getattr(config.option, "plugins", None) or ())
    names.update(os.environ.get("PYTEST_PLUGINS", "").split(","))
    for plugin in config.pluginmanager.get_plugins():
        listed = (getattr(plugin, "pytest_plugins", None) if isinstance(plugin, type(sys)) else None) or ()
        names.update([listed] if isinstance(listed, str) else listed)
    return names
