"""Plugins: found by entry point, each loaded in a guard of its own, broken ones set aside and named."""

from __future__ import annotations

import contextlib
import copyreg
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from debug_gym_core import hookspecs
from debug_gym_core.components.catalogue import FILE, KINDS, PluginRecord, Plugins, log, of_core
from debug_gym_core.components.component import Component, Settings
from debug_gym_core.components.entry_points import (
    CORE,
    ONLY,
    WITHOUT,
    chosen,
    command_entry_points,
    distributed,
    entry_points,
    known_as,
    left_out_by,
)
from debug_gym_core.components.markers import PROJECT
from debug_gym_core.errors import PluginError, RequirementError, UsageError, cause_of
from debug_gym_core.names import nearest
from debug_gym_core.tools.event_checks import specifications

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""What providers of models accept as the name of a function, and a shell without quotes."""


def load_plugins(*, files: Iterable[Path | str] = (), strict: bool = False, strict_files: bool = False) -> Plugins:
    """Load every plugin that is installed and wanted.

    `DEBUG_GYM_PLUGINS=a,b` loads only these and core's own, `DEBUG_GYM_DISABLE_PLUGINS=c` leaves some out (names of
    entry points or distributions); both are applied before anything is imported.

    Args:
        files: unpackaged plugins, Python files
        strict: raise for a broken plugin instead of setting it aside
        strict_files: raise for a broken one of `files`: somebody asked for it

    Raises:
        PluginError: a plugin is broken and `strict` holds, or one of `files` is and `strict_files` does
        UsageError: there is no such file
        RequirementError: Python was told to leave docstrings out
    """
    if load_plugins.__doc__ is None:
        raise RequirementError("docstrings tell models what tools do: start Python without -OO and PYTHONOPTIMIZE=2")
    plugins = Plugins(_new_manager())
    entries = entry_points()
    for variable in (ONLY, WITHOUT):
        named = chosen(variable) or set()
        places = entries if named <= _names(entries) else (*entries, *command_entry_points())
        installed = _names(places)
        for name in sorted(named - installed):
            same = [one for one in installed if one.endswith(f"-{name}")]  # view, for tool-view
            meant = f"; did you mean {min(same, key=len)!r}?" if same else ""
            _complain(f"{variable}: there is no plugin {name!r}{meant or nearest(name, {one.name for one in places})}")
    for entry in entries:
        distribution, version, requires = distributed(entry.dist) if entry.dist else ("unknown", "?", ())
        record = PluginRecord(entry.name, distribution, version, module=entry.module)
        if variable := left_out_by(entry):
            plugins.records.append(_with(record, state="disabled", cause=f"by {variable}"))
            continue
        _load(plugins, record, entry.load, strict, requirements=requires)
    plugins.files = tuple({path.absolute(): path for path in map(Path, files)}.values())
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
            if name in record.provides.get(kind, ()) and not record.distribution.startswith("debug-gym-")
            else record
            for record in plugins.records
        ]
    return plugins


def _pickled(plugins: Plugins) -> tuple[Any, ...]:
    """How another process gets plugins that a specification has: it loads its own, and the same files."""
    return functools.partial(load_plugins, files=[path.absolute() for path in plugins.files]), ()


copyreg.pickle(Plugins, _pickled)


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
        with contextlib.redirect_stdout(sys.stderr):  # what it prints would be part of what we write
            module = load()
            components = _components_of(module, record)
        provides = {kind: [cls.name for cls in classes] for kind, classes in components.items() if classes}
        plugins.add(_with(record, provides=provides), module, components)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # such as the panic of an extension
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a class was made, before Python 3.12
            raise error.__cause__ from None
        cause = cause_of(error)
        if strict:
            raise PluginError(f"{record} failed to load: {cause}") from error
        plugins.records.append(_with(record, state="failed", cause=cause))
        _complain(f"{record} failed: {cause}; the rest works")
        log.debug("%s", record, exc_info=error)


def _components_of(module: ModuleType, record: PluginRecord) -> dict[str, Sequence[type[Component]]]:
    """What a plugin's registration hooks return, checked."""
    manager = _new_manager()
    try:
        manager.register(module, name=record.name)
    except pluggy.PluginValidationError as error:
        raise PluginError(_misfit(module) or cause_of(error)) from error
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
        caller = getattr(manager.hook, hook)
        lists = caller()
        if caller.get_hookimpls() and not lists:  # pluggy leaves None out
            _complain(f"{record}: {hook} returns nothing; it must return a list of classes")
        for classes in lists:
            if inspect.isclass(classes) or not isinstance(classes, Iterable):
                shown = f"an instance of {type(classes).__name__}" if isinstance(classes, Component) else repr(classes)
                raise PluginError(f"{hook} must return a list of classes, not {shown:.80}")
        found = [cls for classes in lists for cls in classes]
        for cls in found:
            if isinstance(cls, Component):
                raise PluginError(f"{hook} must return the class {type(cls).__name__}, not an instance of it")
            if not (inspect.isclass(cls) and issubclass(cls, Component)):
                raise PluginError(f"{hook} must return component classes, not {cls!r:.80}")
            if not isinstance(getattr(cls, "name", None), str):
                raise PluginError(f"{cls.__name__} has no name")
            if not _NAME.fullmatch(cls.name):
                raise PluginError(
                    f"{cls.__name__}: {cls.name!r} is no name: ASCII letters, digits, _ and -, 64 at most"
                )
            if not (cls.__doc__ or "").strip():
                raise PluginError(f"{cls.__name__} has no docstring, which is its help")
            if not (inspect.isclass(cls.Settings) and issubclass(cls.Settings, Settings)):
                raise PluginError(f"{cls.__name__}.Settings is no subclass of debug_gym_core.Settings")
        components[kind] = found
    return components


def _misfit(module: ModuleType) -> str:
    """Which of a plugin's functions asks for an argument that its hook does not have; empty: none."""
    known = specifications(hookspecs)
    for name, function in inspect.getmembers(module, inspect.isfunction):
        marked = getattr(function, f"{PROJECT}_impl", None)
        hook = (marked and marked.get("specname")) or name
        if marked is not None and hook in known:
            for one in inspect.signature(function).parameters.values():
                if one.name not in known[hook].arguments and one.default is one.empty:
                    may = ", ".join(known[hook].arguments) or "none"
                    return f"{hook} has no argument {one.name!r}; it may have: {may}"
    return ""


def _check_version(requirements: Sequence[str]) -> None:
    """Refuse a plugin whose distribution asks for another version of the core."""
    for requirement in of_core(requirements):
        ours = _version()
        if not requirement.specifier.contains(ours, prereleases=True):
            raise PluginError(f"it needs {CORE}{requirement.specifier}, this is {ours}")


@functools.cache
def _version() -> str:
    return importlib.metadata.version(CORE)


def _from_file(path: Path) -> ModuleType:
    name = f"debug_gym_plugin_file_{path.stem}"
    taken = sys.modules.get(name)
    if taken is not None and getattr(taken, "__file__", None) != str(path):  # another file of that name
        name += f"_{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def _new_manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def _names(entries: Iterable[importlib.metadata.EntryPoint]) -> set[str]:
    return set[str]().union(*map(known_as, entries))


def _with(record: PluginRecord, **changes: Any) -> PluginRecord:
    import dataclasses

    return dataclasses.replace(record, **changes)


_complaints: set[str] = set()


def _complain(text: str) -> None:
    """Warn once a process."""
    if text not in _complaints:
        _complaints.add(text)
        log.warning("%s", text)
