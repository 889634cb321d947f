"""What a person reads of an episode that was kept: the facts on top, then its parts one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_gym_core.cli.figures import count_text, duration, money_text, score_text
from debug_gym_core.cli.shown_paths import shown_path
from debug_gym_core.cli.steps import Steps, action_text, error_line, error_text
from debug_gym_core.cli.verdicts import why_unresolved
from debug_gym_core.names import some
from debug_gym_core.runs.jobs import Job
from debug_gym_core.runs.model_record import titled
from debug_gym_core.runs.reading import Episode, Trajectory
from debug_gym_core.runs.trajectory import Event, EventKind, Result
from debug_gym_core.tasks.results import FAILING, about_doubts

TESTS = 10
"""Tests, or changes that were dropped, that are named at most."""


@dataclass(frozen=True)
class Part:
    """One thing that happened.

    Attributes:
        kind: `step`, `call` (of the model), `error` or `grade`
        head: what it was: an action, which may have several lines, or a line of words
        about: figures, in few words
        body: what was said; may be empty, or long
        number: of the step, or of the one that the call led to; None: it belongs to none
    """

    kind: str
    head: str
    about: str = ""
    body: str = ""
    number: int | None = None


@dataclass(frozen=True)
class Account:
    """An episode, as it is told.

    Attributes:
        episode: which
        trajectory: what happened
        result: how it ended; None while nobody knows
        state: `resolved`, `unresolved`, `error`, `playing`, or `stopped` when it did not come to its end
    """

    episode: Episode
    trajectory: Trajectory
    result: Result | None
    state: str

    @classmethod
    def of(cls, episode: Episode) -> Account:
        """Read an episode.

        Raises:
            UsageError: its file cannot be read
        """
        trajectory = episode.read()
        playing = not trajectory.ended and episode.is_being_written
        # A result that there is already is that of an earlier time when it is being played again.
        result = trajectory.result or (None if playing else episode.result)
        failed = trajectory.ended and trajectory.result is None
        without = "playing" if playing else "error" if failed else "stopped"
        return cls(episode, trajectory, result, result.status if result else without)

    @property
    def score(self) -> str:
        """`3/4`, as it was last known."""
        if self.result is not None:
            return score_text(self.result.score, self.result.max_score)
        known = self.trajectory.grade or (self.trajectory.steps[-1].data if self.trajectory.steps else None)
        return score_text(known["score"], known["max_score"]) if known else "-"

    @property
    def steps(self) -> int:
        """Steps that were played."""
        return self.result.steps if self.result else max((one.data["step"] for one in self.trajectory.steps), default=0)

    @property
    def tokens(self) -> tuple[int, int]:
        """Tokens of prompts and of answers."""
        if self.result:
            return self.result.tokens.prompt, self.result.tokens.completion
        calls = [event.data["tokens"] for event in self.trajectory.of(EventKind.LLM_CALL)]
        return sum(one["prompt"] for one in calls), sum(one["completion"] for one in calls)

    @property
    def cost(self) -> float:
        """Dollars."""
        if self.result:
            return self.result.cost
        return float(sum(event.data["cost"] for event in self.trajectory.of(EventKind.LLM_CALL)))

    def facts(self) -> Iterator[tuple[str, str]]:
        """What stands on top: a word and a line each."""
        started, result = self.trajectory.started, self.result
        yield "agent", started.get("agent") or (result.agent if result else "") or "unknown"
        llm = started.get("llm") or (result.llm if result else None)
        if llm:
            yield "model", titled(str(llm), self.episode.model)
        if started.get("terminal"):
            yield "terminal", started["terminal"]
        python = started.get("python") or (result.python if result else None)
        if isinstance(python, Mapping):
            yield "python", f"{python.get('version')} ({python.get('path')})"
        yield "status", self._status()
        calls = result.tool_calls if result else _calls(self.trajectory.steps)
        used = ", ".join(f"{name} {count}" for name, count in sorted(calls.items(), key=lambda item: -item[1]))
        yield "steps", f"{self.steps} ({used})" if used else str(self.steps)
        prompt, completion = self.tokens
        if prompt or completion:
            cost = f", {money_text(self.cost)}" if self.cost else ""
            yield "tokens", f"{count_text(prompt)} read + {count_text(completion)} written{cost}"
        if result:
            yield "time", duration(result.seconds)
        yield "kept in", shown_path(self.episode.directory)

    def _status(self) -> str:
        result = self.result
        if result is None:
            if self.state == "error":
                return f"error: {error_line(self.trajectory.of(EventKind.ERROR)[-1].data['error'])}"
            playing = self.state == "playing"
            words = "being played now" if playing else "did not come to its end: it was stopped or killed"
            return f"{words}, score {self.score}" if self.trajectory.steps else words
        if result.error is not None:
            return f"error: {error_line(result.error)}"
        grading = f", graded {result.grading}" if result.grading != "clean" else ""
        why = why_unresolved(result) if result.status == "unresolved" else ""
        return f"{result.status}, score {self.score}{grading}{f': {why}' if why else ''}"

    def remarks(self) -> Iterator[str]:
        """What a reader should know of the files: what is missing, and what else there is."""
        yield from self.trajectory.remarks
        if self.state == "stopped" and self.trajectory.events and self.episode.run is not None:
            yield f"debug-gym run --resume {shown_path(self.episode.run)} goes on with the run"
        if earlier := sorted(self.episode.directory.glob("abandoned-*.jsonl")):
            more = f" (and {len(earlier) - 1} more)" if len(earlier) > 1 else ""
            yield f"an earlier attempt did not end: debug-gym view {shown_path(earlier[-1])}{more}"

    def patch(self) -> str:
        """What was changed, as a diff; empty: nothing, or nobody knows."""
        if self.episode.path.name.startswith("abandoned-"):
            path = self.episode.path.with_suffix(".diff")
        else:
            path = self.episode.directory / "patch.diff"
        try:
            return path.read_bytes().decode("utf-8", "backslashreplace")
        except OSError:
            return ""


def parts_of(trajectory: Trajectory, job: Job, tools: Mapping[str, type[Any]], *, prompts: bool) -> Iterator[Part]:
    """What happened, part by part.

    Args:
        trajectory: of the episode
        job: names it
        tools: that actions may name, to write them in the text form
        prompts: with the calls of the model, as far as they were kept
    """
    steps = Steps(0, tools, whole=True)
    score = 0
    step = -1
    for event in trajectory.events:
        lines = [line.plain for line in steps.lines(job, event)]
        data = event.data
        if event.kind is EventKind.STEP:
            step = data["step"]
            yield _step(data, score, tools)
            score = data["score"]
        elif event.kind is EventKind.LLM_CALL:
            part = _call(event, lines, step + 1, prompts=prompts)
            if part is not None:
                yield part
        elif event.kind is EventKind.GRADE:
            yield _grade(data)
        elif event.kind is EventKind.ERROR:
            again = "; the episode was played again" if data["retried"] else ""
            yield Part("error", f"{error_text(data['error'])}{again}")


def job_of(episode: Episode) -> Job:
    """The episode under the name that a run knows it by."""
    return Job(episode.task, episode.names[0], 0, episode.repeat)


def _step(data: Mapping[str, Any], score: int, tools: Mapping[str, type[Any]]) -> Part:
    head = action_text(data["action"], tools) if data["step"] else "reset"
    now = score_text(data["score"], data["max_score"])
    changed = f"score {now}, was {score_text(score, data['max_score'])}, " if data["score"] != score else ""
    about = f"{changed}{duration(data['seconds'])}"
    return Part("step", head or "(no action)", about, data["observation"]["text"], data["step"])


def _call(event: Event, lines: Sequence[str], number: int, *, prompts: bool) -> Part | None:
    """A call of the model; one whose answer calls nothing is always told, as no step tells of it."""
    data = event.data
    answer = data.get("answer")
    failed = data.get("failed")
    silent = bool(answer) and not data["calls"]
    if not (prompts or silent or failed):
        return None
    head = f"model {data['model']}" + (" called no tool" if silent else " did not answer" if failed else "")
    figures = [f"{data['tokens']['prompt']} + {data['tokens']['completion']} tokens"]
    figures += [money_text(data["cost"])] if data["cost"] else []
    figures.append(duration(data["seconds"]))
    if prompts and "prompt" in data:
        body = "\n".join(line.removeprefix("  ") for line in lines[1:])
    else:
        said = answer["content"] if answer else "(what was said was not kept; debug-gym run -vv keeps it)"
        body = failed or said
    return Part("call", head, ", ".join(figures), body, number)


def _grade(data: Mapping[str, Any]) -> Part:
    verdict = "resolved" if data["resolved"] else "not resolved"
    body = [str(data["reason"])] if data.get("reason") else []
    if broken := _names(data.get("broken")):
        body.append(f"passed before and do not any more: {broken}")
    failed = [test for test, outcome in _mapping(data.get("tests")).items() if outcome in FAILING]
    if failed and not data["resolved"]:
        body.append(f"did not pass: {_names(failed)}")
    if doubts := about_doubts(tuple(map(str, _mapping(data.get("doubts"))))):
        body.append(doubts)
    for path, why in list(_mapping(data.get("dropped")).items())[:TESTS]:
        body.append(f"not taken over: {path}: {why}")
    head = f"graded: {verdict}, {score_text(data['score'], data['max_score'])}"
    return Part("grade", head, str(data.get("grading") or ""), "\n".join(body))


def _names(tests: Any) -> str:
    found = [str(test) for test in tests] if isinstance(tests, list | tuple) else []
    return some(found, TESTS)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _calls(steps: Sequence[Event]) -> Counter[str]:
    """How often each tool was called, where no result tells."""
    actions = [one.data["action"] for one in steps if isinstance(one.data.get("action"), Mapping)]
    return Counter(str(one.get("name")) for one in actions)
