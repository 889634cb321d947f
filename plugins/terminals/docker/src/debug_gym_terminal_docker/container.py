"""One container: how it is hardened, who owns it, how it ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import RequirementError, SandboxError
from debug_gym_core.sandbox.ownership import gone, owner
from debug_gym_core.sandbox.terminal import ROOT, files_in, parse_size
from debug_gym_terminal_docker import engine
from debug_gym_terminal_docker.settings import OWNER, DockerSettings, read_profile
from debug_gym_terminal_docker.stream import ExecStream, bounded

if TYPE_CHECKING:
    from docker import APIClient

_LEASE = 24 * 3600
_PODMAN_SIZE = 64 << 20
APP = "debug-gym"

QUIET_TIMEOUT = 5.0
"""Seconds for which it is tried to end what a guest that died has left."""

KILL_TIMEOUT = 3.0
"""Seconds that the engine has to start what ends it."""

# Old runtimes give a file system in memory the mode of the image's directory of that name, whatever they were told.
_MAIN = 'chmod 1777 "$@"; echo; exec cat >/dev/null'


def labels(run: str) -> dict[str, str]:
    """Labels that tell whose container it is and until when it may stand."""
    return {"app": APP, "run": run, "owner": owner(), "lease": str(int(time.time()) + _LEASE)}


def create(
    client: APIClient,
    name: str,
    image: str,
    run: str,
    settings: DockerSettings,
    *,
    shared: bool,
    masked: Sequence[str] = (),
) -> str:
    """Create a container that stands as long as somebody is attached to its standard input.

    Its main process is not the user that the agent's commands are, so that they cannot end it, and ends when the
    runner's connection does: the engine then removes it, even when the runner was killed.

    Args:
        client: the engine
        name: of the container
        image: to make it of
        run: id of the run
        settings: what it may do and use
        shared: whether the workspace is to be `OWNER`'s, open to all, instead of the commands' user's
        masked: directories of the image that are to be empty

    Returns:
        its id
    """
    created: Mapping[str, Any] = client.create_container(
        image,
        name=name,
        entrypoint=["/bin/sh", "-c", _MAIN, "debug-gym"],
        command=["/tmp", *(one.path for one in settings.directories), *([ROOT] if shared else [])],
        user=_main_user(settings, podman=engine.is_podman(client)),
        hostname="sandbox",
        working_dir="/",
        stdin_open=True,
        labels={**settings.labels, **labels(run)},
        healthcheck={"test": ["NONE"]},
        host_config=_host_config(client, settings, shared=shared, masked=masked),
    )
    return str(created["Id"])


def create_unstarted(client: APIClient, image: str) -> str:
    """Create a container to read an image's files from, which is never started.

    Args:
        client: the engine
        image: to make it of

    Returns:
        its id
    """
    created: Mapping[str, Any] = client.create_container(
        image, entrypoint=["/bin/sh"], labels=labels("image"), network_disabled=True
    )
    return str(created["Id"])


def await_start(main: ExecStream) -> None:
    """Wait until the main process of a started container has made its directories fit.

    Args:
        main: attached to it

    Raises:
        SandboxError: it ended, or took longer than the engine may
    """
    with bounded(main, engine.TIMEOUT) as late:
        said = main.read(1)
    if late.is_set():
        raise SandboxError(f"docker: the container's first process said nothing within {engine.TIMEOUT:g} s")
    if not said:
        raise SandboxError("docker: the container ended at once; its image needs a working sh, chmod and cat")


def quieten(client: APIClient, identifier: str, settings: DockerSettings) -> bool:
    """End every process of a container but its main one, as far as that is possible.

    What an old guest left may not stand beside a new one: of the same user, it could take the new guest's place. Nobody
    can kill it from outside of the container but together with the main process, so a program of its own user does,
    which it may kill in turn. What counts is what the engine's own machine sees while the container stands still: a
    program that goes from one process to the next is in no list of one that runs.

    Args:
        client: the engine
        identifier: of the container
        settings: those that it was made with

    Returns:
        whether nothing is left; False also where nobody can tell: commands are the user that the main process is, or
        it is Podman, which lists nothing of a container that stands still
    """
    main = _main_user(settings, podman=False).partition(":")[0]
    if engine.is_podman(client) or settings.user.partition(":")[0].replace("root", "0") == main:
        return False
    end = time.monotonic() + QUIET_TIMEOUT
    while _users(client, identifier) > 1:
        if time.monotonic() > end:
            return False
        _kill_all(identifier, settings.user)
        time.sleep(0.05)
    with _standing_still(client, identifier):
        return _users(client, identifier) == 1


def _kill_all(identifier: str, user: str) -> None:
    """Kill every process of a user in the container, unless there is no room for the program that does it.

    Raises:
        SandboxError: the engine did not start it in `KILL_TIMEOUT`: who is there can stop it while it starts, for which
            the engine waits, and so this has a connection of its own
    """
    import docker.errors

    command = ["/bin/sh", "-c", "kill -KILL -1"]
    try:
        with contextlib.closing(engine.connect(KILL_TIMEOUT)) as client, engine.explained("nothing can be killed"):
            killer = client.exec_create(identifier, command, stdout=False, stderr=False, user=user)
            client.exec_start(killer["Id"], detach=True)
    except RequirementError as error:
        raise SandboxError(str(error)) from error
    except SandboxError as error:
        if not isinstance(error.__cause__, docker.errors.APIError):
            raise


@contextlib.contextmanager
def _standing_still(client: APIClient, identifier: str) -> Iterator[None]:
    """Have no process of a container run meanwhile."""
    client.pause(identifier)  # one for which this fails is removed, whether it stands still or not
    try:
        yield
    finally:
        client.unpause(identifier)


def _users(client: APIClient, identifier: str) -> int:
    """How many users processes of a container have; the main one is there as long as the container is."""
    listed = client.top(identifier)
    column = next(place for place, title in enumerate(listed["Titles"]) if title in ("UID", "USER"))
    return len({row[column] for row in listed["Processes"] or ()})


def _main_user(settings: DockerSettings, *, podman: bool) -> str:
    """Who the main process is: it owns the directories in memory, and these are root's in Podman.

    Root has capabilities from the engine only where this process is root too.
    """
    return "0:0" if settings.cap_add or podman else f"{OWNER}:{OWNER}"


def _host_config(client: APIClient, settings: DockerSettings, *, shared: bool, masked: Sequence[str]) -> Any:
    """What the container may do and use, as the engine takes it."""
    from docker.types import LogConfig, Mount, Ulimit

    podman = engine.is_podman(client)
    uid, _, gid = _main_user(settings, podman=podman).partition(":")
    public, workspace = f"uid={uid},gid={gid},mode=1777", _workspace(settings, shared=shared)
    more = {}

    def tmpfs(size: int) -> str:
        """Options of a file system in memory; Podman knows none for the number of files."""
        return f"rw,nosuid,nodev,exec,size={size}" + ("" if podman else f",nr_inodes={files_in(size)}")

    if podman:  # which gives nobody else a file system in memory, and copies what the image has there
        public = workspace = "mode=1777,notmpcopyup"
        absent = next((one.source for one in settings.mounts if not Path(one.source).exists()), None)
        if absent is not None:  # it would make a directory there
            raise SandboxError(f"docker: terminal.volumes: there is no {absent} on this machine")
        if settings.read_only:  # it would make these writable, without a bound
            more = {"/run": f"{tmpfs(_PODMAN_SIZE)},notmpcopyup", "/var/tmp": "ro,nosuid,nodev,notmpcopyup"}
    else:  # the engine's own has no bound on the number of files
        shm = parse_size(settings.shm_size)
        more = {"/dev/shm": f"rw,nosuid,nodev,noexec,size={shm},nr_inodes={files_in(shm)},mode=1777"}
    return client.create_host_config(
        init=settings.init,
        auto_remove=True,
        network_mode=settings.network,
        cap_drop=["ALL"],
        cap_add=list(settings.cap_add) or None,
        security_opt=_security(settings, podman=podman),
        mem_limit=parse_size(settings.memory),
        memswap_limit=settings.memory_and_swap,
        pids_limit=settings.pids,
        nano_cpus=None if settings.cpus is None else int(settings.cpus * 1e9),
        ulimits=[Ulimit(name=name, soft=bound, hard=bound) for name, bound in settings.bounds.items()],
        read_only=settings.read_only,
        tmpfs={
            **more,
            **dict.fromkeys(masked, "ro,nosuid,nodev" + (",notmpcopyup" if podman else ",noexec,size=4096,mode=0555")),
            ROOT: f"{tmpfs(settings.workspace_bytes)},{workspace}",
            "/tmp": f"{tmpfs(settings.tmp_bytes)},{public}",
            **{one.path: f"{tmpfs(one.size)},{public}" for one in settings.directories},
        },
        mounts=[
            *(Mount(one.target, one.source, type="bind", read_only=not one.writable) for one in settings.mounts),
            # Volumes without a name, which the engine fills from the image and removes with the container.
            *(Mount(path, None, type="volume") for path in settings.kept),
        ],
        shm_size=parse_size(settings.shm_size),
        ipc_mode="private",
        log_config=LogConfig(type="none"),
        restart_policy={"Name": "no"},
        runtime=settings.runtime,
    )


def is_shared(client: APIClient, settings: DockerSettings) -> bool:
    """Whether the workspace cannot be the user's from the start: a name's number is the image's to say."""
    return engine.is_podman(client) or not settings.user.partition(":")[0].isdigit()


def _workspace(settings: DockerSettings, *, shared: bool) -> str:
    """Whose directory the workspace is, as options of its file system."""
    if shared:
        return f"uid={OWNER},gid={OWNER},mode=1777"
    uid, _, gid = settings.user.partition(":")
    return f"uid={uid},gid={gid if gid.isdigit() else 0},mode=0755"


def _security(settings: DockerSettings, *, podman: bool) -> list[str]:
    """`security_opt`, as the engine takes it: Podman reads a profile itself, Docker is given it."""
    options = ["no-new-privileges"] if settings.no_new_privileges else []
    if settings.seccomp == "unconfined":
        options.append("seccomp=unconfined")
    elif settings.seccomp != "default":
        options.append(f"seccomp={settings.seccomp if podman else read_profile(Path(settings.seccomp))}")
    return options


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
