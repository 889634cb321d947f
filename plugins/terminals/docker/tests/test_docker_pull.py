"""Images that are not there are got by a real engine, from a registry that works or does not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pexpect
import pytest
from registry import NAME, Registry

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.progress import listening, wanted_while
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.testing import wait_until
from debug_gym_terminal_docker import DockerTerminal, pull
from debug_gym_terminal_docker.pull import Progress

pytestmark = pytest.mark.terminals

COMMAND = [
    str(Path(sys.executable).parent / "debug-gym"), "run", "mini_nightmare", "--task", "counter",
    "--agent", "noop_agent", "--terminal", "docker",
]  # fmt: skip
Serve = Callable[..., Registry]


@pytest.fixture
def serve(engine: Any) -> Iterator[Serve]:
    """Starts registries; what was got from them is removed."""
    registries: list[Registry] = []

    def start(behaviour: str = "well", **how: Any) -> Registry:
        registries.append(Registry(behaviour, **how).__enter__())
        return registries[-1]

    yield start
    for registry in registries:
        registry.__exit__(None, None, None)
        if engine.images(registry.image):
            engine.remove_image(registry.image)


def test_a_missing_image_is_got_with_progress(engine: Any, serve: Serve) -> None:
    registry = serve(size=2_000_000)
    lines: list[tuple[str, str | None]] = []
    with listening(lambda what, line: lines.append((what, line))):
        pull.get(registry.image, 60, 30)
    assert engine.inspect_image(registry.image)["RepoTags"] == [registry.image]
    assert {what for what, _ in lines} == {registry.image}
    assert lines[0][1] == f"pulling {registry.image}" and lines[-1][1] is None
    assert re.fullmatch(rf"pulled {registry.image}: 6 MB in \d+ s", lines[-2][1] or "")
    assert any(re.search(r"\d of 3 layers, ", line or "") for _, line in lines)


def test_a_start_gets_it_unless_it_may_not(engine: Any, serve: Serve) -> None:
    registry = serve()
    with pytest.raises(RequirementError, match=f"docker pull {registry.image}"):
        DockerTerminal(image=registry.image, pull="never").start(SandboxSpec(run="pull"))
    assert not registry.asked
    with pytest.raises(SandboxError, match="its image needs a working sh"):  # it has but three files
        DockerTerminal(image=registry.image).start(SandboxSpec(run="pull"))
    assert engine.images(registry.image)


def test_many_get_it_once(serve: Serve) -> None:
    registry = serve("slowly")
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(pull.get, registry.image, 60, 30) for _ in range(8)]:
            done.result(90)
    blobs = {path: count for path, count in registry.asked.items() if "/blobs/" in path}
    assert len(blobs) == 4 and set(blobs.values()) == {1}


@pytest.mark.parametrize("behaviour", ["stalls", "closes", "silent"])
def test_a_pull_that_stalls_is_given_up_and_says_so(serve: Serve, behaviour: str) -> None:
    registry = serve(behaviour)
    patience = 9 if behaviour == "stalls" else 3  # a busy engine takes its time to tell of the layers
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(pull.get, registry.image, 600, patience) for _ in range(2)]:
            with pytest.raises(RequirementError) as caught:
                done.result(120)
    assert time.monotonic() - began < 60
    stalled = rf"it stalled: nothing came for {patience} s, terminal\.pull_stall"
    assert re.search(
        rf"cannot be got: ({stalled}|the engine did not answer in time)",
        str(caught.value),
    )
    assert str(caught.value).endswith(f"; try: docker pull {registry.image}") and "\n" not in str(caught.value)
    if behaviour == "stalls":
        assert "of 3 layers, " in str(caught.value)
    # The engine is not asked on and on: its connection is given up.
    wait_until(lambda: not [one for one in threading.enumerate() if one.name == "debug-gym-pull"], seconds=60)


def test_a_pull_that_takes_too_long_is_given_up(serve: Serve) -> None:
    registry = serve("slowly", size=3_000_000)
    with pytest.raises(RequirementError, match=r"it took longer than 1 s, terminal\.pull_timeout"):
        pull.get(registry.image, 1, 60)


def test_who_no_more_waits_for_it_holds_nobody_up(serve: Serve) -> None:
    """Another one who does gets it."""
    registry = serve("slowly", size=3_000_000)
    wanted = [True, True]
    began = threading.Event()

    def get(number: int) -> None:
        with wanted_while(lambda: wanted[number]):
            pull.get(registry.image, 60, 30)

    with ThreadPoolExecutor(2) as pool, listening(lambda what, line: began.set()):
        first = pool.submit(get, 0)
        assert began.wait(60)
        second = pool.submit(get, 1)
        wanted[0] = False
        with pytest.raises(SandboxLost, match="nobody waits"):
            first.result(60)
        second.result(120)


def test_one_interrupt_ends_a_run_that_waits_for_an_image(serve: Serve, tmp_path: Path) -> None:
    registry = serve("stalls")
    settings = [f"terminal.image={registry.image}", "terminal.pull_timeout=3600", "terminal.pull_stall=3600"]
    command = [*COMMAND, *(word for one in settings for word in ("-p", one)), "-o", str(tmp_path / "run")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with run:
        try:
            assert run.stderr is not None and run.stderr.readline() == f"pulling {registry.image}\n"
            run.send_signal(signal.SIGINT)
            _, err = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 130 and "go on with: debug-gym run --resume" in err


@pytest.mark.parametrize(
    ("behaviour", "words"), [("lacks", "manifest unknown|not found"), ("refuses", "no basic auth|unauthorized|denied")]
)
def test_a_registry_that_does_not_give_it(serve: Serve, behaviour: str, words: str) -> None:
    registry = serve(behaviour)
    with pytest.raises(RequirementError, match=words) as caught:
        pull.get(registry.image, 60, 30)
    assert str(caught.value).startswith(f"the image {registry.image} is not here and cannot be got: ")
    assert "\n" not in str(caught.value)


def test_nobody_serves_it(engine: Any) -> None:
    with pytest.raises(RequirementError, match="connection refused"):
        pull.get(f"127.0.0.1:1/{NAME}", 60, 30)


def test_a_pipe_gets_a_few_lines(serve: Serve, tmp_path: Path) -> None:
    registry = serve("slowly")
    command = [*COMMAND, "-p", f"terminal.image={registry.image}", "-o", str(tmp_path / "run")]
    ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lines = [line for line in ran.stderr.splitlines() if registry.image in line and line.startswith("pull")]
    assert lines[0] == f"pulling {registry.image}" and lines[-1].startswith(f"pulled {registry.image}: ")
    assert len(lines) < 5 and "\x1b" not in ran.stderr
    assert json.loads((tmp_path / "run" / "results.jsonl").read_text())["status"] == "error"


def test_a_terminal_shows_it_below_the_table(serve: Serve, tmp_path: Path) -> None:
    registry = serve("slowly", size=3_000_000)
    command = [*COMMAND, "-p", f"terminal.image={registry.image}", "-o", str(tmp_path / "run")]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "40"}
    screen = pexpect.spawn(
        command[0], command[1:], env=environment, encoding="utf-8", timeout=120, dimensions=(40, 160)
    )
    try:
        screen.expect(rf"pulling {registry.image}: \d of 3 layers, \d of 9 MB")
        screen.expect(rf"pulled {registry.image}: 9 MB in \d+ s")
        screen.expect(pexpect.EOF)
    finally:
        screen.close(force=True)


def test_progress_counts_bytes_and_layers_and_not_attempts() -> None:
    state = Progress("python:3.12")
    assert state.line() == "pulling python:3.12"
    assert state.take({"status": "Pulling from library/python", "id": "3.12"})
    for name in ("a", "b"):
        assert state.take({"status": "Pulling fs layer", "id": name, "progressDetail": {}})
    download = {"status": "Downloading", "id": "a", "progressDetail": {"current": 41_000_000, "total": 120_000_000}}
    assert state.take(download) and not state.take(download)
    assert state.line() == "pulling python:3.12: 0 of 2 layers, 41 of 120 MB"
    assert not state.take({"status": "Retrying in 5 seconds", "id": "a"})
    assert state.take({"status": "Extracting", "id": "a", "progressDetail": {"current": 5, "total": 120_000_000}})
    assert state.take({"status": "Pull complete", "id": "a", "progressDetail": {}})
    assert state.take({"status": "Already exists", "id": "b", "progressDetail": {}})
    assert state.line() == "pulling python:3.12: 2 of 2 layers, 120 MB"
