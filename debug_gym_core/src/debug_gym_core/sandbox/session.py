"""What everyone uses of a sandbox: files, commands, processes, over one guest and one stream."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.sandbox.connection import GRACE, Connection
from debug_gym_core.sandbox.file_requests import FileRequests, give_blob
from debug_gym_core.sandbox.frames import decode_output
from debug_gym_core.sandbox.held import Held
from debug_gym_core.sandbox.interruption import Interruption
from debug_gym_core.sandbox.process import Process
from debug_gym_core.sandbox.public_names import PublicNames
from debug_gym_core.sandbox.replies import ROOM, Waiter
from debug_gym_core.sandbox.supervision import supervisor
from debug_gym_core.sandbox.terminal import RunResult, SandboxSpec, Terminal, parse_size
from debug_gym_core.sandbox.warm import request_of, zygote_blob

if TYPE_CHECKING:
    from debug_gym_core.sandbox.spawn import Spawn
    from debug_gym_core.sandbox.warm import Warm

__all__ = ["OUTPUT_LIMIT", "Process", "Session"]

OUTPUT_LIMIT = 64 * 1024
"""Bytes of a command's output that are kept unless told otherwise, head and tail."""

ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "COLUMNS": "80",
}
"""Variables of every command besides those that the terminal starts the guest with (PATH, HOME)."""


class Session(FileRequests):
    """A live sandbox: a started terminal and the guest in it.

    Paths are relative to the workspace and do not lead out of it, whatever links there are or come to be meanwhile
    (PermissionError); an absolute path is taken as it is. When a command closed or removed the workspace's directory,
    it is opened, or made again, empty, by the next request about files. Safe to use from several threads. A guest that
    dies costs what was under way (`SandboxLost`); as long as the terminal stands, the next request starts another one
    over the same files.

    Attributes:
        terminal: the backend
        spec: what the sandbox offers
        root: the workspace's real directory in the sandbox
        names: under which programs know it
        python: the interpreter for the task's code, as it is called in the sandbox
        restarts: how often a guest was started again
        commands: how many commands and programs were started so far
        warm_starts: how many of them were forked from an interpreter that had modules loaded
    """

    def __init__(self, terminal: Terminal, spec: SandboxSpec) -> None:
        """Use a terminal that was started; see `start`."""
        self.terminal = terminal
        if terminal.interpreter is not None:
            spec = dataclasses.replace(spec, interpreter=terminal.interpreter)
        self.spec = spec
        self.root = terminal.root
        self.names = PublicNames(self.root, spec.source, self.realpath, lambda: self.commands)
        self.python = str(spec.interpreter.executable) if spec.interpreter is not None else terminal.python
        self.restarts = 0
        self.commands = 0
        self.warm_starts = 0
        self._under_way = 0
        self._runs: set[Callable[[], object]] = set()
        self._processes: weakref.WeakSet[Process] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._connecting = threading.Lock()  # held while a guest is started; `close` does not wait for it
        self._closed = False
        self._held = Held(terminal)
        self._dropped = weakref.finalize(self, self._held.drop)
        self._dropped.atexit = False  # what still stands then ends with the process

    @classmethod
    def start(cls, terminal: Terminal, spec: SandboxSpec) -> Session:
        """Start the terminal and the guest in it.

        Args:
            terminal: the backend, not yet started; stopped again when this fails
            spec: what the sandbox must offer

        Raises:
            RequirementError: something is missing on this machine
            SandboxError: the sandbox or the guest did not start
        """
        supervisor.begin(type(terminal))
        try:
            terminal.start(spec)
        except BaseException:
            try:
                terminal.stop()
            finally:
                supervisor.end()
            raise
        session = cls(terminal, spec)
        session._held.supervised = True
        try:
            session._connect()
        except BaseException:
            session.close()
            raise
        return session

    @property
    def environment(self) -> dict[str, str]:
        """Variables of every command, besides those that the terminal or the image sets."""
        return {**ENVIRONMENT, **self.spec.environment}

    @property
    def interpreter(self) -> dict[str, str]:
        """The interpreter for the task's code: `path`, in the image where there is one, and `version`.

        Raises:
            SandboxError: there is no guest and none can be started
        """
        found = self.spec.interpreter
        version = found.version if found is not None else self.guest()["python"]
        return {"path": self.python, "version": ".".join(map(str, version))}

    def guest(self) -> dict[str, Any]:
        """What the guest says of itself: `pid`, `python` (its version), `notes` (what it cannot do here).

        Raises:
            SandboxError: there is no guest and none can be started
        """
        return dict(self._connect().hello)

    # -- commands

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        cwd: str = ".",
        env: Mapping[str, str | None] | None = None,
        stdin: bytes = b"",
        output_limit: int = OUTPUT_LIMIT,
        interruption: Interruption | None = None,
    ) -> RunResult:
        """Run a command to its end; what it leaves running in the background is ended too.

        Args:
            command: text for `bash -c` (`sh -c` where there is no bash), or a program and its arguments
            timeout: seconds; None: no limit
            cwd: relative to the workspace
            env: variables over those of the sandbox; None as a value removes one
            stdin: what it reads
            output_limit: bytes of output kept, head and tail
            interruption: by which another thread may kill it, such as that of the environment

        Raises:
            FileNotFoundError: there is no such program, or no such directory
            OSError: the program cannot be started
            CommandLost: the guest's process that ran the command died, and the command with it
            SandboxLost: the guest is gone
        """
        fields = self._command(command, timeout, cwd, env, output_limit)
        with self._counted():
            return self._run(command, timeout, stdin, fields, interruption or Interruption())

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a command."""
        with self._lock:
            self.commands += 1
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    @property
    def busy(self) -> bool:
        """Whether a command runs, or a program that `process` or `spawn` started."""
        return self._under_way > 0 or any(process.running for process in list(self._processes))

    def running(self) -> set[Callable[[], object]]:
        """What kills each command that runs, and each program that `process` or `spawn` started."""
        with self._lock:
            return {*self._runs, *(one.kill for one in self._processes if one.running)}

    def _run(
        self,
        command: str | Sequence[str],
        timeout: float | None,
        stdin: bytes,
        fields: dict[str, Any],
        interruption: Interruption,
    ) -> RunResult:
        """Make the request and wait for its end."""
        connection = self._connect()
        waiter = Waiter(ROOM + fields["output_limit"])
        number = connection.submit(waiter, "run", stdin, **fields)

        def kill() -> bool:
            with contextlib.suppress(SandboxLost):  # whoever waits learns it
                connection.submit(Waiter(), "kill", of=number)
            return True

        try:
            self._runs.add(kill)
            backstop = None if timeout is None else timeout + GRACE
            with interruption.ending(kill):
                header, body = connection.wait(waiter, f"{_shown(command)!r}", backstop)
        except (OSError, SandboxError):
            raise
        except BaseException:  # Ctrl-C
            kill()
            raise
        finally:
            self._runs.discard(kill)
        with connection.believing():
            middle = header.get("head", len(body))
            output, cut = decode_output(body[:middle], body[middle:], header.get("cut", 0))
            output += "" if header["timed_out"] else self._held.memory_note(header["status"])
            return RunResult(header["status"], output, cut, header["timed_out"], header["seconds"])

    def process(
        self,
        argv: str | Sequence[str],
        *,
        pty: bool = False,
        channel: bool = True,
        blobs: Mapping[str, bytes] | None = None,
        cwd: str = ".",
        env: Mapping[str, str | None] | None = None,
        timeout: float | None = None,
        output_limit: int = OUTPUT_LIMIT,
        stdin: bool = False,
        follow: bool = False,
        warm: Warm | None = None,
    ) -> Process:
        """Start a program that the host talks to.

        Args:
            argv: the command; elements `{channel}` and `{blob:NAME}` are replaced by descriptor numbers
            pty: give it a PTY as standard streams and controlling terminal; else pipes (stdin empty)
            channel: give it a socket for framed messages (4 bytes big-endian length, then the message, both ways)
            blobs: files that it can read by descriptor, in no directory of the sandbox (memfd)
            cwd: relative to the workspace
            env: variables over those of the sandbox; None as a value removes one
            timeout: seconds after which guest kills it; None: never
            output_limit: bytes of output kept (head and tail) between two `take_output`
            stdin: give it a pipe that `Process.write_stdin` writes to, also beside a PTY
            follow: hand all output on as it comes, for `Process.read_text`, instead of keeping head and tail
            warm: the program may be a fork of an interpreter that is kept for this; None: it is started

        Raises:
            FileNotFoundError: there is no such program, or no such directory
            OSError: the program cannot be started
            SandboxError: the guest, or its process for this program, is gone
        """
        connection = self._connect()
        digests = {name: give_blob(connection, data) for name, data in (blobs or {}).items()}
        fields = self._command(argv, timeout, cwd, env, output_limit)
        fields |= {"pty": pty, "channel": channel, "blobs": digests, "stdin": stdin, "follow": follow}
        if warm is not None:
            code = give_blob(connection, zygote_blob())
            fields["warm"] = request_of(warm, code, parse_size(self.terminal.settings.memory))
        process = Process(connection, output_limit)
        with self._lock:
            self.commands += 1
            self._processes.add(process)
        process.start(lambda handler: connection.submit(handler, "process", **fields))
        self.warm_starts += process.warm
        return process

    def spawn(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = 30,
        cwd: str = ".",
        env: Mapping[str, str | None] | None = None,
        channel: bool = False,
        stdin: bool = False,
        blobs: Mapping[str, bytes] | None = None,
    ) -> Spawn:
        """Start an interactive program on a PTY, to talk to with pexpect's methods.

        Args:
            command: text for the shell, or a program and its arguments
            timeout: seconds that `expect` waits unless told otherwise; None: for ever
            cwd: relative to the workspace
            env: variables over those of the sandbox; None as a value removes one
            channel: give it a socket for messages beside the PTY, see `process`
            stdin: give it a pipe as standard input, to which `send` writes, and the PTY for everything else
            blobs: files that it can read by descriptor, see `process`

        Raises:
            RequirementError: pexpect is not installed
            FileNotFoundError: there is no such program, or no such directory
            SandboxError: the guest, or its process for this program, is gone
        """
        try:
            from debug_gym_core.sandbox.spawn import Spawn
        except ImportError as error:
            raise RequirementError(f"interactive programs need pexpect (pip install pexpect): {error}") from error
        process = self.process(
            command, pty=True, channel=channel, stdin=stdin, blobs=blobs, follow=True, cwd=cwd, env=env
        )
        return Spawn(process, timeout, command)

    # -- the rest

    def mask(self, text: str) -> str:
        """Show the workspace under its public name `/testbed`, wherever it really lies or the repository lay before."""
        return self.names.mask(text)

    def close(self) -> None:
        """End the guest and stop the terminal, also while another thread waits for a guest to start.

        May be called twice. Happens by itself to a session that is dropped.
        """
        with self._lock:
            self._closed = True
        self._dropped.detach()
        self._held.end()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self) -> Connection:
        """The live guest; a new one when the last is gone."""
        with self._connecting:
            connection = self._held.connection
            if connection is not None and connection.alive:
                return connection
            if self._closed:
                raise self._was_closed()
            if connection is not None:
                connection.close()
                if not self.terminal.alive():
                    raise SandboxLost(connection.describe("it is gone"))
                self.restarts += 1
            settings: dict[str, Any] = {"root": self.root, "env": self.environment}
            if self.spec.interpreter is not None:
                settings["bin"] = self.spec.interpreter.path
            connection = Connection(self.terminal, settings)
            with self._lock:
                if not self._closed:
                    self._held.connection = connection
                    return connection
        connection.close()
        raise self._was_closed()

    def _was_closed(self) -> SandboxLost:
        return SandboxLost(f"{self.terminal.name} sandbox: the session was closed")

    def _command(
        self,
        command: str | Sequence[str],
        timeout: float | None,
        cwd: str,
        env: Mapping[str, str | None] | None,
        output_limit: int,
    ) -> dict[str, Any]:
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
            raise TypeError(f"timeout is a number of seconds, or None, not {timeout!r:.80}")
        if timeout is not None and math.isnan(timeout):
            raise ValueError("timeout is a number of seconds, not nan")
        fields: dict[str, Any] = {"timeout": timeout, "cwd": cwd, "output_limit": output_limit}
        if isinstance(command, str):
            fields["shell"] = command
        elif isinstance(command, Sequence) and command and all(isinstance(word, str) for word in command):
            fields["argv"] = list(command)
        else:
            raise TypeError(f"a command is text, or a list of texts, not {command!r:.80}")
        if env:
            if not all(isinstance(name, str) and isinstance(value, str | None) for name, value in env.items()):
                raise TypeError(f"variables of a command are texts, or None, not {dict(env)!r:.80}")
            fields["env"] = dict(env)
        return fields


def _shown(command: str | Sequence[str]) -> str:
    text = command if isinstance(command, str) else " ".join(command)
    return text if len(text) <= 100 else text[:97] + "..."
