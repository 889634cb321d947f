"""What an episode leaves behind: its trajectory, its patch, its line of results.jsonl."""

from __future__ import annotations

import collections
import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.grading.dropped import listed
from debug_gym_core.redaction import redact
from debug_gym_core.runs.trajectory import FAILED, Event, EventKind, Journal, Result, Tokens, describe
from debug_gym_core.runs.transcript import Transcript, as_text
from debug_gym_core.tasks.results import FAILING, PASSING
from debug_gym_core.usage import Usage

if TYPE_CHECKING:
    from debug_gym_core.environment.env import RepoEnv
    from debug_gym_core.runs.jobs import Job, LiveRun
    from debug_gym_core.tasks.results import Grade
    from debug_gym_core.tasks.task import Mode

RESCUE_TIME = 5.0
"""Seconds that a sandbox has to tell what was changed in it when the run is being stopped."""

log = logging.getLogger("debug_gym")


class Recorder:
    """Writes an episode's events, counts what its result needs, and tells those who look on."""

    def __init__(self, run: LiveRun, job: Job, directory: Path, attempt: int, transcript: Transcript) -> None:
        """Start a new trajectory; one that an earlier attempt left is put aside."""
        self.run, self.job, self.attempt = run, job, attempt
        self._transcript = transcript
        self.env: RepoEnv | None = None
        self._patch_file = directory / "patch.diff"
        _put_aside(directory)
        self._journal = Journal(directory / "trajectory.jsonl")
        self._steps = 0
        self._calls: collections.Counter[str] = collections.Counter()
        self._changed: bool | None = None
        self._python: Mapping[str, str] | None = None
        self.mode: Mode = "visible"
        self.usage = Usage()

    def __call__(self, event: Event) -> None:
        """Keep an event."""
        event = self._journal.append(event)
        if event.kind is EventKind.STEP and event.data["step"]:
            self._steps = event.data["step"]
            action = event.data["action"]
            name = action.get("name") if isinstance(action, Mapping) else None
            if isinstance(name, str) and self.env is not None and name in self.env.tools:
                self._calls[name] += 1
        if event.kind is EventKind.LLM_CALL:
            self.usage += Usage(**event.data["tokens"], cost=event.data["cost"])
        self._transcript.write(as_text(event))
        self.run.watch.event(self.job, event)
        if self.env is not None:
            if event.kind is EventKind.STEP and event.data["step"] == 0:
                self.run.plugins.notify("debug_gym_episode_started", env=self.env)
            self.run.plugins.notify("debug_gym_episode_stepped", env=self.env, event=event)

    def begin(self, env: RepoEnv, python: Mapping[str, str] | None) -> None:
        """Keep that the episode begins.

        Args:
            env: made, and its sandbox stands or could not be had
            python: the interpreter of the task's code; None without a sandbox
        """
        self._python = python
        if python is not None:
            self.run.note_python(python)
        self(
            Event.episode_started(
                task=env.task.id,
                agent=self.run.config.agent.name,
                llm=self.run.llm_name,
                terminal=env.terminal_name,
                python=python,
                tools=list(env.tools),
                seed=self.job.seed,
                attempt=self.attempt,
            )
        )

    def tell(self, text: str) -> None:
        """Tell a person, and the log.txt, something of the episode as it goes on."""
        self._transcript.write(text)
        self.run.watch.note(f"{self.job}: {text}")

    def keep_patch(self, patch: bytes) -> None:
        """Write the patch.diff."""
        self._changed = bool(patch)
        self._patch_file.write_bytes(patch)

    def keep_nothing(self) -> None:
        """Write an empty patch.diff of a task that could not be begun."""
        if not self._steps:
            self.keep_patch(b"")

    def rescue_patch(self, env: RepoEnv) -> str:
        """Write the patch of a workspace as it stands, whatever still runs in it.

        Args:
            env: its sandbox may be busy, or gone

        Returns:
            what to tell the person; empty when nothing was changed
        """
        kept: list[bytes] = []

        def read() -> None:
            try:
                kept.append(env.patch)
            except Exception:
                log.debug("the patch of a stopped episode could not be read", exc_info=True)

        reader = threading.Thread(target=read, name="rescue", daemon=True)
        reader.start()
        reader.join(RESCUE_TIME)
        if kept:
            if not kept[0]:
                return ""
            try:
                self.keep_patch(kept[0])
            except OSError as error:
                where = error.filename or self._patch_file  # only opening a file names it
                return f"what you changed could not be kept: {where}: {error.strerror}"
            return f"what you changed is kept: {self._patch_file}"
        return "what you changed could not be kept: the workspace did not answer" if self._steps else ""

    def result(
        self,
        seconds: float,
        *,
        grade: Grade | None = None,
        counted: Sequence[str] = (),
        error: BaseException | None = None,
        ended: str | None = None,
    ) -> Result:
        """The episode's line of results.jsonl.

        Args:
            seconds: that it took
            grade: of the workspace, unless something failed
            counted: ids of the tests that count; none: they are not known
            error: what failed
            ended: what ended the episode
        """
        usage = self.usage
        graded: dict[str, Any] = {"status": "error"}
        if grade is not None:
            graded = {
                "status": "resolved" if grade.resolved else "unresolved",
                "resolved": grade.resolved,
                "score": grade.score,
                "max_score": grade.max_score,
                "grading": grade.grading,
                "failed": failed_tests(grade, counted)[:FAILED],
                "broken": grade.broken[:FAILED],
                "reason": redact(grade.reason),
                "dropped": listed(grade.dropped),
                "doubts": listed(grade.doubts),
                "twins": grade.twins,
            }
        return Result(
            task=self.job.task,
            agent=self.run.config.agent.name,
            llm=self.run.llm_name,
            steps=self._steps,
            tool_calls=dict(self._calls),
            tokens=Tokens(usage.prompt, usage.completion, usage.cached),
            cost=usage.cost,
            seconds=round(seconds, 3),
            error=describe(error) if error else None,
            ended=ended,
            repeat=self.job.repeat,
            mode=self.mode,
            changed=self._changed,
            python=self._python,
            **graded,
        )

    def close(self) -> None:
        """Close the trajectory."""
        self._journal.close()


def failed_tests(grade: Grade, counted: Sequence[str]) -> tuple[str, ...]:
    """The ids of the tests that count and did not pass.

    Args:
        grade: of the workspace
        counted: the tests that count; none: they are not known, those that failed are named
    """
    if counted:
        return tuple(test for test in dict.fromkeys(counted) if grade.tests.get(test) not in PASSING)
    return tuple(test for test, outcome in grade.tests.items() if outcome in FAILING)


def _put_aside(directory: Path) -> None:
    """Give the trajectory and patch of an earlier attempt other names: they may have been paid for."""
    left = [path for name in ("trajectory.jsonl", "patch.diff") if (path := directory / name).exists()]
    number = 1
    while any((directory / f"abandoned-{number}{suffix}").exists() for suffix in (".jsonl", ".diff")):
        number += 1
    for path in left:
        path.rename(directory / f"abandoned-{number}{path.suffix}")
