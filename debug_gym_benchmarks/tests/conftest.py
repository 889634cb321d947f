"""Where tests of several benchmarks run their tasks, and what those of checkouts fetch."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served_history import Fetching, History, Line, free_port, reachable, until
from support import reason_not_to_use

from debug_gym_benchmarks.checkouts import Published
from debug_gym_core.testing.environments import Environments, unusable


@pytest.fixture(scope="session")
def sandbox() -> str:
    """The terminal for tasks whose repository is on this machine."""
    if reason := reason_not_to_use("bubblewrap"):
        pytest.skip(reason)
    return "bubblewrap"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def environments(tmp_path: Path, cache: Path) -> Iterator[Environments]:
    """Environments for tasks that come as an image."""
    if reason := unusable("docker"):
        pytest.skip(reason)
    with Environments(tmp_path, "docker") as made:
        yield made


@pytest.fixture
def kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and a git that knows no configuration of ours."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return cache / "debug-gym" / "benchmarks"


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history")


@pytest.fixture
def daemon(history: History) -> Iterator[int]:
    """The port of a git server that has the history as `/history`."""
    program = Path(subprocess.check_output(["git", "--exec-path"], text=True).strip()) / "git-daemon"
    if not program.is_file():
        pytest.skip("needs git's own server: install the package that has git-daemon")
    port = free_port()
    base = history.directory.parent
    options = ["--reuseaddr", "--export-all", f"--base-path={base}", "--listen=127.0.0.1", f"--port={port}"]
    options += ["--max-connections=0"]  # any number, one after the other too
    process = subprocess.Popen([program, *options, str(base)], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        until(functools.partial(reachable, port))
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def line(daemon: int) -> Iterator[Line]:
    made = Line(daemon)
    yield made
    made.close()


@pytest.fixture
def fetching() -> Iterator[Callable[..., Fetching]]:
    started: list[Fetching] = []

    def start(published: Published, most: str = "") -> Fetching:
        started.append(Fetching(published, most))
        return started[-1]

    yield start
    for one in started:
        one.kill()
