"""The docker terminal, in real containers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from killed_runner import leave_no_container

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.sandbox.ownership import owner
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.testing import wait_until
from debug_gym_terminal_docker import DockerTerminal, container
from debug_gym_terminal_docker.container import leftovers

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")
SPEC = SandboxSpec(run="test")

Start = Callable[..., DockerTerminal]
needs_image = pytest.mark.skipif(
    not IMAGE, reason="set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one"
)


@pytest.fixture
def start(engine: Any) -> Iterator[Start]:
    terminals: list[DockerTerminal] = []

    def begin(spec: SandboxSpec = SPEC, **settings: Any) -> DockerTerminal:
        terminal = DockerTerminal(**{"image": IMAGE, **settings})
        terminals.append(terminal)
        terminal.start(spec)
        return terminal

    yield begin
    for terminal in terminals:
        terminal.stop()


def ours(engine: Any, run: str) -> list[dict[str, Any]]:
    """Containers of a run."""
    found: list[dict[str, Any]] = engine.containers(all=True, filters={"label": [f"run={run}"]})
    return found


@needs_image
def test_container_is_hardened_and_labelled(start: Start, engine: Any) -> None:
    run = f"hardened-{os.getpid()}"
    start(SandboxSpec(run=run), memory="256m", pids=99, cpus=0.5, workspace_size="64m")
    facts = engine.inspect_container(ours(engine, run)[0]["Id"])
    host, config = facts["HostConfig"], facts["Config"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"] and not host["CapAdd"] and not host["Privileged"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (256 << 20, 256 << 20, 99)
    assert host["NanoCpus"] == 500_000_000
    assert {limit["Name"]: limit["Hard"] for limit in host["Ulimits"]} == {
        "nofile": 4096,
        "fsize": 64 << 20,
        "core": 1,
    }
    assert host["ReadonlyRootfs"] and host["Init"] and host["AutoRemove"]
    assert set(host["Tmpfs"]) == {"/testbed", "/tmp", "/dev/shm"}
    assert not facts["Mounts"] and not host["Binds"]
    assert host["LogConfig"]["Type"] == "none"
    assert (host["IpcMode"], host["PidMode"], host["UsernsMode"]) == ("private", "", "")
    assert config["User"] not in ("", "0", "root")
    assert config["Labels"]["owner"] == owner()
    assert int(config["Labels"]["lease"]) > time.time()


@needs_image
def test_close_wakes_a_blocked_read_and_ends_the_command(start: Start) -> None:
    terminal = start()
    stream = terminal.open(["/bin/sh", "-c", "echo up; cat; sleep 0; exit"])
    assert stream.read(3) == b"up\n"
    results: list[bytes] = []
    reader = threading.Thread(target=lambda: results.append(stream.read(1)))
    reader.start()
    stream.close()
    reader.join(10)
    assert results == [b""]
    stream.close()
    with pytest.raises(OSError):
        stream.write(b"x")
    assert terminal.alive()


@needs_image
def test_interpreter_of_the_image_is_chosen(start: Start) -> None:
    assert start().python.endswith("python3")
    wanted = "/opt/debug-gym-test/venv/bin/python"
    session = Session.start(DockerTerminal(image=IMAGE), SandboxSpec(run="test", python=wanted))
    try:
        assert session.python == wanted
        assert session.run("python -c 'import sys; print(sys.prefix)'").output == "/opt/debug-gym-test/venv\n"
    finally:
        session.close()
    with pytest.raises(RequirementError, match="that is called /no/python"):
        start(SandboxSpec(run="test", python="/no/python"))


@needs_image
def test_files_stay_when_the_guest_dies(start: Start) -> None:
    terminal = start()
    first = terminal.open(["/bin/sh", "-c", "echo kept > kept; kill -9 -1"])
    while first.read(1):
        pass
    assert terminal.alive()
    assert terminal.open(["cat", "kept"]).read(100) == b"kept\n"


@needs_image
def test_commands_can_neither_end_nor_stop_the_guest(start: Start) -> None:
    """Though they are its user, where the kernel can tell them apart; else what they leave is ended (below)."""
    session = Session.start(DockerTerminal(image=IMAGE), SandboxSpec(run="test"))
    try:
        guest = session.guest()
        if any("commands can stop and kill the guest" in note for note in guest["notes"]):
            pytest.skip("the engine's kernel cannot keep commands from the guest: it needs Linux 6.12 with Landlock")
        for command in ("kill -9 -1", f"kill -9 {guest['pid']}", f"kill -STOP {guest['pid']}", "kill -STOP -1"):
            with contextlib.suppress(CommandLost):
                session.run(command, timeout=5)
            assert session.run("echo on").output == "on\n"
        assert session.guest()["pid"] == guest["pid"]
        assert session.restarts == 0
    finally:
        session.close()


@pytest.mark.terminals
@needs_image
@pytest.mark.parametrize("left", ["setsid sleep 1000", "setsid sh -c 'kill -STOP 0'", "(while :; do :; done)"])
def test_what_a_guest_left_is_ended_before_the_next_one_starts(start: Start, left: str) -> None:
    """It could take the new guest's descriptors before that is out of reach, and speak for it."""
    terminal = start()
    first = terminal.open(["/bin/sh", "-c", f"{left} </dev/null >/dev/null 2>&1 & echo up"])
    while first.read(10):
        pass
    then = terminal.open(["/bin/sh", "-c", "set -- /proc/[0-9]*; echo $#"])
    assert then.read(10) == b"3\n"  # init, the main process, this shell


@pytest.mark.terminals
@needs_image
@pytest.mark.parametrize(
    "move",
    [
        pytest.param("fork() and _exit(0)", id="that goes from one process to the next"),
        pytest.param(
            "[kill(int(one), 9) for one in listdir('/proc') if one.isdigit()]",
            id="that kills",
            marks=pytest.mark.terminals,
        ),
    ],
)
def test_no_guest_starts_beside_something_that_is_hard_to_end(
    start: Start, monkeypatch: pytest.MonkeyPatch, move: str
) -> None:
    monkeypatch.setattr(container, "QUIET_TIMEOUT", 1.0)
    terminal = start()
    program = f"""
from os import _exit, fork, getpid, listdir
from os import kill as end
def kill(process, number):
    if process != getpid():
        try: end(process, number)
        except OSError: pass
while True: {move}
"""
    first = terminal.open([terminal.python, "-c", f"import os\nif os.fork(): os._exit(0)\nos.setsid(){program}"])
    while first.read(10):
        pass
    try:
        then = terminal.open(["/bin/sh", "-c", "set -- /proc/[0-9]*; echo $#"])
    except SandboxLost as error:
        assert "processes of its user stay" in str(error)
        assert not terminal.alive()
    else:
        assert then.read(10) == b"3\n"  # init, the main process, this shell


@needs_image
def test_killed_container_is_lost_and_said_so(start: Start, engine: Any) -> None:
    run = f"killed-{os.getpid()}"
    terminal = start(SandboxSpec(run=run))
    stream = terminal.open(["/bin/sh", "-c", "echo up; cat"])
    assert stream.read(3) == b"up\n"
    engine.kill(ours(engine, run)[0]["Id"])
    assert stream.read(1) == b""
    assert not terminal.alive()
    with pytest.raises(SandboxLost):
        terminal.open(["cat"])
    terminal.stop()
    terminal.stop()


@needs_image
def test_command_that_does_not_exist_ends_the_stream_and_is_in_the_log(start: Start) -> None:
    terminal = start()
    assert terminal.open(["/no/such/command"]).read(1) == b""
    assert "/no/such/command" in terminal.log() or "No such file" in terminal.log()


@needs_image
def test_stop_removes_the_container(start: Start, engine: Any) -> None:
    run = f"stopped-{os.getpid()}"
    terminal = start(SandboxSpec(run=run))
    assert len(ours(engine, run)) == 1
    terminal.stop()
    wait_until(lambda: ours(engine, run) == [], seconds=30)


@needs_image
def test_killed_runner_leaves_no_container(engine: Any) -> None:
    run = f"orphan-{os.getpid()}"
    leave_no_container({"image": IMAGE}, run, lambda: ours(engine, run))


@needs_image
def test_reaper_removes_what_nobody_owns_and_nothing_else(
    start: Start, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = f"reaped-{os.getpid()}"
    # Other processes, which remove leftovers too, do not know these.
    monkeypatch.setattr(container, "APP", run)
    start(SandboxSpec(run=run))
    place = owner().rpartition("/")[0].rpartition("/")[0]
    labels = {"app": run, "run": run}
    for its, lease in ((f"{place}/1/0", 2**33), ("another machine/1/1/0", 1), ("another machine/1/1/0", 2**33)):
        engine.create_container(IMAGE, ["true"], labels={**labels, "owner": its, "lease": str(lease)})
    assert len(ours(engine, run)) == 4
    assert len(leftovers(engine)) == 2
    assert len(DockerTerminal.clean()) == 2
    left = ours(engine, run)
    assert len(left) == 2
    for one in left:
        if one["Labels"]["owner"] != owner():
            engine.remove_container(one["Id"], force=True)


def test_missing_image_is_named_with_the_command(start: Start) -> None:
    with pytest.raises(RequirementError, match="docker pull debug-gym-test:absent"):
        start(image="debug-gym-test:absent", pull="never")
    with pytest.raises(RequirementError, match=r"terminal\.image"):
        start(image=None)


@needs_image
def test_unknown_runtime_is_a_sandbox_error(start: Start) -> None:
    with pytest.raises(SandboxError, match="nosuchruntime"):
        start(runtime="nosuchruntime")


def test_engine_that_does_not_answer_is_named() -> None:
    code = "from debug_gym_terminal_docker import DockerTerminal as D; print(D.unavailable())"
    environment = {**os.environ, "DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert said.stdout.startswith("no Docker engine answers at unix:///nonexistent/docker.sock; start it")


def test_engine_of_the_chosen_context_is_used(tmp_path: Path) -> None:
    name = "elsewhere"
    meta = tmp_path / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
    meta.mkdir(parents=True)
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": name}))
    endpoint = {"Host": "unix:///nonexistent/of-context.sock", "SkipTLSVerify": False}
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    code = "from debug_gym_terminal_docker import DockerTerminal as D; print(D.unavailable())"
    environment = {**os.environ, "DOCKER_CONFIG": str(tmp_path)}
    environment.pop("DOCKER_HOST", None)
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "of-context.sock" in said.stdout, said.stderr


def test_sdk_is_not_imported_for_the_registration() -> None:
    code = (
        "import sys, debug_gym_terminal_docker.plugin as plugin; plugin.debug_gym_register_terminals();"
        "print('docker' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_doctor_is_told_the_engine_and_how_many_images(engine: Any) -> None:
    version, images = DockerTerminal.about()
    assert version.startswith(f"Docker {engine.version()['Version']} (linux/")
    assert images.startswith(f"{len(engine.images(quiet=True))} image")
