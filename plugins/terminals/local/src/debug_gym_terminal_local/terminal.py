"""The local terminal: commands run on this machine as the user, in a copy of the repository."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.sandbox import ownership, virtual_environment
from debug_gym_core.sandbox.terminal import SandboxSpec, Stream, Terminal, TerminalSettings

PREFIX = "debug-gym-local-"
_SPECIAL = re.compile(r"[^\w@%+=:,./~-]")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

END_PATIENCE = 4.0
"""Seconds that the guest has to end everything before it is killed."""

_LOG_SIZE = 4000

# Removes the directory when the runner is gone, however it ended: its end of the pipe then closes. The guest sees the
# same and may take a moment to end what writes there.
_REMOVER = 'read -r line; for n in 1 2 3 4 5 6; do rm -rf -- "$1" && [ ! -e "$1" ] && exit; sleep 0.5; done'


class LocalTerminal(Terminal):
    """Runs commands on this machine without isolation, in a temporary directory.

    Nothing protects the machine from what runs: for code that you trust, with agents that you trust. Memory, processes
    and network are not limited.

    Its workspace has another path each time, which an editable install would remember. So setup commands run in each
    sandbox, in a virtual environment of its own that goes with it.
    """

    name = "local"
    isolates = False
    settings: TerminalSettings

    def __init__(self, **settings: object) -> None:
        """Check and keep the settings."""
        super().__init__(**settings)
        self._directory: Path | None = None
        self._environment: dict[str, str] = {}
        self._streams: list[_LocalStream] = []
        self._finalizer: weakref.finalize[..., LocalTerminal] | None = None

    @classmethod
    def unavailable(cls) -> str | None:
        """None on Linux; elsewhere processes cannot be followed."""
        return None if sys.platform == "linux" else "the local terminal needs Linux: install Docker instead"

    @classmethod
    def clean(cls) -> Sequence[str]:
        """Remove the directories, with the processes in them, of runs that were killed."""
        return [f"directory {directory}" for directory in reap()]

    def start(self, spec: SandboxSpec) -> None:
        """Make the directory."""
        missing = self.unavailable()
        if missing is not None:
            raise RequirementError(missing)
        directory = self._make_directory(spec.run)
        try:
            if self.settings.setup and spec.interpreter is not None:
                self.interpreter = virtual_environment.create(directory / "environment", spec.interpreter)
        except OSError as error:
            self.stop()
            raise SandboxError(f"local sandbox: no virtual environment for terminal.setup: {error}") from error
        except BaseException:
            self.stop()
            raise
        self.root = str(directory / "testbed")
        interpreter = self.interpreter or spec.interpreter
        self.python = str(interpreter.executable) if interpreter is not None else sys.executable
        self._environment = {
            "PATH": f"{Path(self.python).parent}:{SYSTEM_PATH}",
            "HOME": str(directory / "home"),
            "TMPDIR": str(directory / "tmp"),
        }
        shadows = editable_copies(spec, Path(self.root))
        if shadows:
            self._environment["PYTHONPATH"] = ":".join(map(str, shadows))

    def _make_directory(self, run: str) -> Path:
        """Make the directory, which from now on is removed with this terminal or with the process.

        Raises:
            RequirementError: its name would not do
            SandboxError: it cannot be made
        """
        with contextlib.ExitStack() as failed:
            try:
                _check_name(os.path.realpath(tempfile.gettempdir()))
                directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")).resolve()
                failed.callback(ownership.remove_tree, directory)
                ownership.write_lease(directory, run)
                for name in ("testbed", "home", "tmp"):
                    (directory / name).mkdir()
            except OSError as error:
                raise SandboxError(f"local sandbox: no temporary directory: {error}") from error
            remover = _start_remover(directory)
            failed.pop_all()
        self._directory = directory
        self._finalizer = weakref.finalize(self, _clean, os.getpid(), directory, self._streams, remover)
        return directory

    def open(self, argv: Sequence[str]) -> Stream:
        """Start the guest as a child process, in a session of its own."""
        if self._directory is None or not self.alive():
            raise SandboxLost("local sandbox: its directory is gone")
        try:
            stream = _LocalStream(argv, self._directory, self._environment)
        except OSError as error:
            raise SandboxError(f"local sandbox: {argv[0]} cannot be started: {error}") from error
        for ended in [one for one in self._streams if one.process.poll() is not None]:
            ended.release()
            self._streams.remove(ended)
        self._streams.append(stream)
        return stream

    def alive(self) -> bool:
        """Whether the directory is still there."""
        return self._directory is not None and (self._directory / "testbed").is_dir()

    def stop(self) -> None:
        """End the guest with all that it started, and remove the directory."""
        if self._finalizer is not None:
            self._finalizer()
        self._directory = None

    def log(self) -> str:
        """The end of what the guests wrote to standard error."""
        if self._directory is None:
            return ""
        with contextlib.suppress(OSError), (self._directory / "log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_SIZE))
            return file.read().decode("utf-8", "replace")
        return ""


def editable_copies(spec: SandboxSpec, root: Path) -> list[Path]:
    """Where, in the workspace, the directories lie that editable installs of the repository add to the import system.

    Without these on `PYTHONPATH`, the task's code would be imported from the user's own files instead of the copy.
    """
    if spec.interpreter is None or spec.source is None:
        return []
    source = spec.source.resolve()
    directories = (directory.resolve() for directory in spec.interpreter.editable)
    return [root / directory.relative_to(source) for directory in directories if directory.is_relative_to(source)]


class _LocalStream:
    """The guest as a child process; one socket is its standard input and output."""

    def __init__(self, argv: Sequence[str], directory: Path, environment: dict[str, str]) -> None:
        self._closing = threading.Lock()
        self._socket, theirs = socket.socketpair()
        try:
            with theirs, (directory / "log").open("ab") as log:
                self.process = subprocess.Popen(
                    argv,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=log,
                    cwd=directory / "testbed",
                    env=environment,
                    start_new_session=True,
                )
        except BaseException:
            self._socket.close()
            raise

    def read(self, size: int) -> bytes:
        """Read what comes next; empty at the end."""
        try:
            return self._socket.recv(size)
        except ConnectionResetError:
            return b""

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`."""
        self._socket.sendall(data)

    def close(self) -> None:
        """Let the guest end, or make it."""
        with self._closing:
            if self.process.returncode is not None:
                return
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            self.process.send_signal(signal.SIGCONT)  # one that was stopped ends in order too
            if not ownership.wait_for_end(self.process, END_PATIENCE):
                self.process.kill()
                self.process.wait()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close the socket, of which nobody reads any more but the end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _check_name(directory: str) -> None:
    """Refuse a directory whose name a shell would take apart: it stands for the workspace's in commands.

    Raises:
        RequirementError: it has such a name
    """
    if _SPECIAL.search(directory):
        raise RequirementError(
            f"local sandbox: the temporary directory {directory!r} cannot be named in a shell without quotes; "
            "set TMPDIR to another one"
        )


def _start_remover(directory: Path) -> subprocess.Popen[bytes]:
    """Start what removes a sandbox's directory when this process is gone.

    Raises:
        SandboxError: no process can be started
    """
    try:
        return subprocess.Popen(
            ["sh", "-c", _REMOVER, "debug-gym-remover", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env={"PATH": SYSTEM_PATH},
        )
    except OSError as error:
        raise SandboxError(f"local sandbox: no process can be started: {error}") from error


def _clean(owner: int, directory: Path, streams: list[_LocalStream], remover: subprocess.Popen[bytes]) -> None:
    """End the guests and whatever still lives of a sandbox; remove its directory. Not from a fork of its owner."""
    if os.getpid() != owner:
        return
    for stream in streams:
        stream.close()
    if any(stream.process.returncode for stream in streams):  # a guest that was killed may have left something
        ownership.end_processes_of(directory)
    ownership.remove_tree(directory)
    assert remover.stdin is not None
    remover.kill()
    remover.stdin.close()
    remover.wait()
    for stream in streams:
        stream.release()


def reap() -> list[Path]:
    """Remove this user's directories whose runner is gone, with the processes in them; returns which."""
    return ownership.reap(PREFIX)
