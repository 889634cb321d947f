"""What the debugger is tried in.

The debuggee on a socketpair and a PTY, without guest, sandbox or host side; and the tool alone, over a session in a
local terminal.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from debugged_programs import LOOP, LOOP_TEST
from support import interpreters, version_of
from tool_environment import Environment

from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_terminal_local import LocalTerminal
from debug_gym_tool_pdb import Pdb
from debug_gym_tool_pdb.boot import BOOT, blob

ENVIRONMENT = {
    # To load what this environment has takes longer than most of the tests; `PYTEST_DISABLE_PLUGIN_AUTOLOAD=` loads it.
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PATH": os.environ["PATH"],
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TERM": "dumb",
}


class Debuggee:
    """A program stopped before its first line, and the other end of its channel."""

    def __init__(
        self,
        python: str,
        entrypoint: str,
        root: Path,
        breakpoints: dict[str, Any] | None = None,
        ignored: Sequence[str] = (),
        backends: Sequence[str] | None = None,
        rewind: bool = False,
    ) -> None:
        parsed = Entrypoint.parse(entrypoint)
        self.limit = 20.0
        self.python = python
        ours, theirs = socket.socketpair()
        self.channel = ours
        self.master, slave = pty.openpty()
        self.printed = b""
        with tempfile.TemporaryFile() as code:
            code.write(blob())
            code.seek(0)

            def controlling_terminal() -> None:
                os.setsid()
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

            self.process = subprocess.Popen(
                [python, *parsed.flags, "-c", BOOT, str(theirs.fileno()), str(code.fileno())],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=root,
                env={**ENVIRONMENT, **parsed.env},
                pass_fds=[theirs.fileno(), code.fileno()],
                preexec_fn=controlling_terminal,
            )
        os.close(slave)
        theirs.close()
        self.send(
            {
                "kind": parsed.kind.value,
                "target": parsed.target,
                "args": list(parsed.args),
                "root": str(root),
                "ignored": list(ignored),
                "rewind": rewind,
                "breakpoints": breakpoints or {"list": [], "next": 1},
                **({"backends": list(backends)} if backends else {}),
            }
        )
        self.root = root
        self.breakpoints: dict[str, Any] = {}
        self.talking = 0
        self.first = self.receive()
        self.hello = self.first.get("hello", {})

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        with contextlib.suppress(BrokenPipeError):
            self.channel.sendall(struct.pack(">I", len(data)) + data)

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """The next message; `{"t": "dead"}` when there is none, TimeoutError when it takes too long."""
        deadline = time.monotonic() + (timeout or self.limit)
        data = b""
        need = 4
        while len(data) < need:
            left = deadline - time.monotonic()
            sources = [self.channel, self.master] if self.master >= 0 else [self.channel]
            ready = select.select(sources, [], [], max(left, 0))[0]
            if not ready:
                raise TimeoutError(f"no message; printed: {self.printed[-2000:]!r}")
            if self.master in ready:
                self._drain()
                if self.channel not in ready:
                    continue
            try:
                chunk = self.channel.recv(need - len(data))
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                status = self.process.wait(self.limit)
                self._drain()
                return {"t": "dead", "status": status}
            data += chunk
            if len(data) == 4:
                need = 4 + struct.unpack(">I", data)[0]
        self._drain()
        message: dict[str, Any] = json.loads(data[4:])
        self.talking = message.get("pid", 0)
        if "breakpoints" in message:
            self.breakpoints = message["breakpoints"]
        return message

    def _drain(self) -> None:
        while self.master >= 0 and select.select([self.master], [], [], 0)[0]:
            try:
                self.printed += os.read(self.master, 65536)
            except OSError:
                os.close(self.master)
                self.master = -1

    def do(self, command: str, *rest: str, timeout: float | None = None) -> dict[str, Any]:
        """Carry out a command; returns the message at the next prompt or the end."""
        self.send({"cmd": command, "rest": list(rest), "for": self.talking})
        return self.receive(timeout)

    def interrupt(self) -> dict[str, Any]:
        """Twice, as the host does: of a signal just before a system call, Python hears when that has ended."""
        for timeout in (0.5, None):
            os.kill(self.talking or self.process.pid, self.hello["signals"]["interrupt"])
            with contextlib.suppress(TimeoutError):
                return self.receive(timeout)
        raise TimeoutError(f"not interrupted; printed: {self.printed[-2000:]!r}")

    def lines(self, *commands: str) -> list[int]:
        """The lines at which commands stop; 0: the end."""
        messages = [self.do(command) for command in commands]
        return [message["stop"]["line"] if message["t"] == "prompt" else 0 for message in messages]

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.channel.close()
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def __enter__(self) -> Debuggee:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


Debug = Callable[..., Debuggee]


def make_debug(python: str, root: Path) -> Iterator[Debug]:
    """Write files, start a program in their directory; all that were started are ended."""
    started = []

    def debug(entrypoint: str, files: dict[str, str] | None = None, **arguments: Any) -> Debuggee:
        for name, text in (files or {}).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        started.append(Debuggee(python, entrypoint, root, **arguments))
        return started[-1]

    yield debug
    for one in started:
        one.close()


@functools.cache
def has_pytest(python: str) -> bool:
    return subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0


@pytest.fixture(params=interpreters())
def python(request: pytest.FixtureRequest) -> str:
    """Each interpreter to test with."""
    return str(request.param)


@pytest.fixture
def debug(python: str, tmp_path: Path) -> Iterator[Debug]:
    """Start the debuggee with each interpreter."""
    yield from make_debug(python, tmp_path)


@pytest.fixture
def back(debug: Debug) -> Debug:
    """Start the debuggee with each interpreter, keeping its stops."""
    return lambda *arguments, **settings: debug(*arguments, rewind=True, **settings)


@pytest.fixture
def debug_tests(python: str, debug: Debug) -> Debug:
    """Start the debuggee with each interpreter that has pytest."""
    if not has_pytest(python):
        pytest.skip("this interpreter has no pytest")
    return debug


ALL = ["monitoring", "instrument", "settrace"] if sys.version_info >= (3, 12) else ["instrument", "settrace"]


FAST = [["instrument", "settrace"], ["monitoring", "settrace"], ["monitoring", "instrument", "settrace"]]


@pytest.fixture(
    params=[pytest.param(names, marks=() if names == ALL else pytest.mark.debugger) for names in (["settrace"], *FAST)],
    ids=lambda names: names[0] if len(names) < 3 else "all",
)
def backends(request: pytest.FixtureRequest, python: str) -> list[str]:
    """Which backends a session may use."""
    names: list[str] = request.param
    if "monitoring" in names and version_of(python) < (3, 12):
        pytest.skip("sys.monitoring came with Python 3.12")
    return names


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """A sandbox for the tests of a module."""
    with Session.start(LocalTerminal(), SandboxSpec(run="test")) as session:
        session.python = sys.executable
        yield session


@pytest.fixture
def env(session: Session) -> Environment:
    """An environment over it of two files alone, `app.py` and `test_app.py`."""
    for entry in list(session.walk(".", depth=1)):
        session.remove(entry.path)
    session.write("app.py", LOOP.encode())
    session.write("test_app.py", LOOP_TEST.encode())
    return Environment(session)


@pytest.fixture
def pdb(request: pytest.FixtureRequest) -> Iterator[Pdb]:
    """The tool, whose parameter is its timeout in seconds."""
    tool = Pdb(timeout=getattr(request, "param", 10))
    yield tool
    tool.close()
