"""One container: how it is hardened, who owns it, how it ends."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from debug_gym_core.ownership import gone, owner
from debug_gym_core.terminal import ROOT

if TYPE_CHECKING:
    from docker import APIClient

USER = "1000:1000"
"""Who the guest and the agent's commands are."""

_KEEPER = "65534:65534"
_LEASE = 24 * 3600
_OPEN_FILES = 4096
_SHM = 64 << 20
APP = "debug-gym"


@dataclass(frozen=True)
class Bounds:
    """What the container may use.

    Attributes:
        memory: bytes of all processes and of the files in /testbed and /tmp together; no swap on top
        pids: processes and threads
        cpus: processors' worth of time; None: no bound
        size: bytes of the workspace, of /tmp, and of one file
    """

    memory: int
    pids: int
    cpus: float | None
    size: int


def labels(run: str) -> dict[str, str]:
    """Labels that tell whose container it is and until when it may stand."""
    return {"app": APP, "run": run, "owner": owner(), "lease": str(int(time.time()) + _LEASE)}


def create(client: APIClient, image: str, run: str, bounds: Bounds, network: str, runtime: str | None) -> str:
    """Create a container that stands as long as somebody is attached to its standard input.

    Its main process is not the user that the agent's commands are, so that they cannot end it, and ends when the
    runner's connection does: the engine then removes it, even when the runner was killed.

    Returns:
        its id
    """
    from docker.types import LogConfig, Ulimit

    tmpfs = f"rw,nosuid,nodev,exec,size={bounds.size}"
    uid, _, gid = USER.partition(":")
    host = client.create_host_config(
        init=True,
        auto_remove=True,
        network_mode=network,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        mem_limit=bounds.memory,
        memswap_limit=bounds.memory,
        pids_limit=bounds.pids,
        nano_cpus=None if bounds.cpus is None else int(bounds.cpus * 1e9),
        ulimits=[
            Ulimit(name="nofile", soft=_OPEN_FILES, hard=_OPEN_FILES),
            Ulimit(name="fsize", soft=bounds.size, hard=bounds.size),
            Ulimit(name="core", soft=0, hard=0),
        ],
        read_only=True,
        tmpfs={ROOT: f"{tmpfs},uid={uid},gid={gid},mode=0755", "/tmp": f"{tmpfs},mode=1777"},
        shm_size=_SHM,
        ipc_mode="private",
        log_config=LogConfig(type="none"),
        restart_policy={"Name": "no"},
        runtime=runtime,
    )
    created: Mapping[str, Any] = client.create_container(
        image,
        entrypoint=["cat"],
        command=[],
        user=_KEEPER,
        hostname="sandbox",
        working_dir="/",
        stdin_open=True,
        labels=labels(run),
        healthcheck={"test": ["NONE"]},
        host_config=host,
    )
    return str(created["Id"])


def leftovers(client: APIClient) -> list[str]:
    """Containers of ours whose run has ended, or whose lease is over."""
    found = []
    for container in client.containers(all=True, filters={"label": f"app={APP}"}):
        its = container["Labels"]
        ended = gone(its.get("owner", ""))
        lease = its.get("lease", "")
        if ended or (ended is None and lease.isdigit() and int(lease) < time.time()):
            found.append(str(container["Id"]))
    return found
