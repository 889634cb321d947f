"""The environment of an episode of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import PluginError, TaskError
from debug_gym_core.runs.trajectory import Event
from debug_gym_core.tasks.results import MISSING
from debug_gym_core.tools.observation import Observation

if TYPE_CHECKING:
    from debug_gym_core.runs.recorder import Recorder
    from debug_gym_core.sandbox.session import Session


class EpisodeEnv(RepoEnv):
    """The environment of an episode of a run: what happens in it is recorded, and it ends when the run is stopped."""

    begun = False
    rescued = False

    def __init__(self, *arguments: Any, episode: Recorder, **settings: Any) -> None:
        """As `RepoEnv`.

        Args:
            arguments: of `RepoEnv`
            episode: is told what happens
            settings: of `RepoEnv`
        """
        self.episode = episode
        self.ending = threading.Lock()
        self._faults: list[tuple[str, BaseException]] = []
        super().__init__(*arguments, **settings)

    @property
    def counted_tests(self) -> tuple[str, ...]:
        """Ids of the tests that count; empty when they are not known."""
        return self._tests.ids

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Start the episode, and record what the agent sees first; once, as each has its limits once.

        Raises:
            PluginError: the agent begins it anew
        """
        self.episode.run.stop_if_asked()
        if self.begun:
            raise PluginError("the episode was reset again: an agent plays the one that it is given, to its end")
        started = time.monotonic()
        try:
            observation, info = super().reset(seed=seed, options=options)
        finally:
            self._begin(None)
        self._note_faults()
        self._record(None, observation, 0.0, False, False, started)
        for text in self.notes:
            self.episode.run.note(text.replace(str(self.task.repository), "the repository"))
        self._refuse_passing()
        self._started = time.monotonic()
        return observation, info

    def _refuse_passing(self) -> None:
        """Refuse a task that nobody needs to solve, as its tests pass in the unchanged repository.

        Raises:
            TaskError: they do
            SandboxError: no sandbox lasted to the end of the grading
        """
        task = self.task
        # What a benchmark's own harness judges is known to fail too, and takes minutes.
        known = task.known_to_fail or task.judge is not None
        if known or self.settings.allow_passing or self.episode.run.attended:
            return
        if not self.episode.run.fails_unchanged(task.id, self._fails):
            raise TaskError(
                f"`{task.entrypoint}` passes in the unchanged repository, run by {self.session.interpreter['path']}: "
                "there is nothing to fix (env.allow_passing: true plays it all the same)"
            )

    def _fails(self) -> bool:
        """Whether the unchanged repository is not resolved; why its run does not count, if so, is noted.

        Not where that may be the bug, as when the run ends in a test. A suite that is too slow looks like one that the
        bug makes hang: of both it is noted what was seen.
        """
        grade = self.grade()
        to_its_end = grade.grading != "exit_status" and MISSING not in grade.tests.values()
        if grade.timed_out:
            what = f"the run of the unchanged repository did not end within {self.run_timeout:g} s (env.run_timeout)"
            self.episode.run.note(
                f"{self.task.id}: {what}: unless that is the bug, no fix resolves it before that is raised"
            )
        elif grade.reason and to_its_end:
            what = "the run of the unchanged repository does not count, nor does that of a change which leaves this so"
            self.episode.run.note(f"{self.task.id}: {what}: {grade.reason}")
        return not grade.resolved

    def step(self, action: Any) -> tuple[dict[str, str], float, bool, bool, dict[str, Any]]:
        """Carry out and record one action; after the end none, as the limits hold for every agent."""
        self.episode.run.stop_if_asked()
        if self.ended is not None:
            refused = Observation("env", f"The episode is over ({self.ended}): nothing was done.", error=True)
            return self._observe([refused]), 0.0, bool(self._terminated()), bool(self._truncated()), self.info
        started = time.monotonic()
        observation, reward, terminated, truncated, info = super().step(action)
        self.episode.run.stop_if_asked()
        self._note_faults()
        said = self.last_call or (action if isinstance(action, str | Mapping) or hasattr(action, "name") else None)
        self._record(said, observation, reward, terminated, truncated, started)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """End the sandbox, and note what failed at it."""
        try:
            super().close()
        finally:
            self._note_faults()

    def _failed(self, what: str, error: BaseException) -> str:
        self._faults.append((what, error))
        return super()._failed(what, error)

    def _note_faults(self) -> None:
        """Note the tools that failed."""
        for what, error in self._faults:
            self.episode.run.note_fault(what, error, self.task.id)
        self._faults.clear()

    def _takes_long(self, text: str) -> None:
        self.episode.run.watch.note(text)

    def _opened(self, session: Session) -> None:
        self._begin(session.interpreter)

    def _begin(self, python: Mapping[str, str] | None) -> None:
        """Record the episode's start, once."""
        if not self.begun:
            self.begun = True
            self.episode.begin(self, python)

    def _record(
        self,
        action: Any,
        observation: Mapping[str, str],
        reward: float,
        terminated: bool,
        truncated: bool,
        started: float,
    ) -> None:
        self.episode(
            Event.step(
                step=self.steps,
                action=action,
                observation=observation,
                reward=reward,
                score=self.score,
                max_score=self.max_score,
                terminated=terminated,
                truncated=truncated,
                seconds=time.monotonic() - started,
            )
        )
