"""`debug-gym fix`: an agent fixes the failing tests of a person's own repository."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from debug_gym_core.cli import Command, printable, say
from debug_gym_core.cli.byproducts import without_byproducts
from debug_gym_core.cli.options import common, llm_config, override
from debug_gym_core.cli.play import TOOLS
from debug_gym_core.cli.run import play, shown_path
from debug_gym_core.errors import DebugGymError, RequirementError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.run import Run

AGENT = "tool_agent"
PASSING = ("passed", "skipped", "xfailed", "xpassed")
NAMED = 8
"""Failing tests that are named."""
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
@click.option("--entrypoint", metavar="CMD", help="How the tests run, else python -m pytest -q.")
@click.option("--llm", metavar="NAME", help="The model: an entry of llm.yaml.")
@llm_config
@click.option("--agent", metavar="NAME", default=AGENT, help=f"Who fixes it, else {AGENT}.")
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
    change and whether the tests pass with it on a clean copy. Then you are asked, and only on yes is the change applied
    to the files in PATH. Nothing else there is touched: no commit, no index, no branch.

    Exit status 0: the tests pass with the change, or passed before; 1: they do not.
    """
    context = click.get_current_context()
    directory = _directory(path)
    ours = [
        f"benchmark.path={json.dumps(str(directory))}",
        f"tools={json.dumps([name for name in TOOLS if name in plugins.tools])}",
        f"run.output={json.dumps(str(_home()))}",
        "env.allow_passing=true",  # whether anything fails is found out below, before anybody is asked
        *([f"env.entrypoint={json.dumps(entrypoint)}"] if entrypoint else []),
        *([f"run.max_cost={max_cost}"] if max_cost is not None else []),
    ]
    from debug_gym_core.config.loading import load

    choices: dict[str, Any] = {"agent": agent, "terminal": terminal, "llm_config": llm_config, "plugins": plugins}
    config = load("repo", [*ours, *overrides], llm=llm or _only_model(llm_config), **choices)
    _check_model(config, plugins)
    measure = functools.partial(_measure, config, plugins)
    before = measure()
    failing = [name for name, outcome in before.items() if outcome not in PASSING]
    if not failing:
        say(f"nothing to fix: the {len(before)} tests of {directory.name} pass")
        return
    say(f"{len(failing)} of {len(before)} tests of {directory.name} fail: {_some(failing)}")
    runs: list[Run] = []
    changes: list[Change] = []
    status = play(
        config,
        output,
        None,
        None,
        plugins,
        max(verbose, 1),
        conclude=lambda run, console: _conclude(run, console, directory, measure, runs, changes),
        go_on="the same debug-gym fix, with -o",  # which asks what to apply
    )
    if status != 0 or not any(run.results for run in runs):
        context.exit(status)
    for change in changes:
        if change.patch.stat().st_size:
            _offer(change, directory, at_once)
    context.exit(0 if changes and all(change.passes for change in changes) else 1)


def _directory(path: Path) -> Path:
    directory = path.expanduser()
    if not directory.is_dir():
        raise UsageError(f"{path}: there is no such directory")
    return directory.resolve()


def _home() -> Path:
    """Where runs are kept: not in the person's repository, which would have one more directory that is not theirs."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()) / "debug-gym" / "fix"


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


def _check_model(config: Config, plugins: Plugins) -> None:
    """Say what is wrong with the model before the tests are run.

    Raises:
        UsageError, RequirementError: it is not configured, its entry is wrong, or it has no key
    """
    from debug_gym_core.config.llm_yaml import read_models, unknown
    from debug_gym_core.models.service import ServiceLLM

    models, name = read_models(config.llm_config_file_path), config.llm.name
    if name in models.names:
        llm = models.make(name, plugins, {})
        if isinstance(llm, ServiceLLM):
            with contextlib.closing(llm):
                llm.prepare()
    elif name not in plugins.llms and ":" not in name:
        raise unknown(name, models, plugins)


def _measure(config: Config, plugins: Plugins, change: bytes = b"") -> Mapping[str, str]:
    """What the tests say, each one's outcome by its name.

    Args:
        config: of the run
        plugins: what is installed
        change: a patch to try them with; else they say what they do before anything is changed

    Raises:
        UsageError, RequirementError, TaskError: the tests cannot be run
    """
    from debug_gym_core.environment.backend import choose_terminal
    from debug_gym_core.environment.env import RepoEnv

    benchmark_class = plugins.get("benchmarks", config.benchmark.name)
    benchmark = benchmark_class(**config.benchmark.settings_for(benchmark_class))
    task = benchmark.load(benchmark.names()[0])
    section = config.terminal
    free = {"image": section.image, "allow_unsandboxed": section.allow_unsandboxed}
    backend, _ = choose_terminal(section.name, task, False, plugins, free)
    settings = {key: value for key, value in section.settings_for(backend).items() if value is not None}
    env = RepoEnv(
        task,
        [],
        {backend.name: settings},
        plugins=plugins,
        allow_unsandboxed=section.allow_unsandboxed,
        **{**dict(config.env), "end_on_resolved": False},
    )
    try:
        env.reset(seed=config.run.seed)
        if change:
            env.workspace.apply(change)
        return {name: str(outcome) for name, outcome in env.grade().tests.items()}
    finally:
        env.close()


def _some(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _conclude(
    run: Run,
    console: Console,
    repository: Path,
    measure: Callable[[bytes], Mapping[str, str]],
    runs: list[Run],
    changes: list[Change],
) -> None:
    """Show the change, and what the tests say with it; note the run, and the change to apply."""
    from rich.text import Text

    from debug_gym_core.cli.figures import duration, money_text
    from debug_gym_core.cli.steps import error_text
    from debug_gym_core.cli.verdicts import ENDED
    from debug_gym_core.grading.dropped import about_dropped
    from debug_gym_core.runs.trajectory import EventKind, read_journal

    runs.append(run)
    for key, result in run.results.items():
        directory = run.task_directory(*key)
        console.print()
        if result.error is not None:
            console.print(Text.assemble(("error ", "bold red"), error_text(result.error)), soft_wrap=True)
            continue
        change, left_out = without_byproducts(directory / "patch.diff", repository)
        lines = change.read_bytes().decode("utf-8", "backslashreplace").splitlines()
        for line in lines[:SHOWN]:
            console.print(Text(printable(line), style=_style(line)), soft_wrap=True)
        if len(lines) > SHOWN:
            console.print(Text(f"... {len(lines) - SHOWN} lines more in {shown_path(change)}"), soft_wrap=True)
        if left_out:
            console.print(Text(f"left out, as git ignores it: {_some(left_out)}"), soft_wrap=True)
        if result.dropped:
            console.print(Text(printable(about_dropped(result.dropped))), soft_wrap=True)
        grades = [event.data for event in read_journal(directory / "trajectory.jsonl") if event.kind is EventKind.GRADE]
        tests: Mapping[str, str] = grades[-1]["tests"] if grades else {}
        with_all = bool(left_out) and result.resolved
        if with_all:  # and without what was left out?
            tests = measure(change.read_bytes())
        failing = [name for name, outcome in tests.items() if outcome not in PASSING]
        cost = f", {money_text(result.cost)}" if result.cost else ""
        about = f"({result.steps} steps, {duration(result.seconds)}{cost})"
        changes.append(Change(change, result.resolved and not (with_all and failing)))
        if changes[-1].passes:
            words = f"all {result.max_score} tests pass with this change, on a clean copy"
            console.print(Text.assemble((words, "bold green"), f" {about}"), soft_wrap=True)
        else:
            with_it = "with this change" if lines else "and nothing was changed"
            if with_all:
                with_it += "; with what was left out, they pass"
            words = f"{len(failing)} of {len(tests)} tests fail {with_it}"
            named = f": {_some(failing)}" if failing else ""
            console.print(Text.assemble((words, "bold yellow"), f"{named} {about}"), soft_wrap=True)
            if result.ended in ENDED:
                console.print(ENDED[result.ended], soft_wrap=True, highlight=False)


def _offer(change: Change, directory: Path, at_once: bool) -> None:
    """Apply the change when the person wants it; else say where it is kept."""
    by_hand = f"it is kept: git -C {shlex.quote(str(directory))} apply {shlex.quote(str(change.patch.absolute()))}"
    if at_once and change.passes:
        wanted = True
    elif at_once or not sys.stdin.isatty():
        say(f"not applied; {by_hand}")
        return
    else:
        question = "Apply it" if change.passes else "Apply it all the same"
        try:
            wanted = click.confirm(f"{question} to {directory}?", default=False, err=True)
        except click.Abort:
            say(f"\nnot applied; {by_hand}")
            raise
    if not wanted:
        say(f"not applied; {by_hand}")
        return
    apply(change.patch, directory)
    say(f"applied to {directory}")


def apply(patch: Path, directory: Path) -> None:
    """Apply a patch to the files of a directory, all of it or nothing.

    Args:
        patch: the file
        directory: a repository of git or none; what lies above it is not looked at

    Raises:
        RequirementError: git is not installed
        DebugGymError: it does not fit, as the files were changed meanwhile
    """
    command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", str(patch.absolute())]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    _refuse_to_wait(patch, directory)
    try:
        with tempfile.TemporaryDirectory() as empty:
            # A repository's own settings name programs, such as filters, that git would run on its files. And where
            # the directory is one of a larger repository, git would take the paths for that one's. The person's own
            # settings name programs too, which the repository could have run on what it likes.
            for name in ("objects", "refs"):
                (Path(empty) / name).mkdir()
            (Path(empty) / "HEAD").write_text("ref: refs/heads/none\n")
            environment.update(GIT_DIR=empty, GIT_WORK_TREE=str(directory.absolute()), LC_ALL="C")
            environment.update(GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=os.devnull, GIT_ATTR_NOSYSTEM="1")
            done = subprocess.run(
                command, cwd=directory, env=environment, capture_output=True, text=True, errors="replace"
            )
    except FileNotFoundError:
        raise RequirementError(f"git is not installed; the change is kept: {shown_path(patch)}") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["git says nothing"])[0].removeprefix("error: ")
        raise DebugGymError(
            f"nothing was applied, {directory} has changed meanwhile: {said}\nThe change is kept: {shown_path(patch)}"
        )


def _refuse_to_wait(patch: Path, directory: Path) -> None:
    """Refuse to apply a patch where git would wait for whoever writes into a pipe.

    Raises:
        DebugGymError: there is one in place of git's own file
    """
    from debug_gym_core.workspace.patch import touched

    for place in sorted({above for path in touched(patch.read_bytes()) for above in (directory / path).parents}):
        file = place / ".gitattributes"
        if place.is_relative_to(directory) and file.is_fifo():
            raise DebugGymError(
                f"nothing was applied, {file} is a pipe: remove it.\nThe change is kept: {shown_path(patch)}"
            )


def _style(line: str) -> str:
    if line.startswith(("+++", "---", "diff ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
