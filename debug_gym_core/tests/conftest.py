"""A terminal without any plugin: the guest as a child process in a temporary directory.

DEBUG_GYM_TEST_PYTHONS: interpreters, colon-separated, that the guest is tried on; default: the one that runs the tests.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from debug_gym_core.session import Session
from debug_gym_core.terminal import SandboxSpec, Terminal

PYTHONS = [path for path in os.environ.get("DEBUG_GYM_TEST_PYTHONS", "").split(":") if path] or [sys.executable]


class ChildStream:
    """The guest as a child process."""

    def __init__(self, argv: Sequence[str], cwd: str, environment: dict[str, str], log: Path) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs, log.open("ab") as stderr:
            ends = theirs.fileno()
            try:
                self.guest = subprocess.Popen(
                    argv, stdin=ends, stdout=ends, stderr=stderr, cwd=cwd, env=environment, start_new_session=True
                )
            except OSError:
                self.socket.close()
                raise

    def read(self, size: int) -> bytes:
        try:
            return self.socket.recv(size)
        except ConnectionResetError:
            return b""

    def write(self, data: bytes | memoryview) -> None:
        self.socket.sendall(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        try:
            self.guest.wait(5)
        except subprocess.TimeoutExpired:
            self.guest.kill()
            self.guest.wait()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class ChildTerminal(Terminal):
    """A terminal whose sandbox is a temporary directory."""

    name = "child"
    isolates = False

    def __init__(self, python: str = sys.executable, environment: dict[str, str] | None = None) -> None:
        super().__init__()
        self.python = python
        self.environment = {"PATH": f"{Path(python).parent}:/usr/bin:/bin", **(environment or {})}
        self.streams: list[ChildStream] = []
        self.stands = True

    @classmethod
    def unavailable(cls) -> str | None:
        return None

    def start(self, spec: SandboxSpec) -> None:
        # Resolved, and with a name that needs care in shells and patterns.
        self.directory = Path(tempfile.mkdtemp(prefix="guest [test] ")).resolve()
        (self.directory / "root").mkdir()
        self.root = str(self.directory / "root")

    def open(self, argv: Sequence[str]) -> ChildStream:
        self.streams.append(ChildStream(argv, self.root, self.environment, self.directory / "log"))
        return self.streams[-1]

    def alive(self) -> bool:
        return self.stands

    def stop(self) -> None:
        for stream in self.streams:
            stream.close()
            stream.socket.close()
        subprocess.run(["chmod", "-R", "u+rwX", self.directory], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def log(self) -> str:
        return (self.directory / "log").read_text()


@pytest.fixture(params=PYTHONS, ids=lambda path: f"{Path(path).parent.parent.name}")
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter for the guest."""
    return str(request.param)


@pytest.fixture
def open_session(python: str) -> Iterator[Callable[..., Session]]:
    """Start sessions that end with the test."""
    with contextlib.ExitStack() as stack:

        def start(environment: dict[str, str] | None = None) -> Session:
            return stack.enter_context(Session.start(ChildTerminal(python, environment), SandboxSpec(run="test")))

        yield start


@pytest.fixture
def session(open_session: Callable[..., Session]) -> Session:
    """A session in an empty sandbox."""
    return open_session()
