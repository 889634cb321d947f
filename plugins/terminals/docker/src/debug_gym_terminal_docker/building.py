"""Setting up an image: a container in which its files may be changed, and the image that is made of it.

The commands run as root, as those of a Dockerfile do, with the few capabilities that package managers need. Nothing of
the host is there, and when the runner is gone the engine removes the container as it removes those of sandboxes. What
is left is an image with the labels `app=debug-gym` and `kind=setup`; the workspace, which is in memory, is not in it.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox import kept_setups
from debug_gym_core.sandbox.ownership import gone, owner
from debug_gym_terminal_docker import engine
from debug_gym_terminal_docker.container import APP
from debug_gym_terminal_docker.settings import DockerSettings

if TYPE_CHECKING:
    from docker import APIClient

USER = "0:0"
"""Who the commands are."""

ENVIRONMENT = {"HOME": "/root", "USER": "root", "LOGNAME": "root"}

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
"""What package managers need: to give files to their owners, and to be other users."""

REPOSITORY = "debug-gym-setup"
"""What the images are called, before the colon."""

COMMIT_TIMEOUT = 1800
"""Seconds that the engine may take to make an image of what was written."""

_KIND = {"app": APP, "kind": "setup"}


def settings(given: DockerSettings) -> DockerSettings:
    """What a container for setup commands may do and use, by the settings of the task's other containers.

    Its bounds and its network are theirs, but what it writes outside of the workspace and /tmp is bounded by the
    engine's disk only. Nothing of the host is in it, whatever is in theirs.
    """
    changes: dict[str, Any] = {
        "user": USER,
        "read_only": False,
        "cap_add": CAPABILITIES,
        "no_new_privileges": True,
        "volumes": (),
        "tmpfs": (),
        "environment": {**ENVIRONMENT, **given.environment},
        "labels": {**given.labels, "kind": "setup"},
    }
    return given.model_copy(update=changes)


def identify(client: APIClient, image: str) -> str | None:
    """The id of an image, which is of its content; None when it is not here."""
    import docker.errors

    try:
        with engine.explained(f"the image {image} cannot be looked up"):
            return str(_facts(client, image)["Id"])
    except SandboxError as error:
        if isinstance(error.__cause__, docker.errors.ImageNotFound):
            return None
        raise


def keep(client: APIClient, container: str, name: str) -> tuple[str, int]:
    """Make an image of a container in which setup commands ran.

    Args:
        client: the engine, with time for it
        container: its id
        name: what decides the result

    Returns:
        the image's id, and how many bytes it adds to the one that it was made of

    Raises:
        SandboxError: it cannot be made, for want of disk for instance
    """
    with engine.explained("what terminal.setup made cannot be kept as an image"):
        base = client.inspect_container(container)["Image"]
        created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        named = {**_KIND, "base": base, "created": created, "setup": name, "builder": owner()}
        # A container of this image inherits its labels: not whose the one was that it is made of, or it would be
        # removed as that one's.
        named |= {"run": "", "owner": "", "lease": ""}
        made = client.commit(container, changes=[f'LABEL {key}="{value}"' for key, value in named.items()])
        identifier = str(made["Id"])
        size = int(_facts(client, identifier)["Size"]) - int(_facts(client, base)["Size"])
        client.tag(identifier, REPOSITORY, tag=_tag(name), force=True)
        return identifier, max(size, 0)


def _facts(client: APIClient, image: str) -> dict[str, Any]:
    return dict(client.inspect_image(image))  # type: ignore[no-untyped-call]


def _tag(name: str) -> str:
    """A tag of this user's alone: of two users of an engine each keeps an image, with what is kept beside it."""
    place = hashlib.sha256(f"{os.getuid()} {kept_setups.directory()}".encode("utf-8", "surrogateescape")).hexdigest()
    return f"{name[:32]}-{place[:8]}"


def remove(client: APIClient, image: str) -> None:
    """Remove an image; nothing happens when it is gone.

    Raises:
        SandboxError: it is in use, or the engine does not answer
    """
    import docker.errors

    try:
        with engine.explained(f"the image {image[7:19]} cannot be removed"):
            client.remove_image(image, force=True)
    except SandboxError as error:
        if not isinstance(error.__cause__, docker.errors.ImageNotFound):
            raise


def leftovers(client: APIClient) -> list[str]:
    """Images without a name that processes made which were then killed, or whose name another one took."""
    filters: dict[str, Any] = {"label": [f"{key}={value}" for key, value in _KIND.items()], "dangling": True}
    found = client.images(filters=filters)
    return [str(image["Id"]) for image in found if gone((image["Labels"] or {}).get("builder", ""))]
