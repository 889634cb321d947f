"""Plugins: found by entry point, each loaded in a guard of its own, broken ones set aside and named."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from debug_gym_core import hookspecs
from debug_gym_core.components.component import Component
from debug_gym_core.errors import PluginError, UsageError
from debug_gym_core.names import nearest

GROUP = "debug_gym"
CORE = "debug-gym-core"
FILE = "file"
"""The version of an unpackaged plugin, whose distribution is the path of its file."""

KINDS = ("tools", "terminals", "benchmarks", "agents", "llms", "executors", "exporters")

HOMES: Mapping[str, Mapping[str, str]] = {
    "tools": {
        name: f"debug-gym-tool-{name}"
        for name in ("listdir", "view", "grep", "rewrite", "edit", "eval", "pdb", "bash", "submit", "trace")
    },
    "terminals": {name: f"debug-gym-terminal-{name}" for name in ("local", "bubblewrap", "docker", "kubernetes")},
    "benchmarks": dict.fromkeys(
        ("mini_nightmare", "repo", "aider", "swebench", "swebench-debug", "swesmith", "r2egym", "quixbugs", "bugsinpy"),
        "debug-gym-benchmarks",
    ),
    "agents": dict.fromkeys(
        ("debug_agent", "rewrite_agent", "debug_5_agent", "tool_agent", "solution_agent", "noop_agent"),
        "debug-gym-agents",
    ),
    "llms": {
        name: f"debug-gym-llm-{name}"
        for name in ("openai", "azure-openai", "anthropic", "huggingface", "human", "scripted")
    },
    "executors": {"ray": "debug-gym-executor-ray"},
    "exporters": {},
}
"""Where the names that the documentation speaks of live, to tell somebody who asks for one that is not installed."""

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

    def __init__(self) -> None:
        self.records: list[PluginRecord] = []
        self.manager = _new_manager()
        self._components: dict[str, dict[str, list[tuple[PluginRecord, type[Component]]]]] = {k: {} for k in KINDS}
        self._complained: set[str] = set()
        self.files: tuple[Path, ...] = ()

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
            except Exception as error:
                who = f"{hook} of plugin {implementation.plugin_name}"
                if who not in self._complained:
                    self._complained.add(who)
                    log.warning("%s failed: %s", who, _cause(error), exc_info=log.isEnabledFor(logging.DEBUG))

    def add(
        self, record: PluginRecord, module: ModuleType, components: Mapping[str, Sequence[type[Component]]]
    ) -> None:
        """Take a plugin in that was checked."""
        self.records.append(record)
        self.manager.register(module, name=record.name)
        for kind, classes in components.items():
            for cls in classes:
                self._components[kind].setdefault(cls.name, []).append((record, cls))

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
        others = set(HOMES[kind].values()) - {home}  # azure-openai is not the home of openai
        for record in self.records:
            if record.state != "loaded" and record.distribution not in others and _speaks_of(record, name):
                if record.state == "failed":
                    return PluginError(f"{singular} {name!r}: {record} failed: {record.cause}")
                if record.state == "disabled":
                    return UsageError(f"{singular} {name!r}: {record} is disabled: {record.cause}")
        from debug_gym_core.config.spellings import AGENTS

        if kind == "agents" and name in AGENTS:
            return UsageError(f"agent {name!r} is now called {AGENTS[name]!r}")
        suggestion = nearest(name, self._components[kind])
        if home and home not in {record.distribution for record in self.records}:
            return UsageError(f"{singular} {name!r} is not installed; get it with: pip install {home}")
        return UsageError(f"unknown {singular} {name!r}{suggestion}")


def load_plugins(*, files: Iterable[Path] = (), strict: bool = False, strict_files: bool = False) -> Plugins:
    """Load every plugin that is installed and wanted.

    `DEBUG_GYM_PLUGINS=a,b` loads only these, `DEBUG_GYM_DISABLE_PLUGINS=c` leaves some out (names of entry points or
    distributions); both are applied before anything is imported.

    Args:
        files: unpackaged plugins, Python files
        strict: raise for a broken plugin instead of setting it aside
        strict_files: raise for a broken one of `files`: somebody asked for it

    Raises:
        PluginError: a plugin is broken and `strict` holds, or one of `files` is and `strict_files` does
        UsageError: there is no such file
    """
    plugins = Plugins()
    only, without = _names("DEBUG_GYM_PLUGINS"), _names("DEBUG_GYM_DISABLE_PLUGINS")
    entries = _entry_points()
    installed = {name for entry in entries for name in (entry.name, entry.dist.name if entry.dist else entry.name)}
    for name in sorted((only or set()) - installed):
        same = [one for one in installed if one.endswith(f"-{name}")]  # view, for tool-view
        near = f"; did you mean {min(same, key=len)!r}?" if same else nearest(name, {entry.name for entry in entries})
        _complain(f"DEBUG_GYM_PLUGINS: there is no plugin {name!r}{near}")
    for entry in entries:
        distribution, version = (entry.dist.name, entry.dist.version) if entry.dist else ("unknown", "?")
        record = PluginRecord(entry.name, distribution, version, module=entry.module)
        known = {entry.name, distribution}
        if (only is not None and not only & known) or (without is not None and without & known):
            variable = "DEBUG_GYM_DISABLE_PLUGINS" if without is not None and without & known else "DEBUG_GYM_PLUGINS"
            plugins.records.append(_with(record, state="disabled", cause=f"by {variable}"))
            continue
        _load(plugins, record, entry.load, strict, requirements=entry.dist.requires if entry.dist else None)
    plugins.files = tuple(files)
    for path in plugins.files:
        if not path.is_file():
            raise UsageError(f"there is no plugin file {path}")
        record = PluginRecord(path.name, str(path), FILE)
        _load(plugins, record, functools.partial(_from_file, path), strict or strict_files, requirements=None)
    for kind, name, distributions in plugins.clashes():
        text = f"{kind.removesuffix('s')} {name!r} is provided by {' and '.join(distributions)}"
        if strict:
            raise PluginError(text)
        _complain(f"{text}; say DISTRIBUTION:{name} to choose, or uninstall one")
        plugins.records = [
            _with(record, state="failed", cause=text)
            if record.distribution in distributions and not record.distribution.startswith("debug-gym-")
            else record
            for record in plugins.records
        ]
    return plugins


@functools.cache
def default_plugins() -> Plugins:
    """The installed plugins, loaded once a process; for callers that were given none."""
    return load_plugins()


def _load(
    plugins: Plugins, record: PluginRecord, load: Any, strict: bool, *, requirements: Sequence[str] | None
) -> None:
    """Load one plugin in a guard: whatever it does wrong becomes its record's cause."""
    try:
        _check_version(requirements or ())
        module = load()
        components = _components_of(module, record)
    except (Exception, SystemExit) as error:
        cause = _cause(error)
        if strict:
            raise PluginError(f"{record} failed to load: {cause}") from error
        plugins.records.append(_with(record, state="failed", cause=cause))
        _complain(f"{record} failed: {cause}; the rest works")
        log.debug("%s", record, exc_info=error)
        return
    provides = {kind: [cls.name for cls in classes] for kind, classes in components.items() if classes}
    plugins.add(_with(record, provides=provides), module, components)


def _components_of(module: ModuleType, record: PluginRecord) -> dict[str, Sequence[type[Component]]]:
    """What a plugin's registration hooks return, checked."""
    manager = _new_manager()
    manager.register(module, name=record.name)
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = [name for name, _ in inspect.getmembers(hookspecs) if name.startswith("debug_gym_")]
        unknown = [name for name in dir(module) if hasattr(getattr(module, name), "debug_gym_impl")]
        wrong = next((name for name in unknown if name not in hooks), "?")
        raise PluginError(f"there is no hook {wrong!r}{nearest(wrong, hooks)}") from error
    if not manager.get_hookcallers(module):
        raise PluginError(f"{module.__name__} implements no hook; mark its functions with @hookimpl")
    components: dict[str, Sequence[type[Component]]] = {}
    for kind in KINDS:
        hook = f"debug_gym_register_{kind}"
        found = [cls for classes in getattr(manager.hook, hook)() for cls in classes]
        for cls in found:
            if not (inspect.isclass(cls) and issubclass(cls, Component)):
                raise PluginError(f"{hook} must return component classes, not {cls!r:.80}")
            if not isinstance(getattr(cls, "name", None), str):
                raise PluginError(f"{cls.__name__} has no name")
            if not (cls.__doc__ or "").strip():
                raise PluginError(f"{cls.__name__} has no docstring, which is its help")
        components[kind] = found
    return components


def _check_version(requirements: Sequence[str]) -> None:
    """Refuse a plugin whose distribution asks for another version of the core."""
    wanted = [text for text in requirements if text.lower().replace("_", "-").startswith(CORE)]
    if not wanted:
        return
    from packaging.requirements import Requirement

    from debug_gym_core import __version__

    for requirement in map(Requirement, wanted):
        if not requirement.specifier.contains(__version__, prereleases=True):
            raise PluginError(f"it needs {CORE}{requirement.specifier}, this is {__version__}")


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"debug_gym_plugin_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


@functools.cache
def _entry_points() -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: entry.name))


def _new_manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def _names(variable: str) -> set[str] | None:
    value = os.environ.get(variable)
    return None if value is None else {name.strip() for name in value.split(",") if name.strip()}


def _speaks_of(record: PluginRecord, name: str) -> bool:
    """Whether a plugin that is not loaded would provide a component: its own names or its source say so."""
    plain = name.rpartition(":")[2]
    wanted = plain.lower().replace("_", "-")
    known = [text.lower().replace("_", "-") for text in (record.name, record.distribution)]
    if any(text == wanted or text.endswith(f"-{wanted}") for text in known):
        return True
    return any(quoted in text for text in _sources(record) for quoted in (f'"{plain}"', f"'{plain}'"))


def _sources(record: PluginRecord) -> Iterator[str]:
    """The Python source of a plugin's package or file, read without importing it."""
    module = record.module
    if not module and (file := Path(record.distribution)).is_file():
        yield file.read_text(encoding="utf-8", errors="replace")
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
            yield path.read_text(encoding="utf-8", errors="replace")


def _cause(error: BaseException) -> str:
    if isinstance(error, PluginError):
        return str(error)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _with(record: PluginRecord, **changes: Any) -> PluginRecord:
    import dataclasses

    return dataclasses.replace(record, **changes)


_complaints: set[str] = set()


def _complain(text: str) -> None:
    """Warn once a process."""
    if text not in _complaints:
        _complaints.add(text)
        log.warning("%s", text)


@functools.cache
def package_directories() -> tuple[Path, ...]:
    """Directories of the packages that bring plugins, and of the core: what a sandbox must not show."""
    found = {Path(__file__).parent}
    for entry in _entry_points():
        spec = importlib.util.find_spec(entry.module.partition(".")[0])
        if spec is not None:
            found.update(Path(place) for place in spec.submodule_search_locations or ())
    return tuple(sorted(found))
