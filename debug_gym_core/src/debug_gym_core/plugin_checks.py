"""Checks of installed plugins, without side effects: everything that loads lazily is loaded and looked at."""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib.metadata
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from debug_gym_core.components.catalogue import FILE, KINDS, PluginRecord, Plugins, of_core
from debug_gym_core.components.component import Component, construct, failure
from debug_gym_core.components.entry_points import COMMAND_GROUP, CORE, GROUP, left_out_by
from debug_gym_core.config.schema import SettingsSchema
from debug_gym_core.config.text import attribute_help
from debug_gym_core.errors import NO_FAULT, DebugGymError, RequirementError, UsageError, cause_of, said_by
from debug_gym_core.tools.event_checks import examine


class State(enum.StrEnum):
    """What came of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Check:
    """One thing of a plugin that was checked.

    Attributes:
        plugin: name of the plugin, or of the distribution of a command
        distribution: what brings it
        kind: `plugin`, `command`, or the kind of a component, singular
        name: of the command or component; empty for the plugin itself
        state: what came of it
        detail: what is wrong, or what was found; in one line
    """

    plugin: str
    distribution: str
    kind: str
    name: str
    state: State
    detail: str = ""


class Wrong(Exception):
    """A check failed; the text says what is wrong."""


class Doubtful(Exception):
    """A check found something that works, and should be better; the text says what."""


def check(
    plugins: Plugins, commands: Iterable[importlib.metadata.EntryPoint], builtin_commands: Collection[str]
) -> Iterator[Check]:
    """Check every plugin.

    Args:
        plugins: what is installed
        commands: entry points of the commands that plugins bring
        builtin_commands: names of the commands that core brings

    Yields:
        a check for each plugin, each component of it, and each command
    """
    clashing = {(kind, name): distributions for kind, name, distributions in plugins.clashes()}
    for record in plugins.records:
        yield _of_plugin(record, plugins)
        for kind in KINDS:
            for name in record.provides.get(kind, ()):
                singular = kind.removesuffix("s")
                others = [one for one in clashing.get((kind, name), ()) if one != record.distribution]
                if others:
                    text = f"{' and '.join(others)} provides one of this name too; one of them must take another"
                    yield Check(record.name, record.distribution, singular, name, State.FAILED, text)
                    continue
                cls = plugins.get(kind, f"{record.distribution}:{name}")
                look = functools.partial(_of, kind, cls, plugins)
                yield _guarded(record.name, record.distribution, singular, name, look)
    yield from of_commands(commands, builtin_commands)
    yield from _of_groups()


def _of_plugin(record: PluginRecord, plugins: Plugins) -> Check:
    about = (record.name, record.distribution, "plugin", "")
    if record.state == "disabled":
        return Check(*about, State.OK, f"disabled {record.cause}")
    if record.state == "failed" and not record.provides:
        return Check(*about, State.FAILED, record.cause or "")
    if record.version not in (FILE, "?") and record.distribution != CORE:
        pins = of_core(importlib.metadata.requires(record.distribution) or ())
        if not any(one.operator in ("<", "<=", "==", "~=", "===") for pin in pins for one in pin.specifier):
            return Check(
                *about,
                State.WARNING,
                f"{record.version}, does not say for which versions of {CORE} it is: "
                f"write {CORE}>=0.1,<0.2 into its dependencies",
            )
    module = plugins.module_of(record)
    hooks = [one.name for one in plugins.manager.get_hookcallers(module) or ()] if module is not None else []
    registering = sorted(name for name in hooks if name.startswith("debug_gym_register_"))
    if registering and not record.provides:
        words = "returns nothing" if len(registering) == 1 else "return nothing"
        return Check(*about, State.WARNING, f"{record.version}, provides nothing: {', '.join(registering)} {words}")
    return Check(*about, State.OK, record.version)


def _guarded(plugin: str, distribution: str, kind: str, name: str, look: Callable[[], str]) -> Check:
    """A check whose errors are its result: what is looked at is somebody else's code."""
    try:
        return Check(plugin, distribution, kind, name, State.OK, look())
    except Doubtful as doubt:
        return Check(plugin, distribution, kind, name, State.WARNING, str(doubt))
    except Wrong as wrong:
        return Check(plugin, distribution, kind, name, State.FAILED, str(wrong))
    except NO_FAULT:
        raise
    except BaseException as error:
        text = said_by(error) if isinstance(error, DebugGymError) else cause_of(error)
        return Check(plugin, distribution, kind, name, State.FAILED, text)


def _of(kind: str, cls: type[Component], plugins: Plugins) -> str:
    """Check a component; returns words about it."""
    base = _base(kind)
    if not issubclass(cls, base):
        raise Wrong(f"{cls.__name__} is no subclass of {base.__name__}")
    if inspect.isabstract(cls):
        raise Wrong(f"{cls.__name__} does not implement {', '.join(sorted(vars(cls)['__abstractmethods__']))}")
    cls.Settings.model_json_schema(schema_generator=SettingsSchema)
    lacking = _make(cls) if kind in ("tools", "agents") else ""  # others may hold services as soon as they are made
    words = (_MORE[kind](cls, plugins) if kind in _MORE else "") + lacking
    silent = sorted(set(cls.Settings.model_fields) - set(attribute_help(cls.Settings)))
    if silent:
        raise Doubtful(f"settings that the docstring of {cls.Settings.__name__} does not explain: {', '.join(silent)}")
    return words


def _make(cls: type[Component]) -> str:
    """Make a component without settings; says what it lacks for that: a setting, or something of this machine."""
    from debug_gym_core.tools.tool import Tool

    try:
        made = construct(cls)
    except (UsageError, RequirementError) as lacking:
        return f"; not made: {' '.join(str(lacking).split())}"
    if isinstance(made, Tool):  # which may hold something from its constructor on
        try:
            made.close()
        except NO_FAULT:
            raise
        except BaseException as error:
            raise failure(cls, "close it", error) from error
    return ""


def _base(kind: str) -> type[Any]:
    from debug_gym_core.agents.agent import Agent
    from debug_gym_core.models.llm import LLM
    from debug_gym_core.runs.jobs import Executor, Exporter
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.task import Benchmark
    from debug_gym_core.tools.tool import Tool

    bases: Mapping[str, type[Any]] = {
        "tools": Tool,
        "terminals": Terminal,
        "benchmarks": Benchmark,
        "agents": Agent,
        "llms": LLM,
        "executors": Executor,
        "exporters": Exporter,
    }
    return bases[kind]


def _of_tool(cls: type[Any], plugins: Plugins) -> str:
    parameters = cls.schema()["parameters"]["properties"]
    for example in cls.examples:
        cls.check(example)
    found = examine(cls, [module.__name__ for module in plugins.manager.get_plugins()])
    if found.wrong or found.misspelled:
        raise Wrong("; ".join(found.wrong + found.misspelled))
    doubts = list(found.doubtful)
    silent = sorted(name for name, about in parameters.items() if not about.get("description"))
    if silent:
        doubts.append(f"arguments that the docstring of use() does not explain: {', '.join(silent)}")
    if doubts:
        raise Doubtful("; ".join(doubts))
    note = f"; answers what no plugin here specifies: {', '.join(found.unknown)}" if found.unknown else ""
    return f"arguments: {', '.join(parameters) or 'none'}{note}"


def _of_terminal(cls: type[Any], plugins: Plugins) -> str:
    if not isinstance(getattr(cls, "isolates", None), bool):
        raise Wrong(f"{cls.__name__}.isolates must say whether it isolates: True or False")
    why = cls.unavailable()
    if why is not None and not (isinstance(why, str) and why.strip()):
        raise Wrong(f"unavailable() must return None or why it cannot work here, not {why!r:.40}")
    return "works here" if why is None else f"cannot work here: {' '.join(why.split())}"


def _of_benchmark(cls: type[Any], plugins: Plugins) -> str:
    from debug_gym_core.config.checks import Checker
    from debug_gym_core.config.layers import Layer

    checker = Checker(plugins)
    layer = checker.shipped(cls.name)
    sections = checker.agent_sections(layer)
    merged = layer.without(sections)
    for name, section in sections.items():
        checker.check_keys(section, section.over(merged), under=name)
    checker.check(Layer(merged.data, merged.origins, merged.name))
    return f"ships a config for {', '.join(cls.config)}" if cls.config else "plays with the default config"


def _of_agent(cls: type[Any], plugins: Plugins) -> str:
    twice = {name for kind, name, _ in plugins.clashes() if kind == "tools"}.intersection(cls.tools or ())
    missing = [name for name in cls.tools or () if name not in plugins.tools and name not in twice]
    if twice:
        raise Doubtful(f"plays with tools that are provided twice: {', '.join(sorted(twice))}")
    if missing:
        raise Doubtful(f"plays with tools that are not installed: {', '.join(missing)}")
    return "asks a model" if cls.needs_llm else "asks no model"


_MORE: Mapping[str, Callable[[type[Any], Plugins], str]] = {
    "tools": _of_tool,
    "terminals": _of_terminal,
    "benchmarks": _of_benchmark,
    "agents": _of_agent,
}


def _of_groups() -> Iterator[Check]:
    """Entry points of groups that are spelled nearly as those that are looked at."""
    right = {"".join(re.findall("[a-z]+", group)): group for group in (GROUP, COMMAND_GROUP)}
    right |= {f"{plain}s": group for plain, group in right.items()} | {"debuggymplugins": GROUP}
    for group in sorted(importlib.metadata.entry_points().groups):
        meant = right.get("".join(re.findall("[a-z]+", group.lower())))
        for entry in importlib.metadata.entry_points(group=group) if meant not in (None, group) else ():
            who = entry.dist.name if entry.dist else "unknown"
            text = f"its entry point {entry.name} is in the group {group!r}, which nobody looks at; say {meant!r}"
            yield Check(who, who, "plugin", entry.name, State.WARNING, text)


def of_commands(commands: Iterable[importlib.metadata.EntryPoint], builtin: Collection[str]) -> Iterator[Check]:
    """Check every command that plugins bring.

    Args:
        commands: their entry points
        builtin: names of the commands that core brings

    Yields:
        a check for each, in their order
    """
    import click

    seen: dict[str, str] = {}
    for entry in commands:
        distribution = entry.dist.name if entry.dist else "unknown"
        if variable := left_out_by(entry):
            yield Check(distribution, distribution, "command", entry.name, State.OK, f"disabled by {variable}")
            continue

        def look(entry: importlib.metadata.EntryPoint = entry) -> str:
            if entry.name in builtin:
                raise Wrong(f"debug-gym has a command {entry.name!r} of its own, which is the one that runs")
            if entry.name in seen:
                raise Wrong(f"{seen[entry.name]} brings a command of this name too")
            with contextlib.redirect_stdout(sys.stderr):  # what it prints would be part of what we write
                command = entry.load()
            if not isinstance(command, click.Command):
                raise Wrong(f"{entry.value} is no click command but {type(command).__name__}")
            if not (command.help or "").strip():
                raise Doubtful(f"{entry.value} has no help text")
            return command.get_short_help_str(80)

        yield _guarded(distribution, distribution, "command", entry.name, look)
        seen.setdefault(entry.name, distribution)
