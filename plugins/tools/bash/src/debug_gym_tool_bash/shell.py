"""One bash that lives from command to command, and what has to be known to replace it when it dies."""

from __future__ import annotations

import itertools
import signal
import time
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import pexpect

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_tool_bash.printed import Printed

if TYPE_CHECKING:
    from debug_gym_core.sandbox.interruption import Interruption
    from debug_gym_core.sandbox.session import Session

START_TIMEOUT = 20.0
"""Seconds that a shell has to start, or to take over the state of another one."""
STATE_TIMEOUT = 5.0
"""Seconds that a shell has to tell its state when a command has ended, else it is replaced."""
STATE_PATIENCE = 0.3
"""Seconds that telling it may take before what the command left running is looked at."""
INTERRUPT_SECONDS = (0.1, 0.4)
"""Seconds that a command has to end after each time that it was interrupted, before it is killed."""
KILL_SECONDS = (0.3, 0.4)
"""Seconds that the shell has to answer after each time that it was killed, else the shell is replaced."""
END_SECONDS = 1.3
"""Seconds that all of this may take, on however busy a machine; then the shell is replaced."""
PROCESSES = 100
"""A command may leave this many processes running; more are a mistake, and all of them are ended."""
SETTLE = 0.05
"""Seconds after which processes that a command left are counted again: they may be growing in number."""

ENVIRONMENT = {"PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat", "PS1": "", "PS2": "", "HISTFILE": None}
_COMMAND = ("bash", "--noprofile", "--norc", "--noediting", "-i", "-s", "--")
_READ = 1 << 16
_READS = 256


class ShellFailed(SandboxError):
    """A shell could not be started, or did not take over what was to be restored."""


@dataclass(frozen=True)
class State:
    """What a new shell must know to go on as the old one.

    Attributes:
        directory: where it was
        text: commands that set variables, functions, options, aliases and traps
        ends_on_errors: whether `set -e` was on
        large: variables that are not in the text, for they are too large
        status: the exit status of the last command, which the next one has as `$?`
    """

    directory: str
    text: bytes = b""
    ends_on_errors: bool = False
    large: tuple[str, ...] = ()
    status: int = 0


@dataclass(frozen=True)
class Outcome:
    """What one command did.

    Attributes:
        exit_status: the exit status, or minus the signal's number that ended the shell; None: it was ended at its
            timeout, or it is not known
        timed_out: whether it was ended at its timeout
        printed: its output
        died: whether the shell ended with it
        killed: whether the shell did not come back and had to be killed
        untold: whether it died without having told its state, so that what is known is that of before the command
        flooded: whether it left so many processes that they were ended
    """

    exit_status: int | None
    timed_out: bool
    printed: Printed
    died: bool
    killed: bool = False
    untold: bool = False
    flooded: bool = False


class Shell:
    """A bash in the sandbox, driven over a pexpect spawn.

    The host types into a pipe that is bash's standard input; commands have /dev/null as theirs and a PTY for all else.
    When a command has ended, bash says so over a channel of its own (see driver.bash), so that nothing that is printed
    can be taken for it. An interactive bash (`-i`) comes back to its input on SIGINT, whatever it was doing.

    Attributes:
        state: what the shell last said of itself
    """

    def __init__(self, session: Session, state: State | None = None) -> None:
        """Start a shell.

        Args:
            session: where
            state: what it takes over; None: nothing, it starts in the workspace

        Raises:
            FileNotFoundError: there is no bash
            ShellFailed: it did not start, or did not take over the state
            SandboxLost: the guest is gone
        """
        self.state = State(session.root)
        self._numbers = itertools.count(1)
        self._printed = Printed()
        self._ended = False
        self._silent = False
        self._flooded = False
        self._running = ""
        self._spawn = session.spawn(
            [*_COMMAND, "{blob:run}", "{channel}", "{blob:state}"],
            timeout=None,
            env=ENVIRONMENT,
            channel=True,
            stdin=True,
            blobs={"run": _script("run.bash"), "state": b"" if state is None else state.text},
        )
        self._process = self._spawn.process
        try:
            self._spawn.send(_script("driver.bash").decode())
            if self._wait_for("start", time.monotonic() + START_TIMEOUT) is None or self._silent:
                raise ShellFailed("bash did not start")
            self.take_printed()
            if state is not None:
                self._restore(state)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether it can take a command."""
        return not self._ended and not self._silent and self._spawn.isalive()

    def close(self) -> None:
        """End it and everything that it left running."""
        self._spawn.close()

    def take_printed(self) -> Printed:
        """What was printed since the last command ended, by what it left running."""
        self._drain()
        printed, self._printed = self._printed, Printed()
        return printed

    def run(self, command: str, timeout: float, interruption: Interruption) -> Outcome:
        """Run a command; what it leaves in the background goes on.

        Args:
            command: any text without NUL
            timeout: seconds
            interruption: by which another thread may end it, as Ctrl-C does

        Raises:
            SandboxLost: the guest is gone
        """
        try:
            return self._run(command, timeout, interruption)
        except SandboxLost:
            raise
        except SandboxError:  # the guest's process for this shell died, and the shell with it
            self._end(kill=True)
            return Outcome(None, False, self._printed, died=True, untold=True)

    def _run(self, command: str, timeout: float, interruption: Interruption) -> Outcome:
        if interruption.asked:
            return Outcome(128 + signal.SIGINT, False, Printed(), died=False)
        which = str(next(self._numbers))
        self._flooded = False
        self._process.checkpoint()
        self._type(which, command)
        self._running = which
        with interruption.ending(self._end_command):
            report = self._wait_for(which, time.monotonic() + timeout)
        self._running = ""
        timed_out = report is None and not self._ended
        if timed_out:
            report = self._interrupt(which)
        untold = self._silent or report is None
        restricted = report is not None and "r" in report.flags  # `set -r`, of which no shell is rid
        died = self._ended or untold or restricted or (report is not None and report.which == "exit")
        killed = died and (timed_out or self._silent or restricted)
        if died:
            self._end(kill=killed)
        elif not timed_out:
            self._stop_flood()
        flooded = self._flooded and not timed_out
        printed, self._printed = self._printed, Printed()
        status = self._process.returncode if died and not killed else None
        if report is not None and not timed_out and (status is None or status >= 0):
            status = report.status
        return Outcome(status, timed_out, printed, died, killed and not restricted, untold, flooded)

    def _end_command(self) -> bool:
        """End the command that another thread runs, as Ctrl-C does; whether one runs."""
        which = self._running
        if which:
            self._process.signal_since(signal.SIGINT, itself=True, again=True)
            self._ask(which)  # the shell forgets what was typed
        return bool(which)

    # -- parts of a command

    def _type(self, which: str, command: str) -> None:
        quoted = command.replace("\\", "\\\\").replace("'", "\\047")
        self._spawn.send(f"__debug_gym_command=$'{quoted}' __debug_gym_last={self.state.status}\n")
        self._spawn.send("\\builtin export -n __debug_gym_command __debug_gym_last\n")
        self._spawn.send("\\builtin . /dev/fd/20\n")
        self._ask(which)

    def _ask(self, which: str) -> None:
        self._spawn.send(f'\\__debug_gym_report {which} "$?" "$@"\n')

    def _wait_for(self, which: str, deadline: float, *, for_all: bool = False) -> _Report | None:
        """Read what is printed until a report comes; None: it did not by the deadline, or the shell has ended.

        Args:
            which: the report
            deadline: of the report, monotonic
            for_all: it is that of the state which follows as well
        """
        while not self._ended:
            left = deadline - time.monotonic()
            if left <= 0 or not self._process.wait_for_news(left):
                return None
            self._drain()
            report = _Report.parse(self._receive())
            if report is None or report.which not in (which, "exit"):
                continue
            self._running = ""
            self._drain()
            self._printed.add(self._spawn.read_incomplete())
            self._take_state(report, deadline if for_all else time.monotonic() + STATE_TIMEOUT)
            return report
        return None

    def _take_state(self, report: _Report, deadline: float) -> None:
        """Read the state that follows a report; without it, only the directory is news, and the shell is no good."""
        self.state = replace(self.state, directory=report.directory or self.state.directory, status=report.status)
        large = []
        self._silent = False
        while not self._ended:
            left = deadline - time.monotonic()
            if left <= 0:
                self._silent = True
                break
            if not self._process.wait_for_news(min(left, STATE_PATIENCE)):
                # Telling it takes a fork, and what the command left running may hold all processes that there can be.
                self._stop_flood()
                continue
            self._drain()
            kind, which, text = _fields(self._receive())
            if which != report.which.encode():
                continue
            if kind == b"large":
                large.append(text.decode())
            elif kind == b"state":
                # an EXIT trap of bash's runs with `set -e` off already
                ends_on_errors = "e" in report.flags or (report.which == "exit" and self.state.ends_on_errors)
                self.state = State(self.state.directory, text, ends_on_errors, tuple(large), report.status)
                break

    def _receive(self) -> bytes:
        """The next message; empty: there is none yet, or the shell has ended."""
        try:
            message = self._process.receive(0)
        except TimeoutError:
            return b""
        except SandboxLost:
            raise
        except SandboxError:  # the guest's process for this shell is gone
            message = None
        if message is None:
            self._ended = True
            return b""
        return message

    def _drain(self) -> None:
        """Take what was printed so far; bounded, since it may go on without end."""
        try:
            for _ in range(_READS):
                self._printed.add(self._spawn.read_nonblocking(_READ, 0))
        except (pexpect.TIMEOUT, pexpect.EOF):
            pass
        except SandboxLost:
            raise
        except SandboxError:  # the guest's process for this shell is gone, which `receive` tells
            pass

    def _interrupt(self, which: str) -> _Report | None:
        """End the command as Ctrl-C would, then by force; the report, or None when the shell does not come back."""
        end = time.monotonic() + END_SECONDS
        rounds = [(PROCESSES, patience) for patience in INTERRUPT_SECONDS]  # more may be a bomb, which only grows
        for most, patience in [*rounds, *((0, patience) for patience in KILL_SECONDS)]:
            self._process.signal_since(signal.SIGINT, itself=True, most=most)
            self._ask(which)
            # A shell that answers may still be unable to fork, which telling its state takes.
            report = self._wait_for(which, min(time.monotonic() + patience, end), for_all=True)
            if self._ended or (report is not None and not self._silent) or time.monotonic() >= end:
                break
        self._kill_started()
        return report

    def _kill_started(self) -> None:
        """End everything that the command started, and take what it printed to the last."""
        self._process.signal_since(signal.SIGKILL)
        end = time.monotonic() + SETTLE
        while not self._ended and self._process.wait_for_news(max(0.0, end - time.monotonic())):
            self._drain()
            if time.monotonic() >= end:
                break

    def _stop_flood(self) -> None:
        """End what a command left when it is too much."""
        count = self._process.signal_since(0)
        for _ in range(20):
            if count > PROCESSES:
                self._flooded = True
                self._kill_started()
                break
            if count == 0:
                break
            self._process.ended(SETTLE)
            before, count = count, self._process.signal_since(0)
            if count <= before:
                break

    def _end(self, kill: bool) -> None:
        """See a shell that has ended, or must, to its end."""
        if not kill:
            self._process.ended(2.0)
        self._process.kill()
        self._drain()
        self._spawn.close()
        self._ended = True

    def _restore(self, state: State) -> None:
        """Make this shell one that has another one's state; what is printed on the way is nobody's."""
        which = str(next(self._numbers))
        self._spawn.send("__debug_gym_clear\n")
        self._spawn.send(f"\\builtin cd -- {_quoted(state.directory)}\n")
        self._spawn.send("\\builtin . /dev/fd/23 0</dev/null\n\\builtin set +e\n")
        self._ask(which)
        if self._wait_for(which, time.monotonic() + START_TIMEOUT) is None or self._silent:
            raise ShellFailed("bash did not take over the state of the one before")
        self.state = replace(self.state, status=state.status)
        self.take_printed()


@dataclass(frozen=True)
class _Report:
    """What the shell said at the end of a command."""

    which: str
    status: int
    directory: str
    flags: str

    @classmethod
    def parse(cls, message: bytes) -> _Report | None:
        """Read a message; None: it is none of these."""
        parts = message.split(b"\0")
        if len(parts) != 4 or not parts[1].isdigit():
            return None
        which, directory, flags = (parts[n].decode("utf-8", "surrogateescape") for n in (0, 2, 3))
        return None if which in ("state", "large") else cls(which, int(parts[1]), directory, flags)


def _fields(message: bytes) -> tuple[bytes, bytes, bytes]:
    """What a message about the state is, the report that it belongs to, its text; empty: it is none of these."""
    parts = message.split(b"\0")
    return (parts[0], parts[1], parts[2]) if len(parts) == 4 else (b"", b"", b"")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@cache
def _script(name: str) -> bytes:
    return files("debug_gym_tool_bash").joinpath(name).read_bytes()
