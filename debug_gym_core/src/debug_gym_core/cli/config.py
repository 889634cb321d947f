"""`debug-gym config`: the effective config, to look at and to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from debug_gym_core.cli import Command
from debug_gym_core.cli.options import common

if TYPE_CHECKING:
    from debug_gym_core.plugins import Plugins


@click.group("config")
def command() -> None:
    """Show the config of a run."""


@command.command(
    "show",
    cls=Command,
    epilog="""
    debug-gym config show mini_nightmare > config.yaml
    debug-gym config show config.yaml --agent rewrite_agent -p llm.temperature=0.5
    """,
)
@click.argument("source", metavar="BENCHMARK|CONFIG.yaml")
@click.option("--agent", metavar="NAME", help="Who plays; the section of its name is put over the others.")
@click.option("-p", "overrides", metavar="KEY.PATH=VALUE", multiple=True, help="Set a value, parsed as YAML.")
@common()
def show(source: str, agent: str | None, overrides: tuple[str, ...], plugins: Plugins, verbose: int) -> None:
    """Print the effective config as YAML, each key explained.

    For a benchmark it is the one that it ships; for a file, what a run with it would use.
    """
    from debug_gym_core.config import load
    from debug_gym_core.config_text import as_yaml

    click.echo(as_yaml(load(source, overrides, agent=agent, plugins=plugins), plugins), nl=False)
