"""The connection to the Docker engine, and its errors in words that help."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import RequirementError, SandboxError

if TYPE_CHECKING:
    from docker import APIClient

TIMEOUT = 60.0
"""Seconds that the engine may take for one answer."""

CONNECT_TIMEOUT = 15.0
"""Seconds that it may take to say which version it is."""

STOP_TIMEOUT = 30.0
"""Seconds that it may take for one answer when something is removed."""

LOCAL = "unix:///var/run/docker.sock"
_PING_TIMEOUT = 2
_ABOUT_TIMEOUT = 10
_LEAST_VERSION = "1.40"


def connect(timeout: float | None = None, patience: float | None = None) -> APIClient:
    """Connect to the engine that `DOCKER_HOST` or the chosen context names, or this machine's.

    Args:
        timeout: seconds that it may take for each answer; None: `TIMEOUT`
        patience: seconds that it may take to be there; None: `CONNECT_TIMEOUT`

    Raises:
        RequirementError: the SDK is not installed, or no engine answers
    """
    patience = CONNECT_TIMEOUT if patience is None else patience
    try:
        import docker
        import requests
    except ImportError as error:
        raise RequirementError("the Docker SDK is not installed: pip install 'docker>=7,<8'") from error
    address = _address()
    try:
        _knock(address.get("base_url", LOCAL), patience)
        # Not the SDK's `version="auto"`: it asks what takes Podman seconds to say.
        with contextlib.closing(_client()(timeout=patience, version=_LEAST_VERSION, **address)) as asking:
            said = asking.get(f"{asking.base_url}/_ping")
            said.raise_for_status()
        version = said.headers.get("Api-Version", _LEAST_VERSION)
        client: APIClient = _client()(timeout=patience, version=version, **address)
        client.podman = "Libpod-API-Version" in said.headers  # type: ignore[attr-defined]
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise RequirementError(_unreachable(error, patience)) from error
    limit(client, TIMEOUT if timeout is None else timeout)
    return client


@functools.cache
def _client() -> Any:
    """The SDK's client, made to wait for no answer longer than its `timeout`: it attaches to containers without one."""
    import docker

    class BoundedClient(docker.APIClient):
        def request(self, *arguments: Any, **options: Any) -> Any:
            if options.get("timeout") is None:
                options["timeout"] = self.timeout
            return super().request(*arguments, **options)

    return BoundedClient


def limit(client: APIClient, timeout: float) -> None:
    """Set how many seconds the engine may take for each answer from now on."""
    client.timeout = timeout  # type: ignore[assignment]


def _knock(url: str, patience: float) -> None:
    """Raise OSError when nobody listens at a local socket: the SDK would find out too, but leaves its own one open."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(patience)
            door.connect("/" + url.removeprefix("unix://").lstrip("/"))


def _address() -> dict[str, Any]:
    """Where the engine is: `DOCKER_HOST`, else the context that `docker context use` chose, else this machine's."""
    from docker.context import ContextAPI
    from docker.utils import kwargs_from_env

    if not os.environ.get("DOCKER_HOST"):
        context = ContextAPI.get_current_context()
        if context is not None and context.Name != "default":
            return {"base_url": context.Host, "tls": context.TLSConfig or False}
    return dict(kwargs_from_env())


def _unreachable(error: Exception, patience: float) -> str:
    where = _address().get("base_url", LOCAL)
    text = str(error)
    if "Permission denied" in text:
        return f"this user may not use the Docker engine at {where}: add it to the group docker, or use rootless Docker"
    if "timed out" in text:
        return (
            f"the Docker engine at {where} does not answer (waited {patience:g} s); see whether it hangs"
            " (systemctl restart docker), or set DOCKER_HOST"
        )
    return f"no Docker engine answers at {where}; start it (systemctl start docker, or dockerd), or set DOCKER_HOST"


def unavailable() -> str | None:
    """Why there is no Docker to use; None when there is."""
    try:
        connect(patience=_PING_TIMEOUT).close()
    except RequirementError as error:
        return str(error)
    return None


def about() -> list[str]:
    """The engine's version and kind of machine, where it answers, and how many images it has; asks it."""
    try:
        client = connect(_ABOUT_TIMEOUT, _PING_TIMEOUT)
    except RequirementError as error:
        return [str(error)]
    with contextlib.closing(client), explained("the engine cannot be asked"):
        said = client.version()
        images = len(client.images(quiet=True))
    where = _address().get("base_url", LOCAL)
    plural = "" if images == 1 else "s"
    name = "Podman" if is_podman(client) else "Docker"
    return [f"{name} {said['Version']} ({said['Os']}/{said['Arch']}) at {where}", f"{images} image{plural} here"]


def is_podman(client: APIClient) -> bool:
    """Whether the engine is Podman, which speaks Docker's API with some differences."""
    return bool(getattr(client, "podman", False))


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn the SDK's errors into `SandboxError`.

    Args:
        what: what is being done, as in `the container did not start`
    """
    import docker.errors
    import requests

    try:
        yield
    except docker.errors.APIError as error:
        raise SandboxError(f"docker: {what}: {error.explanation or error}") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise SandboxError(f"docker: {what}: {silence(error)}") from error


def silence(error: Exception) -> str:
    """In which way the engine failed to answer."""
    if "timed out" in str(error):
        return "the engine did not answer in time; does it hang?"
    return f"the engine does not answer ({type(error).__name__})"
