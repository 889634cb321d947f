"""Options that several commands have."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from debug_gym_core.cli import coloured, interrupted_status, printable, say
from debug_gym_core.redaction import redact

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.layers import Overrides


def override(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-p`; the command gets `overrides`."""
    add = click.option(
        "-p",
        "overrides",
        metavar="KEY.PATH=VALUE",
        multiple=True,
        help="Set a value of the config, as YAML. May be repeated.",
    )
    return add(function)


def data(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--source`, `--split`, `--revision`, `--mode`; the command gets them in `overrides`, before those of `-p`."""
    about = {
        "source": ("PATH", "A local file or checkout instead of the published data."),
        "split": ("NAME", "A named part of the benchmark."),
        "revision": ("VERSION", "Version of the published data."),
        "mode": ("MODE", "Who sees the tests that count: visible, hidden or debug."),
    }

    @functools.wraps(function)
    def command(*, overrides: Overrides, **rest: Any) -> Any:
        given = {key: rest.pop(f"data_{key}") for key in about}
        from debug_gym_core.config.layers import Override

        own = [Override(("benchmark", key), value, f"--{key}") for key, value in given.items() if value is not None]
        return function(overrides=(*own, *overrides), **rest)

    for key, (metavar, text) in reversed(about.items()):
        command = click.option(f"--{key}", f"data_{key}", metavar=metavar, help=text)(command)
    return command


def tasks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--task`; the command gets `tasks`."""
    add = click.option(
        "--task",
        "tasks",
        metavar="GLOB",
        multiple=True,
        help="Only these: NAME, GLOB, !GLOB (not), @FILE; repeatable.",
    )
    return add(function)


def llm_config(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--llm-config`; the command gets `llm_config`."""
    add = click.option(
        "--llm-config",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="The llm.yaml; else the one found by default.",
    )
    return add(function)


def common(
    *, tolerant: bool = False, quiet: bool = False, steps: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--plugin-file`, `--strict-plugins` and `-v`; the command gets `plugins` and `verbose` instead.

    Args:
        tolerant: go on when a `--plugin-file` fails to load, because the command is there to look at it
        quiet: say nothing on standard error of plugins that fail to load, because the command shows them itself
        steps: the command plays episodes, of which `-v` shows the steps
    """
    shown = "Show the steps; -vv: prompts, whole output, tracebacks." if steps else "-vv shows tracebacks of errors."

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--plugin-file",
            "plugin_files",
            metavar="FILE",
            multiple=True,
            type=click.Path(path_type=Path),
            help="Load a plugin that is not installed. May be repeated.",
        )
        @click.option("--strict-plugins", is_flag=True, help="Stop when a plugin fails to load, needed or not.")
        @click.option("-v", "--verbose", count=True, help=shown)
        @functools.wraps(function)
        def command(*, plugin_files: tuple[Path, ...], strict_plugins: bool, verbose: int, **rest: Any) -> Any:
            handler = start_logging(verbose)
            level = handler.level
            if quiet:
                handler.setLevel(logging.ERROR)
            plugins = _load(plugin_files, strict_plugins, tolerant)
            handler.setLevel(level)
            return function(plugins=plugins, verbose=verbose, **rest)

        return _stopped_in_order(command) if steps else command

    return add


def _stopped_in_order(command: Callable[..., Any]) -> Callable[..., Any]:
    """Have Ctrl-C, SIGTERM and SIGHUP end a command that plays episodes with a word and the status of each.

    Those that come when there is a run to go on with are answered by who plays it.
    """

    @functools.wraps(command)
    def stopped_in_order(**given: Any) -> Any:
        from debug_gym_core.cli.signals import ended_by_signals

        with ended_by_signals():
            try:
                return command(**given)
            except KeyboardInterrupt as interrupt:
                say("stopped before anything was played", err=True)
                raise click.exceptions.Exit(interrupted_status(interrupt)) from None

    return stopped_in_order


def start_logging(verbose: int) -> logging.Handler:
    """Write warnings to standard error, and how far long work is; with `-vv` everything."""
    from debug_gym_core.cli.progress import ProgressLines
    from debug_gym_core.progress import listen

    listen(ProgressLines())
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
        """Write one record; where nobody can read it, it is in the log.txt still."""
        head = f"{record.levelname.lower()}:"
        if record.levelno >= logging.WARNING:
            head = coloured(head, "red" if record.levelno >= logging.ERROR else "yellow")
        with contextlib.suppress(OSError, ValueError):
            _writers[-1](f"{head} {printable(redact(record.getMessage()))}")


_writers: list[Callable[[str], object]] = [functools.partial(click.echo, err=True)]
"""What writes the lines of `EchoHandler`: the last one."""


@contextlib.contextmanager
def echoed_by(write: Callable[[str], object]) -> Iterator[None]:
    """Have something else write the lines of `EchoHandler` in this block.

    Args:
        write: is given each, which may have colours
    """
    _writers.append(write)
    try:
        yield
    finally:
        _writers.remove(write)


def _load(files: tuple[Path, ...], strict: bool, tolerant: bool) -> Plugins:
    from debug_gym_core.plugins import default_plugins, load_plugins

    if not files and not strict:
        return default_plugins()
    return load_plugins(files=files, strict=strict, strict_files=not tolerant)
