"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixing import make_project
from person_at_terminal import Play, playing
from setups import Make, opening, settings_of
from support import reason_not_to_use, terminals

from debug_gym_core.plugins import default_plugins
from debug_gym_core.sandbox import kept_setups


@pytest.fixture(scope="session")
def sandbox() -> str:
    """Name of the terminal for tests that need an isolated one: bubblewrap."""
    reason = reason_not_to_use("bubblewrap")
    if reason:
        pytest.skip(reason)
    return "bubblewrap"


@pytest.fixture(params=terminals())
def terminal(request: pytest.FixtureRequest) -> object:
    """Each terminal, as `make` takes it."""
    reason = reason_not_to_use(request.param)
    if reason:
        pytest.skip(reason)
    return {"docker": {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]}} if request.param == "docker" else request.param


@pytest.fixture
def project(sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's repository for `debug-gym fix`, and a home of theirs without settings."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LLM_CONFIG_FILE_PATH", raising=False)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a person")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "person@example.org")
    return make_project(tmp_path / "project")


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Have a person play at a terminal, with the arguments that they type after `debug-gym`."""
    yield from playing(tmp_path)


# Setting up


@pytest.fixture
def setup_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where setups are kept in this test; whatever is kept at its end is removed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path / "cache" / "debug-gym" / "setup"
    assert kept_setups.remove_all(default_plugins().terminals)[1] == []


@pytest.fixture(params=terminals("bubblewrap", "docker"))
def keeping(request: pytest.FixtureRequest) -> str:
    """Each terminal that keeps what setting up made."""
    settings_of(request.param)
    return str(request.param)


@pytest.fixture(scope="session")
def installer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python of this machine with pip; one for all workers, since it takes seconds to make and no test changes it."""
    own = tmp_path_factory.getbasetemp()
    place = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    directory = place / "installer"
    with (place / "installer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "made").exists():
            subprocess.run([sys.executable, "-m", "venv", directory], check=True)
            (directory / "made").touch()
    return str(directory / "bin" / "python")


@pytest.fixture
def open_env(setup_cache: Path, tmp_path: Path, installer: str) -> Iterator[Make]:
    """Make an environment of a repository and reset it; all are closed at the end."""
    yield from opening(tmp_path, installer)
