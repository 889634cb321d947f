"""Options that several commands have."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from debug_gym_core.plugins import Plugins


def common(*, quiet: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--plugin-file`, `--strict-plugins` and `-v`; the command gets `plugins` and `verbose` instead.

    Args:
        quiet: say nothing of plugins that fail to load, because the command shows them itself
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--plugin-file",
            "plugin_files",
            metavar="FILE",
            multiple=True,
            type=click.Path(path_type=Path),
            help="Load a plugin that is not installed, a Python file. May be given several times.",
        )
        @click.option("--strict-plugins", is_flag=True, help="Stop when a plugin fails to load.")
        @click.option("-v", "--verbose", count=True, help="Show the steps; -vv: prompts, whole output, tracebacks.")
        @functools.wraps(function)
        def command(*, plugin_files: tuple[Path, ...], strict_plugins: bool, verbose: int, **rest: Any) -> Any:
            handler = start_logging(verbose)
            level = handler.level
            if quiet:
                handler.setLevel(logging.ERROR)
            plugins = _load(plugin_files, strict_plugins)
            handler.setLevel(level)
            return function(plugins=plugins, verbose=verbose, **rest)

        return command

    return add


def start_logging(verbose: int) -> logging.Handler:
    """Write warnings to standard error; with `-vv` everything."""
    log = logging.getLogger("debug_gym")
    for old in [handler for handler in log.handlers if isinstance(handler, EchoHandler)]:
        log.removeHandler(old)
    handler = EchoHandler(logging.DEBUG if verbose > 1 else logging.WARNING)
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    return handler


class EchoHandler(logging.Handler):
    """Writes `warning: ...` lines to standard error, without tracebacks: those are in a task's log.txt."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        colour = "red" if record.levelno >= logging.ERROR else "yellow" if record.levelno >= logging.WARNING else None
        head = click.style(f"{record.levelname.lower()}:", fg=colour, bold=colour is not None)
        click.echo(f"{head} {record.getMessage()}", err=True)


def _load(files: tuple[Path, ...], strict: bool) -> Plugins:
    from debug_gym_core.plugins import default_plugins, load_plugins

    return load_plugins(files=files, strict=strict) if files or strict else default_plugins()
