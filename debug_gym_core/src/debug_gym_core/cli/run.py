"""`debug-gym run`: an agent on many tasks."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from debug_gym_core.cli import FULL, INTERRUPTED, READER_GONE, Command, drop_lost_terminal, say
from debug_gym_core.cli.options import common, data, llm_config, override
from debug_gym_core.cli.options import tasks as choose_tasks
from debug_gym_core.errors import RequirementError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from debug_gym_core.cli.display import Display
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.experiment import Experiment
    from debug_gym_core.runs.run import Run

SETTLED = ("UsageError", "TaskError")
"""Kinds of errors that come again however often the same is played: a setting is wrong, or the task is."""


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, handled as Ctrl-C is."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_status = 128 + number


class RunCommand(Command):
    """The command, which knows the options of the original's script and answers them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from debug_gym_core.config.spellings import OPTIONS

            if error.option_name not in OPTIONS:
                raise
            raise click.UsageError(f"there is no {error.option_name}: {OPTIONS[error.option_name]}", ctx) from None


@click.command(
    "run",
    cls=RunCommand,
    epilog="""
    debug-gym run mini_nightmare --agent solution_agent        no model needed
    debug-gym run mini_nightmare --task counter --task 's*' -v
    debug-gym run config.yaml --agent noop_agent -n 4 -p env.run_timeout=60
    debug-gym run --resume exps/20250101-120000-debug_agent-mini_nightmare-1f3a
    """,
)
@click.argument("source", metavar="[BENCHMARK[/TASK]|CONFIG.yaml]", required=False)
@click.option("--agent", metavar="NAME", help="Who plays; debug-gym plugins lists them.")
@click.option("--llm", metavar="NAME", help="The model: an entry of llm.yaml, human, scripted.")
@llm_config
@click.option("--terminal", metavar="NAME", help="The sandbox: auto, bubblewrap, docker, local.")
@choose_tasks
@click.option("--repeats", metavar="N", type=click.IntRange(min=1), help="Play each task N times.")
@click.option("-n", "--workers", metavar="N", type=click.IntRange(min=1), help="Play N tasks at the same time.")
@data
@override
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Directory of the run; new, empty, or of the same run.",
)
@click.option(
    "--resume", metavar="DIR", type=click.Path(path_type=Path), help="Resume the run in DIR, with its own config."
)
@click.option("--force-all", is_flag=True, help="Play all again, also what is finished.")
@click.option("--force-failed", is_flag=True, help="Play again what was played and is not resolved.")
@click.option("--list", "only_list", is_flag=True, help="List what would be played, and play nothing.")
@click.option("--debug", is_flag=True, help="Pause after each step; c continues, q stops, ? helps.")
@common(steps=True)
def command(
    source: str | None,
    tasks: tuple[str, ...],
    overrides: tuple[str, ...],
    output: Path | None,
    resume: Path | None,
    force_all: bool,
    force_failed: bool,
    only_list: bool,
    debug: bool,
    plugins: Plugins,
    verbose: int,
    **choices: Any,
) -> None:
    """Play the tasks of a benchmark, or what a config file says, with an agent.

    Everything that happens is kept in a directory of the run's own below `run.output` (exps), or in the one that -o
    names: results.jsonl, and for each task its trajectory, patch and log. A run that was stopped is resumed by --resume;
    what is finished is not played again.

    Exit status 0: the run finished, whatever it scored; 1: some tasks could not be run; 2: wrong usage or an unknown
    name; 3: a plugin that was needed failed to load; 4: something needed is missing; 130: interrupted; 141: stopped, as
    nobody read the output any more.
    """
    context = click.get_current_context()
    if force_all and force_failed:
        raise click.UsageError("say --force-all or --force-failed, not both", context)
    if resume is not None and output is not None:
        raise click.UsageError("--resume DIR names the directory already; leave out -o", context)
    if source is None and resume is None:
        raise click.UsageError("say which benchmark or config file to run, or --resume DIR", context)
    config = None
    if source is not None:
        config = _load(source, overrides, tasks, choices, plugins)
    elif overrides or tasks or any(choices[key] for key in ("agent", "llm", "llm_config", "terminal", "repeats")):
        raise click.UsageError("--resume goes on with the run's own config; only -n may differ", context)
    if only_list:
        _list(config, resume or output, plugins, force_all, force_failed)
        return
    status = play(config, output, resume, choices["workers"], plugins, verbose, debug, force_all, force_failed)
    context.exit(status)


def _load(
    source: str, overrides: tuple[str, ...], tasks: tuple[str, ...], choices: dict[str, Any], plugins: Plugins
) -> Config:
    from debug_gym_core.config.loading import load

    return load(source, overrides, tasks=tasks or None, plugins=plugins, **choices)


def _list(config: Config | None, directory: Path | None, plugins: Plugins, force_all: bool, force_failed: bool) -> None:
    """Print what would be played."""
    from debug_gym_core.runs.experiment import plan, unfinished
    from debug_gym_core.runs.run import look

    results: dict[Any, Any] = {}
    if directory is not None and (config is None or (directory / "run.json").is_file()):
        kept, results = look(directory, plugins)
        config = config or kept
    assert config is not None
    benchmark = plugins.get("benchmarks", config.benchmark.name)
    jobs = plan(config, benchmark(**config.benchmark.settings_for(benchmark)))
    for job in unfinished(jobs, results, force_all=force_all, force_failed=force_failed):
        say(str(job))


def play(
    config: Config | None,
    output: Path | None,
    resume: Path | None,
    workers: int | None,
    plugins: Plugins,
    verbose: int,
    debug: bool = False,
    force_all: bool = False,
    force_failed: bool = False,
    conclude: Callable[[Run, Console], None] | None = None,
    go_on: str | None = None,
) -> int:
    """Play a run; returns the exit status.

    Args:
        config: what to play; None: what the run in `resume` has
        output: the run's directory; None: a new one
        resume: a run to go on with
        workers: episodes at the same time
        plugins: what is installed
        verbose: how often `-v` was given
        debug: pause after each step
        force_all: play everything again
        force_failed: play again what is not resolved
        conclude: writes what a person sees at the end in place of the summary
        go_on: what goes on with the run when its directory is put behind; None: `debug-gym run --resume`
    """
    from debug_gym_core.cli.attended import AttendedDisplay, asking_twice
    from debug_gym_core.cli.summary import summary
    from debug_gym_core.runs.run import Run

    try:
        if resume is not None:
            run = Run.resume(resume, plugins=plugins, workers=workers, config=config)
        else:
            assert config is not None
            run = Run.create(config, output, plugins=plugins)
    except OSError as error:
        if error.errno not in FULL:
            raise
        where = shown_path(resume or output or (config.run.output if config else Path()))
        raise RequirementError(f"{where}: {error.strerror}; free space, then run the same again") from error
    shown: list[Display] = []
    resume_by = f"{go_on} {shown_path(run.directory)}" if go_on else _resuming(run, plugins)

    def terminate(number: int, frame: object) -> None:
        for display in shown:
            display.hint = ""
        if number == signal.SIGHUP:
            drop_lost_terminal()
        raise Terminated(number)

    with run, contextlib.ExitStack() as at_end:
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                at_end.callback(signal.signal, number, signal.signal(number, terminate))
        try:
            silent = conclude is not None
            display, experiment = _prepare(run, plugins, verbose, debug, force_all, force_failed, silent)
        except BaseException:
            run.discard()
            raise
        shown.append(display)
        if isinstance(display, AttendedDisplay):
            at_end.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, asking_twice(display)))
        started = time.monotonic()
        interrupt: KeyboardInterrupt | None = None
        try:
            with display:
                try:
                    experiment.play()
                except KeyboardInterrupt as error:
                    interrupt = error
        except OSError as error:
            if error.errno not in FULL:
                raise
            where = shown_path(run.directory)
            text = f"{where}: {error.strerror}; free space, then go on with: {resume_by}"
            raise RequirementError(text) from error
        results = [run.results[job.key] for job in experiment.jobs if job.key in run.results]
        left = len(experiment.jobs) - len(results)
        if display.reader_gone:
            if left:
                text = "stopped, as nobody reads the output any more; go on with"
                say(f"{text}: {resume_by}", err=True)
            return READER_GONE
        if conclude is not None:
            conclude(run, display.console)
        else:
            summary(results, left, time.monotonic() - started, shown_path(run.directory), display)
        return _status(experiment, results, left, interrupt, resume_by)


def _prepare(
    run: Run, plugins: Plugins, verbose: int, debug: bool, force_all: bool, force_failed: bool, silent: bool
) -> tuple[Display, Experiment]:
    """Look everything up, and choose what is played."""
    from debug_gym_core.cli.attended import AttendedDisplay, is_attended
    from debug_gym_core.cli.display import make_display
    from debug_gym_core.cli.pause import PausingDisplay
    from debug_gym_core.cli.tables import make_console
    from debug_gym_core.runs.experiment import Experiment

    about = (make_console(), run.config.agent.max_steps, verbose, plugins.tools)
    if debug:
        display: Display = PausingDisplay(*about)
    elif is_attended(run.config, plugins):
        display = AttendedDisplay(*about, concluded=silent)
    else:
        display = make_display(*about)
    experiment = Experiment(run, plugins, display, verbose=verbose > 1, workers=1 if debug else None)
    display.stop = experiment.stop
    experiment.choose(force_all=force_all, force_failed=force_failed)
    display.total = len(experiment.pending)
    finished = len(experiment.jobs) - len(experiment.pending)
    if finished:
        display.line(f"{finished} of {len(experiment.jobs)} episodes are finished already")
    experiment.check()
    return display, experiment


def _status(
    experiment: Experiment, results: list[Any], left: int, interrupt: KeyboardInterrupt | None, resume: str
) -> int:
    if interrupt is not None or experiment.stopped:
        say(f"stopped; go on with: {resume}", err=True)
        return int(getattr(interrupt, "exit_status", INTERRUPTED))
    if left and experiment.out_of_money:
        say(f"the run has spent what it may (run.max_cost, llm.max_run_tokens); not played: {left}", err=True)
    failed = [result for result in results if result.status == "error"]
    if left and experiment.refused:
        say(f"the model's service refuses every request, see the error above; not played: {left}", err=True)
    corrected = [result for result in failed if result.error["kind"] in SETTLED]
    if len(corrected) < len(failed):
        say(f"play again what could not be run: {resume}", err=True)
    if corrected:
        which = corrected[0].task if len(corrected) == 1 else f"{len(corrected)} tasks"
        text = f"{which}: correct what the error names; this run keeps its settings, so other settings need a new one"
        say(text, err=True)
    if failed and len(failed) == len(results) and all(item.error["kind"] == "RequirementError" for item in failed):
        return 4
    return 1 if failed or left else 0


def _resuming(run: Run, plugins: Plugins) -> str:
    """The command that goes on with a run."""
    files = "".join(f" --plugin-file {shown_path(path)}" for path in plugins.files)
    return f"debug-gym run --resume {shown_path(run.directory)}{files}"


def shown_path(path: Path) -> str:
    """A path as a person here would type it."""
    import shlex

    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return shlex.quote(str(shown))
