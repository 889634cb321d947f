"""The events of an episode as lines for a person, for `-v`, `-vv` and `--debug`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from debug_gym_core.trajectory import Event, EventKind

if TYPE_CHECKING:
    from debug_gym_core.experiment import Job

SHORT = 8
"""Lines of an observation that `-v` shows."""


def event_lines(job: Job, event: Event, max_steps: int, *, whole: bool) -> Iterator[Text]:
    """An event as lines.

    Args:
        job: the episode
        event: what happened
        max_steps: bound on the episode's steps
        whole: show prompts, answers and all of an observation (`-vv`)
    """
    data = event.data
    if event.kind is EventKind.STEP:
        action = action_text(data["action"]) if data["step"] else "reset"
        score = f"score {data['score']}/{data['max_score']}"
        head = f"{job} {data['step']}/{max_steps}"
        yield Text.assemble((head, "bold cyan"), " ", (action, "bold"), f"  ({score}, {data['seconds']:.1f} s)")
        if data["step"] or whole:
            yield from _body(data["observation"]["text"], None if whole else SHORT)
    elif event.kind is EventKind.LLM_CALL and whole:
        tokens = data["tokens"]
        yield Text(f"{job} model {data['model']}: {tokens['prompt']} + {tokens['completion']} tokens", "magenta")
        for message in data.get("prompt", ()):
            yield Text(f"  {message['role']}:", "magenta")
            yield from _body(message["content"], None)
        if data.get("answer"):
            yield Text("  answer:", "magenta")
            yield from _body(data["answer"]["content"] or " ".join(data["calls"]), None)
    elif event.kind is EventKind.ERROR:
        again = "; played again" if data["retried"] else ""
        yield Text.assemble(
            (f"{job} error ", "bold red"), f"{data['error']['kind']}: {data['error']['message']}{again}"
        )
    elif event.kind is EventKind.GRADE:
        verdict = "resolved" if data["resolved"] else "not resolved"
        yield Text.assemble(
            (f"{job} graded", "bold cyan"), f" {verdict}, {data['score']}/{data['max_score']} ({data['grading']})"
        )


def action_text(action: Any) -> str:
    """A tool call as a person would write it."""
    if not isinstance(action, Mapping):
        return shorten(str(action or ""), 200)
    words = [str(action.get("name"))]
    for key, value in action.get("arguments", {}).items():
        plain = isinstance(value, str) and value and "\n" not in value
        words.append(f"{key}={shorten(value if plain else json.dumps(value, ensure_ascii=False), 80)}")
    return " ".join(words)


def shorten(text: str, length: int) -> str:
    """The text in one line and at most that long."""
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _body(text: str, limit: int | None) -> Iterator[Text]:
    lines = text.rstrip("\n").split("\n")
    shown = lines if limit is None or len(lines) <= limit else lines[: limit - 1]
    for line in shown:
        yield Text(f"    {_printable(line)}")
    if len(shown) < len(lines):
        yield Text(f"    (and {len(lines) - len(shown)} more lines; -vv shows them)", "dim")


def _printable(line: str) -> str:
    """Escape what would steer the terminal."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)
