"""An engine that hangs, at whatever it is asked, costs a bounded time and ends in a typed error."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_proxy import EngineProxy

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.testing import wait_until
from debug_gym_terminal_docker import DockerTerminal, engine, python

pytestmark = pytest.mark.faults

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")
RUN = f"limits-{os.getpid()}"
SOON = 30.0
"""Seconds within which a limit of one second, however many of them in a row, must have shown."""


@pytest.fixture
def client() -> Iterator[Any]:
    """A connection to the real engine."""
    if not IMAGE:
        pytest.skip("set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one")
    reason = DockerTerminal.unavailable()
    if reason:
        pytest.skip(reason)
    client = engine.connect()
    yield client
    client.close()


@pytest.fixture
def proxy(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineProxy]:
    """An engine that can hang; ours wait a second for it once it does."""
    with EngineProxy(tmp_path / "engine.sock") as proxy:
        monkeypatch.setenv("DOCKER_HOST", proxy.url)
        yield proxy


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes every limit a second."""

    def shorten() -> None:
        for name in ("TIMEOUT", "CONNECT_TIMEOUT", "STOP_TIMEOUT"):
            monkeypatch.setattr(engine, name, 1.0)

    return shorten


def ours(client: Any) -> list[Any]:
    found: list[Any] = client.containers(all=True, filters={"label": ["app=debug-gym", f"run={RUN}"]})
    return found


def test_an_engine_that_accepts_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, impatient: Callable[[], None]
) -> None:
    impatient()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "silent.sock"))
        server.listen(8)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/silent.sock")
        began = time.monotonic()
        terminal = DockerTerminal(image="any")
        with pytest.raises(
            RequirementError, match=r"silent\.sock does not answer \(waited 1 s\); see whether it hangs"
        ):
            terminal.start(SandboxSpec(run=RUN))
        terminal.stop()
        assert DockerTerminal.clean() == ()
        assert engine.unavailable() is not None
        assert time.monotonic() - began < SOON


@pytest.mark.parametrize(
    "request_",
    [
        "POST .*/containers/create",
        "POST .*/containers/[^/]+/attach",
        "POST .*/containers/[^/]+/start",
        "GET .*/containers/[^/]+/json",
        "POST .*/containers/[^/]+/exec",
        "POST .*/exec/[^/]+/start",
    ],
)
def test_a_start_that_hangs(client: Any, proxy: EngineProxy, impatient: Callable[[], None], request_: str) -> None:
    python._found.clear()
    impatient()
    proxy.hangs = request_
    terminal = DockerTerminal(image=IMAGE)
    began = time.monotonic()
    with pytest.raises(SandboxError, match=r"(did not answer in time; does it hang\?|said nothing within 1 s)$"):
        terminal.start(SandboxSpec(run=RUN))
    assert time.monotonic() - began < SOON
    assert not terminal.alive()
    terminal.stop()
    wait_until(lambda: ours(client) == [], seconds=60)


def test_a_container_whose_making_was_not_answered_is_removed(
    client: Any, proxy: EngineProxy, impatient: Callable[[], None]
) -> None:
    impatient()
    proxy.swallows = "POST .*/containers/create"
    with pytest.raises(SandboxError, match="did not answer in time"):
        DockerTerminal(image=IMAGE).start(SandboxSpec(run=RUN))
    wait_until(lambda: ours(client) == [], seconds=60)


def test_looking_for_a_python_that_hangs(client: Any, proxy: EngineProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "SEARCH_TIMEOUT", 1.0)
    began = time.monotonic()
    terminal = DockerTerminal(image=IMAGE, tmpfs=["/opt/odd"])
    monkeypatch.setattr(python, "_SEARCH", "sleep 1000")
    with pytest.raises(SandboxError, match=r"/bin/sh in the container did not end within 1 s"):
        terminal.start(SandboxSpec(run=RUN, python="odd"))
    assert time.monotonic() - began < SOON
    wait_until(lambda: ours(client) == [], seconds=60)


def test_a_guest_that_cannot_be_started_in_time(client: Any, proxy: EngineProxy, impatient: Callable[[], None]) -> None:
    terminal = DockerTerminal(image=IMAGE)
    terminal.start(SandboxSpec(run=RUN))
    try:
        assert terminal._client is not None
        engine.limit(terminal._client, 1.0)
        for request in ("POST .*/containers/[^/]+/exec", "POST .*/exec/[^/]+/start"):
            proxy.hangs = request
            began = time.monotonic()
            with pytest.raises(SandboxError, match="the guest did not start: the engine did not answer in time"):
                terminal.open(["cat"])
            assert time.monotonic() - began < SOON
        proxy.hangs = "GET .*/containers/[^/]+/json"
        assert not terminal.alive()
    finally:
        proxy.hangs = None
        terminal.stop()


def test_stop_of_an_engine_that_hangs_is_bounded_and_the_container_ends(
    client: Any, proxy: EngineProxy, impatient: Callable[[], None]
) -> None:
    terminal = DockerTerminal(image=IMAGE)
    session = Session.start(terminal, SandboxSpec(run=RUN))
    impatient()
    proxy.hangs = "DELETE "
    began = time.monotonic()
    with pytest.raises(SandboxError, match=r"was not removed: the engine did not answer in time"):
        session.close()
    assert time.monotonic() - began < SOON
    terminal.stop()
    wait_until(lambda: ours(client) == [], seconds=60)


def test_a_frozen_engine_hangs_neither_a_command_nor_the_end(
    client: Any, proxy: EngineProxy, impatient: Callable[[], None]
) -> None:
    terminal = DockerTerminal(image=IMAGE)
    session = Session.start(terminal, SandboxSpec(run=RUN))
    assert session.run("echo up").output == "up\n"
    impatient()
    assert terminal._client is not None
    engine.limit(terminal._client, 1.0)
    proxy.freeze()
    began = time.monotonic()
    with pytest.raises(SandboxLost):
        session.run("echo hidden", timeout=1)
    with pytest.raises(SandboxError):
        session.close()
    assert time.monotonic() - began < 60 + SOON


def test_cleaning_is_bounded(client: Any, proxy: EngineProxy, impatient: Callable[[], None]) -> None:
    impatient()
    proxy.hangs = "GET .*/containers/json"
    began = time.monotonic()
    with pytest.raises(SandboxError, match="the containers cannot be listed: the engine did not answer in time"):
        DockerTerminal.clean()
    assert time.monotonic() - began < SOON
