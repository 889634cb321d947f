"""What a run keeps of the model that plays: which it is, how it is asked and what it costs, and nothing that is secret.

llm.yaml may say another thing under the same name tomorrow, so that the name alone tells nobody who has answered.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from debug_gym_core.components.component import Settings
from debug_gym_core.config.layers import KeyPath
from debug_gym_core.models.service import ServiceSettings
from debug_gym_core.redaction import MASK, SENT_SECRET, SENT_WITH, address_alone, redacted

VARIABLES, ENDPOINT_VARIABLES = "variables", "endpoint_variables"
"""What a record has beside the settings: marks of what the environment said, by the references to it."""

MOVED = frozenset(("endpoint", ENDPOINT_VARIABLES, "prices"))
"""Settings of which a change is told: the same model may be served elsewhere, and cost something else."""

SAME_ANSWERS = MOVED | {
    "tags", "api_key", "stream", "timeout", "max_retries", "max_run_tokens", "allow_unknown_price",
}  # fmt: skip
"""Settings that do not make the answers of a model others; what else a backend has may."""


@dataclass(frozen=True)
class ModelRecord:
    """What is recorded of the model that is to play, and what it is compared by.

    Attributes:
        kept: its backend and settings, nothing secret
        plain: the same with what the environment says, as it was kept once; never to be written, nor shown
    """

    kept: Mapping[str, Any]
    plain: Mapping[str, Any]


def recorded(settings: Settings, *, plain: bool = False) -> dict[str, Any]:
    """The settings of a model that are not left at their defaults, as JSON types, secrets masked.

    What came from the environment stands as its reference, for anything may be secret there; the name of the model does
    not. Of what makes the answers others, and of where it is served, a mark tells whether it is still the same.

    Args:
        settings: as they are, with what the environment was asked for
        plain: whether what came from there stands as it is, nothing marked
    """
    data = settings.model_dump(mode="json", exclude_defaults=True, exclude={"api_key"})
    references = settings.references if isinstance(settings, ServiceSettings) and not plain else {}
    marks: dict[str, dict[str, str]] = {ENDPOINT_VARIABLES: {}, VARIABLES: {}}
    if references:
        data = _referring(data, references, marks)
    return without_secrets({**data, **{key: found for key, found in marks.items() if found}})


def _referring(
    value: Any, references: Mapping[KeyPath, str], marks: Mapping[str, dict[str, str]], path: KeyPath = ()
) -> Any:
    """JSON types with the references in the place of the texts that came from them; a number is no text any more.

    Args:
        value: settings, or what they have at a path
        references: by the paths of what came from them
        marks: gets a mark of each such text, by its reference
        path: the path
    """
    if isinstance(value, dict):
        return {key: _referring(one, references, marks, (*path, key)) for key, one in value.items()}
    if isinstance(value, list):
        return [_referring(one, references, marks, (*path, str(at))) for at, one in enumerate(value)]
    if not isinstance(value, str) or path not in references:
        return value
    if path[0] == "endpoint":
        marks[ENDPOINT_VARIABLES][references[path]] = _mark(value)
    elif path[0] != "generate_kwargs" or path[1] not in SENT_WITH:
        marks[VARIABLES][references[path]] = _mark(value)
    return references[path]


def said_now(kept: Mapping[str, Any], model: ModelRecord) -> dict[str, Any]:
    """A record with what llm.yaml says itself by now in the place of references to the same.

    Older versions kept a reference wherever a text was one that came from the environment.

    Args:
        kept: the record
        model: what it is compared with
    """
    marks, known = kept.get(VARIABLES) or {}, model.kept.get(VARIABLES) or {}
    data: dict[str, Any] = _said_now(kept, model.kept, model.plain, marks)
    left = {reference: mark for reference, mark in marks.items() if reference in known}
    return {**{key: value for key, value in data.items() if key != VARIABLES}, **({VARIABLES: left} if left else {})}


def _said_now(kept: Any, new: Any, plain: Any, marks: Mapping[str, str]) -> Any:
    """See `said_now`; a reference that is none any more differs from what is there, so its mark is not needed."""
    if isinstance(kept, dict) and isinstance(new, dict) and isinstance(plain, dict):
        return {key: _said_now(one, new.get(key), plain.get(key), marks) for key, one in kept.items()}
    if isinstance(kept, list) and isinstance(new, list) and len(kept) == len(new):
        return [_said_now(*places, marks) for places in zip(kept, new, plain, strict=True)]
    if isinstance(kept, str) and isinstance(new, str) and new == plain and marks.get(kept) == _mark(new):
        return new
    return kept


@functools.lru_cache(maxsize=64)
def _mark(text: str) -> str:
    """What tells a text from others, so short, and so slow to make, that the text cannot be found by it."""
    return hashlib.pbkdf2_hmac("sha256", text.encode("utf-8", "backslashreplace"), b"debug-gym", 100_000, 3).hex()


def without_secrets(record: Mapping[str, Any]) -> dict[str, Any]:
    """The same with secrets masked and the endpoint without its own; older versions kept some.

    Args:
        record: settings of a model, as JSON types
    """
    data = dict(record)
    if "endpoint" in data:
        data["endpoint"] = address_alone(str(data["endpoint"]))
    sent = data.get("generate_kwargs")
    for name in ("extra_headers", "extra_query"):
        if isinstance(sent, dict) and isinstance(sent.get(name), dict):
            values = {key: MASK if SENT_SECRET.search(key) else value for key, value in sent[name].items()}
            data["generate_kwargs"] = sent = {**sent, name: values}
    masked: dict[str, Any] = redacted(data)
    return masked


def answering(record: Mapping[str, Any]) -> dict[str, Any]:
    """Of what is recorded of a model that which makes its answers what they are."""
    return {key: value for key, value in record.items() if key not in SAME_ANSWERS}


def model_name(record: Mapping[str, Any]) -> str | None:
    """What its service calls the model that plays a run; None where that is not known.

    Args:
        record: the run.json
    """
    kept = record.get("model")
    name = kept.get("model") if isinstance(kept, dict) else None
    return name if isinstance(name, str) else None


def titled(llm: str, model: str | None) -> str:
    """A model by what a config calls it, and by what its service does where that is another name."""
    return llm if model in (None, llm) else f"{llm} ({model})"
