"""Episodes as runs leave them, written by hand for tests of what reads them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from debug_gym_core.models.llm import Message
from debug_gym_core.runs.trajectory import SCHEMA_VERSION, Result, Tokens
from debug_gym_core.tools.action import ToolCall


def started(task: str = "toy/one", **more: Any) -> dict[str, Any]:
    facts = {"task": task, "agent": "tool_agent", "llm": "m", "terminal": "local", "tools": ["view"], "seed": 0}
    return {"kind": "episode_started", **facts, "attempt": 1, **more}


def step(number: int, action: Any, text: str, score: int = 0, **more: Any) -> dict[str, Any]:
    facts = {"reward": 0, "score": score, "max_score": 2, "terminated": False, "truncated": False, "seconds": 0.1}
    return {
        "kind": "step",
        "step": number,
        "action": action,
        "observation": {"text": text, "json": []},
        **facts,
        **more,
    }


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def asked(prompt: Sequence[Message], answer: Message) -> dict[str, Any]:
    """A call of the model, whole."""
    told = [dataclasses.asdict(message) for message in (*prompt, answer)]
    facts = {"tokens": {"prompt": 100, "completion": 10, "cached": 0}, "cost": 0.25, "seconds": 1}
    calls = [one.name for one in answer.calls if isinstance(one, ToolCall)]
    return {"kind": "llm_call", "model": "m", **facts, "calls": calls, "prompt": told[:-1], "answer": told[-1]}


def finished(result: Result) -> list[dict[str, Any]]:
    grade = {"resolved": result.resolved, "score": result.score, "max_score": result.max_score, "grading": "clean"}
    return [
        {"kind": "grade", **grade, "tests": {"t.py::test_a": "passed"}},
        {"kind": "episode_finished", "result": result.as_json()},
    ]


def result(task: str = "toy/one", *, resolved: bool = True, **more: Any) -> Result:
    score = 2 if resolved else 1
    facts = {"grading": "clean", "steps": 1, "tool_calls": {"view": 1}, "tokens": Tokens(100, 10), "cost": 0.25, **more}
    facts.setdefault("status", "resolved" if resolved else "unresolved")
    facts.update(resolved=resolved, score=score, max_score=2)
    return Result(task, "tool_agent", "m", **facts)  # type: ignore[arg-type]


def write_run(directory: Path, *results: Result, config: Mapping[str, Any] | None = None) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    facts = {"schema_version": 1, "id": directory.name, "config": config or {}, "versions": {}, "seed": 0, "notes": []}
    (directory / "run.json").write_text(json.dumps(facts))
    (directory / "results.jsonl").write_text("".join(f"{json.dumps(one.as_json())}\n" for one in results))
    return directory


def write_episode(run: Path, events: Sequence[Mapping[str, Any]], task: str = "toy/one", tail: str = "") -> Path:
    """Write a trajectory; `tail` comes behind its last line."""
    place = run / task
    place.mkdir(parents=True)
    numbered = [{"schema_version": SCHEMA_VERSION, "number": n, "time": 0.0, **one} for n, one in enumerate(events)]
    (place / "trajectory.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in numbered) + tail)
    return place


def played(run: Path, task: str = "toy/one", *, resolved: bool = True, text: str = "1 x = 1") -> Path:
    """An episode of one step that came to its end."""
    events = [
        started(task),
        step(0, None, "Fix it."),
        step(1, call("view", path="a.py"), text, 2 if resolved else 1),
        *finished(result(task, resolved=resolved)),
    ]
    return write_episode(run, events, task)
