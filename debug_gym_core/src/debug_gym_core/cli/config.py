"""`debug-gym config`: the effective config, to look at and to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from debug_gym_core.cli import Command
from debug_gym_core.cli.options import common, override

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins


@click.group("config")
def command() -> None:
    """Show the config of a run, or the schema of all configs."""


@command.command(
    "show",
    cls=Command,
    epilog="""
    debug-gym config show mini_nightmare > config.yaml
    debug-gym config show config.yaml --agent tool_agent -p llm.temperature=0.5
    """,
)
@click.argument("source", metavar="BENCHMARK|CONFIG.yaml")
@click.option("--agent", metavar="NAME", help="Who plays: its own section is put over the others.")
@override
@common()
def show(source: str, agent: str | None, overrides: tuple[str, ...], plugins: Plugins, verbose: int) -> None:
    """Print the effective config as YAML, each key explained.

    For a benchmark it is the one that it ships; for a file, what a run with it would use.
    """
    from debug_gym_core.config.loading import load
    from debug_gym_core.config.text import as_yaml

    click.echo(as_yaml(load(source, overrides, agent=agent, plugins=plugins), plugins), nl=False)


@command.command(
    "schema",
    cls=Command,
    epilog="""
    debug-gym config schema > debug-gym.schema.json
    """,
)
@common()
def schema(plugins: Plugins, verbose: int) -> None:
    """Print the JSON Schema of all configs that are accepted here.

    It has the settings of every installed plugin. Editors complete and check a config that begins with the line
    `# yaml-language-server: $schema=FILE`.
    """
    import json

    from debug_gym_core.config import schema

    click.echo(json.dumps(schema.schema(plugins), indent=2, ensure_ascii=False))
