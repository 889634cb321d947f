"""The docker terminal on Podman."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from killed_runner import leave_no_container
from podman_service import SETTINGS, missing, serving

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost, UsageError
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Protected, SandboxSpec
from debug_gym_core.testing import TerminalContract, wait_until
from debug_gym_core.workspace.snapshot import FileState, archive_of
from debug_gym_terminal_docker import DockerTerminal

pytestmark = pytest.mark.terminals
RUN = f"podman-{os.getpid()}"


@pytest.fixture(scope="module")
def podman() -> Iterator[Any]:
    """A client of its service."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with serving() as client:
        yield client


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
    with contextlib.suppress(CommandLost):
        session.run("kill -9 -1")
    assert session.restarts == 0
    (standing,) = ours(podman)
    podman.exec_start(podman.exec_create(standing["Id"], ["sh", "-c", "kill -9 -1"], user="1000:1000"))
    told = []
    for _ in range(2):  # the first may meet the end itself
        with pytest.raises(SandboxLost) as lost:
            session.read("kept")
        told.append(str(lost.value))
    assert "the container was removed" in " ".join(told)
    assert ours(podman) == []
    with Session.start(DockerTerminal(**SETTINGS), SandboxSpec(run=RUN, protects=True)) as another:
        podman.kill(ours(podman)[0]["Id"])
        wait_until(lambda: not another.terminal.alive(), seconds=30)
        with pytest.raises(SandboxLost):
            another.read("kept")


def test_a_killed_runner_leaves_no_container(podman: Any) -> None:
    run = f"{RUN}-orphan"
    leave_no_container(SETTINGS, run, lambda: ours(podman, run))


def test_what_is_wrong_is_said_as_with_docker(podman: Any) -> None:
    with pytest.raises(UsageError, match=r"terminal\.user: the image has no user somebody"):
        DockerTerminal(**SETTINGS, user="somebody").start(SandboxSpec(run=RUN))
    absent = {**SETTINGS, "image": "127.0.0.1:1/debug-gym-test:absent"}
    with pytest.raises(RequirementError, match="is not here; get it with: docker pull"):
        DockerTerminal(**absent, pull="never").start(SandboxSpec(run=RUN))
    with pytest.raises(RequirementError, match=r"cannot be got: .*connection refused"):
        DockerTerminal(**absent).start(SandboxSpec(run=RUN))
    wait_until(lambda: ours(podman) == [], seconds=30)


@pytest.mark.usefixtures("podman")
class TestContractOnPodman(TerminalContract):
    terminal = DockerTerminal
    settings = SETTINGS
    outlives_guest = False

    @classmethod
    def unusable(cls) -> str | None:
        return missing()
