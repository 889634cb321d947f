"""Episodes as they are read again: found below a directory, and read as far as they are whole.

A trajectory that is being written, was cut off, or has a damaged line is read all the same; what is wrong with it is
said beside it. What goes on with a run, and must know all of it, takes `trajectory.read_journal`.
"""

from __future__ import annotations

import fnmatch
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from debug_gym_core import strict_json
from debug_gym_core.errors import UsageError
from debug_gym_core.names import nearest, some
from debug_gym_core.runs.model_record import model_name
from debug_gym_core.runs.run import read_record
from debug_gym_core.runs.run_directory import LOCK
from debug_gym_core.runs.trajectory import SCHEMA_VERSION, Event, EventKind, Result, read_results
from debug_gym_core.tools.action import ToolCall

TRAJECTORY = "trajectory.jsonl"

NAMED = 20
"""Episodes that an error names at most."""

LOCKS = Path("/proc/locks")
"""Who holds which file, one a line; only Linux tells."""

_LARGEST = 2**63
"""No count of ours is larger; what is, is damaged."""


@dataclass(frozen=True)
class Trajectory:
    """What is known of an episode.

    Attributes:
        events: what happened, in its order
        remarks: what is wrong with the file, a line each
    """

    events: Sequence[Event]
    remarks: Sequence[str] = ()

    def of(self, kind: EventKind) -> list[Event]:
        """The events of a kind."""
        return [event for event in self.events if event.kind is kind]

    @cached_property
    def started(self) -> Mapping[str, Any]:
        """The facts of the episode's beginning; empty when it is not known."""
        return next((event.data for event in self.of(EventKind.EPISODE_STARTED)), {})

    @cached_property
    def steps(self) -> list[Event]:
        """The steps, the reset the first of them."""
        return self.of(EventKind.STEP)

    @cached_property
    def grade(self) -> Mapping[str, Any] | None:
        """The facts of the last grade."""
        return next((event.data for event in reversed(self.of(EventKind.GRADE))), None)

    @cached_property
    def result(self) -> Result | None:
        """How the episode ended; None when it did not, or with an error."""
        found = next((event.data["result"] for event in reversed(self.of(EventKind.EPISODE_FINISHED))), None)
        return None if found is None else Result.from_json(found)

    @property
    def ended(self) -> bool:
        """Whether the episode came to its end."""
        last = self.events[-1] if self.events else None
        if last is None:
            return False
        failed = last.kind is EventKind.ERROR and not last.data["retried"]
        return failed or last.kind is EventKind.EPISODE_FINISHED


@dataclass(frozen=True)
class Episode:
    """An episode that was kept.

    Attributes:
        path: its trajectory
        run: the directory of its run; None when it does not lie in one
        task: `benchmark/name`
        repeat: which of several episodes of the task, from 1; None when there is one
        result: its line of results.jsonl; None when it has none
        model: what the service of its run's model calls that; None where that is not known
    """

    path: Path
    run: Path | None
    task: str
    repeat: int | None = None
    result: Result | None = None
    model: str | None = None

    @property
    def directory(self) -> Path:
        """Where its artefacts lie."""
        return self.path.parent

    @property
    def names(self) -> list[str]:
        """What a person may call it, the shortest first."""
        plain = self.task.partition("/")[2] or self.task
        own = [] if self.repeat is None else [f"{plain}/{self.repeat}", f"{self.task}/{self.repeat}", str(self)]
        return [plain, self.task, *own]

    @property
    def is_being_written(self) -> bool:
        """Whether a process plays its run, as far as can be told."""
        return self.run is not None and is_held(self.run)

    def read(self) -> Trajectory:
        """Read what happened.

        Raises:
            UsageError: the file cannot be read
        """
        return read_trajectory(self.path)

    def __str__(self) -> str:
        return self.task if self.repeat is None else f"{self.task} #{self.repeat}"


def find_episodes(place: Path, patterns: Sequence[str] = ()) -> list[Episode]:
    """The episodes that lie somewhere.

    Args:
        place: a run, a directory with runs below it, the directory of a task, or a trajectory
        patterns: names or globs of the tasks that are meant, `task/2` of one of several episodes; none: all

    Returns:
        in the order of their names

    Raises:
        UsageError: there is no such place, no episode is there, or none that a pattern means
    """
    if place.is_file():
        found = [_episode(place.absolute(), {})]
        if place.name != TRAJECTORY and not found[0].read().events:
            raise UsageError(f"{place} is no trajectory; say a run's directory, or a {TRAJECTORY}")
    elif not place.is_dir():
        raise UsageError(f"{place}: there is no such directory")
    else:
        runs: dict[Path, _RunFacts] = {}
        found = [_episode(path, runs) for path in _below(place)]
        if not found:
            began = " yet: nothing was played" if any(place.rglob("run.json")) else "; debug-gym run makes some"
            raise UsageError(f"{place} holds no episode (no {TRAJECTORY}){began}")
    if not patterns:
        return found
    chosen: set[Path] = set()
    for pattern in patterns:
        meant = [one for one in found if pattern in one.names] or [
            one for one in found if any(fnmatch.fnmatchcase(name, pattern) for name in one.names)
        ]
        if not meant:
            known = list(dict.fromkeys(one.names[0] for one in found))
            words = nearest(pattern, known)
            if "did you mean" not in words and len(known) > NAMED:
                words = f"; it has {len(known)} tasks"
            raise UsageError(f"{place} has no episode of {pattern!r}{words}")
        chosen.update(one.path for one in meant)
    return [one for one in found if one.path in chosen]


def read_trajectory(path: Path) -> Trajectory:
    """Read a trajectory as far as it is whole.

    Args:
        path: the trajectory.jsonl

    Raises:
        UsageError: the file cannot be read
    """
    events: list[Event] = []
    damaged: list[int] = []
    newest, unknown, cut_off = SCHEMA_VERSION, 0, False
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    cut_off = True
                    continue
                try:
                    data = strict_json.loads(line)
                    newest = max(newest, data["schema_version"])
                    if data["kind"] not in EventKind.__members__.values():
                        unknown += 1
                        continue
                    events.append(_event(data, number - 1))
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    damaged.append(number)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    return Trajectory(events, list(_remarks(events, damaged, newest, unknown, cut_off)))


def as_action(saved: Any) -> Any:
    """A saved action as an environment takes it: as the call that the agent made, text where it was text."""
    if not isinstance(saved, Mapping) or not isinstance(saved.get("name"), str):
        return saved
    arguments, identity = saved.get("arguments"), saved.get("id")
    if not isinstance(arguments, Mapping | str | None):
        return saved
    return ToolCall(saved["name"], arguments or {}, identity if isinstance(identity, str) else None)


def was_malformed(event: Event) -> bool:
    """Whether a saved action could not be understood, as that of a tool that was not there.

    Args:
        event: a step
    """
    told = event.data["observation"].get("json")
    first = told[0] if isinstance(told, list) and told and isinstance(told[0], Mapping) else {}
    data = first.get("data")
    return isinstance(data, Mapping) and bool(data.get("malformed"))


def is_held(run: Path) -> bool:
    """Whether a process of this machine plays a run; False where the system does not tell.

    It is not asked by trying to take the lock, which would keep a run that begins right now from it.

    Args:
        run: its directory
    """
    try:
        found = (run / LOCK).stat()
        lines = LOCKS.read_text().splitlines()
    except OSError:
        return False
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return any("FLOCK" in line and wanted in line.split() for line in lines)


def _below(place: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> NoReturn:
        raise UsageError(f"{error.filename}: {error.strerror}") from error

    for directory, names, files in os.walk(place.absolute(), onerror=refuse):
        names.sort()
        if TRAJECTORY in files:
            yield Path(directory, TRAJECTORY)


@dataclass(frozen=True)
class _RunFacts:
    """What a run says of its episodes: their results, whether tasks have several, and which model plays."""

    results: Mapping[tuple[str, int | None], Result]
    repeated: bool
    model: str | None


def _facts_of(run: Path) -> _RunFacts:
    """What a run says; nothing where that cannot be read, since its trajectories may well be."""
    try:
        record = read_record(run)
        section, model = record["config"].get("run"), model_name(record)
        repeated = isinstance(section, dict) and section.get("repeats", 1) != 1
    except UsageError:
        repeated, model = False, None
    try:
        results = {(one.task, one.repeat): one for one in map(_sound, read_results(run / "results.jsonl"))}
    except (UsageError, ValueError):
        results = {}
    return _RunFacts(results, repeated, model)


def _episode(path: Path, runs: dict[Path, _RunFacts]) -> Episode:
    """Which episode a trajectory is of, by where it lies; outside of a run by what it says itself."""
    run = next((above for above in path.parents if (above / "run.json").is_file()), None)
    if run is None or run == path.parent:
        task = read_trajectory(path).started.get("task", path.parent.name)
        return Episode(path, None, str(task))
    if run not in runs:
        runs[run] = _facts_of(run)
    facts = runs[run]
    parts = path.parent.relative_to(run).parts
    whole, last = "/".join(parts), parts[-1]
    key: tuple[str, int | None] = (whole, None)
    if key not in facts.results and len(parts) > 1 and last.isascii() and last.isdigit() and len(last) < NAMED:
        of_several = ("/".join(parts[:-1]), int(last))
        key = of_several if facts.repeated or of_several in facts.results else key
    # Beside the trajectory lie those of earlier attempts, which the result is not of.
    return Episode(path, run, *key, facts.results.get(key) if path.name == TRAJECTORY else None, facts.model)


def _remarks(
    events: Sequence[Event], damaged: Sequence[int], newest: int, unknown: int, cut_off: bool
) -> Iterator[str]:
    if newest > SCHEMA_VERSION:
        yield f"written by a newer debug-gym (schema {newest}, this one knows {SCHEMA_VERSION}): some may be missing"
    elif unknown:
        yield f"{unknown} events are of kinds that this debug-gym does not know"
    if damaged:
        which = f"line {damaged[0]} is" if len(damaged) == 1 else f"lines {some(list(map(str, damaged)), 3)} are"
        yield f"{which} damaged and left out"
    if cut_off:
        yield "the last line is cut off and left out"
    if not events and not damaged and not unknown:
        yield "the trajectory is empty" if not cut_off else "nothing else is in it"


def _event(data: Mapping[str, Any], number: int) -> Event:
    """A line as an event.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: it lacks what those who show and play it need
    """
    kind = EventKind(data["kind"])
    facts = {key: value for key, value in data.items() if key not in ("schema_version", "number", "kind", "time")}
    for key, wanted in _FACTS[kind].items():
        if not isinstance(facts[key], wanted):
            raise ValueError(f"{key} is no {wanted}")
    for key in ("step", "score", "max_score", "attempt", "seconds", "cost"):
        if key in facts and facts[key] is not None:
            _check_number(facts[key])
    if kind is EventKind.STEP and not ("action" in facts and isinstance(facts["observation"]["text"], str)):
        raise ValueError("a step has no action, or no text")
    if kind is EventKind.LLM_CALL:
        for key in ("prompt", "completion"):
            _check_number(facts["tokens"][key])
        for message in (*facts.get("prompt", ()), *([facts["answer"]] if "answer" in facts else [])):
            _check_message(message)
        if not isinstance(facts.get("failed", ""), str):
            raise ValueError("why a call failed is no text")
    if kind is EventKind.ERROR and not all(isinstance(facts["error"][key], str) for key in ("kind", "message")):
        raise ValueError("the error has no message")
    if kind is EventKind.EPISODE_FINISHED:
        _sound(Result.from_json(facts["result"]))
    return Event(kind, facts, data.get("number", number), data.get("time", 0.0))


_FACTS: Mapping[EventKind, Mapping[str, Any]] = {
    EventKind.EPISODE_STARTED: {"task": str, "agent": str, "terminal": str, "tools": list},
    EventKind.STEP: {"step": int, "observation": dict, "score": int, "max_score": int, "seconds": int | float}
    | dict.fromkeys(("terminated", "truncated"), bool),
    EventKind.LLM_CALL: {"model": str, "tokens": dict, "cost": int | float, "seconds": int | float, "calls": list},
    EventKind.GRADE: {"resolved": bool, "score": int, "max_score": int},
    EventKind.ERROR: {"error": dict, "retried": bool},
    EventKind.EPISODE_FINISHED: {"result": dict},
}
"""What an event must have to be shown or played."""


def _check_number(value: Any) -> None:
    if not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > _LARGEST:
        raise ValueError(f"{value!r:.40} is no number of ours")


def _sound(result: Result) -> Result:
    """The result itself.

    Raises:
        ValueError: it has what cannot be counted or named
    """
    tokens = result.tokens
    numbers = [result.score, result.steps, result.cost, result.seconds, tokens.prompt, tokens.completion, tokens.cached]
    for value in (*numbers, *result.tool_calls.values(), *([] if result.max_score is None else [result.max_score])):
        _check_number(value)
    if not all(isinstance(test, str) for test in (*result.failed, *result.broken, *result.doubts)):
        raise ValueError("a test has no name")
    return result


def _check_message(message: Any) -> None:
    """A message of a conversation, as `dataclasses.asdict` gives it."""
    if not isinstance(message["role"], str) or not isinstance(message["content"], str):
        raise ValueError("a message has no text")
    calls = message.get("calls", ())
    if not isinstance(calls, list | tuple) or not all(isinstance(call["name"], str) for call in calls):
        raise ValueError("a call has no name")
