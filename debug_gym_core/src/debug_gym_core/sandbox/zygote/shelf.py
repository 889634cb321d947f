"""What programs are given: modules that were loaded, each when it is imported and not before."""

import importlib.machinery
import os
import sys
import time

from .installed import is_built_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

FRESH = 2e9
"""Nanoseconds after its last change in which a directory's list of names is not relied on."""


class Shelf(object):
    """A finder that hands out modules that were loaded, when a program imports them and would find the same file."""

    def __init__(self, first: "frozenset[str]", edges: "dict[str, set[str]]") -> None:
        """Take in what is loaded.

        Args:
            first: names of the modules that the interpreter itself had loaded
            edges: see `Imports`
        """
        self.modules = {}  # type: dict[str, Any]
        self.debug_gym_modules = self.modules  # by this name the debugger finds them
        for key, module in list(sys.modules.items()):
            if key in first or is_built_in(key, getattr(module, "__spec__", None)):
                continue
            if getattr(getattr(module, "__spec__", None), "name", None) != key and key.rpartition(".")[0] in first:
                continue  # another name of a module, below one that is there from the beginning
            self.modules[key] = module
        self.specs = {key: getattr(module, "__spec__", None) for key, module in self.modules.items()}
        self.waiting = set(self.modules)
        self.closures = {}  # type: dict[str, list[str]]
        self.found = {}  # type: dict[str, Any]
        self.found_by = self.found_in = None  # type: Any
        self.finder = importlib.machinery.PathFinder
        self.usual = importlib.machinery.FileFinder, type(None)
        self.listings = {}  # type: dict[str, tuple[int, set[str]]]
        self.kept = ()  # type: object
        self.edges = {}  # type: dict[str, set[str]]
        for key in self.modules:
            names = set(edges.get(key, ()))
            parts = key.split(".")
            names.update(".".join(parts[:depth]) for depth in range(1, len(parts)))
            self.edges.setdefault(key, set()).update(name for name in names if name in self.modules and name != key)
            spec = self.specs[key]
            if spec is None or spec.name != key:
                self.edges.setdefault(parts[0], set()).add(key)

    def clear_the_table(self) -> None:
        """Take the modules out of sight: out of `sys.modules`, and of packages that do not themselves import them."""
        for key, module in self.modules.items():
            above, _, name = key.rpartition(".")
            parent = self.modules.get(above) or sys.modules.get(above)
            shown = above in self.modules and key in self.closure(above)
            if above and not shown and parent is not None and vars(parent).get(name) is module:
                delattr(parent, name)
        for key in self.modules:
            del sys.modules[key]

    def closure(self, key: str) -> "list[str]":
        """What importing a module loads, itself included."""
        if key in self.closures:
            return self.closures[key]
        found = [key]
        seen = {key}
        for one in found:
            fresh = self.edges[one] - seen
            seen |= fresh
            found.extend(sorted(fresh))
        self.closures[key] = found
        return found

    def find_spec(self, name: str, path: "Any" = None, target: object = None) -> "Any":
        """Find a module that lies here."""
        if name not in self.waiting:
            return None
        above = name.rpartition(".")[0]
        if above and sys.modules.get(above) is not self.modules.get(above, sys.modules.get(above)):
            return None
        spec = self.look_up(name, path)
        if spec is None:
            return None
        for key in self.closure(name):
            if key not in self.waiting:
                if sys.modules.get(key) is not self.modules[key]:
                    return None
            elif key in sys.modules or ("." not in key and key != name and self.look_up(key, None) is None):
                return None
        spec.loader = handing_out(spec.loader, self)
        return spec

    def remember(self, names: "Iterable[str]", stamp: "dict[str, Any]") -> None:
        """Find now what programs import first: they need not look for it again where they would look as is done here.

        Args:
            names: modules
            stamp: of the files and directories that are asked for changes before each start; what is found after any
                other directory is not remembered
        """
        known = []
        for entry in sys.path:
            if entry not in stamp:
                if os.path.exists(entry):
                    break
                stamp[entry] = None
            known.append(entry)
        for name in names:
            for key in self.closure(name) if name in self.modules else ():
                spec = None if "." in key else self.look_up(key, None)
                if spec is None:
                    continue
                directory = os.path.dirname(spec.origin or "")
                if spec.submodule_search_locations is not None:
                    directory = os.path.dirname(directory)
                if spec.origin in ("built-in", "frozen") or directory in known:
                    self.found[key] = spec
        self.found_by, self.found_in = self.finders(), sys.path[:]

    def finders(self) -> "Any":
        """What looks for modules besides this, and in what way."""
        return [one for one in sys.meta_path if one is not self], sys.path_hooks[:]

    def found_again(self, name: str) -> bool:
        """Whether a program that imports a module would find what was found by `remember`."""
        if name not in self.found or self.found_by != self.finders():
            return False
        before = len(sys.path) - len(self.found_in)
        if sys.path[before:] != self.found_in:
            return False
        if not before or self.found[name].origin in ("built-in", "frozen"):
            return True
        # What programs have on the path besides, as their own directory, comes first.
        front = [entry for entry in sys.path[:before] if self.may_hold(entry, name)]
        return not front or self.finder.find_spec(name, front) is None

    def may_hold(self, entry: str, name: str) -> bool:
        """Whether a module may lie at an entry of the path; a directory's list of names tells it at once of most."""
        if not isinstance(sys.path_importer_cache.get(entry), self.usual):
            return True
        try:
            changed = os.stat(entry or ".").st_mtime_ns
            if self.listings.get(entry, (0,))[0] != changed:
                self.listings[entry] = changed, {one.partition(".")[0] for one in os.listdir(entry or ".")}
        except (OSError, TypeError, ValueError):
            return True
        # What changes again within a tick of the file system's clock has the same time.
        return name in self.listings[entry][1] or time.time() * 1e9 - changed < FRESH

    def invalidate_caches(self) -> None:
        """See `importlib.invalidate_caches`."""
        self.listings.clear()

    def look_up(self, name: str, path: "Any") -> "Any":
        """What all the others find under a name, if that is what was loaded; else None."""
        if path is None and self.found_again(name):
            return self.found[name]
        own = self.specs[name]
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path)
            if spec is not None:
                same = own is not None and spec.origin == own.origin and type(spec.loader) is type(own.loader)
                return spec if same else None
        return None

    def hand_out(self, name: str) -> "Any":
        """Put a module, and what importing it had imported, where a program looks for it."""
        fresh = []
        for key in self.closure(name):
            if key not in self.waiting:
                continue
            self.waiting.discard(key)
            fresh.append(key)
            sys.modules[key] = self.modules[key]
        for key in fresh:
            above, _, last = key.rpartition(".")
            parent = sys.modules.get(above)
            if above and parent is not None and last not in vars(parent):
                setattr(parent, last, self.modules[key])
        module = self.modules[name]
        module.__spec__ = self.specs[name]
        if not self.waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        return module


_loaders = {}  # type: dict[type, type]


def handing_out(loader: "Any", shelf: Shelf) -> "Any":
    """A loader like another one, but that it loads what lies on the shelf."""
    of_class = isinstance(loader, type)  # as that of frozen modules
    kind = loader if of_class else type(loader)  # type: Any
    if kind not in _loaders:

        def create_module(self: "Any", spec: "Any") -> "Any":
            if spec.name in shelf.waiting:
                return shelf.modules[spec.name]
            return super(_loaders[kind], self).create_module(spec)  # type: ignore[arg-type]

        def exec_module(self: "Any", module: "Any") -> None:
            name = module.__spec__.name
            if name in shelf.waiting and module is shelf.modules[name]:
                shelf.hand_out(name)
            else:
                super(_loaders[kind], self).exec_module(module)  # type: ignore[arg-type]

        body = {"create_module": create_module, "exec_module": exec_module, "__module__": kind.__module__}
        _loaders[kind] = type(kind.__name__, (kind,), body)
    same = object.__new__(_loaders[kind])  # type: Any
    if not of_class:
        same.__dict__.update(loader.__dict__)
    return same
