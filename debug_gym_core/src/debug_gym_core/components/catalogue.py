"""What is installed: components by kind and name, and what became of each plugin."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from debug_gym_core.components import default
from debug_gym_core.components.component import Component
from debug_gym_core.components.entry_points import CORE
from debug_gym_core.components.homes import AGENTS, HOMES
from debug_gym_core.errors import PluginError, UnknownName, UsageError, cause_of
from debug_gym_core.names import closest, nearest

if TYPE_CHECKING:
    from packaging.requirements import Requirement

FILE = "file"
"""The version of an unpackaged plugin, whose distribution is the path of its file."""


KINDS = ("tools", "terminals", "benchmarks", "agents", "llms", "executors", "exporters")


log = logging.getLogger("debug_gym")


@dataclass(frozen=True)
class PluginRecord:
    """What became of one plugin.

    Attributes:
        name: the entry point's name, or the file of an unpackaged plugin
        distribution: the distribution that brings it
        version: its version
        provides: names of components by kind
        state: `loaded`, `failed` or `disabled`
        cause: why it failed, in a line
        module: what its entry point names
    """

    name: str
    distribution: str
    version: str
    provides: Mapping[str, Sequence[str]] = field(default_factory=dict)
    state: str = "loaded"
    cause: str | None = None
    module: str = ""

    def __str__(self) -> str:
        if self.version == FILE:
            return f"plugin file {self.distribution}"
        return f"plugin {self.name} ({self.distribution} {self.version})"


class Plugins:
    """The plugins of a process: components by kind and name, and the observers among them.

    Attributes:
        records: one for each plugin that was found, in order of its name
        manager: the pluggy manager that holds those that loaded
        files: unpackaged plugins that were asked for
    """

    def __init__(self, manager: pluggy.PluginManager) -> None:
        """Hold nothing yet.

        Args:
            manager: knows the specifications of the hooks
        """
        self.records: list[PluginRecord] = []
        self.manager = manager
        self._components: dict[str, dict[str, list[tuple[PluginRecord, type[Component]]]]] = {k: {} for k in KINDS}
        self._modules: dict[tuple[str, str], ModuleType] = {}
        self._complained: set[str] = set()
        self.files: tuple[Path, ...] = ()

    def __copy__(self) -> Plugins:
        """Itself, as a module."""
        return self

    def __deepcopy__(self, memo: object) -> Plugins:
        """Itself, as a module: `gymnasium.make` copies the arguments of a specification."""
        return self

    @property
    def tools(self) -> Mapping[str, type[Any]]:
        """Tools by name."""
        return self._plain("tools")

    @property
    def terminals(self) -> Mapping[str, type[Any]]:
        """Sandbox backends by name."""
        return self._plain("terminals")

    @property
    def benchmarks(self) -> Mapping[str, type[Any]]:
        """Benchmarks by name."""
        return self._plain("benchmarks")

    @property
    def agents(self) -> Mapping[str, type[Any]]:
        """Agents by name."""
        return self._plain("agents")

    @property
    def llms(self) -> Mapping[str, type[Any]]:
        """Language model backends by name."""
        return self._plain("llms")

    @property
    def executors(self) -> Mapping[str, type[Any]]:
        """Executors by name."""
        return self._plain("executors")

    @property
    def exporters(self) -> Mapping[str, type[Any]]:
        """Exporters by name."""
        return self._plain("exporters")

    @property
    def hook(self) -> pluggy.HookRelay:
        """The hooks of the plugins that loaded."""
        return self.manager.hook

    def failed(self) -> list[PluginRecord]:
        """The plugins that failed."""
        return [record for record in self.records if record.state == "failed"]

    def get(self, kind: str, name: str) -> type[Any]:
        """Find a component.

        Args:
            kind: one of `KINDS`
            name: its name, or `distribution:name`

        Raises:
            PluginError: two plugins provide it, or the plugin that would have provided it failed
            UsageError: nobody provides it; the text names the nearest and how to install it
        """
        distribution, colon, plain = name.rpartition(":")
        found = self._components[kind].get(plain, [])
        if colon:
            found = [(record, cls) for record, cls in found if record.distribution == distribution]
        if len(found) == 1:
            return found[0][1]
        singular = kind.removesuffix("s")
        if found:
            choices = " or ".join(f"{record.distribution}:{plain}" for record, _ in found)
            raise PluginError(f"{singular} {plain!r} is provided twice; say {choices}")
        raise self._unknown(kind, singular, name)

    def notify(self, hook: str, **arguments: Any) -> None:
        """Tell the observers; what one raises is reported once and stops nobody.

        Args:
            hook: name of an observer hook
            arguments: what its specification lists
        """
        for implementation in getattr(self.hook, hook).get_hookimpls():
            try:
                implementation.function(*(arguments[name] for name in implementation.argnames))
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:  # such as asyncio's CancelledError
                who = f"{hook} of plugin {implementation.plugin_name}"
                if who not in self._complained:
                    self._complained.add(who)
                    log.warning("%s failed: %.500s", who, cause_of(error), exc_info=log.isEnabledFor(logging.DEBUG))

    def add(
        self, record: PluginRecord, module: ModuleType, components: Mapping[str, Sequence[type[Component]]]
    ) -> None:
        """Take a plugin in that was checked.

        Raises:
            PluginError: its module was taken in already
        """
        name = record.name
        if self.manager.has_plugin(name):  # names of entry points, and of files, need not differ
            name = f"{name} ({record.distribution})"
        try:
            self.manager.register(module, name=name)
        except ValueError:
            raise PluginError(f"{module.__name__} is loaded already, by another entry point") from None
        self.records.append(record)
        self._modules[record.name, record.distribution] = module
        for kind, classes in components.items():
            for cls in classes:
                cls.brought_by = str(record)
                self._components[kind].setdefault(cls.name, []).append((record, cls))

    def module_of(self, record: PluginRecord) -> ModuleType | None:
        """The module of a plugin; None when it did not load."""
        return self._modules.get((record.name, record.distribution))

    def clashes(self) -> list[tuple[str, str, list[str]]]:
        """Names that more than one plugin provides: kind, name, distributions."""
        return [
            (kind, name, [record.distribution for record, _ in found])
            for kind, names in self._components.items()
            for name, found in names.items()
            if len(found) > 1
        ]

    def _plain(self, kind: str) -> Mapping[str, type[Any]]:
        return {name: found[0][1] for name, found in sorted(self._components[kind].items()) if len(found) == 1}

    def _unknown(self, kind: str, singular: str, name: str) -> Exception:
        home = HOMES[kind].get(name)
        # azure-openai is not the home of openai, and no other of ours brings what a third party may
        others = {one for homes in HOMES.values() for one in homes.values()} - {home}
        for record in self.records:
            if record.state != "loaded" and record.distribution not in others and _speaks_of(record, kind, name):
                if record.state == "failed":
                    return PluginError(f"{singular} {name!r}: {record} failed: {record.cause}")
                if record.state == "disabled":
                    return UsageError(f"{singular} {name!r}: {record} is disabled: {record.cause}")
        if kind == "agents" and name in AGENTS:
            return UsageError(f"agent {name!r} is now called {AGENTS[name]!r}")
        here = [*self._components[kind], *(["auto"] if kind == "terminals" else [])]
        present = {record.distribution for record in self.records}
        if home and home not in present:
            return UnknownName(f"{singular} {name!r} is not installed; get it with: pip install {home}")
        absent = {one: brings for one, brings in HOMES[kind].items() if brings not in present}
        meant = closest(name, [*here, *absent])
        if meant in absent and meant not in here:
            how = f"which is not installed; get it with: pip install {absent[meant]}"
            return UnknownName(f"unknown {singular} {name!r}; did you mean {meant!r}, {how}")
        return UnknownName(f"unknown {singular} {name!r}{nearest(name, here)}")


def _speaks_of(record: PluginRecord, kind: str, name: str) -> bool:
    """Whether a plugin that is not loaded would provide a component: its own names or its source say so.

    Where its source names hooks that register components, one has to be of this kind: others may say any word.
    """
    plain = name.rpartition(":")[2]
    wanted = plain.lower().replace("_", "-")
    known = [text.lower().replace("_", "-") for text in (record.name, record.distribution)]
    if any(text == wanted or text.endswith(f"-{wanted}") for text in known):
        return True
    texts = [_text(file) for file in _sources(record)]
    registers = set(re.findall(r"\bdebug_gym_register_(\w+)", "\n".join(texts)))
    said = any(quoted in text for text in texts for quoted in (f'"{plain}"', f"'{plain}'"))
    return said and (not registers or kind in registers)


def _text(file: Path) -> str:
    """What a file says; nothing where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _sources(record: PluginRecord) -> Iterator[Path]:
    """The Python files of a plugin's package, or its only one, without importing it."""
    module = record.module
    if not module and (file := Path(record.distribution)).is_file():
        yield file
        return
    try:
        spec = importlib.util.find_spec(module.partition(".")[0]) if module else None
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    files = [path for place in places for path in sorted(place.rglob("*.py"))] or [Path(spec.origin or "")]
    for path in files[:100]:
        if path.suffix == ".py" and path.is_file():
            yield path


def of_core(requirements: Iterable[str]) -> list[Requirement]:
    """The requirements of this core among those of a distribution; `debug-gym-core-extras` would be another one.

    Args:
        requirements: as its metadata has them
    """
    # Most are of others: only what may be ours is worth the import.
    wanted = [text for text in requirements if re.sub(r"[-_.]+", "-", text).lower().startswith(CORE)]
    if not wanted:
        return []
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found = [one for one in map(Requirement, wanted) if canonicalize_name(one.name) == CORE]
    return [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]


def installed() -> Plugins:
    """The plugins of this environment, for who was given none; see `debug_gym_core.plugins.default_plugins`."""
    plugins: Plugins = default.load()
    return plugins
