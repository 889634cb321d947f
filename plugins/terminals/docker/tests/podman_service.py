"""A service of Podman, which speaks Docker's API, with storage of its own; for the tests.

DEBUG_GYM_TEST_IMAGE: the image, which comes from Docker's engine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.testing import wait_until
from debug_gym_terminal_docker import DockerTerminal
from debug_gym_terminal_docker.engine import connect

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")
SETTINGS: dict[str, Any] = {"image": IMAGE, "ulimits": {"nproc": 10000}}
"""Podman raises the bound on processes as far as the kernel goes, which a machine may refuse even to root."""


def missing() -> str | None:
    """What has to be installed or set before it can be started."""
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


@contextlib.contextmanager
def serving() -> Iterator[Any]:
    """Podman's service with the image in it, as what DOCKER_HOST names: a client of it."""
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
