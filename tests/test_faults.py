"""Sandboxes that break while an episode is played: a retry or a typed error each time, never a wrong score."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import python_in, reason_not_to_use, terminals

from debug_gym_core import ActionError, RepoEnv, SandboxError, SandboxLost
from debug_gym_core.errors import GradingError
from debug_gym_core.sandbox import connection
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Terminal
from debug_gym_core.testing import is_alive, wait_until
from debug_gym_core.testing.environments import Environments
from debug_gym_core.testing.sample import ENTRYPOINT, FILES, TESTS

Fault = Callable[[Terminal], None]

TOOLS = ("view", "rewrite", "edit", "eval", "pdb", "bash", "submit")

WAITING_TESTS = (
    TESTS
    + """

def test_waits():
    import pathlib, tempfile, time
    here = pathlib.Path(tempfile.gettempdir())
    (here / "started").touch()
    for _ in range(6000):
        if (here / "go").exists():
            break
        time.sleep(0.01)
    assert here
"""
)
"""The sample's tests, and one that waits until it is let go."""

COUNTED = tuple(f"test_shop.py::test_{name}" for name in ("nothing", "some", "waits"))
FIX = "edit shop.py old=prices[1:] new=prices"


def temporary(session: Session) -> str:
    """The directory for temporary files in a sandbox."""
    return str(Path(session.root).parent / "tmp") if session.terminal.name == "local" else "/tmp"


def guest_of(terminal: Terminal) -> int:
    """The guest's number on this machine."""
    if terminal.name == "docker":
        client, identifier = terminal._client, terminal._id  # type: ignore[attr-defined]
        rows = client.top(identifier, ps_args="-eo pid,ppid,uid,args")["Processes"]
        guests = [row for row in rows if "import os, sys" in row[3] and row[2] == "1000"]
        ours = {row[0] for row in guests}
        return next(int(row[0]) for row in guests if row[1] not in ours)
    if terminal.name == "bubblewrap":
        return terminal._sandbox._child  # type: ignore[attr-defined,no-any-return]
    return terminal._streams[-1].process.pid  # type: ignore[attr-defined,no-any-return]


def destroy(terminal: Terminal) -> None:
    """Take a sandbox away, with all that is in it."""
    if terminal.name == "docker":
        terminal._client.remove_container(terminal._id, force=True)  # type: ignore[attr-defined]
        return
    if terminal.name == "local":
        directory = Path(terminal.root).parent
        directory.rename(directory.with_name(f"gone-{directory.name}"))
    os.kill(guest_of(terminal), signal.SIGKILL)


def kill_guest(terminal: Terminal) -> None:
    """Let the guest end at once."""
    os.kill(guest_of(terminal), signal.SIGKILL)


def stop_guest(terminal: Terminal) -> None:
    """Have the guest do nothing any more."""
    os.kill(guest_of(terminal), signal.SIGSTOP)


class Injector:
    """Does something bad to sandboxes while the waiting test runs in them, and lets it go in those that are left."""

    def __init__(self, env: RepoEnv, fault: Fault, faults: int) -> None:
        self.env, self.fault, self.left = env, fault, faults
        self.failures: list[BaseException] = []
        self._done: set[int] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self._end.wait(0.01):
            factory = self.env._sandbox._factory  # None: the fault has closed the environment
            for session in list(factory._live) if factory is not None else ():
                if id(session) not in self._done:
                    try:
                        self._look(session)
                    except SandboxError:
                        continue
                    except BaseException as error:
                        self.failures.append(error)
                        return

    def _look(self, session: Session) -> None:
        if session.stat(f"{temporary(session)}/started") is None:
            return
        if self.left:
            self._done.add(id(session))
            self.left -= 1
            self.fault(session.terminal)
        else:
            session.write(f"{temporary(session)}/go", b"", follow=True)
            self._done.add(id(session))

    def __enter__(self) -> Injector:
        with contextlib.suppress(SandboxLost):  # destroyed before
            where = temporary(self.env.session)
            self.env.session.run(["rm", "-f", f"{where}/started", f"{where}/go"])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        assert not self.failures, self.failures
        assert self.left == 0


@pytest.fixture
def quick_to_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest that does not answer is given up after seconds, not after a minute."""
    monkeypatch.setattr(connection, "SILENCE", 0.5)
    monkeypatch.setattr(connection, "ANSWER_TIMEOUT", 3.0)


@pytest.fixture
def make_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RepoEnv]]:
    """Make environments, all of which are closed at the end."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    with Environments(tmp_path) as environments:

        def make(terminal: Any, **settings: Any) -> RepoEnv:
            python = python_in(terminal)
            return environments.make(TOOLS, terminal=terminal, python=python, **settings)

        yield make


@pytest.fixture
def play(make_env: Callable[..., RepoEnv], terminal: Any) -> Callable[..., RepoEnv]:
    """An environment whose tests wait until they are let go, with the bug mended already."""

    def play(**settings: Any) -> RepoEnv:
        settings = {"debug_entrypoint": ENTRYPOINT, "tests": COUNTED, "end_on_resolved": False, **settings}
        env = make_env(terminal, more_files={"test_shop.py": WAITING_TESTS}, **settings)
        env.step(FIX)
        assert b"+    for price in prices:" in env.patch
        return env

    return play


def said(env: RepoEnv) -> str:
    return " | ".join(f"{one.source}: {one.text}" for one in env.last_observations)


def test_a_sandbox_that_is_taken_away_is_replaced_and_the_step_done_again(play: Callable[..., RepoEnv]) -> None:
    env = play()
    fixed = env.patch
    lost = env.session.terminal
    with Injector(env, destroy, 1):
        _, reward, terminated, *_ = env.step("eval")
    assert (env.score, reward, terminated) == (3, 3.0, False), said(env)
    assert "The sandbox was lost" in said(env) and "with the files as they were last known" in said(env)
    assert env.session.terminal is not lost and not lost.alive()
    assert env.patch == fixed and env.failure is None

    line = len(WAITING_TESTS.splitlines())
    env.step("pdb b shop.py:12")
    with Injector(env, destroy, 1):
        env.step(f"pdb tbreak test_shop.py:{line}\nc")
    assert "The sandbox was lost" in said(env) and env.failure is None, said(env)
    assert f"test_shop.py:{line}" in env.last_observations[0].text, said(env)
    assert [str(one) for one in env.breakpoints] == ["1 at shop.py:12"]

    destroy(env.session.terminal)
    env.step("bash echo more >> hello.txt; tail -n 1 hello.txt")
    assert "more" in env.last_observations[0].text and "The sandbox was lost" in said(env)
    assert env.patch.count(b"+more") == 1 and fixed.splitlines()[-1] in env.patch

    kept = env.patch
    destroy(env.session.terminal)
    with Injector(env, destroy, 1):  # now the grading's
        env.step("submit")
    assert env.final_grade is not None, said(env)
    assert (env.final_grade.score, env.final_grade.resolved) == (3, True), env.final_grade
    assert env.patch == kept


@pytest.mark.faults
def test_a_sandbox_that_is_lost_again_is_an_error_with_its_cause(play: Callable[..., RepoEnv]) -> None:
    env = play()
    fixed = env.patch
    with Injector(env, destroy, 2):
        _, reward, terminated, *_ = env.step("eval")
    assert terminated and reward == 0 and isinstance(env.failure, SandboxLost), said(env)
    assert "The sandbox is gone; the episode cannot go on." in said(env)
    _, _, terminated, *_ = env.step("eval")
    assert terminated
    assert env.patch == fixed
    env.reset()
    assert env.failure is None and env.patch == b""


@pytest.mark.faults
def test_a_grading_that_loses_every_sandbox_is_no_score(
    play: Callable[..., RepoEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("debug_gym_core.environment.recovery.PAUSES", (0.0,))
    env = play()
    with Injector(env, destroy, 2), pytest.raises(GradingError, match="no sandbox lasted to the end of the grading"):
        env.grade()
    with Injector(env, destroy, 2):
        _, _, terminated, *_ = env.step("submit")
    assert terminated and isinstance(env.failure, GradingError) and env.final_grade is None
    for action in ("eval", "submit", "view"):
        _, reward, terminated, *_ = env.step(action)
        assert terminated and reward == 0 and "the episode cannot go on" in said(env)
    with Injector(env, lambda _: None, 0):
        assert env.grade().score == 3


def test_a_grading_that_somebody_stops_warns_of_nothing(
    play: Callable[..., RepoEnv], caplog: pytest.LogCaptureFixture
) -> None:
    env = play()
    with Injector(env, lambda _: env.close(), 1), pytest.raises(SandboxError):
        env.grade()
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


@pytest.mark.usefixtures("quick_to_notice")
@pytest.mark.faults
def test_a_guest_that_is_stopped_is_given_up(play: Callable[..., RepoEnv]) -> None:
    env = play()
    stopped: list[int] = []

    def stop(terminal: Terminal) -> None:
        stopped.append(guest_of(terminal))
        stop_guest(terminal)

    started = time.monotonic()
    with Injector(env, stop, 1):
        env.step("eval")
    assert time.monotonic() - started < 30
    if env.session.terminal.name == "bubblewrap":
        assert env.score == 3 and "The sandbox was lost" in said(env)
    else:  # the sandbox stands, another guest serves it
        assert "processes were lost and are started again" in said(env) and env.failure is None
        with Injector(env, stop, 0):
            env.step("eval")
        assert env.score == 3
    env.workspace.write_bytes("note", b"else the grade that confirmed is taken again")
    with Injector(env, stop, 1):
        assert env.grade().score == 3
    env.close()
    wait_until(lambda: not any(map(is_alive, stopped)), "a stopped guest is still there", 15)


@pytest.mark.faults
def test_a_guest_that_is_killed_costs_a_step(play: Callable[..., RepoEnv]) -> None:
    env = play()
    fixed = env.patch

    with Injector(env, kill_guest, 1):
        env.step("eval")
    if env.session.terminal.name == "bubblewrap":
        assert env.score == 3 and "The sandbox was lost" in said(env)
    else:
        assert "processes were lost and are started again" in said(env)
    assert env.patch == fixed and env.failure is None
    env.workspace.write_bytes("note", b"else the grade that confirmed is taken again")
    with Injector(env, kill_guest, 1):
        assert env.grade().score == 3


@pytest.mark.faults
def test_a_guest_that_is_killed_again_soon_costs_the_sandbox(play: Callable[..., RepoEnv]) -> None:
    """Also when a step worked in between: one whose memory is full of files lets some through."""
    env = play()
    fixed = env.patch

    with Injector(env, kill_guest, 1):
        env.step("eval")
    env.step("bash echo it works")
    assert "it works" in said(env)
    before = env.session.terminal
    with Injector(env, kill_guest, 1):
        env.step("eval")
    assert env.session.terminal is not before and "The sandbox was lost" in said(env), said(env)
    assert env.score == 3 and env.patch == fixed and env.failure is None


class Docker:
    """What only an engine can do to a container."""

    def __init__(self, env: RepoEnv) -> None:
        self.terminal: Any = env.session.terminal
        self.client: Any = self.terminal._client
        self.identifier: str = self.terminal._id


@pytest.fixture
def docker_image() -> str:

    reason = reason_not_to_use("docker")
    if reason:
        pytest.skip(reason)
    return os.environ["DEBUG_GYM_TEST_IMAGE"]


@pytest.fixture
def pausing(docker_image: str) -> Iterator[Fault]:
    """Pause a container; those that are there at the end are unpaused, so that they can be removed."""
    paused: list[str] = []

    def pause(terminal: Any) -> None:
        paused.append(terminal._id)
        terminal._client.pause(terminal._id)

    yield pause
    import docker

    client = docker.from_env()
    for identifier in paused:
        with contextlib.suppress(docker.errors.APIError):
            client.api.unpause(identifier)
    client.close()


@pytest.mark.docker
@pytest.mark.usefixtures("quick_to_notice")
@pytest.mark.faults
def test_a_paused_container_is_replaced_and_removed(
    make_env: Callable[..., RepoEnv], docker_image: str, pausing: Fault
) -> None:
    env = make_env({"docker": {"image": docker_image}}, more_files={"test_shop.py": WAITING_TESTS}, tests=COUNTED)
    env.step(FIX)
    first = Docker(env)
    started = time.monotonic()
    with Injector(env, pausing, 1):
        env.step("eval")
    assert env.score == 3 and "The sandbox was lost" in said(env)
    assert time.monotonic() - started < 40
    client = env.session.terminal._client  # type: ignore[attr-defined]
    assert client.containers(all=True, filters={"id": first.identifier}) == []
    second = Docker(env)
    pausing(env.session.terminal)
    started = time.monotonic()
    env.close()
    assert time.monotonic() - started < 30
    import docker

    again = docker.from_env()
    assert again.api.containers(all=True, filters={"id": second.identifier}) == []
    again.close()


@pytest.mark.docker
@pytest.mark.faults
def test_a_container_that_runs_out_of_memory_costs_no_score(
    make_env: Callable[..., RepoEnv], docker_image: str
) -> None:
    """Files in memory count: nothing that is killed gives any of it back, until the guest is killed too."""
    env = make_env(
        {"docker": {"image": docker_image, "memory": "128m", "workspace_size": "1g"}},
        more_files={"test_shop.py": TESTS},
        tests=COUNTED[:2],
    )
    env.step(FIX)
    fixed = env.patch
    for _ in range(10):  # the kernel chooses whom it kills
        env.step("bash head -c 600m /dev/zero > /tmp/fill; head -c 600m /dev/zero > fill")
        assert env.failure is None
        if "lost" in said(env):
            break
    for _ in range(3):
        env.step("eval")
        if env.score == 2:
            break
        env.step("bash rm -f fill /tmp/fill")
    assert env.score == 2, said(env)
    assert fixed.splitlines()[-1] in env.patch
    assert env.grade().score == 2


@pytest.mark.faults
@pytest.mark.parametrize("name", terminals("bubblewrap", "docker"))
def test_a_full_disk_is_said_and_does_not_spoil_the_grade(
    make_env: Callable[..., RepoEnv], name: str, request: pytest.FixtureRequest
) -> None:
    settings: dict[str, Any] = {"workspace_size": "8m"}
    if name == "docker":
        settings["image"] = request.getfixturevalue("docker_image")
    env = make_env({name: settings}, more_files={"test_shop.py": TESTS}, tests=COUNTED[:2])
    env.step(FIX)
    env.step("bash for n in 1 2 3; do head -c 5m /dev/zero > junk$n; done; true")
    fixed = env.patch
    long = "x" * 100_000
    observation, *_ = env.step({"name": "rewrite", "arguments": {"path": "new.txt", "new_code": long}})
    assert "No space left on device" in observation["text"] and env.last_observations[0].error
    observation, *_ = env.step({"name": "edit", "arguments": {"path": "hello.txt", "old": "hello", "new": long}})
    assert "No space left on device" in observation["text"]
    assert env.session.read("hello.txt") == str(FILES["hello.txt"]).encode()
    new = f"--- /dev/null\n+++ b/zz.txt\n@@ -0,0 +1 @@\n+{long}\n"
    patch = f"--- a/hello.txt\n+++ b/hello.txt\n@@ -1,2 +1,2 @@\n-hello, world\n+bye\n and good night\n{new}".encode()
    with pytest.raises(ActionError, match="No space left on device"):
        env.workspace.apply(patch)
    assert env.session.read("hello.txt") == str(FILES["hello.txt"]).encode(), "all of a patch or nothing"
    env.step("eval")
    assert env.score == 2, said(env)
    env.step("pdb b shop.py:6")
    env.step("pdb c")
    assert "shop.py" in env.last_observations[0].text and env.failure is None, said(env)
    env.step("bash for n in 1 2 3; do head -c 5m /dev/zero > /tmp/junk$n; done; true")
    env.step("eval")
    assert "FileNotFoundError" in env.last_observations[0].text and env.failure is None, said(env)
    env.step("bash echo still here")
    assert "still here" in env.last_observations[0].text
    assert env.patch == fixed
    grade = env.grade()
    assert (grade.score, grade.resolved) == (2, True), grade
