"""`debug-gym play`: a person finds and fixes the bug of one task, with the tools that agents have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from debug_gym_core.cli import Command
from debug_gym_core.cli.options import common, override
from debug_gym_core.cli.playing import Playing, opened_run
from debug_gym_core.cli.shown_paths import shown_path
from debug_gym_core.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.run import Run

AGENT, LLM = "tool_agent", "human"
TOOLS = ("view", "listdir", "grep", "rewrite", "edit", "eval", "pdb", "trace", "bash", "submit")
"""What a person plays with, as far as it is installed."""

PATIENT = 1000
"""Steps and rewrites that a person has; those of an agent are bounded for what they cost."""

NAMED = 5
"""Tasks that are named when there is more than one to choose from."""


@click.command(
    "play",
    cls=Command,
    epilog="""
    debug-gym play mini_nightmare/counter
    debug-gym play repo -p benchmark.path=. -p env.entrypoint='pytest -q'
    debug-gym play config.yaml --task counter
    debug-gym play mini_nightmare/counter < actions.txt
    """,
)
@click.argument("source", metavar="BENCHMARK/TASK|CONFIG.yaml")
@click.option("--task", metavar="NAME", help="Which task, when the config has more than one.")
@click.option("--terminal", metavar="NAME", help="The sandbox: auto, bubblewrap, docker, local.")
@override
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path), help="Where the session is kept.")
@common(steps=True)
def command(
    source: str,
    task: str | None,
    terminal: str | None,
    overrides: tuple[str, ...],
    output: Path | None,
    plugins: Plugins,
    verbose: int,
) -> None:
    """Find and fix the bug of one task yourself, with the tools that an agent has.

    At the prompt, `help` lists what can be typed and Tab completes it. The session is graded and kept as a run: its
    trajectory, patch and result.
    """
    for kind, name in (("agents", AGENT), ("llms", LLM)):
        plugins.get(kind, name)
    config = _config(source, task, overrides, terminal, plugins)
    with opened_run(plugins, config, output) as run:
        status = Playing(run, plugins, verbose, conclude=_conclude).play()
    click.get_current_context().exit(status)


def _config(
    source: str, task: str | None, overrides: tuple[str, ...], terminal: str | None, plugins: Plugins
) -> Config:
    """The config of a session: of one task, and patient where nobody says otherwise.

    Raises:
        UsageError: there is no such task, or more than one is meant
    """
    from debug_gym_core.config.loading import load
    from debug_gym_core.runs.parts import make_benchmark
    from debug_gym_core.tasks.selection import select_tasks

    ours: list[str] = []
    if not Path(source).expanduser().is_file():
        tools = [name for name in TOOLS if name in plugins.tools]
        ours = [f"tools=[{', '.join(tools)}]", f"agent.max_steps={PATIENT}", f"agent.max_rewrites={PATIENT}"]
    choices: dict[str, Any] = {"agent": AGENT, "llm": LLM, "terminal": terminal, "plugins": plugins}
    config = load(source, [*ours, *overrides], tasks=[task] if task else None, **choices)
    benchmark = make_benchmark(config, plugins)
    names = select_tasks(benchmark, config.benchmark.tasks)
    if len(names) != 1:
        some = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
        raise UsageError(
            f"{source} means {len(names)} tasks ({some}); say one: debug-gym play {benchmark.name}/{names[0]}"
            if "/" in source or source == benchmark.name
            else f"{source} means {len(names)} tasks ({some}); say one with --task NAME"
        )
    only = {"tasks": (names[0],)}
    one_episode = {"workers": 1, "repeats": 1}
    return config.model_copy(
        update={
            "benchmark": config.benchmark.model_copy(update=only),
            "run": config.run.model_copy(update=one_episode),
        }
    )


def _conclude(run: Run, console: Console) -> None:
    """Say how it ended and where everything is."""
    from rich.text import Text

    from debug_gym_core.cli.figures import duration, score_text
    from debug_gym_core.cli.steps import error_text
    from debug_gym_core.cli.tables import show_prose

    for (task, repeat), result in run.results.items():
        if result.error is not None:
            show_prose(Text.assemble(("error ", "bold red"), error_text(result.error)), console)
        colour = {"resolved": "green", "unresolved": "yellow"}.get(result.status, "red")
        words = {"resolved": "resolved", "unresolved": "not resolved"}.get(result.status, "could not be graded")
        parts = [f"score {score_text(result.score, result.max_score)}"] if result.max_score is not None else []
        parts += ["graded in a fresh sandbox"] if result.grading == "clean" else []
        parts += ["out of steps"] if not result.resolved and result.steps >= run.config.agent.max_steps else []
        parts += [f"{result.steps} step{'' if result.steps == 1 else 's'}", duration(result.seconds)]
        console.print()
        show_prose(Text.assemble((words, f"bold {colour}"), f": {', '.join(parts)}"), console)
        directory = run.task_directory(task, repeat)
        kept = [path for name in ("patch.diff", "trajectory.jsonl", "log.txt") if (path := directory / name).exists()]
        names = [path.name if path.stat().st_size else f"{path.name} (empty: nothing was changed)" for path in kept]
        show_prose(f"{', '.join(names)} in {shown_path(directory)}", console)
