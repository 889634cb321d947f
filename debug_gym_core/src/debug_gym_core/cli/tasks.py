"""`debug-gym tasks`: what a benchmark has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from debug_gym_core.cli import Command, say_note
from debug_gym_core.cli.options import common

if TYPE_CHECKING:
    from debug_gym_core.plugins import Plugins


@click.command(
    "tasks",
    cls=Command,
    epilog="""
    debug-gym tasks mini_nightmare
    debug-gym tasks repo -p benchmark.path=~/my/repository
    """,
)
@click.argument("benchmark")
@click.option("-p", "overrides", metavar="KEY.PATH=VALUE", multiple=True, help="Set a value of the config.")
@common()
def command(benchmark: str, overrides: tuple[str, ...], plugins: Plugins, verbose: int) -> None:
    """List the tasks of BENCHMARK (or of a config file), one a line.

    Tasks that cannot be solved as published are named on standard error, with the reason.
    """
    from debug_gym_core.config import load
    from debug_gym_core.selection import select_tasks

    config = load(benchmark, overrides, agent=_any_agent(plugins), plugins=plugins)
    cls = plugins.get("benchmarks", config.benchmark.name)
    made = cls(**config.benchmark.settings_for(cls))
    for name in select_tasks(made, config.benchmark.tasks):
        click.echo(f"{made.name}/{name}")
    for name, reason in made.excluded().items():
        say_note(f"{made.name}/{name} is left out of `all`: {reason}")


def _any_agent(plugins: Plugins) -> str | None:
    """An agent that is there: listing tasks must not need the one that the config would play with."""
    return next(iter(plugins.agents), None)
