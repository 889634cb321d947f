"""The command line. Each command is a module of its own, imported when it is run or asked for help."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

# Ctrl-C while the program imports what follows would show a traceback; from `main` on it is answered.
if sys.argv[0].endswith("/debug-gym") and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import click

from debug_gym_core.errors import FULL, DebugGymError, RequirementError, UsageError, cause_of, place_of
from debug_gym_core.names import nearest
from debug_gym_core.redaction import redact

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from click.shell_completion import CompletionItem

COMMANDS = {
    "run": "Play the tasks of a benchmark with an agent.",
    "fix": "Let an agent fix the failing tests of your own repository.",
    "play": "Find and fix a bug yourself, with an agent's tools.",
    "report": "Put the results of runs side by side.",
    "view": "Show what happened in the episodes of a run, step by step.",
    "replay": "Play the actions of a run again and compare what they show.",
    "export": "Write a run in another format, such as training data.",
    "tasks": "List the tasks of a benchmark.",
    "plugins": "List what is installed, and what failed to load.",
    "config": "Show the config of a run, or the schema of all configs.",
    "llm": "Write, list and check the language models of llm.yaml.",
    "doctor": "Check what this machine has and lacks.",
}
"""Every command of core, with its line of help: shown without importing the command."""

SCARCE = (*FULL, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""What the machine has too little of: disk, descriptors, memory, processes."""
MISNAMED = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTEMPTY),
)
"""What is wrong with a path that somebody named."""
STANDARD_OUTPUT = "standard output"
HELP = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""What click raises from 8.2 on where help is the answer; before, it wrote that itself."""
INTERRUPTED = 130
READER_GONE = 141


class Commands(click.Group):
    """The group of all commands: those of core, and those that plugins bring as entry points."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, core's first."""
        return [name for name, _ in _rows()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None when there is none of that name."""
        if cmd_name in COMMANDS:
            command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").command
            return command
        entry = _entry_points().get(cmd_name)
        if entry is None:
            return None
        from debug_gym_core.components.entry_points import load_command

        return load_command(entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name."""
        command = self.get_command(ctx, args[0])
        if command is None:
            raise click.UsageError(_why_missing(args[0], self.list_commands(ctx)), ctx)
        return args[0], command, args[1:]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; when whoever reads its output has gone, end as `cat` would: silently."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            drop_output()
            raise click.exceptions.Exit(READER_GONE) from None
        except (KeyboardInterrupt, click.Abort) as interrupt:  # for which click would write an empty line
            asking = isinstance(interrupt, click.Abort) and interrupt.__context__ is not None  # in that line, no answer
            say("\nstopped" if asking else "stopped", err=True)
            raise click.exceptions.Exit(interrupted_status(interrupt)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl(_rows())

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands without importing one: a broken one does not stand in the way of the others."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=text) for name, text in _rows() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they stand."""
        write_examples(self, formatter)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit: errors are one or two lines on standard error, a traceback only with `-vv`."""
        given = list(sys.argv[1:] if args is None else args)
        prepare_streams()

        def run() -> Any:
            if getattr(signal.getsignal(signal.SIGINT), "__module__", None) == __name__:  # from above
                signal.signal(signal.SIGINT, signal.default_int_handler)
            return super(Commands, self).main(given, prog_name or "debug-gym", standalone_mode=False, **extra)

        if not standalone_mode:
            return run()
        sys.exit(guarded(run, given))


class Command(click.Command):
    """A command whose examples are shown as they stand."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(self, formatter)


def write_examples(command: click.Command, formatter: click.HelpFormatter) -> None:
    """Write a command's epilog, line by line, as the section of examples."""
    if command.epilog:
        with formatter.section("Examples"):
            for line in command.epilog.strip().splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line.strip()}\n" if line.strip() else "\n")


def guarded(run: Callable[[], Any], arguments: Sequence[str]) -> int:
    """Run something and turn its errors into words on standard error.

    Args:
        run: what to run; a number that it returns is the exit status
        arguments: of the command line, to see whether `-vv` is among them

    Returns:
        the exit status
    """
    try:
        status = run()
        return status if isinstance(status, int) else 0
    except HELP as error:
        error.show()
        return int(error.exit_code)
    except click.ClickException as error:
        say_error(error.format_message())
        context = getattr(error, "ctx", None)
        if context is not None:
            _echo_error(f"See: {context.command_path} --help")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        return interrupted_status(error)
    except DebugGymError as error:
        _traceback_if_asked(arguments)
        say_error(str(error))
        return error.exit_status
    except OSError as error:
        _traceback_if_asked(arguments)
        drop_refused(error)
        from debug_gym_core.places import is_nowhere

        absolute = str(error.filename or "").startswith(os.sep)
        if error.errno == errno.ENOENT and not absolute and is_nowhere():
            say_error("the directory that this was started in is gone; change to one that is there: cd")
            return UsageError.exit_status
        say_error(f"{error.filename}: {error.strerror}" if error.filename else str(error) or type(error).__name__)
        return _status_of(error)
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        shown = _traceback_if_asked(arguments)
        say_error(cause_of(error))
        if not shown:
            _echo_error(f"This is a bug in debug-gym or a plugin, at {place_of(error)}; -vv shows more.")
        return 1


def interrupted_status(error: BaseException) -> int:
    """The exit status of a command that an interrupt ends: of its signal, also where click made an `Abort` of it."""
    known = [one for one in (error, error.__cause__, error.__context__) if isinstance(one, KeyboardInterrupt)]
    return next((int(one.exit_status) for one in known if hasattr(one, "exit_status")), INTERRUPTED)


def _status_of(error: OSError) -> int:
    """What the system's refusal means: wrong usage, something missing on this machine, or neither."""
    if error.errno in SCARCE:
        return RequirementError.exit_status
    return UsageError.exit_status if error.filename is not None and error.errno in MISNAMED else 1


def prepare_streams() -> None:
    """Make standard streams of those that are closed, and let names that are not UTF-8 be written."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # else the next file or socket gets the number, and what others print
            os.open(os.devnull, os.O_RDWR)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    own = sys.__stdout__
    if own is not None and sys.stdout is own:
        through = isinstance(own.buffer, io.FileIO)  # PYTHONUNBUFFERED
        output = _Output(own.fileno(), through)
        sys.stdout = io.TextIOWrapper(output, own.encoding, own.errors, None, own.line_buffering, through)
    if getattr(sys.stdout, "errors", None) == "strict" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


class _Output(io.BufferedWriter):
    """Standard output: an error names it, as of what is larger than the buffer nothing stays to tell it by later."""

    def __init__(self, number: int, through: bool) -> None:
        """Write to a file descriptor, which is not closed; at once where it goes through."""
        super().__init__(io.FileIO(number, "w", closefd=False))
        self._through = through

    def write(self, data: Any, /) -> int:
        """Take what is written, and pass it on as far as the buffer does not hold it."""
        with _naming_output():
            count = super().write(data)
            if self._through:
                super().flush()
        return count

    def flush(self) -> None:
        """Pass on what the buffer holds."""
        with _naming_output():
            super().flush()


@contextlib.contextmanager
def _naming_output() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = STANDARD_OUTPUT
        raise


def drop_refused(error: OSError) -> bool:
    """Let what is still written to standard output go nowhere, if it is that which an error names; whether it is."""
    refused = error.filename is STANDARD_OUTPUT
    if refused:
        drop_output()
    return refused


def drop_output(stream: TextIO | None = None) -> None:
    """Let what is still written to standard output, by Python at its end for one, go nowhere.

    Args:
        stream: standard error, in its place
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, (stream or sys.stdout).fileno())
    os.close(nowhere)


def drop_lost_terminal() -> None:
    """Let what is still written to a terminal that was closed go nowhere."""
    import termios

    for number in (1, 2):
        try:
            termios.tcgetattr(number)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, number)
                os.close(nowhere)


def printable(text: str) -> str:
    """A text without what a terminal would obey, as names of files and tests may have it; line ends stay."""
    return "".join(one if one.isprintable() or one in "\t\n" else repr(one)[1:-1] for one in text)


def say(text: str, *, err: bool = False) -> None:
    """Write a line to standard output or error, whatever names are in it."""
    _echo_error(printable(text)) if err else click.echo(printable(text))


def say_error(text: str) -> None:
    """Write `error: ...` to standard error."""
    _echo_error(f"{coloured('error:', 'red')} {printable(redact(text))}")


def say_note(text: str) -> None:
    """Write `note: ...` to standard error."""
    _echo_error(f"{coloured('note:', 'yellow')} {printable(redact(text))}")


def _echo_error(text: str) -> None:
    """Write a line to standard error; where nobody reads that any more, as Ctrl-C ended its reader, too, to nowhere."""
    try:
        click.echo(text, err=True)
    except BrokenPipeError:
        drop_output(sys.stderr)


def coloured(text: str, colour: str) -> str:
    """The text bold and in a colour, unless `NO_COLOR` is set; click leaves colours out of what is no terminal."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour, bold=True)


def _traceback_if_asked(arguments: Sequence[str]) -> bool:
    count = sum(word == "--verbose" or (word[:1] == "-" and word[1:2] != "-" and word.count("v")) for word in arguments)
    if count < 2:
        return False
    import traceback

    _echo_error(printable(redact(traceback.format_exc())).removesuffix("\n"))
    return True


def _entry_points() -> dict[str, EntryPoint]:
    """The commands of plugins that are wanted."""
    from debug_gym_core.components.entry_points import command_entry_points, left_out_by

    return {entry.name: entry for entry in command_entry_points() if not left_out_by(entry)}


def _rows() -> list[tuple[str, str]]:
    """All commands, core's first, each with a line of help."""
    theirs = [
        (name, f"From {entry.dist.name}." if entry.dist else "From a plugin.")
        for name, entry in sorted(_entry_points().items())
        if name not in COMMANDS
    ]
    return [*COMMANDS.items(), *theirs]


def _why_missing(name: str, known: Iterable[str]) -> str:
    from debug_gym_core.components.entry_points import command_entry_points, left_out_by

    by = next((left_out_by(entry) for entry in command_entry_points() if entry.name == name), "")
    return f"command {name!r} is disabled by {by}" if by else f"no command {name!r}{nearest(name, known)}"


def _show_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        import platform

        from debug_gym_core import __version__

        click.echo(f"debug-gym {__version__} (Python {platform.python_version()})")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""
    debug-gym run mini_nightmare --agent solution_agent
    debug-gym run mini_nightmare --agent noop_agent --task 'c*' -n 4
    debug-gym config show mini_nightmare > config.yaml
    """,
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version."
)
def main() -> None:
    """Let AI agents find and fix bugs with a real debugger, in a sandbox."""
