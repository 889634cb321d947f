"""`debug-gym plugins`: what is installed, and what failed to load."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

from debug_gym_core.cli import Command
from debug_gym_core.cli.options import common

if TYPE_CHECKING:
    from debug_gym_core.plugins import PluginRecord, Plugins


@click.command(
    "plugins",
    cls=Command,
    epilog="""
    debug-gym plugins
    debug-gym plugins --json | jq '.[] | select(.state == "failed")'
    debug-gym plugins --requirements > requirements.txt
    """,
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON, an object a plugin.")
@click.option("--requirements", is_flag=True, help="Write lines for pip that install the same plugins.")
@common(quiet=True)
def command(as_json: bool, requirements: bool, plugins: Plugins, verbose: int) -> None:
    """List the plugins: what each provides, and the cause when one failed to load."""
    if as_json and requirements:
        raise click.UsageError("say --json or --requirements, not both", click.get_current_context())
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(record) for record in plugins.records], indent=2))
    elif requirements:
        found = {record.distribution: record.version for record in plugins.records if record.version != "file"}
        click.echo("".join(f"{name}=={version}\n" for name, version in sorted(found.items())), nl=False)
    else:
        _show_table(plugins)


WIDE = 100
"""Columns of a terminal from which on the plugins' own names are shown; the distributions say nearly the same."""


def _show_table(plugins: Plugins) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=10**4)
    table = Table(box=None, pad_edge=False, header_style="bold")
    narrow = console.width < WIDE
    for column in ("plugin", "kind", "provides", "distribution", "version", "state")[narrow:]:
        table.add_column(column, no_wrap=column != "provides")
    for record in plugins.records:
        for number, (kind, names) in enumerate(record.provides.items() or [("", ())]):
            about = [record.name, kind.removesuffix("s"), ", ".join(names) or "-", record.distribution, record.version]
            cells = [escape(text) if number == 0 or place in (1, 2) else "" for place, text in enumerate(about)]
            table.add_row(*cells[narrow:], _state(record) if number == 0 else "")
    console.print(table)
    for record in plugins.records:
        if record.cause:
            console.print()
            console.print(
                f"{record} {'failed' if record.state == 'failed' else 'is disabled'}:", style="bold", markup=False
            )
            console.print(f"  {record.cause}", markup=False, soft_wrap=True)


def _state(record: PluginRecord) -> str:
    colour = {"loaded": "green", "failed": "bold red"}.get(record.state, "yellow")
    return f"[{colour}]{record.state}[/]"
