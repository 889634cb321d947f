"""`debug-gym export`: a run in another format, by an exporter of core or of a plugin."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from debug_gym_core.cli import Command, printable, say, say_note
from debug_gym_core.cli.options import common
from debug_gym_core.cli.target import check_target, written_as
from debug_gym_core.components.component import construct
from debug_gym_core.errors import DebugGymError, UsageError

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.runs.jobs import Exporter

STANDARD_OUTPUT = Path("-")


@click.command(
    "export",
    cls=Command,
    epilog="""
    debug-gym export --list
    debug-gym export exps/one --resolved -o training.jsonl
    debug-gym export exps/one --format sharegpt > all.jsonl
    """,
)
@click.argument("run", metavar="DIR", required=False, type=click.Path(path_type=Path))
@click.option("--format", "name", metavar="NAME", default="messages", help="messages, sharegpt, or one of a plugin.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="File to write (default: standard output)."
)
@click.option("--resolved", is_flag=True, help="Only episodes that were resolved.")
@click.option("-p", "settings", metavar="KEY=VALUE", multiple=True, help="A setting of the format, as YAML.")
@click.option("--force", is_flag=True, help="Replace the file if there is one.")
@click.option("--list", "only_list", is_flag=True, help="List the formats and their settings.")
@common()
def command(
    run: Path | None,
    name: str,
    output: Path | None,
    resolved: bool,
    settings: tuple[str, ...],
    force: bool,
    only_list: bool,
    plugins: Plugins,
    verbose: int,
) -> None:
    """Write a run in another format: its conversations as training data, or what a plugin makes of it.

    DIR is a run. The formats of core, messages and sharegpt, write a JSON object a line: the conversation of an
    episode, or several where the agent made its prompt anew, word for word when the run was played with -vv. --list
    shows all formats; plugins bring more.
    """
    context = click.get_current_context()
    if only_list:
        _list(plugins)
        return
    if run is None:
        raise click.UsageError("say which run to export, or --list", context)
    exporter = _make(name, settings, plugins, resolved=resolved)
    run = _only_run(run)
    if output is None or output == STANDARD_OUTPUT:
        _to_standard_output(exporter, run)
        return
    _to_file(exporter, run, output, force=force)


def _make(name: str, settings: tuple[str, ...], plugins: Plugins, *, resolved: bool) -> Exporter:
    """The exporter of a name, with its settings.

    Raises:
        UsageError: there is no such format, or it has no such setting
        PluginError: its plugin failed
    """
    from debug_gym_core.config.layers import parse_override

    try:
        found: type[Exporter] = plugins.get("exporters", name)
    except UsageError as error:
        there = f"\nThe formats: {', '.join(plugins.exporters)}" if "known: " not in str(error) else ""
        raise UsageError(f"{str(error).replace('exporter', 'format')}{there}") from None
    if resolved and "resolved" not in found.Settings.model_fields:
        raise UsageError(f"format {name} has no setting `resolved`, so it takes no --resolved")
    given: dict[str, Any] = {"resolved": True} if resolved else {}
    for text in settings:
        path, value, _ = parse_override(text)
        if len(path) != 1:
            raise UsageError(f"-p {text}: a setting of a format is KEY=VALUE, without a dot")
        given[path[0]] = value
    exporter = construct(found, **given)
    exporter.plugins = plugins
    return exporter


def _only_run(place: Path) -> Path:
    """The run that a path names, or that is the only one below it.

    Raises:
        UsageError: there is none, or there are several
    """
    from debug_gym_core.cli.shown_paths import shown_path
    from debug_gym_core.runs.report import find_runs

    found = find_runs([place])
    if len(found) > 1:
        some = ", ".join(shown_path(one) for one in found[:3]) + (", ..." if len(found) > 3 else "")
        raise UsageError(f"{place} holds {len(found)} runs ({some}); export one at a time")
    return found[0]


def _to_file(exporter: Exporter, run: Path, output: Path, *, force: bool) -> None:
    """Export to a file or directory, which appears when it is whole.

    Raises:
        UsageError: it is there already, or cannot be made
    """
    from debug_gym_core.cli.shown_paths import shown_path

    check_target(output, force=force, may_be_directory=True)
    if output.resolve() == run.resolve() or run.resolve().is_relative_to(output.resolve()):
        raise UsageError(f"{output} holds the run itself; name another place")
    with _made(exporter, run, output.parent, output.name) as made, written_as(output, made):
        _put(made, output)
    size = f"{output.stat().st_size:,} bytes" if output.is_file() else "a directory"
    say(f"{exporter.name}: {shown_path(output)} ({size})", err=True)
    _note_emptiness(output)


def _note_emptiness(made: Path) -> None:
    """Say that nothing was exported, which may look like something that went wrong."""
    if made.is_file() and not made.stat().st_size:
        say_note("it is empty: no episode of this run is one to export")


def _put(made: Path, output: Path) -> None:
    """Put what was made into its place, instead of what is there."""
    old = made.with_name(f"{made.name}.old")  # a directory is not replaced by renaming
    aside = output.is_dir() and not output.is_symlink()
    if aside:
        output.rename(old)
    try:
        made.replace(output)
    except OSError:
        if aside:
            old.rename(output)
        raise


def _to_standard_output(exporter: Exporter, run: Path) -> None:
    """Export to standard output, so that a terminal obeys nothing in it."""
    with _made(exporter, run, None, "exported") as made:
        if made.is_dir():
            raise UsageError(f"{exporter.name} makes a directory; say where to with -o DIR")
        if sys.stdout.isatty():
            with made.open(encoding="utf-8", errors="backslashreplace") as text:
                for line in text:
                    click.echo(printable(line), nl=False)
        else:
            sys.stdout.flush()
            with made.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        _note_emptiness(made)


@contextlib.contextmanager
def _made(exporter: Exporter, run: Path, beside: Path | None, name: str) -> Iterator[Path]:
    """What an exporter makes, in a directory of its own that is removed at the end.

    Args:
        exporter: makes it
        run: of what
        beside: where that directory is; None: where temporary files are
        name: of what is made, as exporters may go by its ending

    Raises:
        UsageError: the exporter refuses
        DebugGymError: the exporter made nothing
        OSError: the system refuses; names the directory, or the file to be
    """
    directory = beside or Path(tempfile.gettempdir())
    try:
        place = Path(tempfile.mkdtemp(prefix=f".export-{os.getpid()}-", dir=directory.absolute()))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(directory)) from error
    try:
        with written_as(directory if beside is None else directory / name, place / name):
            exporter.export(run, place / name)
        if not (place / name).exists():
            raise DebugGymError(f"{exporter.name} made nothing; see its settings: debug-gym export --list")
        yield place / name
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _list(plugins: Plugins) -> None:
    """Write the formats, whose they are and their settings."""
    from rich.text import Text

    from debug_gym_core.cli.tables import make_console, new_table, show_table
    from debug_gym_core.config.text import attribute_help

    console, table = make_console(), new_table()
    for column in ("format", "from", "what it is"):
        table.add_column(column, overflow="fold")
    for record in plugins.records:
        for name in record.provides.get("exporters", ()):
            cls = plugins.get("exporters", f"{record.distribution}:{name}")
            table.add_row(Text(name), Text(record.distribution), Text(cls.help().split("\n\n")[0].replace("\n", " ")))
            words = attribute_help(cls.Settings)
            for key, field in cls.Settings.model_fields.items():
                text = f"  {key}: {words.get(key, '')}".rstrip(": ") + f" (default: {str(field.default).lower()})"
                table.add_row("", "", Text(text, "dim"))
    show_table(table, console)
