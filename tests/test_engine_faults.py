"""A Docker engine that is stopped, started again or hangs while an episode is played in it: one of our own."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import reason_not_to_use
from test_faults import COUNTED, FIX, TOOLS, WAITING_TESTS, Injector, said

from debug_gym_core import RepoEnv, SandboxLost
from debug_gym_core.environment import recovery
from debug_gym_core.errors import GradingError
from debug_gym_core.sandbox import connection
from debug_gym_core.sandbox.terminal import Terminal
from debug_gym_core.testing import wait_until
from debug_gym_core.testing.environments import Environments
from debug_gym_terminal_docker import engine as engines

pytestmark = [
    pytest.mark.docker,
    pytest.mark.faults,
    # The SDK leaves sockets open when an engine that is ending, or hangs, does not answer.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


class Engine:
    """A dockerd that is nobody else's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address = f"unix://{directory}/docker.sock"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        (self.directory / "docker.pid").unlink(missing_ok=True)
        arguments = [
            # In a network of its own: without a bridge of its own it removes the other engine's.
            "unshare", "--net",
            "dockerd", f"--data-root={self.directory}/data", f"--exec-root={self.directory}/exec", "-H", self.address,
            f"--pidfile={self.directory}/docker.pid", "--bridge=none", "--iptables=false", "--ip6tables=false",
        ]  # fmt: skip
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self.answers, f"the engine does not answer: {(self.directory / 'log').read_text()[-2000:]}", 90)

    def answers(self) -> bool:
        return subprocess.run(["docker", "-H", self.address, "version"], capture_output=True).returncode == 0

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        """Have it end in order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(60)

    def remove(self) -> None:
        """End it with all that it has."""
        if self.process is not None and self.process.poll() is not None:
            self.start()
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            command = ["docker", "-H", self.address]
            left = subprocess.run([*command, "ps", "-aq"], capture_output=True, text=True).stdout.split()
            subprocess.run([*command, "rm", "-f", *left], capture_output=True)
            self.stop()
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):
            if line.split()[1].startswith(str(self.directory)):
                subprocess.run(["umount", "-l", line.split()[1]], check=True)
        shutil.rmtree(self.directory)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The engine, with the tests' image in it."""
    reason = reason_not_to_use("docker")
    if reason is None and (os.geteuid() != 0 or shutil.which("dockerd") is None):
        reason = "an engine of our own needs root and dockerd: apt-get install docker.io"
    if reason:
        pytest.skip(reason)
    # A short path: sockets have no more than 107 characters.
    directory = tmp_path_factory.mktemp("engine")
    own = Engine(directory)
    try:
        image = os.environ["DEBUG_GYM_TEST_IMAGE"]
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as save:
            subprocess.run(["docker", "-H", own.address, "load"], stdin=save.stdout, check=True, capture_output=True)
        assert save.returncode == 0
        yield own
    finally:
        own.remove()


@pytest.fixture
def env(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RepoEnv]:
    monkeypatch.setenv("DOCKER_HOST", engine.address)
    monkeypatch.setattr(connection, "SILENCE", 1.0)
    monkeypatch.setattr(connection, "ANSWER_TIMEOUT", 5.0)
    terminal = {"docker": {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]}}
    python = os.environ.get("DEBUG_GYM_TEST_PYTHON")
    with Environments(tmp_path, terminal) as environments:
        env = environments.make(TOOLS, more_files={"test_shop.py": WAITING_TESTS}, tests=COUNTED, python=python)
        env.step(FIX)
        yield env
    gc.collect()


def again(engine: Engine, how: Callable[[], None]) -> Callable[[Terminal], None]:
    """A fault: the engine ends and is started again."""

    def fault(_: Terminal) -> None:
        how()
        assert engine.process is not None
        engine.process.wait(60)
        engine.start()

    return fault


def test_an_engine_that_is_restarted_costs_a_step(env: RepoEnv, engine: Engine) -> None:
    fixed = env.patch
    with Injector(env, again(engine, engine.stop), 1):
        env.step("eval")
    assert env.score == 3 and env.failure is None, said(env)
    assert "The sandbox was lost" in said(env) and env.patch == fixed


def test_an_engine_that_is_restarted_during_the_grading_costs_no_score(env: RepoEnv, engine: Engine) -> None:
    with Injector(env, again(engine, engine.stop), 1):
        grade = env.grade()
    assert (grade.score, grade.resolved) == (3, True)


def test_an_engine_that_stays_away_is_an_error_with_its_cause(
    env: RepoEnv, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "PAUSES", (0.0, 0.2))
    fixed = env.patch
    try:
        with Injector(env, lambda _: engine.stop(), 1):
            _, reward, terminated, *_ = env.step("eval")
        assert terminated and reward == 0
        assert isinstance(env.failure, SandboxLost) and "no Docker engine answers" in str(env.failure)
        assert env.patch == fixed
        with pytest.raises(GradingError, match="no Docker engine answers"):
            env.grade()
    finally:
        engine.start()


def test_an_engine_that_hangs_is_an_error_in_bounded_time(
    env: RepoEnv, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "PAUSES", (0.0,))
    for name in ("TIMEOUT", "CONNECT_TIMEOUT", "STOP_TIMEOUT"):
        monkeypatch.setattr(engines, name, 3.0)
    fixed = env.patch
    engines.limit(env.session.terminal._client, 3.0)  # type: ignore[attr-defined]
    started = time.monotonic()
    try:
        with Injector(env, lambda _: engine.signal(signal.SIGSTOP), 1):
            _, reward, terminated, *_ = env.step("eval")
        assert terminated and reward == 0 and isinstance(env.failure, SandboxLost), said(env)
        assert time.monotonic() - started < 90
        assert env.patch == fixed
        env.close()
        assert time.monotonic() - started < 120
    finally:
        engine.signal(signal.SIGCONT)
