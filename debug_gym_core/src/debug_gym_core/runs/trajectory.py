"""Trajectories and results: what an episode leaves behind, a JSON object a line, written as it happens."""

from __future__ import annotations

import dataclasses
import enum
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from debug_gym_core.errors import DebugGymError, UsageError, place_of, said_by
from debug_gym_core.redaction import redact, redacted
from debug_gym_core.runs.json_lines import JsonLines, read_lines

if TYPE_CHECKING:
    from debug_gym_core.tasks.results import Grade
    from debug_gym_core.tasks.task import Mode
    from debug_gym_core.tools.action import ToolCall
    from debug_gym_core.usage import Usage

SCHEMA_VERSION = 1
"""Version of the lines of trajectory.jsonl; a reader refuses what is newer than itself."""

FAILED = 50
"""Tests that a result names; all of them are in the trajectory."""


class EventKind(enum.StrEnum):
    """What can happen in an episode."""

    EPISODE_STARTED = "episode_started"
    STEP = "step"
    LLM_CALL = "llm_call"
    GRADE = "grade"
    ERROR = "error"
    EPISODE_FINISHED = "episode_finished"


@dataclass(frozen=True)
class Event:
    """One thing that happened in an episode.

    Attributes:
        kind: what
        data: its facts, JSON types only
        number: position in the trajectory from 0; the journal gives it
        time: seconds since the epoch when it was written; the journal gives it
    """

    kind: EventKind
    data: Mapping[str, Any] = field(default_factory=dict)
    number: int = -1
    time: float = 0.0

    @classmethod
    def episode_started(
        cls,
        *,
        task: str,
        agent: str,
        llm: str | None,
        terminal: str,
        tools: list[str],
        seed: int,
        attempt: int,
        python: Mapping[str, str] | None = None,
    ) -> Event:
        """An episode begins, its sandbox stands or could not be had.

        `attempt` counts from 1 and grows when the sandbox was lost and all starts again; `python` is the interpreter of
        the task's code (`path`, `version`), None without a sandbox.
        """
        return cls(
            EventKind.EPISODE_STARTED,
            {
                "task": task,
                "agent": agent,
                "llm": llm,
                "terminal": terminal,
                "python": dict(python) if python is not None else None,
                "tools": tools,
                "seed": seed,
                "attempt": attempt,
            },
        )

    @classmethod
    def step(
        cls,
        *,
        step: int,
        action: ToolCall | str | Mapping[str, Any] | None,
        observation: Mapping[str, str],
        reward: float,
        score: int,
        max_score: int,
        terminated: bool,
        truncated: bool,
        seconds: float,
    ) -> Event:
        """A step of the environment; step 0 is its reset, which has no action. `seconds` is wall-clock time."""
        return cls(
            EventKind.STEP,
            {
                "step": step,
                "action": action if isinstance(action, str | None) else _action(action),
                "observation": {"text": observation["text"], "json": json.loads(observation["json"])},
                "reward": reward,
                "score": score,
                "max_score": max_score,
                "terminated": terminated,
                "truncated": truncated,
                "seconds": round(seconds, 6),
            },
        )

    @classmethod
    def llm_call(
        cls,
        *,
        model: str,
        usage: Usage,
        seconds: float,
        calls: list[str],
        prompt: Any = None,
        answer: Any = None,
        tools: list[str] | None = None,
        failed: str | None = None,
        finish: str = "stop",
    ) -> Event:
        """A model was asked: tokens, dollars, seconds, names of the tools it called, also where it did so in its text.

        The prompt, the answer and the names of the tools that the service was told on request; an answer without a call
        is kept always. A call that failed is kept when it was charged all the same. Why the answer ends is kept where
        it is not complete.
        """
        data = {
            "model": model,
            "tokens": {"prompt": usage.prompt, "completion": usage.completion, "cached": usage.cached},
            "cost": usage.cost,
            "seconds": round(seconds, 6),
            "calls": calls,
        }
        if prompt is not None:
            data["prompt"] = prompt
        if answer is not None:
            data["answer"] = answer
        if tools is not None:
            data["tools"] = tools
        if failed is not None:
            data["failed"] = failed
        if finish != "stop":
            data["finish"] = finish
        return cls(EventKind.LLM_CALL, data)

    @classmethod
    def grade(cls, grade: Grade) -> Event:
        """The workspace was graded for the record."""
        return cls(EventKind.GRADE, dataclasses.asdict(grade))

    @classmethod
    def error(cls, error: BaseException, *, retried: bool) -> Event:
        """Infrastructure failed; `retried` tells whether the episode is played again."""
        return cls(EventKind.ERROR, {"error": describe(error), "retried": retried})

    @classmethod
    def episode_finished(cls, result: Result) -> Event:
        """The episode is over and has its line in results.jsonl."""
        return cls(EventKind.EPISODE_FINISHED, {"result": result.as_json()})

    def as_json(self) -> dict[str, Any]:
        """The event as its line of trajectory.jsonl."""
        return {
            "schema_version": SCHEMA_VERSION,
            "number": self.number,
            "kind": str(self.kind),
            "time": round(self.time, 3),
            **self.data,
        }


@dataclass(frozen=True)
class Tokens:
    """Tokens that a model's provider counted: all of the prompt, the answer, and how many of the prompt were cached."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


_KINDS: Mapping[str, tuple[Any, str]] = {
    **dict.fromkeys(("task", "agent", "status"), (str, "text")),
    **dict.fromkeys(("score", "steps"), (int, "whole number")),
    **dict.fromkeys(("cost", "seconds"), (int | float, "number")),
    **dict.fromkeys(("tool_calls", "tokens", "dropped", "doubts"), (dict, "mapping")),
    **dict.fromkeys(("failed", "broken"), (list | tuple, "list")),
    **dict.fromkeys(("max_score", "repeat", "twins"), (int | None, "whole number")),
    **dict.fromkeys(("mode", "reason"), (str, "text")),
    **dict.fromkeys(("llm", "grading", "ended"), (str | None, "text")),
    "resolved": (bool, "truth value"),
    "changed": (bool | None, "truth value"),
    **dict.fromkeys(("error", "python"), (dict | None, "mapping")),
}
"""What the fields of a result must be for it to be read."""
_ERROR = ("kind", "message")
"""What the error of a result has."""


@dataclass(frozen=True)
class Result:
    """How an episode ended: a line of results.jsonl.

    Attributes:
        task: `benchmark/name`
        agent: who played
        llm: the model, None for an agent that needs none
        status: `error` only when infrastructure failed; such a task does not count against the agent
        resolved: whether every test that counts passed, and every one that passed before
        score: tests that count and passed; 0 when one failed that passed before
        max_score: tests that count; None when the episode failed before that was known
        grading: how it was measured; None when it was not
        steps: steps of the environment
        tool_calls: how often each tool was used
        tokens: what the model's provider counted
        cost: dollars
        seconds: wall-clock time
        error: `kind` and `message` of what failed, else None
        ended: what ended the episode: `resolved`, `submitted`, `max_steps`, `max_rewrites`, `time`, `max_cost`,
            `context` (the model takes no shorter conversation), `gave_up` (the model called nothing), `over` (a
            person left, or a script was played to its end), `refused` (the model refused to answer), `malformed`
            (nothing in its answers was a call, three times in a row), or another word of the agent's; None: an error,
            an agent that was through, or a line of an older version
        repeat: which of several episodes of the task, from 1; only in the line when there are several
        mode: who saw the tests that count, as `Task.mode`; results of different modes are not comparable
        changed: whether the agent changed anything; None when nobody could tell
        failed: the first `FAILED` ids of tests that count and did not pass
        broken: the first `FAILED` ids of tests that passed before the episode and do not any more
        reason: why the graded run does not count as it stands, or is worth nothing: a timeout, tampering, tests that
            passed before and fail; empty: it counts
        dropped: the first fifty changes that grading did not take over, and why, by path
        doubts: why a test that passed was not believed, by its id; the first fifty
        twins: how many tests that passed were run again with what they expect turned; None: none was
        python: the interpreter of the task's code, `path` and `version`; None when no sandbox stood
    """

    task: str
    agent: str
    llm: str | None
    status: Literal["resolved", "unresolved", "error"]
    resolved: bool = False
    score: int = 0
    max_score: int | None = None
    grading: Literal["clean", "in_place", "exit_status"] | None = None
    steps: int = 0
    tool_calls: Mapping[str, int] = field(default_factory=dict)
    tokens: Tokens = Tokens()
    cost: float = 0.0
    seconds: float = 0.0
    error: Mapping[str, str] | None = None
    ended: str | None = None
    repeat: int | None = None
    mode: Mode = "visible"
    changed: bool | None = None
    failed: Sequence[str] = ()
    broken: Sequence[str] = ()
    reason: str = ""
    dropped: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    twins: int | None = None
    python: Mapping[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """The result as its line of results.jsonl."""
        data = dataclasses.asdict(self)
        if self.repeat is None:
            del data["repeat"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Result:
        """Read a line of results.jsonl; keys that this version does not know are left out.

        Raises:
            ValueError: it is no result
        """
        missing = [name for name in ("task", "agent", "llm", "status") if name not in data]
        if missing:
            raise ValueError(f"it has no {', '.join(missing)}")
        for name, (kinds, what) in _KINDS.items():
            if name in data and not isinstance(data[name], kinds):
                raise ValueError(f"{name} is no {what}")
        if data["status"] == "error" and not all(isinstance((data.get("error") or {}).get(key), str) for key in _ERROR):
            raise ValueError(f"error has no {' and '.join(_ERROR)}")
        known = {item.name for item in dataclasses.fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        values |= {key: tuple(values.get(key, ())) for key in ("failed", "broken")}
        return cls(**{**values, "tokens": Tokens(**values.get("tokens", {}))})


class Journal:
    """The trajectory of one task, being written.

    An existing file is gone on with: numbers continue, a torn last line is removed. Safe to use from several threads.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, and make it and its directory when they are not there.

        Args:
            path: the trajectory.jsonl
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._number = sum(1 for _ in read_lines(path))
        self._lines = JsonLines(path)

    def append(self, event: Event) -> Event:
        """Write an event; it is in the file when this returns.

        Returns:
            the event with its number and time, as it was written: without keys
        """
        with self._lock:
            event = dataclasses.replace(event, number=self._number, time=time.time(), data=redacted(event.data))
            self._lines.append(event.as_json())
            self._number += 1
        return event

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._lines.close()


def read_journal(path: Path) -> list[Event]:
    """Read a trajectory, also one that is being written or whose writer was killed.

    Args:
        path: the trajectory.jsonl

    Returns:
        the events, a torn last line left out; events of kinds that this version does not know are left out too

    Raises:
        UsageError: the file cannot be read, a line in the middle is no event, or it was written by a newer version
    """
    events = []
    for position, data in enumerate(read_lines(path, missing_ok=False), 1):
        version = data.get("schema_version")
        if not isinstance(version, int) or "kind" not in data:
            raise UsageError(f"{path}:{position}: not an event of a trajectory")
        if version > SCHEMA_VERSION:
            raise UsageError(
                f"{path}: written by a newer debug-gym (schema {version}, this one knows {SCHEMA_VERSION})"
            )
        if data["kind"] not in EventKind.__members__.values():
            continue
        facts = {key: value for key, value in data.items() if key not in ("schema_version", "number", "kind", "time")}
        events.append(Event(EventKind(data["kind"]), facts, data.get("number", position - 1), data.get("time", 0.0)))
    return events


def read_results(path: Path) -> list[Result]:
    """Read a results.jsonl; a torn last line is left out, a missing file is an empty one.

    Raises:
        UsageError: a line in the middle is no result
    """
    results = []
    for position, data in enumerate(read_lines(path), 1):
        try:
            results.append(Result.from_json(data))
        except (TypeError, ValueError) as error:
            raise UsageError(f"{path}:{position}: not a result of a run: {error}") from error
    return results


def describe(error: BaseException) -> dict[str, str]:
    """An error as `kind` and `message`, the message in one line and without keys; with its place where it is a bug."""
    message = redact(said_by(error)) or type(error).__name__
    if not isinstance(error, DebugGymError | OSError) and (place := place_of(error)):
        message += f" ({place})"
    return {"kind": type(error).__name__, "message": message}


def _action(call: Any) -> Any:
    if isinstance(call, Mapping):
        return dict(call)
    arguments = dict(call.arguments) if isinstance(call.arguments, Mapping) else call.arguments
    data = {"name": call.name, "arguments": arguments}
    return {**data, "id": call.id} if call.id is not None else data
