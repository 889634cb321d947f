"""`debug-gym run`: an agent on many tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from debug_gym_core.cli import Command, say
from debug_gym_core.cli.options import common, data, llm_config, override
from debug_gym_core.cli.options import tasks as choose_tasks

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.layers import Overrides
    from debug_gym_core.config.model import Config


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
    overrides: Overrides,
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
    names: results.jsonl, and for each task its trajectory, patch and log. A run that was stopped is resumed by
    --resume; what is finished is not played again.

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
    else:
        given = {"task": tasks, **{key: choices[key] for key in ("agent", "llm", "terminal", "repeats")}}
        refused = [f"--{key}" for key, value in given.items() if value]
        if refused:
            said = f"--resume goes on with the run's own config, without {refused[0]}"
            raise click.UsageError(f"{said}; say -n, --llm-config, or -p of what may differ", context)
        if choices["llm_config"] is not None:
            overrides = (*overrides, f"llm_config_file_path={json.dumps(str(choices['llm_config']))}")
    own = () if config is not None else overrides
    if only_list:
        _list(config, resume or output, plugins, force_all, force_failed, own)
        return
    from debug_gym_core.cli.playing import Playing, opened_run

    with opened_run(plugins, config, output, resume, choices["workers"], own) as run:
        playing = Playing(run, plugins, verbose, debug=debug, force_all=force_all, force_failed=force_failed)
        status = playing.play()
    context.exit(status)


def _load(
    source: str, overrides: Overrides, tasks: tuple[str, ...], choices: dict[str, Any], plugins: Plugins
) -> Config:
    from debug_gym_core.config.loading import load

    return load(source, overrides, tasks=tasks or None, plugins=plugins, **choices)


def _list(
    config: Config | None,
    directory: Path | None,
    plugins: Plugins,
    force_all: bool,
    force_failed: bool,
    overrides: Overrides,
) -> None:
    """Print what would be played."""
    from debug_gym_core.runs.experiment import plan, unfinished
    from debug_gym_core.runs.parts import make_benchmark
    from debug_gym_core.runs.run import look
    from debug_gym_core.runs.run_directory import refuse_other_contents

    results: dict[Any, Any] = {}
    if directory is not None and (config is None or (directory / "run.json").is_file()):
        config, results = look(directory, plugins, config, overrides)
    elif directory is not None:
        refuse_other_contents(directory)
    assert config is not None
    jobs = plan(config, make_benchmark(config, plugins))
    for job in unfinished(jobs, results, force_all=force_all, force_failed=force_failed):
        say(str(job))
