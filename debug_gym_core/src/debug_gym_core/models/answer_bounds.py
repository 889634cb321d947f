"""What bounds an answer: services have many names for it, and it can be said in many places."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from debug_gym_core.models.chat_format import mapping

BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens")
"""What services call the bound on an answer, among `generate_kwargs`."""


def bounds_said(most: int | None, sent: Mapping[str, Any]) -> dict[str, Any]:
    """What bounds an answer, by where that is said.

    Args:
        most: the setting `max_tokens`
        sent: the `generate_kwargs`
    """
    body = mapping(sent.get("extra_body"))
    said = {"": {"max_tokens": most}, "generate_kwargs.": sent, "generate_kwargs.extra_body.": body}
    bounds = ((place + name, given.get(name)) for place, given in said.items() for name in BOUNDS)
    return {place: value for place, value in bounds if value is not None}


def names_sent(settings: Mapping[str, Any]) -> set[str]:
    """Names of what settings say of a request, in `generate_kwargs` too; not of mappings, whose keys are merged."""
    sent = mapping(settings.get("generate_kwargs"))
    said = {**settings, **sent, **mapping(sent.get("extra_body"))}
    return {name for name, value in said.items() if not isinstance(value, Mapping)}


def bounds_answer(names: Collection[str]) -> bool:
    """Whether the bound on an answer is among what is said, whatever it is called there."""
    return any(name in names for name in BOUNDS)


def without(sent: Mapping[str, Any], settings: Collection[str]) -> dict[str, Any]:
    """`generate_kwargs` less what settings say too: by the same name, or an answer's bound by another one.

    Args:
        sent: the `generate_kwargs`
        settings: names of what settings say
    """
    names = {*settings, *(BOUNDS if bounds_answer(settings) else ())}
    rest = {name: value for name, value in sent.items() if name not in names}
    body = rest.get("extra_body")
    return {**rest, "extra_body": without(body, settings)} if isinstance(body, Mapping) else rest
