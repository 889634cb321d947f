"""The entry points that name plugins and commands, looked up once a process, and which of them are wanted."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from debug_gym_core.errors import NO_FAULT, PluginError, cause_of

if TYPE_CHECKING:
    import click

CORE = "debug-gym-core"
GROUP = "debug_gym"
COMMAND_GROUP = "debug_gym.commands"
ONLY = "DEBUG_GYM_PLUGINS"
WITHOUT = "DEBUG_GYM_DISABLE_PLUGINS"
"""Variables of the environment that choose plugins, by names of entry points or distributions."""


@functools.cache
def entry_points() -> tuple[importlib.metadata.EntryPoint, ...]:
    """Those of plugins, by name."""
    return tuple(sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: entry.name))


@functools.cache
def command_entry_points() -> tuple[importlib.metadata.EntryPoint, ...]:
    """Those of commands; of two with one name the last is the one that runs."""
    return tuple(importlib.metadata.entry_points(group=COMMAND_GROUP))


class Distributed(NamedTuple):
    """What a distribution says of itself."""

    name: str
    version: str
    requires: tuple[str, ...]


@functools.cache  # each word of it is read from the file anew
def distributed(distribution: importlib.metadata.Distribution) -> Distributed:
    """What a distribution says of itself, read once."""
    return Distributed(distribution.name, distribution.version, tuple(distribution.requires or ()))


def known_as(entry: importlib.metadata.EntryPoint) -> set[str]:
    """The names by which an entry point can be chosen: its own, and its distribution's."""
    return {entry.name, distributed(entry.dist).name if entry.dist else entry.name}


def chosen(variable: str) -> set[str] | None:
    """The names that `ONLY` or `WITHOUT` lists; None: it is not set."""
    value = os.environ.get(variable)
    return None if value is None else {name.strip() for name in value.split(",") if name.strip()}


def left_out_by(entry: importlib.metadata.EntryPoint) -> str:
    """Which variable of the environment leaves a plugin or a command out; empty: none does."""
    only, names = chosen(ONLY), known_as(entry)
    if names & (chosen(WITHOUT) or set()):
        return WITHOUT
    return "" if only is None or names & only or CORE in names else ONLY  # on the core stand all others


def load_command(entry: importlib.metadata.EntryPoint) -> click.Command:
    """Import the command that an entry point names.

    Raises:
        PluginError: that fails, or it is none
    """
    import click

    who = f"command {entry.name!r} of {entry.dist.name} {entry.dist.version}" if entry.dist else repr(entry.name)
    try:
        command = entry.load()
    except NO_FAULT:
        raise
    except BaseException as error:  # such as the panic of an extension
        raise PluginError(f"{who} failed to load: {cause_of(error)}") from error
    if not isinstance(command, click.Command):
        raise PluginError(f"{who} is not a click command but {type(command).__name__}")
    return command


@functools.cache
def package_directories() -> tuple[Path, ...]:
    """Directories of the packages that bring plugins, and of the core: what a sandbox must not show."""
    found = {Path(__file__).parent.parent}
    for entry in entry_points():
        spec = importlib.util.find_spec(entry.module.partition(".")[0])
        if spec is not None:
            found.update(Path(place) for place in spec.submodule_search_locations or ())
    return tuple(sorted(found))
