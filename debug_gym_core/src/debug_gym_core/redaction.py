"""Keeps keys out of everything that is written: logs, trajectories, errors."""

from __future__ import annotations

import json
import re
from typing import Any

MASK = "***"

SECRET = re.compile(r"key|token$|secret|password|authorization", re.IGNORECASE)
"""Names of settings that hold a secret."""

SENT_SECRET = re.compile(r"(^|[-_])(key|token|secret|password)$|authorization|^cookie$", re.IGNORECASE)
"""Names of headers and parameters that hold one; among them many have `key` in their middle and hold none."""

SENT_WITH = ("extra_headers", "extra_query")
"""Of `generate_kwargs`: what says who asks rather than what is asked."""

KEY = re.compile(r"(api|access|auth)[-_]?(key|token)|secret|password|authorization", re.IGNORECASE)
"""Names of what surely is one, in a body that has names of many kinds (`prompt_cache_key`, `stop_token`)."""

LEAST = 8
"""Characters of a secret: what is shorter (`none`, `EMPTY`) is a placeholder and may be a word of the program's."""

_LONG = 16
"""Characters of a name from which on it is taken for a key, if there is a digit in it: no setting's is."""

PLACEHOLDERS = frozenset((
    "not-needed", "not_needed", "notneeded", "no-key-needed", "not-used", "lm-studio", "placeholder", "anything",
    "no-key-required", "sk-no-key-required", "local-key", "dummy-key", "fake-key", "your-api-key", "api-key",
    "none", "null", "empty", "dummy", "fake", "test", "ollama", "vllm",
))  # fmt: skip
"""What people write, in small letters, where a server wants a key and checks none; models write it into code."""

QUERY = "a query is generate_kwargs: {extra_query: {name: value}}"
"""What to do with the query of an endpoint, which has none."""

_secrets: set[str] = set()


def is_key(text: str, least: int = LEAST) -> bool:
    """Whether what is given as a key is one: masked everywhere, a placeholder would take the program's words apart.

    Args:
        text: it
        least: characters that a key has
    """
    return len(text) >= least and text.lower() not in PLACEHOLDERS


def remember(secret: str) -> None:
    """Never write this text again.

    Args:
        secret: a key; one that is too short to be one, or stands for none, is not kept
    """
    if is_key(secret):
        _secrets.update((secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]))


def redact(text: str) -> str:
    """The text with every known secret masked."""
    for secret in sorted(_secrets, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, MASK)
    return text


def redacted(value: Any) -> Any:
    """JSON types with every known secret in their texts masked; the value itself where there is nothing to mask."""
    if not _secrets:
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redacted(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(one) for one in value]
    return value


def may_be_key(value: Any) -> bool:
    """Whether a value of a wrong kind may be a key that stands in a wrong place: no number, and as long as one.

    Args:
        value: of a model's entry, or of a file of which nobody knows what it is; an error repeats it where it is none
    """
    return value is not None and not isinstance(value, int | float) and len(str(value)) >= LEAST


def name_alone(name: str) -> str:
    """An unknown name without what may be a key in it.

    Args:
        name: as it was written; in `{api_key:sk-...}`, with no space after the colon, that is all there is

    Returns:
        it; what stands behind its first colon, equals sign or blank masked, and all of it where it looks like a key
        itself
    """
    alone = re.split(r"[\s:=]", name, maxsplit=1)[0]
    if len(alone) >= _LONG and any(one.isdigit() for one in alone):
        return MASK
    return f"{name[: len(alone) + 1]}{MASK}" if may_be_key(name[len(alone) + 1 :]) else name


def address_alone(address: str) -> str:
    """An address without what may be secret in it: who asks there, before its host, and all behind its path."""
    scheme, slashes, rest = re.split(r"[?#]", address, maxsplit=1)[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}"
