"""A terminal without any plugin: the guest as a child process in a temporary directory; and the command line to try.

DEBUG_GYM_TEST_PYTHONS: interpreters, colon-separated, that the guest is tried on; default: the one that runs the tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from asking_runs import Serve, serving
from grading_bench import ENTRYPOINT, REPOSITORY, Bench, Make
from live_workspace import Live, make_linked_repository
from quiz_components import make_quiz_plugins
from reported_tests import RunTests, make_run_tests
from support import call_debug_gym, interpreters, reason_not_to_use
from toy_runs import Onlooker, Play, playing
from warm_programs import Programs

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.plugins import load_plugins
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec, Terminal
from debug_gym_core.workspace.snapshot import Snapshot
from debug_gym_terminal_local import LocalTerminal


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
    """A terminal whose sandbox is a temporary directory.

    Attributes:
        before: a command that ends by executing its further arguments: the guest's
    """

    name = "child"
    isolates = False

    def __init__(
        self, python: str = sys.executable, environment: dict[str, str] | None = None, before: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.python = python
        self.before = before
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
        self.streams.append(ChildStream([*self.before, *argv], self.root, self.environment, self.directory / "log"))
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
        try:
            return (self.directory / "log").read_text()
        except FileNotFoundError:  # it was stopped
            return ""


@pytest.fixture(params=interpreters())
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter for the guest."""
    return str(request.param)


@pytest.fixture
def open_session(python: str) -> Iterator[Callable[..., Session]]:
    """Start sessions that end with the test."""
    with contextlib.ExitStack() as stack:

        def start(environment: dict[str, str] | None = None, before: Sequence[str] = ()) -> Session:
            terminal = ChildTerminal(python, environment, before)
            return stack.enter_context(Session.start(terminal, SandboxSpec(run="test")))

        yield start


@pytest.fixture
def session(open_session: Callable[..., Session]) -> Session:
    """A session in an empty sandbox."""
    return open_session()


@pytest.fixture
def programs(open_session: Callable[..., Session], python: str) -> Programs:
    return Programs(open_session(), python)


@pytest.fixture
def venv(tmp_path: Path, programs: Programs) -> Path:
    """An environment of the interpreter, into which things are installed; returns its site-packages."""
    subprocess.run([programs.python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    programs.python = str(tmp_path / "venv/bin/python")
    [directory] = (tmp_path / "venv/lib").glob("python*/site-packages")
    return directory


@pytest.fixture(scope="module")
def local_sandbox() -> Iterator[Session]:
    """A session in the `local` terminal, for the tests of a module."""
    with Session.start(LocalTerminal(), SandboxSpec(run="test")) as session:
        yield session


@pytest.fixture
def local_session(local_sandbox: Session) -> Session:
    """That session, in an empty directory."""
    for entry in local_sandbox.walk(depth=1):
        local_sandbox.remove(entry.path)
    return local_sandbox


@pytest.fixture
def run_tests(local_session: Session, python: str) -> RunTests:
    return make_run_tests(local_session, python)


@pytest.fixture
def run(local_session: Session) -> RunTests:
    """The same with the interpreter of the session alone."""
    return make_run_tests(local_session)


@pytest.fixture
def linked_repository(tmp_path: Path) -> Path:
    return make_linked_repository(tmp_path / "repo")


@pytest.fixture
def live(local_sandbox: Session, linked_repository: Path) -> Iterator[Live]:
    with Snapshot.take(linked_repository) as snapshot:
        yield Live(local_sandbox, snapshot)


# Configs and runs


@pytest.fixture(scope="module")
def quiz_plugins() -> Plugins:
    return make_quiz_plugins()


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[[str], str]:
    """Write a file of settings; returns where it is."""

    def write(text: str) -> str:
        path = tmp_path / "config.yaml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture(scope="module")
def toy_plugins() -> Iterator[Plugins]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
        yield load_plugins(files=[TOY], strict=True)


@pytest.fixture(scope="module")
def wire_plugins() -> Iterator[Plugins]:
    """Those of the toy, and a model behind a service."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
        yield load_plugins(files=[TOY, TOY.with_name("wire_plugin.py")], strict=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home without settings."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LLM_CONFIG_FILE_PATH", raising=False)
    return tmp_path / "home"


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    yield from serving(tmp_path, monkeypatch)


@pytest.fixture
def onlooker() -> Onlooker:
    return Onlooker()


@pytest.fixture
def play(toy_plugins: Plugins, onlooker: Onlooker, tmp_path: Path) -> Iterator[Play]:
    """Play the toy benchmark in the directory `run`."""
    yield from playing(toy_plugins, onlooker, tmp_path / "run")


# The command line


class Done(NamedTuple):
    status: int
    out: str
    err: str


Inside = Callable[..., Done]
TOY = Path(__file__).parent / "toy_plugin.py"
PROGRAM = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = '/bin/debug-gym'; from debug_gym_core.cli import main; main()",
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("DEBUG_GYM", "COLUMNS", "NO_COLOR"))},
        "DEBUG_GYM_PLUGINS": "core,terminal-local",
        "HOME": str(tmp_path),
        "TERM": "xterm",
    }


@pytest.fixture
def gym(tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    def gym(*arguments: str, toy: bool = True, **extra: Any) -> subprocess.CompletedProcess[str]:
        options = ["--plugin-file", str(TOY)] if toy else []
        return subprocess.run(
            [*PROGRAM, *arguments, *options],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=120,
            **extra,
        )

    return gym


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inside:
    """A command in this process, for the many that end at once: its status, output and errors."""
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local")
    monkeypatch.chdir(tmp_path)

    def inside(*arguments: str) -> Done:
        done = call_debug_gym([*arguments, "--plugin-file", TOY], tmp_path)
        return Done(done.returncode, done.stdout, done.stderr)

    return inside


@pytest.fixture
def blocked(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A run whose task `b` waits for ever once it has started (until the file `go` is there)."""
    processes: list[subprocess.Popen[str]] = []
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    commands = json.dumps({"b": f"test -e {tmp_path}/go || {{ echo x > {fifo}; sleep 600; }}"})

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PROGRAM, "run", "toy", "-o", "out", "--plugin-file", str(TOY), "-p", f"agent.commands={commands}",
             "-p", f"agent.played={tmp_path}/played", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            env=environment,
        )  # fmt: skip
        processes.append(process)
        assert fifo.read_text() == "x\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


GRADED_ON = ["local", *(pytest.param(name, marks=pytest.mark.grading) for name in ("bubblewrap", "docker"))]


@pytest.fixture(params=GRADED_ON)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes repositories that are graded on a terminal; the gate tries `local` alone."""
    reason = reason_not_to_use(request.param)
    if reason:
        pytest.skip(reason)
    made: list[Bench] = []

    def make(files: Mapping[str, str] = REPOSITORY, entrypoint: str = ENTRYPOINT, allowed: Sequence[str] = ()) -> Bench:
        made.append(Bench(tmp_path, files, entrypoint, allowed, request.param))
        return made[-1]

    yield make
    for one in made:
        one.snapshot.close()


@pytest.fixture
def bench(make: Make) -> Bench:
    return make()
