"""Plays a run at the command line: shows it, ends it in order whatever comes, and says what to do next."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.cli import (
    INTERRUPTED,
    READER_GONE,
    STANDARD_OUTPUT,
    drop_refused,
    interrupted_status,
    say,
    say_error,
)
from debug_gym_core.cli.shown_paths import shown_path
from debug_gym_core.cli.signals import ended_by_signals
from debug_gym_core.errors import (
    FULL,
    DebugGymError,
    LLMRefused,
    LLMRejected,
    RequirementError,
    TaskError,
    UsageError,
    class_of,
)
from debug_gym_core.postponed import postponed_interrupts

if TYPE_CHECKING:
    from rich.console import Console

    from debug_gym_core.cli.display import Display
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.layers import Overrides
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.experiment import Experiment
    from debug_gym_core.runs.run import Run

SETTLED = (UsageError, TaskError)
"""Errors that come again however often the same is played: a setting is wrong, or the task is."""

MISSING = (RequirementError, LLMRefused)
"""Errors that say that something needed is missing, such as a key that the service takes."""

MENDED = (LLMRefused, LLMRejected)
"""Errors that come again until the model's entry is mended."""


@contextlib.contextmanager
def opened_run(
    plugins: Plugins,
    config: Config | None,
    output: Path | None = None,
    resume: Path | None = None,
    workers: int | None = None,
    overrides: Overrides = (),
) -> Iterator[Run]:
    """A new run, or one that there is, held in this block; of a new one that it does not begin to play nothing stays.

    Args:
        plugins: what is installed
        config: what to play; None: what the run in `resume` has
        output: the run's directory; None: a new one
        resume: the directory of a run to resume
        workers: episodes at the same time, of a run that is resumed; None: as it has it
        overrides: of the config of a run that is resumed without one

    Raises:
        UsageError: there is no such run, or the directory is taken
        RequirementError: the disk is full
    """
    from debug_gym_core.runs.run import Run

    run: Run | None = None
    try:
        try:
            with postponed_interrupts():  # which would leave a directory that nobody knows of
                if resume is not None:
                    run = Run.resume(resume, plugins=plugins, workers=workers, config=config, overrides=overrides)
                else:
                    assert config is not None
                    run = Run.create(config, output, plugins=plugins)
        except OSError as error:
            if error.errno not in FULL:
                raise
            where = shown_path(resume or output or (config.run.output if config else Path()))
            raise RequirementError(f"{where}: {error.strerror}; free space, then run the same again") from error
        assert run is not None
        yield run
    finally:
        if run is not None:
            with postponed_interrupts():
                run.discard()
                run.close()


@dataclass
class Playing:
    """A run that is about to be played.

    Attributes:
        run: it
        plugins: what is installed
        verbose: how often `-v` was given
        debug: pause after each step
        force_all: play everything again
        force_failed: play again what is not resolved
        conclude: writes what a person sees at the end in place of the summary
        go_on: what resumes the run when its directory is put behind; None: `debug-gym run --resume`
    """

    run: Run
    plugins: Plugins
    verbose: int = 0
    debug: bool = False
    force_all: bool = False
    force_failed: bool = False
    conclude: Callable[[Run, Console], None] | None = None
    go_on: str | None = None

    def play(self) -> int:
        """Play it; returns the exit status.

        Raises:
            UsageError, PluginError, RequirementError: it cannot be played, or not to its end
            KeyboardInterrupt: it is a new run, and was interrupted before it began
        """
        try:
            return self._play_prepared()
        except KeyboardInterrupt as interrupt:  # before or after the episodes; see `_play`
            if not self.run.stays:
                raise
            return self._gone(interrupt) if self.run.results_gone else self._stopped(interrupt)
        except OSError:
            if not self.run.results_gone:
                raise
            return self._gone(None)

    def _play_prepared(self) -> int:
        from debug_gym_core.cli.attended import AttendedDisplay, asking_twice

        shown: list[Display] = []

        def take_hints() -> None:
            for display in shown:
                display.hint = ""

        with contextlib.ExitStack() as at_end:
            at_end.enter_context(ended_by_signals(before=take_hints))
            display, experiment = self._prepare()
            shown.append(display)
            if isinstance(display, AttendedDisplay):
                handler = asking_twice(display, experiment.interrupt)
                at_end.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, handler))
            started = time.monotonic()
            interrupt = self._play(experiment, display)
            return self._conclude(experiment, display, time.monotonic() - started, interrupt)

    def _stopped(self, interrupt: BaseException | None) -> int:
        """Say how to go on with a run that was stopped; returns the exit status."""
        _say_next("stopped; go on with", self.resume)
        return INTERRUPTED if interrupt is None else interrupted_status(interrupt)

    def _gone(self, interrupt: BaseException | None) -> int:
        """Say what is left of the run beside what is shown; returns the exit status."""
        if self.run.gone:
            what = "with its run.json, results.jsonl, trajectories and patches: there is nothing to resume"
            say_error(f"{shown_path(self.run.directory)} was removed or moved while the run was played, {what}")
        else:
            what = "episodes whose results it does not have are played again"
            text = f"{shown_path(self.run.results_file)} was replaced or removed while the run was played: {what}"
            say_error(f"{text}; go on with: {self.resume}")
        return 1 if interrupt is None else interrupted_status(interrupt)

    @property
    def resume(self) -> str:
        """The command that resumes the run."""
        directory = shown_path(self.run.directory)
        if self.go_on:
            return f"{self.go_on} {directory}"
        files = "".join(f" --plugin-file {shown_path(path)}" for path in self.plugins.files)
        return f"debug-gym run --resume {directory}{files}"

    def _prepare(self) -> tuple[Display, Experiment]:
        """Look everything up, and choose what is played."""
        from debug_gym_core.cli.attended import AttendedDisplay, is_attended
        from debug_gym_core.cli.display import make_display
        from debug_gym_core.cli.pause import PausingDisplay
        from debug_gym_core.cli.tables import make_console
        from debug_gym_core.runs.experiment import Experiment

        run, plugins, verbose = self.run, self.plugins, self.verbose
        about = (make_console(), run.config.agent.max_steps, verbose, plugins.tools)
        if self.debug:
            display: Display = PausingDisplay(*about)
        elif is_attended(run.config, plugins):
            display = AttendedDisplay(*about, concluded=self.conclude is not None)
        else:
            display = make_display(*about)
        experiment = Experiment(run, plugins, display, verbose=verbose > 1, workers=1 if self.debug else None)
        display.stop = experiment.stop
        experiment.choose(force_all=self.force_all, force_failed=self.force_failed)
        display.total = len(experiment.pending)
        finished = len(experiment.jobs) - len(experiment.pending)
        if finished:
            display.line(f"{finished} of {len(experiment.jobs)} episodes are finished already")
        experiment.check()
        return display, experiment

    def _play(self, experiment: Experiment, display: Display) -> KeyboardInterrupt | None:
        """Play the episodes; returns what ended them before their time."""
        try:
            with display:
                try:
                    experiment.play()
                except KeyboardInterrupt as error:
                    return error
        except OSError as error:
            if self.run.results_gone:
                return None
            if error.errno not in FULL:
                raise
            where = STANDARD_OUTPUT if drop_refused(error) else shown_path(self.run.directory)
            text = f"{where}: {error.strerror}; free space, then go on with: {self.resume}"
            raise RequirementError(text) from error
        return None

    def _conclude(
        self, experiment: Experiment, display: Display, seconds: float, interrupt: KeyboardInterrupt | None
    ) -> int:
        """Say how the run ended, and what to do next; returns the exit status."""
        from debug_gym_core.cli.summary import summary

        run, results_gone = self.run, self.run.results_gone
        results = [run.results[job.key] for job in experiment.jobs if job.key in run.results]
        left = len(experiment.jobs) - len(results)
        if display.reader_gone:
            if results_gone:
                self._gone(interrupt)
            elif left:
                text = "stopped, as nobody reads the output any more; go on with"
                _say_next(text, self.resume)
            return READER_GONE
        if self.conclude is not None and not results_gone:  # it reads what is kept
            self.conclude(run, display.console)
        else:
            cost = sum(one.cost for one in run.results.values())
            where = None if results_gone and run.gone else shown_path(run.directory)
            summary(results, left, seconds, experiment.spent, cost, where, display)
        if results_gone:
            return self._gone(interrupt)
        if interrupt is not None or experiment.stopped:
            return self._stopped(interrupt)
        return _status(experiment, results, left, self.resume)


def _status(experiment: Experiment, results: list[Any], left: int, resume: str) -> int:
    failed = [result for result in results if result.status == "error"]
    if left and experiment.refused:
        _say_next(f"the model's service refuses every request, see the error above; not played: {left}")
    kinds = [class_of(result.error["kind"]) or DebugGymError for result in failed]
    corrected = [result for result, kind in zip(failed, kinds, strict=True) if issubclass(kind, SETTLED)]
    if len(corrected) < len(failed):
        first = "correct what the error names, then " if any(issubclass(kind, MENDED) for kind in kinds) else ""
        _say_next(f"{first}play again what could not be run", resume)
    if corrected:
        which = corrected[0].task if len(corrected) == 1 else f"{len(corrected)} tasks"
        text = f"{which}: correct what the error names; this run keeps its settings, so other settings need a new one"
        _say_next(text)
    bound = experiment.spent_bound
    if left and bound is not None:
        text = f"the run has spent what it may ({bound}); not finished: {left}; give it more"
        _say_next(text, f"{resume} -p {bound}=MORE")
    if failed and len(failed) == len(results) and all(issubclass(kind, MISSING) for kind in kinds):
        return 4
    return 1 if failed or left else 0


def _say_next(text: str, command: str = "") -> None:
    """Say what to do next: on a terminal wrapped between words, but for a command, which stays whole to be copied."""
    from rich.cells import cell_len
    from rich.text import Text

    from debug_gym_core.cli.tables import wrapped

    parts = [f"{text}:", command] if command else [text]
    line = " ".join(parts)
    width = shutil.get_terminal_size().columns
    if sys.stderr.isatty() and cell_len(line) > width:
        line = "\n".join([wrapped(Text(parts[0]), width).plain, *parts[1:]])
    say(line, err=True)
