"""What tools answer: structured, bounded, rendered as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

TEXT_LIMIT = 20_000
"""Characters of one tool's text that reach the agent; a tool bounds its own text more tightly where it can."""


@dataclass(frozen=True)
class Observation:
    """What one tool, or the environment, said.

    Attributes:
        source: name of the tool, or `env`
        text: what the model reads; empty: the facts are for programs only
        data: the same facts for programs; JSON types only
        error: whether the action could not be carried out
    """

    source: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    error: bool = False

    def as_json(self) -> dict[str, Any]:
        """The observation as JSON types: `source`, `text`, `data` and, when true, `error`."""
        result: dict[str, Any] = {"source": self.source, "text": self.text, "data": dict(self.data)}
        if self.error:
            result["error"] = True
        return result


def as_observation(tool: str, answer: str | Observation) -> Observation:
    """Make what a tool returned an observation.

    Args:
        tool: name of the tool
        answer: what `use` or an event's method returned

    Raises:
        TypeError: it is neither text nor an Observation of a text, or its data are no JSON
    """
    made = Observation(tool, answer) if isinstance(answer, str) else answer
    if not isinstance(made, Observation):
        raise TypeError(f"it must answer with text or an Observation, not {type(answer).__name__}")
    if not isinstance(made.text, str):
        raise TypeError(f"its Observation must have a text, not {type(made.text).__name__}")
    if not isinstance(made.data, Mapping):
        raise TypeError(f"its Observation must have data by their names, not {type(made.data).__name__}")
    try:
        json.dumps(made.as_json(), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"the data of its Observation are no JSON: {error}") from error
    return made


def render(observations: Iterable[Observation]) -> dict[str, str]:
    """Put the words of several tools together as the environment's observation.

    Args:
        observations: in the order in which they were spoken

    Returns:
        `text` (what the model reads; every part but the first begins with its source in brackets) and `json` (a JSON
        list of `{source, text, data}`)
    """
    spoken = list(observations)
    facts = [{**o.as_json(), "text": bound(o.text)} for o in spoken]
    parts = [
        bound(one.text) if number == 0 else f"[{one.source}]\n{bound(one.text)}"
        for number, one in enumerate(spoken)
        if number == 0 or one.text
    ]
    return {
        "text": encodable("\n\n".join(parts)),
        "json": encodable(json.dumps(facts, ensure_ascii=False, sort_keys=True)),
    }


def encodable(text: str) -> str:
    """Show lone surrogates (of undecodable file names, say) as escapes: no service takes them.

    Args:
        text: any text
    """
    return text.encode("utf-8", "backslashreplace").decode()


def bound(text: str, limit: int = TEXT_LIMIT, *, missing: int = 0, more: str = "") -> str:
    """Keep head and tail of a text that is too long.

    Args:
        text: any text
        limit: characters to keep
        missing: characters of its middle that were left out before
        more: how to see what is left out

    Returns:
        the text, or its head and tail around a line that says how many characters were left out
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    head, tail, cut = at_line_ends(text[:half], text[len(text) - half :])
    cut += len(text) - 2 * half + missing
    return f"{head}[... {cut} characters left out{f'; {more}' if more else ''} ...]\n{tail}"


def at_line_ends(head: str, tail: str) -> tuple[str, str, int]:
    """Cut a head and a tail to whole lines, where that costs less than half of each.

    Args:
        head: the text before a gap
        tail: the text after it

    Returns:
        the head, which ends a line; the tail; how many characters were cut off
    """
    before = len(head) + len(tail)
    end = head.rfind("\n") + 1
    if end > len(head) // 2:
        head = head[:end]
    start = tail.find("\n") + 1
    if 0 < start < len(tail) // 2:
        tail = tail[start:]
    cut = before - len(head) - len(tail)
    return (head if head.endswith("\n") else f"{head}\n"), tail, cut
