"""Runs: an agent on many tasks, several at once, stopped and gone on with at will."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from debug_gym_core.components.component import construct
from debug_gym_core.config.model import Config
from debug_gym_core.postponed import Terminated, postponed_interrupts, wait_for
from debug_gym_core.runs import predictions
from debug_gym_core.runs.jobs import Executor, Job, Watch
from debug_gym_core.runs.run import Key, Run
from debug_gym_core.runs.trajectory import Result
from debug_gym_core.tasks.selection import excluded_tasks, select_tasks

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.tasks.task import Benchmark


TELLING = 3.0
"""Seconds after which a run that is being stopped tells what it waits for."""

PATIENCE = 15.0
"""Seconds that a run has after a signal that nobody repeats: longer than an answer of a model (`models.stopping`)."""


def plan(config: Config, benchmark: Benchmark) -> list[Job]:
    """The episodes that a config asks for.

    Args:
        config: the effective config
        benchmark: where its tasks are

    Raises:
        UsageError: the config names tasks that do not exist
    """
    repeats = config.run.repeats
    return [
        Job(f"{benchmark.name}/{name}", name, config.run.seed + number, number + 1 if repeats > 1 else None)
        for name in select_tasks(benchmark, config.benchmark.tasks)
        for number in range(repeats)
    ]


def unfinished(
    jobs: Sequence[Job], results: Mapping[Key, Result], *, force_all: bool = False, force_failed: bool = False
) -> list[Job]:
    """The episodes that are still to be played: without a result, or failed for infrastructure.

    Args:
        jobs: those of the run
        results: what there is already
        force_all: all of them
        force_failed: also those that are not resolved
    """

    def done(result: Result | None) -> bool:
        if result is None or force_all:
            return False
        return result.resolved if force_failed else result.status != "error"

    return [job for job in jobs if not done(results.get(job.key))]


class Experiment:
    """The episodes of a run, about to be played.

    Attributes:
        run: where they are kept
        jobs: all that its config means
        pending: those without a result yet
    """

    def __init__(
        self, run: Run, plugins: Plugins, watch: Watch, *, verbose: bool = False, workers: int | None = None
    ) -> None:
        """Look everything up that the config names, so that what is missing is known before anything starts.

        Args:
            run: the run
            plugins: what is installed
            watch: is told what happens
            verbose: keep prompts and answers of models in the trajectories
            workers: episodes at the same time; None: as the config says

        Raises:
            UsageError: a name is unknown, or can be no directory's, or a setting is wrong
            PluginError: a plugin that is needed failed
            RequirementError: a sandbox, a model or a key is missing
        """
        from debug_gym_core.runs.episode import Players, find_parts

        self.run = run
        self._plugins = plugins
        self._watch = watch
        self._stop = threading.Event()
        parts = find_parts(run.config, plugins)
        self.jobs = plan(run.config, parts.benchmark)  # first: an unknown task is told before a model that is missing
        self._players = Players(run, parts, watch, self._stop, verbose=verbose)
        self._workers = 1 if self._players.attended else workers or run.config.run.workers
        for job in self.jobs:
            run.task_directory(job.task, job.repeat)
        self.pending = list(self.jobs)
        self._episodes = len(select_tasks(self._players.benchmark, run.tasks)) * run.config.run.repeats
        excluded = excluded_tasks(self._players.benchmark)
        for name in dict.fromkeys(job.name for job in self.jobs if job.name in excluded):
            self._players.note(f"{run.config.benchmark.name}/{name} is not in `all`: {excluded[name]}")
        self._again: set[Key] = set()
        self._afresh: set[Key] = set()

    def choose(self, *, force_all: bool = False, force_failed: bool = False) -> None:
        """Leave out what is finished already; what failed for infrastructure is played again.

        The results of what is played again are forgotten when `play` begins.

        Args:
            force_all: play everything again
            force_failed: play again what is not resolved
        """
        self.pending = unfinished(self.jobs, self.run.results, force_all=force_all, force_failed=force_failed)
        results = self.run.results
        self._again = {job.key for job in self.pending if force_all or job.key in results}
        self._afresh = {key for key in self._again if force_all or results[key].status != "error"}

    def check(self) -> None:
        """Make sure that the first episode could start.

        Raises:
            UsageError, PluginError, RequirementError: it could not
        """
        if self.pending:
            alone = len({job.task for job in self.jobs}) == 1
            self._players.check(self.pending[0], self._again, alone=alone)

    def play(self) -> None:
        """Play what is pending.

        Raises:
            KeyboardInterrupt: it was interrupted; everything under way has been stopped and what was done is kept. A
                second interrupt comes through at once, and so does `Terminated` after some seconds.
        """
        executor: Executor = construct(self._plugins.get("executors", self.run.config.run.executor))
        failures: list[BaseException] = []
        done = threading.Event()

        def execute() -> None:
            try:
                executor.execute(
                    self.pending, self._players.play, self._finished, workers=self._workers, stop=self._stop
                )
            except BaseException as error:
                failures.append(error)
            finally:
                done.set()

        self.run.begin(self._episodes)
        if self._again:
            self.run.forget(self._again, self._afresh)
        self._players.keep_model()
        executing = threading.Thread(target=execute, name="executor", daemon=True)
        try:
            self._plugins.notify("debug_gym_run_started", run=self.run)
            with postponed_interrupts():
                executing.start()
            wait_for(done)
        except KeyboardInterrupt as interrupt:
            self.stop()
            if executing.ident is not None and not wait_for(done, TELLING):  # else nothing was begun
                self._players.tell_waiting()
                wait_for(done, PATIENCE - TELLING if isinstance(interrupt, Terminated) else math.inf)
            raise
        finally:
            try:
                with postponed_interrupts():
                    self._players.ledger.close()
                    predictions.write(self.run, self._players.benchmark)
            finally:
                self._plugins.notify("debug_gym_run_finished", run=self.run)
        if failures:
            raise failures[0]

    def stop(self) -> None:
        """Begin no further episode and end those under way without a result; returns at once."""
        with postponed_interrupts():
            self._stop.set()
        # This one writes, which may take as long as nobody reads.
        self._watch.stopping()
        with postponed_interrupts():
            self._players.stop()

    def interrupt(self, step: int | None = None) -> int | None:
        """Have what a tool runs stop, as Ctrl-C does on a terminal.

        Args:
            step: only in the step of this number; None: in whichever

        Returns:
            the number of the step; None: there is nothing that can be stopped
        """
        return self._players.interrupt(step)

    @property
    def spent(self) -> float:
        """Dollars that the run has spent, in this session and before."""
        return self._players.ledger.spent.cost

    @property
    def spent_bound(self) -> str | None:
        """The setting that bounds what the run has spent, so that episodes may have been left out; None: none does."""
        return self._players.ledger.spent_bound

    @property
    def refused(self) -> bool:
        """Whether the model's service refuses whatever it is asked, so that episodes may have been left out."""
        return self._players.refused

    @property
    def stopped(self) -> bool:
        """Whether the run was stopped before its end."""
        return self._stop.is_set()

    def _finished(self, job: Job, result: Result | None) -> None:
        if result is not None:
            self.run.record(result)
            self._players.recorded(job, result)
            self._plugins.notify("debug_gym_episode_finished", result=result)
        self._watch.finished(job, result)
