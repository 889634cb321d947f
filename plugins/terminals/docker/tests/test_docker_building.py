"""Setting up an image: how the container for it is cut off, what it may do, and what is kept of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.errors import RequirementError, SandboxError
from debug_gym_core.sandbox.ownership import owner
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_docker import DockerTerminal, building

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")
SPEC = SandboxSpec(run="test-building", builds=True)

pytestmark = pytest.mark.skipif(
    not IMAGE, reason="set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one"
)

Start = Callable[..., Session]


@pytest.fixture
def keep(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Session, str], str]]:
    """Keep what was made in a sandbox, for the time of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = []

    def keep(session: Session, name: str) -> str:
        kept.append(session.terminal.keep_setup(name)[0])
        return kept[-1]

    yield keep
    for image in kept:
        building.remove(engine, image)


@pytest.fixture
def start(engine: Any) -> Iterator[Start]:
    sessions: list[Session] = []

    def start(spec: SandboxSpec = SPEC, **settings: Any) -> Session:
        sessions.append(Session.start(DockerTerminal(**{"image": IMAGE, **settings}), spec))
        return sessions[-1]

    yield start
    for session in sessions:
        session.close()


def facts(engine: Any, session: Session) -> Any:
    return engine.inspect_container(session.terminal._id)  # type: ignore[attr-defined]


def test_root_in_there_is_cut_off(engine: Any, start: Start) -> None:
    session = start(memory="300m", pids=99)
    host = facts(engine, session)["HostConfig"]
    assert host["CapDrop"] == ["ALL"] and sorted(host["CapAdd"]) == sorted(building.CAPABILITIES)
    assert host["SecurityOpt"] == ["no-new-privileges"] and not host["Privileged"]
    assert host["NetworkMode"] == "none" and not host["Binds"] and not facts(engine, session)["Mounts"]
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (300 << 20, 300 << 20, 99)
    status = session.run("id -u; grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status").output.split()
    wanted = sum(1 << number for number in (0, 1, 3, 6, 7))  # as in linux/capability.h
    assert status[0] == "0" and int(status[status.index("CapBnd:") + 1], 16) == wanted
    assert status[status.index("NoNewPrivs:") + 1] == "1" and status[status.index("Seccomp:") + 1] == "2"
    for refused in ("mount -t tmpfs x /mnt", "mknod /x b 8 0", "chroot / true", "ls /proc/1/root/testbed/../host"):
        assert session.run(refused).exit_status != 0, refused


def test_what_package_managers_do_works(start: Start) -> None:
    session = start()
    commands = (
        "echo x > /usr/local/made && chown 33:33 /usr/local/made && chmod 4711 /usr/local/made && rm /usr/local/made",
        "mkdir /var/lib/other && chown 33 /var/lib/other && chmod 700 /var/lib/other && touch /var/lib/other/file",
        f"{sys.executable and 'python3'} -c 'import os; os.setgroups([]); os.setgid(33); os.setuid(33)'",
        "cd $HOME && test $PWD = /root && touch .written",
    )
    for command in commands:
        result = session.run(command)
        assert result.exit_status == 0, f"{command}: {result.output}"


def test_an_image_is_kept_and_named(engine: Any, start: Start, keep: Callable[[Session, str], str]) -> None:
    session = start()
    assert session.run("echo kept > /usr/local/kept; echo x > /testbed/x; echo x > /tmp/x").exit_status == 0
    kept = keep(session, "0123abcd")
    base = facts(engine, session)["Image"]
    session.close()
    about = engine.inspect_image(kept)
    (name,) = about["RepoTags"]
    assert name.startswith("debug-gym-setup:0123abcd-")
    labels = about["Config"]["Labels"]
    assert (labels["app"], labels["kind"], labels["base"], labels["setup"]) == ("debug-gym", "setup", base, "0123abcd")
    assert labels["created"].startswith("20") and labels["owner"] == labels["run"] == labels["lease"] == ""
    assert DockerTerminal.has_image(kept)

    later = start(replace(SPEC, builds=False, image=kept))
    assert later.run("cat /usr/local/kept; ls -A /testbed /tmp; id -u").output == "kept\n/testbed:\n\n/tmp:\n1000\n"
    assert later.run("echo more >> /usr/local/kept").exit_status != 0
    assert facts(engine, later)["HostConfig"]["ReadonlyRootfs"]
    later.close()

    DockerTerminal.remove_image(kept)
    assert not DockerTerminal.has_image(kept)
    DockerTerminal.remove_image(kept)  # gone already


@pytest.mark.terminals
def test_an_image_that_another_took_the_name_of_goes(
    engine: Any, start: Start, keep: Callable[[Session, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does that nothing names yet, once its maker is gone."""
    # Other processes, which remove leftovers too, do not know this kind.
    kind = {"app": f"debug-gym-test-{os.getpid()}", "kind": "setup"}
    monkeypatch.setattr(building, "_KIND", kind)
    code = (
        "import sys; from debug_gym_core.sandbox.session import Session\n"
        "from debug_gym_core.sandbox.terminal import SandboxSpec\n"
        "from debug_gym_terminal_docker import DockerTerminal, building\n"
        f"building._KIND = {kind}\n"
        "session = Session.start(DockerTerminal(image=sys.argv[1]), SandboxSpec(run='test-building', builds=True))\n"
        "session.run('echo first > /usr/local/made')\n"
        "print(session.terminal.keep_setup('5678'))\n"
        "session.close()\n"
    )
    said = subprocess.run([sys.executable, "-c", code, IMAGE], check=True, capture_output=True, text=True).stdout
    first = said.split("'")[1]
    try:
        assert first not in building.leftovers(engine)  # it has its name
        session = start()
        session.run("echo second > /usr/local/made")
        second = keep(session, "5678")
        assert first in building.leftovers(engine) and second not in building.leftovers(engine)
        assert f"image {first[7:19]}" in DockerTerminal.clean()
        assert not DockerTerminal.has_image(first) and DockerTerminal.has_image(second)
        assert engine.inspect_image(second)["Config"]["Labels"]["builder"] == owner()
    finally:
        building.remove(engine, first)


def test_the_base_is_the_content_of_the_image(engine: Any) -> None:
    assert DockerTerminal(image=IMAGE).identify_image().split()[0] == engine.inspect_image(IMAGE)["Id"]
    with pytest.raises(RequirementError, match="the image no-such-image is not here"):
        DockerTerminal(image="no-such-image", pull="never").identify_image()
    with pytest.raises(RequirementError, match="docker needs an image"):
        DockerTerminal().identify_image()


def test_keeping_fails_when_the_container_is_gone(engine: Any, start: Start) -> None:
    session = start()
    engine.remove_container(session.terminal._id, force=True)  # type: ignore[attr-defined]
    with pytest.raises(SandboxError):
        session.terminal.keep_setup("9999")
