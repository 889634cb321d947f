"""Whose the `terminal` settings are: the taken backend's, another one's, or nobody's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pydantic

from debug_gym_core.components.catalogue import log
from debug_gym_core.errors import NO_FAULT
from debug_gym_core.sandbox.terminal import SandboxSettings

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.components.component import Component
    from debug_gym_core.sandbox.terminal import Terminal


@dataclass(frozen=True)
class ByOwner:
    """Terminal settings by whose they are.

    Attributes:
        own: those that the backend knows
        foreign: those that only other backends here know
        unknown: those that none here knows
    """

    own: dict[str, Any]
    foreign: dict[str, Any]
    unknown: dict[str, Any]


def by_owner(settings: Mapping[str, Any], backend: type[Terminal] | None, plugins: Plugins) -> ByOwner:
    """Tell terminal settings apart.

    Args:
        settings: of the `terminal` section, without its name
        backend: that is taken; None: any may be, as `auto` has it
        plugins: the backends that there are
    """
    every = {*SandboxSettings.model_fields, *(key for cls in plugins.terminals.values() for key in _keys(cls))}
    own = every if backend is None else {*SandboxSettings.model_fields, *_keys(backend)}
    told = ByOwner({}, {}, {})
    for key, value in settings.items():
        (told.own if key in own else told.foreign if key in every else told.unknown)[key] = value
    return told


def wrong_for_all(settings: Mapping[str, Any], components: Iterable[type[Component]]) -> list[dict[str, Any]]:
    """What is wrong with settings whichever component is taken: values that each one which knows the key refuses.

    Args:
        settings: of a section, such as `terminal`
        components: those of its kind that there are

    Returns:
        a problem for each key, as pydantic tells it
    """
    found, every = [], list(components)
    for key, value in settings.items():
        told = [_problem(cls, key, value) for cls in every if key in _keys(cls)]
        if told and told[0] is not None and None not in told:
            found.append(told[0])
    return found


def _problem(component: type[Component], key: str, value: Any) -> dict[str, Any] | None:
    """What a component finds wrong with the value of a key, if anything."""
    try:
        component.Settings(**{key: value})
    except pydantic.ValidationError as error:  # which tells of required keys too
        return next(({**one, "loc": (key,)} for one in error.errors() if one["loc"][:1] == (key,)), None)
    except NO_FAULT:
        raise
    except BaseException as error:  # of somebody's own, which is told where that component is taken
        log.debug("%s cannot check %s", component.name, key, exc_info=error)
    return None


def _keys(component: type[Component]) -> Mapping[str, Any]:
    return component.Settings.model_fields
