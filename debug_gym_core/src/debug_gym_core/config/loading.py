"""The effective config of a run, put together of files, defaults and options."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_gym_core.components.catalogue import Plugins, installed
from debug_gym_core.config.checks import Checker
from debug_gym_core.config.layers import KeyPath, Layer, Override, Overrides, parse_overrides, read_file
from debug_gym_core.config.model import AgentSection, BenchmarkSection, ComponentSection, Config
from debug_gym_core.config.paths import absolute, is_run
from debug_gym_core.config.refusals import Refusals
from debug_gym_core.config.spellings import shipped
from debug_gym_core.environment.settings import DEFAULT_TOOLS, default_tools
from debug_gym_core.errors import UsageError


def load(
    source: str,
    overrides: Overrides = (),
    *,
    agent: str | None = None,
    llm: str | None = None,
    terminal: str | None = None,
    tasks: Sequence[str] | None = None,
    workers: int | None = None,
    repeats: int | None = None,
    output: Path | None = None,
    llm_config: Path | None = None,
    plugins: Plugins | None = None,
) -> Config:
    """Make the effective config of a run.

    Args:
        source: path of a YAML file, or name of a benchmark (`benchmark/task` for one task of it), whose shipped
            config is taken
        overrides: values of options
        agent: plays, whatever the config says
        llm: the model, likewise
        terminal: the sandbox backend, likewise
        tasks: patterns of tasks, likewise
        workers: episodes at the same time, likewise
        repeats: episodes a task, likewise
        output: directory of the runs, likewise
        llm_config: the llm.yaml, likewise
        plugins: what is installed; None: all plugins of this environment

    Raises:
        UsageError: a key or name is unknown, a value is wrong (with file, line and key path), the file is not YAML
        PluginError: a component is named whose plugin failed to load
    """
    checker = Checker(plugins or installed())
    written = _read_source(source, checker)
    explicit = parse_overrides(overrides)
    Refusals(checker.plugins).refuse_old_spellings(written, [one.path for one in explicit])
    if written.blank and not any(one.path[0] == "benchmark" for one in explicit):
        start = "`{}` means all defaults, and `debug-gym config show BENCHMARK` prints a config to start from"
        raise UsageError(f"{source} is empty; {start}")
    options = {
        "--agent": (("agent", "name"), agent),
        "--llm": (("llm", "name"), llm),
        "--terminal": (("terminal", "name"), terminal),
        "--task": (("benchmark", "tasks"), list(tasks) if tasks else None),
        "-n": (("run", "workers"), workers),
        "--repeats": (("run", "repeats"), repeats),
        "--output": (("run", "output"), str(output) if output else None),
        "--llm-config": (("llm_config_file_path",), str(llm_config) if llm_config else None),
    }

    said = _Said(written, explicit, options)
    named = _name_in(written, "benchmark", BenchmarkSection)
    merged = _put_together(said, named, checker)
    chosen = _name_in(merged, "benchmark", BenchmarkSection)
    return checker.check(merged if chosen == named else _put_together(said, chosen, checker))


@dataclass(frozen=True)
class _Said:
    """What a person says of a run.

    Attributes:
        written: in a file
        explicit: by `-p`
        options: by options of their own: the path of each, and its value; None: it is not given
    """

    written: Layer
    explicit: Sequence[Override]
    options: Mapping[str, tuple[KeyPath, Any]]


def _put_together(said: _Said, benchmark: str, checker: Checker) -> Layer:
    """The values that hold, when a benchmark is taken; the sections of all agents are checked.

    Raises:
        UsageError: what one of them says is wrong
        PluginError: a component is named whose plugin failed to load
    """
    everything = said.written.over(checker.shipped(benchmark).over(Layer({"tools": list(DEFAULT_TOOLS)})))
    sections = checker.agent_sections(everything)
    player = _player(said, everything)
    merged = sections.get(player, Layer()).over(everything.without(sections))
    for path, value, origin in (one for given in said.explicit for one in checker.unfolded(given)):
        if not checker.is_for_agent(path, origin):
            merged.set(path, copy.deepcopy(value), origin)
            continue
        given = Layer()
        given.set(path[1:], value, origin)
        sections[path[0]] = given.over(sections.get(path[0], Layer()))
        if path[0] == player:
            merged = given.over(merged)
    for option, (path, value) in said.options.items():
        if value is not None:
            merged.set(path, value, option)
    if ("tools",) not in merged.origins:  # nobody listed them; some may have got settings
        ends = checker.ends_on_resolved(player, merged)
        merged.data["tools"] += default_tools(ends_on_resolved=ends)[len(DEFAULT_TOOLS) :]
    merged = checker.without_foreign(merged, benchmark)
    for name, section in sections.items():
        if name == player:
            checker.check_keys(section, merged, under=name)
        else:
            checker.check_apart(section, under=name)
    if isinstance(merged.data.get("agent"), dict) and _name_in(merged, "agent", AgentSection) != player:
        where = merged.origin(("agent", "name"))
        raise UsageError(f"{where}: the section of {player} cannot choose another agent")
    return merged


def _player(said: _Said, everything: Layer) -> str:
    """The agent that plays: of the option, else of the last `-p` that names one, else of the values below those."""
    _, option = said.options["--agent"]
    if option is not None:
        return str(option)
    chosen = [one.value for one in said.explicit if one.path == ("agent", "name")]
    chosen += [one.value["name"] for one in said.explicit if one.path == ("agent",) and _has_name(one.value)]
    return _name_of(chosen[-1], AgentSection) if chosen else _name_in(everything, "agent", AgentSection)


def from_data(data: Mapping[str, Any], name: str, plugins: Plugins | None = None, overrides: Overrides = ()) -> Config:
    """Make a config of the data that a run has kept (`run.json`).

    Args:
        data: what `Config.model_dump(mode="json")` gave
        name: where it stands, for errors
        plugins: what is installed; None: all plugins of this environment
        overrides: values of options

    Raises:
        UsageError: it does not fit this version, or what is installed here; or an override is wrong
    """
    layer = Layer(copy.deepcopy(dict(data)), name=name)
    for one in parse_overrides(overrides):
        layer.set(*one)
    return Checker(plugins or installed()).check(layer)


def _read_source(source: str, checker: Checker) -> Layer:
    from debug_gym_core.components.homes import HOMES

    path = Path(source).expanduser()
    names = checker.plugins.benchmarks
    if not source.strip():
        raise UsageError(f"the benchmark or config file is empty; name one ({', '.join(names) or 'none'})")
    # What is installed goes before a file of that name: the directory may be one that somebody else has filled.
    named = source.partition("/")[0] in names and path.suffix not in (".yaml", ".yml")
    if path.is_file() and not named:
        return absolute(read_file(path), checker.plugins, path.parent)
    if path.suffix in (".yaml", ".yml") and not path.is_dir():
        known = shipped(source, [*names, *HOMES["benchmarks"]])
        hint = f"; the config of {known} is part of it now: debug-gym run {known}" if known else ""
        raise UsageError(f"{source}: No such file or directory{hint}")
    if is_run(path) and source not in names:
        command = shlex.join(["debug-gym", "run", "--resume", source])
        raise UsageError(f"{source} is the directory of a run; to go on with it: {command}")
    if path.is_dir() and source not in names:
        raise UsageError(
            f"{source} is a directory; for a repository of your own: repo -p {shlex.quote(f'benchmark.path={source}')}"
        )
    benchmark, slash, task = source.partition("/")
    if not slash or not ("." in benchmark or benchmark == ""):
        checker.plugins.get("benchmarks", benchmark)
        return Layer({"benchmark": {"name": benchmark, **({"tasks": [task]} if task else {})}}, name=source)
    raise UsageError(f"{source}: there is no such file; name a YAML file or a benchmark ({', '.join(names) or 'none'})")


def _has_name(value: Any) -> bool:
    return isinstance(value, dict) and "name" in value


def _name_in(layer: Layer, section: str, model: type[ComponentSection]) -> str:
    """The name that a section chooses; the default when it chooses none."""
    data = layer.data.get(section)
    return _name_of(data.get("name") if isinstance(data, dict) else None, model)


def _name_of(name: Any, model: type[ComponentSection]) -> str:
    """A name that is chosen; the default for what is none, which the checks will tell."""
    return name if isinstance(name, str) else str(model.model_fields["name"].default)
