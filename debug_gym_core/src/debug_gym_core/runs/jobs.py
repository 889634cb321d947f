"""What a run's parts know of each other: its jobs, who spreads them over workers, who looks on, who exports results."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from debug_gym_core.components.component import Component
from debug_gym_core.errors import EpisodeEnds
from debug_gym_core.runs.run import Key
from debug_gym_core.runs.trajectory import Event, Result

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.ledger import Ledger


class EpisodeStopped(EpisodeEnds):
    """The run was stopped."""


@dataclass(frozen=True)
class Job:
    """One episode to play.

    Attributes:
        task: `benchmark/name`
        name: the task's name in its benchmark
        seed: seed of the episode
        repeat: which of several episodes of the task, from 1; None when there is one
    """

    task: str
    name: str
    seed: int
    repeat: int | None = None

    @property
    def key(self) -> Key:
        """What its result is kept under."""
        return self.task, self.repeat

    def __str__(self) -> str:
        return self.task if self.repeat is None else f"{self.task} #{self.repeat}"


class Watch(Protocol):
    """Somebody who looks on while a run goes on; called from the threads that play."""

    def started(self, job: Job) -> None:
        """An episode is about to start."""

    def event(self, job: Job, event: Event) -> None:
        """An event was written to an episode's trajectory."""

    def finished(self, job: Job, result: Result | None) -> None:
        """An episode has its result; None when it was stopped."""

    def note(self, text: str) -> None:
        """Something that a person should read, in a line."""

    def stopping(self) -> None:
        """The run is being stopped; episodes under way end. Called from the thread that stops it."""


class LiveRun(Protocol):
    """A run under way, as the parts of an episode see it.

    Attributes:
        config: the run's
        plugins: what is installed
        watch: looks on
        ledger: knows what was spent
        verbose: whether prompts and answers are kept in the trajectories
        attended: whether a person plays
    """

    config: Config
    plugins: Plugins
    watch: Watch
    ledger: Ledger
    verbose: bool
    attended: bool

    @property
    def llm_name(self) -> str | None:
        """What the config calls the model that plays; None: none does."""

    def note(self, text: str) -> None:
        """Tell a person, and keep, what they should read."""

    def note_fault(self, what: str, error: BaseException, task: str) -> None:
        """Note once that a tool, or a method of one, raised what no tool may; `task` is the id of the episode's task.

        Not while the run is stopped, which fails whatever is under way.
        """

    def note_python(self, python: Mapping[str, str]) -> None:
        """Keep which interpreter runs the task's code: its `path` and `version`."""

    def fails_unchanged(self, task: str, look: Callable[[], bool]) -> bool:
        """Whether the tests of a task fail before anything is changed; `look` finds out, once a run."""

    def stop_if_asked(self) -> None:
        """Leave the episode if the run is being stopped, or nothing of it would be kept."""

    def end_run(self) -> NoReturn:
        """Leave the episode, and begin no other."""


class Executor(Component, abc.ABC):
    """A way to spread the episodes of a run over workers."""

    @abc.abstractmethod
    def execute(
        self,
        jobs: Sequence[Job],
        play: Callable[[Job], Result | None],
        finished: Callable[[Job, Result | None], None],
        *,
        workers: int,
        stop: threading.Event,
    ) -> None:
        """Play every job; returns when all are played, or when `stop` is set and those under way have ended.

        Args:
            jobs: what to play, in this order
            play: plays one episode; raises nothing that belongs to the episode; None when it was stopped
            finished: is told each result in this process, from any thread
            workers: how many at the same time
            stop: no further job is begun once it is set

        Raises:
            Exception: what `finished` raised; nothing further is begun
        """


class Exporter(Component, abc.ABC):
    """A format that a finished run can be exported to.

    Attributes:
        plugins: what is there of tools and other components; None: what is installed
    """

    plugins: Plugins | None = None

    @abc.abstractmethod
    def export(self, run: Path, target: Path) -> None:
        """Write a run's results in this format.

        Args:
            run: the run's directory
            target: the file or directory to make

        Raises:
            UsageError: there is no run, or the target cannot be written
            OSError: there is no room for it
        """
