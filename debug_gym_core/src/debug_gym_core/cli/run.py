"""`debug-gym run`: an agent on many tasks."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from debug_gym_core.cli import INTERRUPTED, Command
from debug_gym_core.cli.options import common

if TYPE_CHECKING:
    from debug_gym_core.cli.display import Display
    from debug_gym_core.config import Config
    from debug_gym_core.experiment import Experiment, Run
    from debug_gym_core.plugins import Plugins


class Terminated(KeyboardInterrupt):
    """SIGTERM, handled as Ctrl-C is."""

    exit_status = 128 + signal.SIGTERM


@click.command(
    "run",
    cls=Command,
    epilog="""
    debug-gym run mini_nightmare --agent solution_agent        no model needed
    debug-gym run mini_nightmare --task counter --task 's*' -v
    debug-gym run config.yaml --agent noop_agent -n 4 -p env.run_timeout=60
    debug-gym run --resume exps/20250101-120000-debug_agent-mini_nightmare-1f3a
    """,
)
@click.argument("source", metavar="[BENCHMARK|CONFIG.yaml]", required=False)
@click.option("--agent", metavar="NAME", help="Who plays.")
@click.option("--llm", metavar="NAME", help="The model that the agent asks.")
@click.option("--terminal", metavar="NAME", help="The sandbox: auto, bubblewrap, docker, local.")
@click.option("--task", "tasks", metavar="GLOB", multiple=True, help="Which tasks. May be given several times.")
@click.option("-n", "--workers", metavar="N", type=click.IntRange(min=1), help="Episodes played at the same time.")
@click.option("-p", "overrides", metavar="KEY.PATH=VALUE", multiple=True, help="Set a value of the config, as YAML.")
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path), help="The run's directory.")
@click.option("--resume", metavar="DIR", type=click.Path(path_type=Path), help="Go on with the run in DIR.")
@click.option("--force-all", is_flag=True, help="Play finished tasks again too.")
@click.option("--force-failed", is_flag=True, help="Play again what is not resolved.")
@click.option("--list", "only_list", is_flag=True, help="List the tasks that would be played, and play none.")
@click.option("--debug", is_flag=True, help="Pause after each step: c goes on, q stops.")
@common()
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
    names: results.jsonl, and for each task its trajectory, patch and log. A run that was stopped goes on with --resume;
    what is finished is not played again.
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
    elif overrides or tasks or any(choices[key] for key in ("agent", "llm", "terminal")):
        raise click.UsageError("--resume goes on with the run's own config; only -n may differ", context)
    if only_list:
        _list(config, resume, plugins)
        return
    status = _play(config, output, resume, choices["workers"], plugins, verbose, debug, force_all, force_failed)
    context.exit(status)


def _load(
    source: str, overrides: tuple[str, ...], tasks: tuple[str, ...], choices: dict[str, Any], plugins: Plugins
) -> Config:
    from debug_gym_core.config import load

    return load(source, overrides, tasks=tasks or None, plugins=plugins, **choices)


def _list(config: Config | None, resume: Path | None, plugins: Plugins) -> None:
    from debug_gym_core.experiment import Run, plan

    if config is None:
        assert resume is not None
        with Run.resume(resume, plugins=plugins) as run:
            config = run.config
    benchmark = plugins.get("benchmarks", config.benchmark.name)
    for job in plan(config, benchmark(**config.benchmark.settings_for(benchmark))):
        click.echo(str(job))


def _play(
    config: Config | None,
    output: Path | None,
    resume: Path | None,
    workers: int | None,
    plugins: Plugins,
    verbose: int,
    debug: bool,
    force_all: bool,
    force_failed: bool,
) -> int:
    """Play a run; returns the exit status."""
    from debug_gym_core.cli.display import summary
    from debug_gym_core.experiment import Run

    if resume is not None:
        run = Run.resume(resume, plugins=plugins, workers=workers, config=config)
    else:
        assert config is not None
        run = Run.create(config, output, plugins=plugins)
    before = signal.signal(signal.SIGTERM, _terminate)
    with run, contextlib.ExitStack() as at_end:
        at_end.callback(signal.signal, signal.SIGTERM, before)
        try:
            display, experiment = _prepare(run, plugins, verbose, debug, force_all, force_failed)
        except BaseException:
            run.discard()
            raise
        started = time.monotonic()
        interrupt: KeyboardInterrupt | None = None
        with display:
            try:
                experiment.play()
            except KeyboardInterrupt as error:
                interrupt = error
        results = [run.results[job.key] for job in experiment.jobs if job.key in run.results]
        left = len(experiment.jobs) - len(results)
        summary(results, left, time.monotonic() - started, shown_path(run.directory), display.console)
        return _status(experiment, run, results, left, interrupt, plugins)


def _prepare(
    run: Run, plugins: Plugins, verbose: int, debug: bool, force_all: bool, force_failed: bool
) -> tuple[Display, Experiment]:
    """Look everything up, and choose what is played."""
    from debug_gym_core.cli.display import make_console, make_display
    from debug_gym_core.cli.pause import PausingDisplay
    from debug_gym_core.experiment import Experiment

    console, steps = make_console(), run.config.agent.max_steps
    display = PausingDisplay(console, steps, verbose) if debug else make_display(console, steps, verbose)
    experiment = Experiment(run, plugins, display, verbose=verbose > 1, workers=1 if debug else None)
    if isinstance(display, PausingDisplay):
        display.stop = experiment.stop
    experiment.choose(force_all=force_all, force_failed=force_failed)
    display.total = len(experiment.pending)
    finished = len(experiment.jobs) - len(experiment.pending)
    if finished:
        display.line(f"{finished} of {len(experiment.jobs)} episodes are finished already")
    experiment.check()
    return display, experiment


def _status(
    experiment: Experiment,
    run: Run,
    results: list[Any],
    left: int,
    interrupt: KeyboardInterrupt | None,
    plugins: Plugins,
) -> int:
    files = "".join(f" --plugin-file {shown_path(path)}" for path in plugins.files)
    resume = f"debug-gym run --resume {shown_path(run.directory)}{files}"
    if interrupt is not None or experiment.stopped:
        click.echo(f"stopped; go on with: {resume}", err=True)
        return int(getattr(interrupt, "exit_status", INTERRUPTED))
    if left and experiment.out_of_money:
        click.echo(f"run.max_cost is spent; {left} episodes were not played", err=True)
    failed = [result for result in results if result.status == "error"]
    if failed:
        click.echo(f"play again what could not be run: {resume}", err=True)
    if failed and len(failed) == len(results) and all(item.error["kind"] == "RequirementError" for item in failed):
        return 4
    return 1 if failed or left else 0


def shown_path(path: Path) -> str:
    """A path as a person here would type it."""
    import shlex

    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return shlex.quote(str(shown))


def _terminate(number: int, frame: object) -> None:
    raise Terminated
