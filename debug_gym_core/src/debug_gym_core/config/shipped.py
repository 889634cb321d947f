"""What a benchmark ships as config, for environments that are made without a run: below what the caller gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from debug_gym_core.components.component import in_a_line
from debug_gym_core.config.checks import Checker, shipped_in, without_use
from debug_gym_core.config.layers import Layer
from debug_gym_core.config.model import BenchmarkSection, TaskChoice
from debug_gym_core.environment.parts import terminal_choice
from debug_gym_core.environment.settings import EnvSection
from debug_gym_core.environment.terminal_settings import by_owner
from debug_gym_core.errors import UsageError

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.tasks.task import Benchmark


def benchmark_settings(benchmark: type[Benchmark], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a benchmark is made with.

    Args:
        benchmark: its class, with what it ships
        given: what the caller says
    """
    shipped = Layer(dict(benchmark.config)).part("benchmark").data
    below = {key: value for key, value in shipped.items() if key in benchmark.Settings.model_fields}
    return Layer(dict(given)).over(Layer(below)).data


def without_idle(benchmark: type[Benchmark], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the caller says, without values for other benchmarks that say nothing, such as `split=None`.

    Args:
        benchmark: its class
        given: what the caller says

    Raises:
        UsageError: a value is for other benchmarks, and says something
    """
    problems = [{**problem, "loc": problem["loc"][1:]} for problem in without_use(given, benchmark)]
    if problems:
        raise UsageError(in_a_line(problems))
    idle = {*BenchmarkSection.model_fields} - {*TaskChoice.model_fields, *benchmark.Settings.model_fields}
    return {key: value for key, value in given.items() if key not in idle}


def left_out(benchmark: type[Benchmark], plugins: Plugins) -> Iterator[str]:
    """What a benchmark ships for a terminal and none here has, a line each.

    Args:
        benchmark: its class, with what it ships
        plugins: the terminals that there are
    """
    section = Layer(dict(benchmark.config)).part("terminal").without(["name"]).data
    for key in by_owner(section, None, plugins).unknown:
        yield f"{shipped_in(benchmark.name)}: terminal.{key} is left out: no terminal here has it"


def env_arguments(
    benchmark: type[Benchmark], plugins: Plugins, *, tools: Any, terminal: Any, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of the `RepoEnv` of a benchmark's task; who plays and what it is asked with is a run's.

    Args:
        benchmark: its class, with what it ships
        plugins: where the terminal is looked up
        tools: as `RepoEnv` takes them; None: those that are shipped, if any
        terminal: likewise; `auto`: the one that is shipped, if any
        settings: the other arguments

    Raises:
        UsageError: there is no such terminal
        PluginError: its plugin failed
    """
    name, chosen = terminal_choice(terminal)
    given = {
        "env": {key: value for key, value in settings.items() if key in EnvSection.model_fields},
        "terminal": chosen if name == "auto" else {"name": name, **chosen},
    }
    shipped = Layer(dict(benchmark.config), name=shipped_in(benchmark.name))
    merged = Layer({key: values for key, values in given.items() if values}).over(shipped)
    section = Checker(plugins).without_foreign(merged, benchmark.name).part("terminal").data
    return {
        **settings,
        **merged.part("env").data,
        "tools": merged.data.get("tools") if tools is None else tools,
        "terminal": {section.pop("name", "auto"): section},
    }
