"""`debug-gym doctor`: what this machine has and lacks, and what killed runs have left on it."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

from debug_gym_core.cli import Command, say_error
from debug_gym_core.cli.options import common
from debug_gym_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.doctor import Finding

COLOURS = {"ok": "green", "limited": "yellow", "missing": "bold yellow", "failed": "bold red"}


@click.command(
    "doctor",
    cls=Command,
    epilog="""
    debug-gym doctor
    debug-gym doctor --json | jq -r '.[] | select(.state == "missing") | .detail'
    debug-gym doctor --image my-tests:latest
    debug-gym doctor --clean
    debug-gym doctor --clean --setups
    """,
)
@click.option("--clean", "cleans", is_flag=True, help="Remove what killed runs left, nothing of live ones.")
@click.option(
    "--image", "images", multiple=True, metavar="IMAGE", help="Also check whether an image has what is needed."
)
@click.option("--setups", is_flag=True, help="With --clean: remove what is kept for later runs too.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON array, an object per line of the table.")
@common(tolerant=True, quiet=True)
def command(cleans: bool, images: tuple[str, ...], setups: bool, as_json: bool, plugins: Plugins, verbose: int) -> None:
    """Check what this machine has and lacks: terminals, Python, git, plugins.

    Exit status 0: episodes can be played in isolation; 4: something that is needed is missing.
    """
    from debug_gym_core.doctor import examine, healthy

    context = click.get_current_context()
    if setups and not cleans:
        raise UsageError("--setups goes with --clean: debug-gym doctor --clean --setups")
    if cleans:
        context.exit(_clean(plugins, as_json, setups))
    findings = examine(plugins, images=images)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(item) for item in findings], indent=2))
    else:
        _show(findings)
    context.exit(0 if healthy(findings) else 4)


def _clean(plugins: Plugins, as_json: bool, setups: bool) -> int:
    from debug_gym_core.doctor import clean

    removed, failed = clean(plugins, setups=setups)
    if as_json:
        click.echo(json.dumps({"removed": removed, "failed": failed}, indent=2))
    else:
        for line in removed:
            click.echo(f"removed {line}")
        if not removed and not failed:
            click.echo("nothing to remove")
    for line in failed:
        say_error(line)
    return 1 if failed else 0


def _show(findings: Sequence[Finding]) -> None:
    from rich.text import Text

    from debug_gym_core.cli.tables import make_console, new_table, show_table

    console, table = make_console(), new_table()
    for column in ("what", "state"):
        table.add_column(column, no_wrap=True)
    table.add_column("details", overflow="fold")
    for item in findings:
        name = item.name if item.kind == "system" else f"{item.kind} {item.name}"
        table.add_row(Text(name), Text(item.state, COLOURS[item.state]), Text(item.detail))
    show_table(table, console)
