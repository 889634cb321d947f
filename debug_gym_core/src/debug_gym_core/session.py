"""What everyone uses of a sandbox: files, commands, processes, over one guest and one stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from debug_gym_core.terminal import RunResult, SandboxSpec, Terminal

OUTPUT_LIMIT = 64 * 1024


@dataclass(frozen=True)
class Entry:
    """One entry of a directory walk.

    Attributes:
        path: relative to the workspace, `/` between parts
        kind: what it is
        size: bytes (of a file)
        mode: permission bits
        mtime_ns: time of last change
        target: where a symbolic link points
    """

    path: str
    kind: Literal["file", "directory", "link", "other"]
    size: int
    mode: int
    mtime_ns: int
    target: str | None = None


class Process:
    """A program in the sandbox that runs while the host does other things (the debugger, a test runner, a PTY)."""

    def send(self, message: bytes) -> None:
        """Send one message over the program's own channel (framed: the program receives exactly this message)."""
        raise NotImplementedError

    def receive(self, timeout: float | None = None) -> bytes | None:
        """Wait for the program's next message on its channel.

        Everything that the program wrote to its output before the message is in `take_output` when this returns.

        Returns:
            the message, or None when the program ended without another one

        Raises:
            TimeoutError: none came in `timeout` seconds; the program goes on
            SandboxLost: the guest is gone
        """
        raise NotImplementedError

    def take_output(self) -> tuple[str, int]:
        """What the program wrote to its standard streams since the last call: bounded text, bytes left out of it."""
        raise NotImplementedError

    def write_stdin(self, data: bytes) -> None:
        """Type into the program's standard input (its PTY, or its pipe)."""
        raise NotImplementedError

    def signal(self, number: int) -> None:
        """Send a signal to the program itself (not its children)."""
        raise NotImplementedError

    def kill(self) -> None:
        """End the program and every process that it left, whatever they do to survive; returns when they are gone."""
        raise NotImplementedError

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; returns the exit status, or minus the signal's number; raises TimeoutError."""
        raise NotImplementedError


class Session:
    """A live sandbox: a started terminal and the guest in it.

    Paths are relative to the workspace. Safe to use from several threads.

    Attributes:
        terminal: the backend
        root: the workspace's real directory in the sandbox
        python: the interpreter for the task's code, as it is called in the sandbox
    """

    terminal: Terminal
    root: str
    python: str

    @classmethod
    def start(cls, terminal: Terminal, spec: SandboxSpec) -> Session:
        """Start the terminal and the guest in it."""
        raise NotImplementedError

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        """Bytes of a file."""
        raise NotImplementedError

    def write(self, path: str, data: bytes, mode: int | None = None) -> None:
        """Write a file atomically (temporary file and rename in the same directory), parents made."""
        raise NotImplementedError

    def remove(self, path: str) -> None:
        """Remove a file, link or directory tree; nothing happens when it is not there."""
        raise NotImplementedError

    def walk(self, path: str = ".", depth: int | None = None) -> Iterator[Entry]:
        """Entries below a directory, sorted by path, links not followed."""
        raise NotImplementedError

    def put(self, archive: Iterator[bytes] | bytes) -> None:
        """Unpack an uncompressed tar stream into the workspace."""
        raise NotImplementedError

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_limit: int = OUTPUT_LIMIT,
    ) -> RunResult:
        """Run a command to its end."""
        raise NotImplementedError

    def process(
        self,
        argv: Sequence[str],
        *,
        pty: bool = False,
        channel: bool = True,
        blobs: Mapping[str, bytes] | None = None,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        output_limit: int = OUTPUT_LIMIT,
    ) -> Process:
        """Start a program that the host talks to.

        Args:
            argv: the command; elements `{channel}` and `{blob:NAME}` are replaced by descriptor numbers
            pty: give it a PTY as standard streams and controlling terminal; else pipes (stdin empty)
            channel: give it a socket for framed messages (4 bytes big-endian length, then the message, both ways)
            blobs: files that it can read by descriptor, in no directory of the sandbox (memfd)
            cwd: relative to the workspace
            env: variables over those of the sandbox
            timeout: seconds after which guest kills it; None: never
            output_limit: bytes of output kept (head and tail) between two `take_output`
        """
        raise NotImplementedError

    def mask(self, text: str) -> str:
        """Show the workspace under its public name `/testbed`, wherever it really lies."""
        raise NotImplementedError

    def close(self) -> None:
        """End the guest and stop the terminal; may be called twice."""
        raise NotImplementedError
