"""`debug-gym plugins`: what is installed, what failed to load, and whether what loaded is right."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

from debug_gym_core.cli import COMMANDS, Command
from debug_gym_core.cli.options import common

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from debug_gym_core.components.catalogue import PluginRecord, Plugins

COLUMNS = {"plugin": 0, "kind": 60, "provides": 40, "distribution": 100, "version": 100, "state": 0}
"""Columns of the table, and how wide a terminal must be for each; `plugin` is what DEBUG_GYM_PLUGINS takes."""

COLOURS = {"loaded": "green", "ok": "green", "failed": "bold red"}


@click.command(
    "plugins",
    cls=Command,
    epilog="""
    debug-gym plugins
    debug-gym plugins --json | jq '.[] | select(.state == "failed")'
    debug-gym plugins --requirements > requirements.txt
    debug-gym plugins --check --plugin-file my_tool.py
    """,
)
@click.option("--check", "checks", is_flag=True, help="Check each in full; exit status 3 when one fails.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON array, an object per plugin (or check).")
@click.option("--requirements", is_flag=True, help="Write lines for pip that install the same plugins.")
@common(tolerant=True)
def command(checks: bool, as_json: bool, requirements: bool, plugins: Plugins, verbose: int) -> None:
    """List the plugins: what each provides, and the cause when one failed to load."""
    context = click.get_current_context()
    if requirements and (as_json or checks):
        raise click.UsageError(f"say --{'json' if as_json else 'check'} or --requirements, not both", context)
    if checks:
        context.exit(_check(plugins, as_json))
    records = [*plugins.records, *_commands()]
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(record) for record in records], indent=2))
    elif requirements:
        _show_requirements(records)
    else:
        _show_table(records)


def _commands() -> Iterator[PluginRecord]:
    """The commands that plugins bring, each imported and looked at as a plugin is."""
    from debug_gym_core.components.catalogue import PluginRecord
    from debug_gym_core.components.entry_points import command_entry_points, left_out_by
    from debug_gym_core.plugin_checks import State, of_commands

    entries = command_entry_points()
    for entry, check in zip(entries, of_commands(entries, COMMANDS), strict=True):
        state, cause = "loaded", None
        if variable := left_out_by(entry):
            state, cause = "disabled", f"by {variable}"
        elif check.state is State.FAILED:
            state, cause = "failed", check.detail
        version = entry.dist.version if entry.dist else "?"
        provides = {"commands": [entry.name]}
        yield PluginRecord(entry.name, check.distribution, version, provides, state, cause, entry.module)


def _show_requirements(records: Iterable[PluginRecord]) -> None:
    from debug_gym_core.components.catalogue import FILE

    found = {record.distribution: record.version for record in records if record.version != FILE}
    click.echo("".join(f"{_requirement(name, version)}\n" for name, version in sorted(found.items())), nl=False)


def _requirement(name: str, version: str) -> str:
    """A line for pip that installs a distribution as it is installed here: from the index, a directory, a URL.

    What was not installed from an index says so in `direct_url.json` (PEP 610); no index may have it.
    """
    import importlib.metadata

    try:
        text = importlib.metadata.distribution(name).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        text = None
    if not text:
        return f"{name}=={version}"
    origin = json.loads(text)
    url = origin["url"]
    if origin.get("dir_info", {}).get("editable"):
        return f"-e {url}"
    if source := origin.get("vcs_info"):
        url = f"{source['vcs']}+{url}@{source['commit_id']}"
    archive = origin.get("archive_info", {})
    hashes = [f"{kind}={value}" for kind, value in archive.get("hashes", {}).items()] or [archive.get("hash")]
    fragments = [hashes[0], f"subdirectory={origin['subdirectory']}" if origin.get("subdirectory") else None]
    return f"{name} @ {url}" + "".join(f"{'#&'[n > 0]}{one}" for n, one in enumerate(filter(None, fragments)))


def _check(plugins: Plugins, as_json: bool) -> int:
    from rich.text import Text

    from debug_gym_core.cli.tables import make_console, new_table, show_table
    from debug_gym_core.components.entry_points import command_entry_points
    from debug_gym_core.plugin_checks import State, check

    found = list(check(plugins, command_entry_points(), COMMANDS))
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(item) for item in found], indent=2))
    else:
        console, table = make_console(), new_table()
        for column in ("plugin", "what", "state"):
            table.add_column(column, no_wrap=True)
        table.add_column("details", overflow="fold")
        for item in found:
            what = f"{item.kind} {item.name}".strip()
            colour = COLOURS.get(item.state, "yellow")
            table.add_row(Text(item.plugin), Text(what), Text(item.state, colour), Text(item.detail))
        show_table(table, console)
    return 3 if any(item.state is State.FAILED for item in found) else 0


def _show_table(records: Sequence[PluginRecord]) -> None:
    from rich.text import Text

    from debug_gym_core.cli.tables import make_console, new_table, show_table

    console, table = make_console(), new_table()
    shown = [place for place, least in enumerate(COLUMNS.values()) if console.width >= least]
    for place in shown:
        column = list(COLUMNS)[place]
        table.add_column(column, overflow="fold", no_wrap=column not in ("plugin", "provides"))
    for record in records:
        rows = list(record.provides.items())[: None if 2 in shown else 1] or [("", ())]
        for number, (kind, names) in enumerate(rows):
            about = [record.name, kind.removesuffix("s"), ", ".join(names) or "-", record.distribution, record.version]
            cells = [Text(text if number == 0 or place in (1, 2) else "") for place, text in enumerate(about)]
            state = Text(record.state, COLOURS.get(record.state, "yellow"))
            cells.append(state if number == 0 else Text())
            table.add_row(*(cells[place] for place in shown))
    show_table(table, console)
    disabled: dict[str, list[str]] = {}
    for record in records:
        if record.state == "disabled":
            disabled.setdefault(record.cause or "", []).append(record.name)
        elif record.cause:
            console.print()
            console.print(f"{record} failed:", style="bold", soft_wrap=True)
            console.print(f"  {record.cause}", soft_wrap=True)
    for cause, names in disabled.items():
        console.print(f"\ndisabled {cause}: {', '.join(names)}", soft_wrap=True)
