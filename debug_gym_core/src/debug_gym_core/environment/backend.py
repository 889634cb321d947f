"""Which sandbox backend a task gets when the config says `auto`, and whether one that was asked for may be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from debug_gym_core.components.component import blamed
from debug_gym_core.environment.terminal_settings import by_owner
from debug_gym_core.errors import DebugGymError, RequirementError, UsageError

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.task import Task

ALLOW = "-p terminal.allow_unsandboxed=true (allow_unsandboxed=True in Python)"

_usable: set[type[Terminal]] = set()
"""Backends that were found to work here. That one does not is asked again: its engine may have been started since."""


def choose_terminal(
    name: str, task: Task, trusted: bool, plugins: Plugins, settings: Mapping[str, Any]
) -> tuple[type[Terminal], str | None]:
    """Choose the sandbox backend of a task.

    `auto` takes docker when the task or `terminal.image` names an image, else bubblewrap, else local where no model
    acts or the user allowed it.

    Args:
        name: a backend's name, or `auto`
        task: what will run in it
        trusted: whether a person or code of ours acts, not a model or a patch of somebody's
        plugins: what is installed
        settings: the `terminal` settings; `image` and `allow_unsandboxed` matter here

    Returns:
        the backend's class, and a line that a person should read (None when there is nothing to say)

    Raises:
        UsageError: there is no such backend, or it isolates nothing and who acts is not trusted
        PluginError: the backend's plugin failed to load
        RequirementError: no backend can be had on this machine; the text says what to install
    """
    if task.repository is None and not (settings.get("image") or task.image):
        raise UsageError(f"{task.id} names neither a repository nor an image that holds it")
    free = trusted or bool(settings.get("allow_unsandboxed"))
    if name != "auto":
        backend: type[Terminal] = plugins.get("terminals", name)
        if backend.runs_images and not (settings.get("image") or task.image or _has_image(backend)):
            raise UsageError(
                f"{name} needs an image, and the task names none: -p terminal.image=IMAGE, in Python"
                f" terminal={{{name!r}: {{'image': IMAGE}}}}; it must have what the tests need, as pytest"
            )
        _require(backend)
        if task.repository is None and not backend.runs_images:
            raise UsageError(f"{task.id} lies in an image, and terminal {name} runs none: take docker")
        if backend.isolates:
            return backend, None
        if not free:
            raise UsageError(
                f"terminal {name} isolates nothing and who acts is not trusted: "
                f"take bubblewrap or docker, or say {ALLOW}"
            )
        return backend, None if trusted else _unsandboxed(name)
    if settings.get("image") or task.image:
        backend = plugins.get("terminals", "docker")
        _require(backend, why=f"{task.id} runs in the image {settings.get('image') or task.image}: ")
        return backend, None
    sandbox, reason = _available("bubblewrap", plugins)
    if sandbox is not None:
        return sandbox, None
    if not free:
        raise RequirementError(
            f"no sandbox: {reason}.\n"
            f"Install bubblewrap, or Docker with an image (-p terminal.image=python:3.12), or say {ALLOW}"
        )
    local, missing = _available("local", plugins)
    if local is None:
        raise RequirementError(f"no sandbox: {reason}; and not without one either: {missing}")
    return local, f"no sandbox ({reason}): {task.benchmark} runs on this machine without isolation"


def unused(settings: Mapping[str, Any], backend: type[Terminal], plugins: Plugins) -> Iterator[str]:
    """What is set for a sandbox that `auto` took another backend for, a line each; not its value, maybe a secret.

    Args:
        settings: of the `terminal` section
        backend: that it took
        plugins: the backends that there are
    """
    for key in by_owner(settings, backend, plugins).foreign:
        yield f"terminal.{key} is set, which {backend.name} does not use"


def _available(name: str, plugins: Plugins) -> tuple[type[Terminal] | None, str]:
    """A backend that works here, or the reason why it does not."""
    try:
        backend: type[Terminal] = plugins.get("terminals", name)
    except DebugGymError as error:
        return None, str(error)
    reason = _unavailable(backend)
    return (backend, "") if reason is None else (None, reason.rstrip("."))


def _require(backend: type[Terminal], why: str = "") -> None:
    reason = _unavailable(backend)
    if reason is not None:
        raise RequirementError(f"{why}terminal {backend.name}: {reason}")


def _has_image(backend: type[Terminal]) -> bool:
    """Whether a backend has an image of its own when nobody names one."""
    field = backend.Settings.model_fields.get("image")
    return field is None or bool(field.get_default(call_default_factory=True))


def _unavailable(backend: type[Terminal]) -> str | None:
    if backend in _usable:
        return None
    with blamed(backend, "say whether it works here"):
        reason = backend.unavailable()
    if reason is None:
        _usable.add(backend)
    return reason


def _unsandboxed(name: str) -> str:
    return f"a model's commands run on this machine without isolation (terminal {name}, allow_unsandboxed)"
