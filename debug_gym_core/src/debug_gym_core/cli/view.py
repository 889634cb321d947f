"""`debug-gym view`: what happened in the episodes of a run, as a person reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from debug_gym_core.cli import Command, printable, say, say_note
from debug_gym_core.cli.options import common
from debug_gym_core.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from debug_gym_core.cli.episode_parts import Account
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.runs.reading import Episode

    _Ranges = click.ParamType[range]
else:
    _Ranges = click.ParamType  # which has no parameter before click 8.4

UNBOUNDED = 2**31
_RANGE = re.compile(r"(\d{1,9})?(:)?(\d{1,9})?")


class Steps(_Ranges):
    """Steps by their numbers: `4`, `3:7`, `3:`, `:7`, both ends included."""

    name = "steps"

    def convert(self, value: str | range, param: click.Parameter | None, ctx: click.Context | None) -> range:
        """The numbers that are meant."""
        if isinstance(value, range):
            return value
        found = _RANGE.fullmatch(value)
        if found is None or value in ("", ":"):
            self.fail(f"{value!r} is no number of a step, nor a range of them as 3:7 or 3:", param, ctx)
        first = int(found[1] or 0)
        last = int(found[3]) if found[3] else UNBOUNDED if found[2] else first
        if last < first:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return range(first, last + 1)


@click.command(
    "view",
    cls=Command,
    epilog="""
    debug-gym view exps/one                             which episodes there are
    debug-gym view exps/one --task counter              what happened in one
    debug-gym view exps/one --task counter --step 4:6   these steps, whole
    debug-gym view exps/one --html one.html             all, for a browser
    """,
)
@click.argument("place", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--task", "tasks", metavar="GLOB", multiple=True, help="Only of these tasks. May be repeated.")
@click.option("--step", "steps", metavar="N[:M]", type=Steps(), help="Only these steps, with all that was said.")
@click.option("--llm", "prompts", is_flag=True, help="Also what the model was asked and answered.")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Write a page for a browser instead.")
@click.option("--force", is_flag=True, help="Replace the file of --html if there is one.")
@common()
def command(
    place: Path,
    tasks: tuple[str, ...],
    steps: range | None,
    prompts: bool,
    html: Path | None,
    force: bool,
    plugins: Plugins,
    verbose: int,
) -> None:
    """Show what happened in the episodes of a run, step by step.

    DIR is a run, the directory of a task in one, or has runs below it. One episode is shown in full, with long texts
    cut; several as a table, with the command that shows each. A run that is still being played, or was killed, is shown
    as far as it got; -v is --llm. The page of --html is self-contained, to pass on.
    """
    from debug_gym_core.runs.reading import find_episodes

    episodes = find_episodes(place, tasks)
    prompts = prompts or verbose > 0
    if html is not None:
        if steps is not None:
            raise click.UsageError("--html shows every step; leave out --step", click.get_current_context())
        _write_page(episodes, plugins, html, prompts=prompts, force=force)
    elif len(episodes) == 1:
        _show_one(episodes[0], steps, plugins, prompts=prompts)
    elif steps is not None:
        names = ", ".join(dict.fromkeys(one.names[0] for one in episodes[:5]))
        raise UsageError(f"--step is for one episode, these are {len(episodes)} ({names}, ...); choose with --task")
    else:
        _show_table(episodes)


def viewing(episode: Episode) -> str:
    """The command that shows an episode."""
    from debug_gym_core.cli.shown_paths import shown_path

    path = episode.path if episode.path.name.startswith("abandoned-") else episode.directory
    return f"debug-gym view {shown_path(path)}"


def _show_one(episode: Episode, steps: range | None, plugins: Plugins, *, prompts: bool) -> None:
    """Write an episode, or some steps of it."""
    from debug_gym_core.cli import episode_text
    from debug_gym_core.cli.episode_parts import Account, job_of, parts_of
    from debug_gym_core.cli.tables import make_console

    account = Account.of(episode)
    parts = parts_of(account.trajectory, job_of(episode), plugins.tools, prompts=prompts)
    if steps is not None:
        played = [event.data["step"] for event in account.trajectory.steps]
        if not any(number in steps for number in played):
            there = f"steps {min(played)} to {max(played)}" if played else "no steps"
            raise UsageError(f"{episode} has {there}, none of --step")
        parts = (part for part in parts if part.number is not None and part.number in steps)

    def lines() -> Iterator[Text]:
        if steps is not None:
            yield episode_text.title(account)
            yield from episode_text.notes(account)
        else:
            yield from episode_text.top(account)
        yield from episode_text.body(parts, whole=steps is not None, again=viewing(episode))
        if steps is None:
            yield from episode_text.patch(account, whole=False)

    _show(lines(), make_console())


def _show(lines: Iterable[Text], console: Console) -> None:
    """Write lines, page by page on a terminal that they do not fit on."""
    from rich.text import Text

    from debug_gym_core.cli.tables import wrapped_line

    if not console.is_terminal:
        for line in lines:
            click.echo(printable(line.plain))  # a console takes its time over a long text
        return
    with console.capture() as caught:
        console.print(Text("\n").join(wrapped_line(line, console.width) for line in lines), soft_wrap=True)
    text = caught.get()
    rows = sum(max(1, -(-len(line) // console.width)) for line in text.split("\n"))
    if rows < console.height:
        click.echo(text, nl=False)
    else:
        click.echo_via_pager(text)


def _show_table(episodes: Sequence[Episode]) -> None:
    """Write a table of episodes for each run, and what shows one of them."""
    from rich.text import Text

    from debug_gym_core.cli.episode_parts import Account
    from debug_gym_core.cli.shown_paths import shown_path
    from debug_gym_core.cli.tables import make_console

    console = make_console()
    runs: dict[Path | None, list[Episode]] = {}
    for episode in episodes:
        runs.setdefault(episode.run, []).append(episode)
    for number, (run, those) in enumerate(runs.items()):
        if number:
            console.print()
        if run is not None and len(runs) > 1:
            console.print(Text(shown_path(run), "bold"), soft_wrap=True)
        accounts: list[Account] = []
        for episode in those:
            try:
                accounts.append(Account.of(episode))
            except UsageError as error:
                say_note(str(error))
        for account in accounts:
            for text in account.trajectory.remarks:
                say_note(f"{account.episode}: {text}")
        if accounts:
            _show_accounts(accounts, console)


def _show_accounts(accounts: Sequence[Account], console: Console) -> None:
    """Write the table of a run, with the command for each episode where there is room."""
    from rich.text import Text

    from debug_gym_core.cli.figures import count_text, money_text
    from debug_gym_core.cli.tables import show_table
    from debug_gym_core.cli.task_table import fitted_table

    columns = {
        "state": [account.state for account in accounts],
        "score": [account.score for account in accounts],
        "steps": [str(account.steps) for account in accounts],
        "tokens": [count_text(sum(account.tokens)) for account in accounts],
        "cost": [money_text(account.cost) for account in accounts],
    }
    for name in ("tokens", "cost"):
        if set(columns[name]) == {"-"}:
            del columns[name]
    commands = [viewing(account.episode) for account in accounts]
    names = [str(account.episode) for account in accounts]
    figures = sum(2 + max(map(len, [name, *cells])) for name, cells in columns.items())
    fits = figures + max(map(len, names)) + max(map(len, commands)) + 4 <= console.width
    if fits:
        columns["view one"] = commands
    show_table(fitted_table("episode", names, columns, console.width, ("state", "view one")), console)
    if not fits:
        console.print(Text(f"one of them: {commands[0]}"), soft_wrap=True)


def _write_page(episodes: Sequence[Episode], plugins: Plugins, path: Path, *, prompts: bool, force: bool) -> None:
    """Write the page of some episodes."""
    from debug_gym_core.cli.episode_html import name_of, page
    from debug_gym_core.cli.episode_parts import Account
    from debug_gym_core.cli.figures import plural
    from debug_gym_core.cli.shown_paths import shown_path
    from debug_gym_core.cli.target import check_target, written_as
    from debug_gym_core.runs.replacing import replaced

    check_target(path, force=force)
    accounts = [Account.of(episode) for episode in episodes]
    with (
        replaced(path) as temporary,
        written_as(path, temporary),
        temporary.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        file.writelines(page(name_of(accounts), accounts, plugins.tools, prompts=prompts))
    say(f"{plural(len(accounts), 'episode')} in {shown_path(path)}", err=True)
