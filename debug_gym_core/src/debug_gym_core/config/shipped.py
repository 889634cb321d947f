"""What a benchmark ships as config, for environments that are made without a run: below what the caller gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from debug_gym_core.config.layers import Layer
from debug_gym_core.environment.parts import one_choice

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
    return {**{key: value for key, value in shipped.items() if key in benchmark.Settings.model_fields}, **given}


def env_arguments(
    benchmark: type[Benchmark], plugins: Plugins, *, tools: Any, terminal: Any, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of the `RepoEnv` of a benchmark's task; who plays and what it is asked with is a run's.

    Args:
        benchmark: its class, with what it ships
        plugins: where the terminal is looked up
        tools: as `RepoEnv` takes them; None: those that are shipped, if any
        terminal: likewise; `auto`: the one that is shipped, if any. Its settings are over those shipped of them that
            it knows
        settings: the other arguments

    Raises:
        UsageError: there is no such terminal
        PluginError: its plugin failed
    """
    shipped = Layer(dict(benchmark.config))
    name, chosen = one_choice(terminal)
    below = shipped.part("terminal").data
    default = below.pop("name", "auto")
    if name == "auto":
        name = default
    if name != "auto":
        known = plugins.get("terminals", name).Settings.model_fields
        below = {key: value for key, value in below.items() if key in known}
    return {
        **shipped.part("env").data,
        **settings,
        "tools": shipped.data.get("tools") if tools is None else tools,
        "terminal": {name: {**below, **chosen}},
    }
