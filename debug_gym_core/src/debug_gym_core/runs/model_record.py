"""What a run keeps of the model that plays: which it is, how it is asked and what it costs, and nothing that is secret.

llm.yaml may say another thing under the same name tomorrow, so that the name alone tells nobody who has answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from debug_gym_core.components.component import Settings
from debug_gym_core.redaction import MASK, SENT_SECRET, address_alone, redacted

MOVED = frozenset(("endpoint", "prices"))
"""Settings of which a change is told: the same model may be served elsewhere, and cost something else."""

SAME_ANSWERS = MOVED | {
    "tags", "api_key", "stream", "timeout", "max_retries", "max_run_tokens", "allow_unknown_price",
}  # fmt: skip
"""Settings that do not make the answers of a model others; what else a backend has may."""


def recorded(settings: Settings) -> dict[str, Any]:
    """The settings of a model that are not left at their defaults, as JSON types, secrets masked.

    Args:
        settings: as they are, with what the environment was asked for
    """
    return without_secrets(settings.model_dump(mode="json", exclude_defaults=True, exclude={"api_key"}))


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
