"""The docker terminal on Podman, which speaks Docker's API: a service of the test's own, with storage of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost, UsageError
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Protected, SandboxSpec
from debug_gym_core.testing import TerminalContract, wait_until
from debug_gym_core.workspace.snapshot import FileState, archive_of
from debug_gym_terminal_docker import DockerTerminal
from debug_gym_terminal_docker.engine import connect

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")
RUN = f"podman-{os.getpid()}"
SETTINGS: dict[str, Any] = {"image": IMAGE, "ulimits": {"nproc": 10000}}
"""Podman raises the bound on processes as far as the kernel goes, which a machine may refuse even to root."""


def missing() -> str | None:
    if shutil.which("podman") is None:
        return "Podman is not installed: apt-get install podman"
    if os.geteuid() != 0:
        return "needs root"
    if not IMAGE:
        return "set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one"
    return DockerTerminal.unavailable()  # the image comes from there


def killed(place: Path) -> list[int]:
    """Kill all processes of Podman's that work in a directory; those that were there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith((b"conmon", b"podman")) and any(str(place).encode() in word for word in words):
                found.append(int(process.name))
                os.kill(found[-1], signal.SIGKILL)
    return found


@pytest.fixture(scope="module")
def podman() -> Iterator[Any]:
    """Starts Podman's service with the image in it, and has DOCKER_HOST name it."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    place = Path(tempfile.mkdtemp(prefix="podman-"))  # it takes no path that is longer than 50 characters
    socket, log = place / "podman.sock", place / "log"
    (place / "tmp").mkdir()
    (place / "containers.conf").write_text('[engine]\nexit_command_delay = 1\ninit_path = "/nonexistent/catatonit"\n')
    environment = {**os.environ, "CONTAINERS_CONF": f"{place}/containers.conf", "TMPDIR": f"{place}/tmp"}
    environment["XDG_RUNTIME_DIR"] = str(place)
    options = [f"--root={place}/root", f"--runroot={place}/runroot", f"--tmpdir={place}/libpod"]
    command = ["podman", *options, "--cgroup-manager=cgroupfs", "--events-backend=file"]
    service = None
    docker = connect()
    try:
        with log.open("wb") as written:
            service = subprocess.Popen(
                [*command, "system", "service", "--time=0", f"unix://{socket}"],
                env=environment, stdin=subprocess.DEVNULL, stdout=written, stderr=written,
            )  # fmt: skip
        wait_until(lambda: socket.exists() or service.poll() is not None, seconds=60)
        assert socket.exists(), log.read_text()
        with subprocess.Popen([*command, "load", "--quiet"], env=environment, stdin=subprocess.PIPE) as load:
            assert load.stdin is not None
            for piece in docker.get_image(IMAGE):
                load.stdin.write(piece)
        assert load.returncode == 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DOCKER_HOST", f"unix://{socket}")
            client = connect()
            yield client
            client.close()
    finally:
        docker.close()
        subprocess.run([*command, "rm", "--all", "--force", "--time=0"], env=environment, capture_output=True)
        if service is not None:
            service.kill()
            service.wait(30)
        # Monitors outlive their commands by minutes, and then clean up, which mounts what was unmounted.
        wait_until(lambda: not killed(place), seconds=60)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((one for one in mounts if one.startswith(f"{place}/")), reverse=True):
            subprocess.run(["umount", mount], check=True)
        shutil.rmtree(place)


@pytest.fixture
def session(podman: Any) -> Iterator[Session]:
    with Session.start(DockerTerminal(**SETTINGS), SandboxSpec(run=RUN, protects=True)) as session:
        yield session


def ours(client: Any, run: str = RUN) -> list[Any]:
    found: list[Any] = client.containers(all=True, filters={"label": ["app=debug-gym", f"run={run}"]})
    return found


def test_doctor_names_it(podman: Any) -> None:
    assert DockerTerminal.about()[0].startswith("Podman ")


def test_a_running_sandbox_has_the_defaults(podman: Any, session: Session) -> None:
    [container] = ours(podman)
    facts = podman.inspect_container(container["Id"])
    host = facts["HostConfig"]
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] and not host["Privileged"]
    assert "no-new-privileges" in host["SecurityOpt"] and not [one for one in host["SecurityOpt"] if "unconf" in one]
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (4 << 30, 4 << 30, 512)
    assert not facts["Mounts"] and not host["Binds"] and host["IpcMode"] in ("private", "shareable")
    assert {"/testbed", "/tmp"} <= set(host["Tmpfs"])
    said = session.run("id -u; ulimit -n; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status | tr -d '\\n\\t'").output
    assert said == f"1000\n4096\n{''.join(f'Cap{one}:{0:016x}' for one in ('Inh', 'Prm', 'Eff', 'Bnd', 'Amb'))}" \
        "NoNewPrivs:1Seccomp:2"  # fmt: skip
    for path in ("/testbed", "/tmp", "/run", "/dev/shm"):
        assert int(session.run(f"df -k --output=size {path} | tail -1").output) <= 2 << 20, path
    assert session.run("touch /var/tmp/x /run/x").exit_status != 0
    assert session.terminal.notes() == [
        "files: Podman bounds their size in the workspace and /tmp, not how many there are",
        "init: the engine has none (apt-get install catatonit); orphans that ended count as processes",
    ]


def test_commands_time_limits_and_git(session: Session) -> None:
    result = session.run("setsid sleep 1000 & echo up; sleep 1000", timeout=1)
    assert result.timed_out and result.output == "up\n"
    assert session.run("cat /proc/[0-9]*/comm | grep -c sleep").output == "0\n"
    assert session.run("git init -q . && touch here && git status -s").output == "?? here\n"


def test_read_only_files_are_kept(session: Session) -> None:
    session.put(archive_of({"a/kept": FileState(b"1\n"), "a/free": FileState(b"2\n")}))
    session.terminal.protect(Protected(files=("a/kept",)))
    assert not [note for note in session.terminal.notes() if "read-only" in note]
    for command in ("echo > a/kept", "rm a/kept", "mv a b", "chmod 777 a/kept", "chmod 777 ."):
        assert session.run(command).exit_status != 0, command
    assert session.run("echo 3 > a/free; cat a/kept a/free").output == "1\n3\n"


def test_settings_that_podman_takes_in_its_own_way(podman: Any, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    rule = {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule]}))
    settings = {"seccomp": str(profile), "tmpfs": ["/srv:4m"], "user": "nobody", "volumes": [f"{profile}:/profile"]}
    with Session.start(DockerTerminal(**SETTINGS, **settings), SandboxSpec(run=RUN)) as session:
        said = session.run("touch x /srv/x; mkdir y 2>&1 | grep -o 'not permitted'; id -un; grep -c ERRNO /profile")
    assert said.output == "not permitted\nnobody\n1\n"
    absent = tmp_path / "absent"
    with pytest.raises(SandboxError, match=f"there is no {absent} on this machine"):
        DockerTerminal(**SETTINGS, volumes=[f"{absent}:/data"]).start(SandboxSpec(run=RUN))
    assert not absent.exists()


def test_a_sandbox_is_lost_with_its_guest_and_so_is_a_killed_one(podman: Any, session: Session) -> None:
    """Podman cannot tell what the guest left, beside which no other one may start."""
    with pytest.raises(SandboxLost):
        session.run("kill -9 -1")
    with pytest.raises(SandboxLost, match="the container was removed"):
        session.read("kept")
    assert ours(podman) == []
    with Session.start(DockerTerminal(**SETTINGS), SandboxSpec(run=RUN, protects=True)) as another:
        podman.kill(ours(podman)[0]["Id"])
        wait_until(lambda: not another.terminal.alive(), seconds=30)
        with pytest.raises(SandboxLost):
            another.read("kept")


def test_a_killed_runner_leaves_no_container(podman: Any) -> None:
    run = f"{RUN}-orphan"
    script = f"""
import sys
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_docker import DockerTerminal
terminal = DockerTerminal(**{SETTINGS!r})
terminal.start(SandboxSpec(run={run!r}))
stream = terminal.open(["/bin/sh", "-c", "trap '' TERM HUP; echo up; exec sleep 1000"])
print(stream.read(3), flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"b'up\\n'\n"
        assert len(ours(podman, run)) == 1
        runner.kill()
    wait_until(lambda: ours(podman, run) == [], seconds=60)


def test_what_is_wrong_is_said_as_with_docker(podman: Any) -> None:
    with pytest.raises(UsageError, match=r"terminal\.user: the image has no user somebody"):
        DockerTerminal(**SETTINGS, user="somebody").start(SandboxSpec(run=RUN))
    absent = {**SETTINGS, "image": "127.0.0.1:1/debug-gym-test:absent"}
    with pytest.raises(RequirementError, match="is not here; get it with: docker pull"):
        DockerTerminal(**absent, pull="never").start(SandboxSpec(run=RUN))
    with pytest.raises(RequirementError, match=r"cannot be got: .*connection refused"):
        DockerTerminal(**absent).start(SandboxSpec(run=RUN))
    wait_until(lambda: ours(podman) == [], seconds=30)


@pytest.mark.terminals
@pytest.mark.usefixtures("podman")
class TestContractOnPodman(TerminalContract):
    terminal = DockerTerminal
    settings = SETTINGS
    outlives_guest = False

    @classmethod
    def unusable(cls) -> str | None:
        return missing()
