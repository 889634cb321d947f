"""`debug-gym fix`: an agent fixes the failing tests of a person's own repository."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from debug_gym_core import places
from debug_gym_core.cli import Command, interrupted_status, printable, say
from debug_gym_core.cli.applying import apply, by_hand
from debug_gym_core.cli.options import common, llm_config, override
from debug_gym_core.cli.play import TOOLS
from debug_gym_core.cli.playing import Playing, opened_run
from debug_gym_core.cli.shown_paths import shown_path
from debug_gym_core.errors import TaskError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from debug_gym_core.cli.own_tests import OwnTests
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.run import Run

AGENT, BENCHMARK = "tool_agent", "repo"
SHOWN = 500
"""Lines of a patch that are shown; the rest is in its file."""


class Change(NamedTuple):
    """What a person is asked to apply.

    Attributes:
        patch: its file
        passes: whether all tests pass with it
    """

    patch: Path
    passes: bool


@click.command(
    "fix",
    cls=Command,
    epilog="""
    debug-gym fix . --llm gpt-4o
    debug-gym fix ~/my/project --entrypoint 'pytest -q tests/api' --max-cost 0.5
    debug-gym fix . --llm claude --apply
    """,
)
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--entrypoint", metavar="CMD", help="How the tests run (default: python -m pytest -q).")
@click.option("--llm", metavar="NAME", help="The model: an entry of llm.yaml.")
@llm_config
@click.option("--agent", metavar="NAME", default=AGENT, help=f"Who fixes it (default: {AGENT}).")
@click.option("--terminal", metavar="NAME", help="The sandbox: auto, bubblewrap, docker, local.")
@click.option("--max-cost", metavar="USD", type=click.FloatRange(min=0), help="What it may cost.")
@click.option("--apply", "at_once", is_flag=True, help="Do not ask: apply the change when it passes.")
@override
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path), help="Where the run is kept.")
@common(steps=True)
def command(
    path: Path,
    entrypoint: str | None,
    llm: str | None,
    llm_config: Path | None,
    agent: str,
    terminal: str | None,
    max_cost: float | None,
    at_once: bool,
    overrides: tuple[str, ...],
    output: Path | None,
    plugins: Plugins,
    verbose: int,
) -> None:
    """Let an agent fix the failing tests of your own repository.

    It works on a copy of PATH in a sandbox, with what you have not committed too. You see each step, and at the end the
    change and whether the tests pass with it on a clean copy. Then you are asked (in a pipe: its next line is the
    answer), and only on yes is the change applied to the files in PATH. Nothing else there is touched: no commit, no
    index, no branch.

    Exit status 0: the tests pass with the change, or passed before; 1: they do not.
    """
    context = click.get_current_context()
    directory = _directory(path)
    ours = [
        f"benchmark.path={json.dumps(str(directory))}",
        f"tools={json.dumps([name for name in TOOLS if name in plugins.tools])}",
        f"run.output={json.dumps(str(_home()))}",
        "env.allow_passing=true",  # whether anything fails is found out below, before anybody is asked
        *([f"env.entrypoint={json.dumps(entrypoint)}"] if entrypoint is not None else []),
        *([f"run.max_cost={max_cost}"] if max_cost is not None else []),
    ]
    from debug_gym_core.config.loading import load
    from debug_gym_core.runs.run import refuse_unfit
    from debug_gym_core.runs.run_directory import refuse_unwritable

    choices: dict[str, Any] = {"agent": agent, "terminal": terminal, "llm_config": llm_config, "plugins": plugins}
    asks = plugins.get("agents", agent).needs_llm
    config = load(BENCHMARK, [*ours, *overrides], llm=llm or (_only_model(llm_config) if asks else None), **choices)
    _check(config, directory)
    if output is None:
        refuse_unwritable(config.run.output)
    else:
        refuse_unfit(output, config, plugins)
    if asks:
        from debug_gym_core.runs.chosen_model import ChosenModel
        from debug_gym_core.runs.ledger import Ledger, Limits

        ChosenModel(config, plugins).check(Ledger(None, Limits()), note=lambda text: None)  # the run says its notes
    from debug_gym_core.cli.own_tests import OwnTests

    tests = OwnTests(config, plugins)
    try:
        before = tests.as_they_are()
    except TaskError as error:
        if not error.without_tests or config.env.entrypoint is not None:
            raise
        said = str(error).replace(" (env.entrypoint)", "")
        instead = "where there are no tests, say how the program that fails is run, as in --entrypoint 'python main.py'"
        raise TaskError(f"{said}; {instead}") from error
    if before.passes:
        say(f"nothing to fix: {before.about_passing(f' of {directory.name}')}")
        return
    say(before.about_failing(f" of {directory.name}"))
    runs: list[Run] = []
    changes: list[Change] = []
    with opened_run(plugins, config, output) as run:
        playing = Playing(
            run,
            plugins,
            max(verbose, 1),
            conclude=lambda run, console: _conclude(run, console, directory, tests, runs, changes),
            go_on="the same debug-gym fix, with -o",  # which asks what to apply
        )
        status = playing.play()
    if status != 0 or not any(run.results for run in runs):
        context.exit(status)
    try:
        for change in changes:
            if change.patch.stat().st_size:
                _offer(change, directory, at_once)
    except KeyboardInterrupt as interrupt:
        raise click.Abort from interrupt  # the run was played
    context.exit(0 if changes and all(change.passes for change in changes) else 1)


def _directory(path: Path) -> Path:
    directory = path.expanduser()
    if not directory.is_dir():
        if directory.exists():
            raise UsageError(f"{path} is no directory: fix takes that of a repository")
        raise UsageError(f"{path}: there is no such directory")
    return directory.resolve()


def _check(config: Config, directory: Path) -> None:
    """Refuse what `fix` would not do as it is asked to.

    Raises:
        UsageError: another repository, no command, or several episodes
    """
    if config.benchmark.name != BENCHMARK or config.benchmark.path != directory:
        raise UsageError(f"fix works on its PATH, {directory}: leave out benchmark.name and benchmark.path")
    if config.env.entrypoint is not None and not config.env.entrypoint.strip():
        raise UsageError("the entrypoint is empty: say how the tests run, or leave it out for python -m pytest -q")
    if config.run.repeats != 1:
        raise UsageError(f"run.repeats is {config.run.repeats}: fix plays once, for one change; leave it out")


def _home() -> Path:
    """Where runs are kept: not in the person's repository, which would have one more directory that is not theirs."""
    return places.state() / "fix"


def _only_model(llm_config: Path | None) -> str | None:
    """The model of an llm.yaml that has one; None: the config's default, which it has or which is complained of.

    Raises:
        UsageError: it has several, and none is the default
    """
    from debug_gym_core.config.llm_yaml import read_models
    from debug_gym_core.config.model import LLMSection

    names = read_models(llm_config).names
    if len(names) < 2 or LLMSection().name in names:
        return names[0] if len(names) == 1 else None
    raise UsageError(f"say which model with --llm: {', '.join(names)}")


def _conclude(
    run: Run,
    console: Console,
    repository: Path,
    own_tests: OwnTests,
    runs: list[Run],
    changes: list[Change],
) -> None:
    """Show the change, and what the tests say with it; note the run, and the change to apply."""
    from rich.text import Text

    from debug_gym_core.cli.figures import duration, money_text, plural
    from debug_gym_core.cli.proposal import propose
    from debug_gym_core.cli.steps import error_text
    from debug_gym_core.cli.tables import show_prose
    from debug_gym_core.cli.verdicts import ENDED

    runs.append(run)
    for key, result in run.results.items():
        console.print()
        if result.error is not None:
            show_prose(Text.assemble(("error ", "bold red"), error_text(result.error)), console)
            continue
        proposal = propose(run.task_directory(*key), repository, own_tests)
        lines = proposal.patch.read_bytes().decode("utf-8", "backslashreplace").splitlines()
        for line in lines[:SHOWN]:
            console.print(Text(printable(line), style=_style(line)), soft_wrap=True)
        if len(lines) > SHOWN:
            show_prose(f"... {len(lines) - SHOWN} lines more in {shown_path(proposal.patch)}", console)
        for text in proposal.left_out:
            show_prose(printable(text), console)
        with_it = " with this change" if lines else " and nothing was changed"
        cost = f", {money_text(result.cost)}" if result.cost else ""
        about = f"({plural(result.steps, 'step')}, {duration(result.seconds)}{cost})"
        standing = proposal.standing
        changes.append(Change(proposal.patch, standing.resolved))
        if standing.resolved:
            words = printable(f"{standing.about_passing(with_it=with_it)}, on a clean copy")
            show_prose(Text.assemble((words, "bold green"), f" {about}"), console)
        else:
            if proposal.passed_with_it:
                with_it += f"; with what was left out, {'it passes' if standing.by_status else 'they pass'}"
            words = printable(standing.about_failing(with_it=with_it))
            show_prose(Text.assemble((words, "bold yellow"), f" {about}"), console)
            if result.ended in ENDED:
                show_prose(ENDED[result.ended], console)


def _offer(change: Change, directory: Path, at_once: bool) -> None:
    """Apply the change when the person wants it; else say where it is kept."""
    kept = f"it is kept: {by_hand(change.patch, directory)}"
    if at_once:
        wanted: bool | None = change.passes
    else:
        question = f"{'Apply it' if change.passes else 'Apply it all the same'} to {directory}?"
        try:
            wanted = _typed(question) if sys.stdin.isatty() else _piped(question)
        except click.Abort as abort:
            say(f"\nnot applied; {kept}")
            raise click.exceptions.Exit(interrupted_status(abort)) from None
    if not wanted:
        why = ", as standard input has no answer" if wanted is None else ""
        say(f"not applied{why}; {kept}")
        return
    apply(change.patch, directory)
    say(f"applied to {directory}")


def _typed(question: str) -> bool:
    """The answer of a person at the terminal, to a question that is wrapped between words.

    Raises:
        click.Abort: Ctrl-C or Ctrl-D
    """
    if sys.stderr.isatty():
        from rich.text import Text

        from debug_gym_core.cli.tables import wrapped

        room = shutil.get_terminal_size().columns - len(" [y/N]: y")  # which click puts behind it, and the answer
        before, _, question = wrapped(Text(question), room).plain.rpartition("\n")
        if before:
            say(before, err=True)
    return click.confirm(question, default=False, err=True)


def _piped(question: str) -> bool | None:
    """The answer to a question that standard input has in its next line; None: it has ended."""
    line = sys.stdin.readline()
    if not line:
        return None
    say(f"{question} [y/N]: {line.strip()}", err=True)
    return line.strip().lower() in ("y", "yes")


def _style(line: str) -> str:
    if line.startswith(("+++", "---", "diff ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
