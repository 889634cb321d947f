"""An episode's log.txt: what happened in it, for people to read."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from debug_gym_core.redaction import redact
from debug_gym_core.runs.trajectory import Event, EventKind

LONGEST = 2_000
"""Characters of one value of an event."""

log = logging.getLogger("debug_gym")


class Transcript(logging.FileHandler):
    """An episode's log.txt: what happened as text, and what is logged in the thread that plays it."""

    def __init__(self, path: Path) -> None:
        """Open the file, at its end."""
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._thread = threading.get_ident()

    def __enter__(self) -> Transcript:
        log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        log.removeHandler(self)
        with contextlib.suppress(OSError):
            self.close()

    def format(self, record: logging.LogRecord) -> str:
        """A record as text, without keys."""
        return redact(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:
        """Say nothing: when the disk is full, the trajectory, which must be whole, is what complains."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record was logged in this episode's thread."""
        return record.thread == self._thread

    def write(self, text: str, error: BaseException | None = None) -> None:
        """Write a paragraph, with an error's traceback; whatever the level of the logger."""
        about = (type(error), error, error.__traceback__) if error else None
        record = logging.LogRecord(log.name, logging.INFO, __file__, 0, "%s", (text,), about)
        record.thread = self._thread  # also when another one tells of the episode
        self.handle(record)


def as_text(event: Event) -> str:
    """An event for log.txt.

    Args:
        event: of a trajectory
    """
    data = event.data
    if event.kind is EventKind.STEP:
        head = f"step {data['step']} {_action_text(data['action'])}".rstrip()
        body = data["observation"]["text"].replace("\n", "\n    ")
        tail = f"reward {data['reward']:g}, score {data['score']}/{data['max_score']}, {data['seconds']:.2f} s"
        return f"{head}\n    {body}\n    ({tail})"
    return f"{event.kind} " + " ".join(
        f"{key}={_short(value)}" for key, value in data.items() if key not in ("prompt", "answer")
    )


def _short(value: Any) -> str:
    """A value, or how much of it there is: the whole stands in the trajectory."""
    text = repr(value)
    if len(text) <= LONGEST:
        return text
    return (
        f"{{{len(value)} of them}}"
        if isinstance(value, Mapping)
        else f"{text[:LONGEST]}[... {len(text) - LONGEST} more]"
    )


def _action_text(action: Any) -> str:
    if not isinstance(action, Mapping):
        return str(action or "")
    arguments = action.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        return f"{action.get('name')} {arguments!r}"
    return " ".join([str(action.get("name")), *(f"{key}={value!r}" for key, value in arguments.items())])
