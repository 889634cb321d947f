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

TIMEOUT = 60
"""Seconds that the engine may take for one answer."""

LOCAL = "unix:///var/run/docker.sock"
_PING_TIMEOUT = 2


def connect(timeout: int = TIMEOUT) -> APIClient:
    """Connect to the engine that `DOCKER_HOST` or the chosen context names, or this machine's.

    Raises:
        RequirementError: the SDK is not installed, or no engine answers
    """
    try:
        import docker
        import requests
    except ImportError as error:
        raise RequirementError("the Docker SDK is not installed: pip install 'docker>=7,<8'") from error
    address = _address()
    try:
        _knock(address.get("base_url", LOCAL))
        return docker.APIClient(timeout=timeout, version="auto", **address)
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise RequirementError(_unreachable(error)) from error


def _knock(url: str) -> None:
    """Raise OSError when nobody listens at a local socket: the SDK would find out too, but leaves its own one open."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(_PING_TIMEOUT)
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


def _unreachable(error: Exception) -> str:
    where = _address().get("base_url", LOCAL)
    text = str(error)
    if "Permission denied" in text:
        return f"this user may not use the Docker engine at {where}: add it to the group docker, or use rootless Docker"
    return f"no Docker engine answers at {where}; start it (systemctl start docker, or dockerd), or set DOCKER_HOST"


@functools.cache
def unavailable() -> str | None:
    """Why there is no Docker to use; None when there is."""
    try:
        connect(_PING_TIMEOUT).close()
    except RequirementError as error:
        return str(error)
    return None


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
        raise SandboxError(f"docker: {what}: the engine does not answer ({type(error).__name__})") from error
