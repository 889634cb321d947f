"""Loads what programs will need, each in a fork that is kept only if nothing but modules came of it."""

import builtins
import gc
import importlib.machinery
import os
import select
import signal
import socket
import sys
import time
import warnings

from .installed import installed_places, is_built_in, is_inside
from .noting import DENIED
from .wanted import imported_names, pytest_modules, pytest_plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

    from .noting import Imports

IMPORT_SECONDS = 10.0
PREPARE_SECONDS = 30.0
KEPT_APART = 3, 11
"""Since this Python, importing pytest changes nothing else; before, its `exceptiongroup` replaces `sys.excepthook`."""
CANDIDATES = 80
"""Modules that are imported because the workspace imports them."""


class Nursery(object):
    """Imports modules, while it is noted which imports which."""

    def __init__(self, config: "dict[str, Any]", imports: "Imports") -> None:
        self.config = config
        self.imports = imports
        self.root = os.path.realpath(config["root"])
        self.places = installed_places(self.root)

    def prepare(self) -> bool:
        """Load what programs will need; whether it is worth while.

        Where what a program imports at once cannot be kept apart, it is sooner started cold.
        """
        thorough = self.config["workspace"]
        if not thorough and "pytest" in self.config["imports"] and sys.version_info < KEPT_APART:
            return False
        path, finders = list(sys.path), list(sys.meta_path)
        sys.path[:] = self.places
        own = (importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, importlib.machinery.PathFinder)
        sys.meta_path[:] = [self.imports, *own]
        end = time.monotonic() + PREPARE_SECONDS
        for names in self.wanted():
            if not self.attempt(names, thorough) and not thorough:
                return False
            if time.monotonic() > end:
                break
        self.imports.end()
        sys.path[:], sys.meta_path[:] = path, finders
        return True

    def wanted(self) -> "Iterator[list[str]]":
        """The modules to load: those that our program uses, pytest's, those that the workspace's files import."""
        yield self.config["imports"]
        if "_pytest.config" in sys.modules:
            yield pytest_modules()
        if self.config["workspace"]:
            if "pytest" in sys.modules and not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
                for name in pytest_plugins():
                    yield [name]
            for name in imported_names(self.root)[:CANDIDATES]:
                yield [name]

    def may_import(self, name: str) -> bool:
        """Whether a module is installed and, as far as can be told without importing it, harmless."""
        parts = name.split(".")
        if parts[0] in DENIED or parts[0] in self.imports.failed:
            return False
        where = None  # type: Any
        for depth in range(1, len(parts) + 1):
            known = sys.modules.get(".".join(parts[:depth]))
            if known is None:
                spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:depth]), where)
                return spec is not None and self.is_installed(spec.origin)
            where = getattr(known, "__path__", None)
            if where is None:
                return False
        return False

    def is_installed(self, origin: "str | None") -> bool:
        """Whether a file belongs to the standard library or to an installed distribution."""
        if not origin or not any(origin.startswith(place + os.sep) for place in self.places):
            return False
        real = os.path.realpath(origin)
        return not is_inside(real, self.root) or is_inside(real, os.path.realpath(sys.prefix))

    def attempt(self, names: "list[str]", thorough: bool = True) -> bool:
        """Import modules in a fork, which takes our place if nothing but modules came of it; whether that was so.

        Args:
            names: modules
            thorough: whether to try again with halves of them
        """
        names = [name for name in names if name not in sys.modules]
        if not names or (len(names) == 1 and not self.may_import(names[0])):
            return True
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            if self.imports_cleanly(names):
                os.write(write_end, b"1")
                os.close(write_end)
                return True
            os._exit(1)
        os.close(write_end)
        told = select.select([read_end], [], [], IMPORT_SECONDS)[0] and os.read(read_end, 1)
        os.close(read_end)
        if told:
            os._exit(0)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if len(names) == 1:
            self.imports.failed.add(names[0])
        elif thorough:
            self.attempt(names[: len(names) // 2])
            self.attempt(names[len(names) // 2 :])
        return False

    def imports_cleanly(self, names: "list[str]") -> bool:
        """Import those modules of some that may be; whether nothing else came of it."""
        known = set(sys.modules)
        printed, write_end = os.pipe()
        streams = os.dup(1), os.dup(2)
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        before = state()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                filters = list(warnings.filters)
                self.import_all(names)
                if "pytest" in names and len(names) > 1 and "_pytest.config" in sys.modules:
                    self.import_all(pytest_modules())
                clean = not caught and list(warnings.filters) == filters
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:  # whatever it is, the module is left for the program to import
            return False
        clean = clean and state() == before and not select.select([printed], [], [], 0)[0]
        for saved, stream in zip(streams, (1, 2)):  # noqa: B905 (Python 3.6)
            os.dup2(saved, stream)
            os.close(saved)
        os.close(printed)
        os.close(write_end)
        fresh = [(key, sys.modules[key]) for key in sys.modules if key not in known]
        return clean and all(self.is_fine(key, module) for key, module in fresh) and resident() < self.config["limit"]

    def import_all(self, names: "list[str]") -> None:
        """Import those modules of some that may be imported and are not yet."""
        for name in names:
            if name not in sys.modules and self.may_import(name):
                __import__(name)

    def is_fine(self, key: str, module: "ModuleType | None") -> bool:
        """Whether a module that was loaded can be kept apart and handed out later."""
        top = key.partition(".")[0]
        if module is None or top in DENIED:
            return False
        spec = getattr(module, "__spec__", None)
        if is_built_in(key, spec):
            return True
        if spec is None or spec.name != key:  # another name of a module, made by the package that it stands in
            return "." in key and top in sys.modules
        return spec.origin == "frozen" or (bool(spec.has_location) and self.is_installed(spec.origin))


def state() -> "list[object]":
    """What of the process an import should not change."""
    mask = os.umask(0o077)
    os.umask(mask)
    handlers = [signal.getsignal(number) for number in range(1, int(signal.NSIG))]
    logging = sys.modules.get("logging")  # type: Any
    root = logging.getLogger() if logging is not None else None
    locale = sys.modules.get("_locale") or __import__("_locale")  # type: Any
    return [
        dict(os.environ),
        os.getcwd(),
        mask,
        list(sys.path),
        list(sys.meta_path),
        list(sys.path_hooks),
        handlers,
        sorted(os.listdir("/proc/self/task")),
        sorted(os.listdir("/proc/self/fd")),
        sys.getrecursionlimit(),
        sys.getswitchinterval(),
        (sys.gettrace(), sys.getprofile(), sys.excepthook, sys.displayhook, getattr(sys, "breakpointhook", None)),
        (id(sys.stdin), id(sys.stdout), id(sys.stderr), sys.dont_write_bytecode),
        (gc.isenabled(), gc.get_threshold(), len(gc.callbacks)),
        locale.setlocale(locale.LC_ALL),
        {name: id(value) for name, value in vars(builtins).items() if name != "__import__"},
        (len(root.handlers), root.level, root.manager.disable) if root is not None else (0, 30, 0),
        socket.getdefaulttimeout(),
    ]


def resident() -> int:
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
