"""`debug-gym doctor` with the terminals that are installed here."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core import load_plugins


def doctor(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).parent / "debug-gym", "doctor", *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)


def terminals(done: subprocess.CompletedProcess[str]) -> Mapping[str, Any]:
    return {item["name"]: item for item in json.loads(done.stdout) if item["kind"] == "terminal"}


@pytest.fixture
def deaf_engine() -> Iterator[str]:
    """The address of an engine that takes connections and never answers."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as door:
        path = f"{directory}/engine.sock"
        door.bind(path)
        door.listen(5)
        yield f"unix://{path}"


def test_every_terminal_is_there_and_the_status_says_whether_one_isolates() -> None:
    done = doctor("--json")
    found = terminals(done)
    for name, backend in load_plugins().terminals.items():
        state = found[name]["state"]
        assert state in ("ok", "limited", "failed") if backend.unavailable() is None else state != "ok", name
    isolating = [name for name in ("bubblewrap", "docker") if found[name]["state"] in ("ok", "limited")]
    assert done.returncode == (0 if isolating else 4)
    assert done.stderr == ""
    for name in isolating:
        assert any(digit in found[name]["detail"] for digit in "0123456789"), found[name]  # its version


@pytest.mark.faults
def test_an_engine_that_hangs_holds_nothing_up(deaf_engine: str) -> None:
    began = time.monotonic()
    done = doctor("--json", DOCKER_HOST=deaf_engine)
    spent = time.monotonic() - began
    found = terminals(done)
    assert found["docker"]["state"] in ("failed", "missing") and "answer" in found["docker"]["detail"]
    assert found["local"]["state"] == "ok"
    assert spent < 10, "it waits for a minute otherwise; under two seconds on an idle machine"


@pytest.mark.faults
def test_clean_with_an_engine_that_hangs(deaf_engine: str, tmp_path: Path) -> None:
    done = doctor("--clean", DOCKER_HOST=deaf_engine, TMPDIR=str(tmp_path))
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or "docker: no answer" in done.stderr


@pytest.mark.people
def test_what_a_benchmark_needs_is_looked_for_in_the_tasks_interpreter(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    found = json.loads(doctor("--json", VIRTUAL_ENV=str(tmp_path / "bare")).stdout)
    (nightmare,) = [item for item in found if item["name"] == "mini_nightmare"]
    assert nightmare["state"] == "missing"
    assert f"{tmp_path}/bare/bin/python has no pytest, pandas; get them with: " in nightmare["detail"]
