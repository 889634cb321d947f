"""`debug-gym replay`: the actions of a run once more, and whether they show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from debug_gym_core.cli import Command, say, say_note
from debug_gym_core.cli.options import common
from debug_gym_core.errors import DebugGymError, PluginError, RequirementError, UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.runs.reading import Episode
    from debug_gym_core.runs.replaying import Outcome, Replayer

DIFF = 40
"""Lines of a difference that are shown of more."""

COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command(
    "replay",
    cls=Command,
    epilog="""
    debug-gym replay exps/one
    debug-gym replay exps/one --task counter --step 4
    debug-gym replay exps/one --terminal docker
    """,
)
@click.argument("place", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--task", "tasks", metavar="GLOB", multiple=True, help="Only of these tasks. May be repeated.")
@click.option("--terminal", metavar="NAME", help="The sandbox; else the run's own, if it isolates.")
@click.option("--step", "last", metavar="N", type=click.IntRange(min=0), help="Stop after this step; grade nothing.")
@click.option("--trust", is_flag=True, help="Believe its paths, its network, and `local`, too.")
@common()
def command(
    place: Path,
    tasks: tuple[str, ...],
    terminal: str | None,
    last: int | None,
    trust: bool,
    plugins: Plugins,
    verbose: int,
) -> None:
    """Play the actions of a run again, in fresh sandboxes, and compare.

    DIR is a run, the directory of a task in one, or has runs below it. Each episode is played with the run's own config
    and seed; no model is asked, and nothing of the run is written. What the steps show and the score are compared with
    what was saved, and the first difference is shown (-v: all of it). An agent without a model plays itself again.

    Exit status 0: all is the same; 1: something differs or could not be played; 2 to 4: as with run; 130: interrupted.
    """
    from debug_gym_core.cli.shown_paths import shown_path
    from debug_gym_core.cli.signals import ended_by_signals
    from debug_gym_core.runs.reading import find_episodes

    episodes = find_episodes(place, tasks)
    with ended_by_signals():
        same = []
        for episode, replayer in _with_runs(episodes, plugins, terminal, trust):
            name = str(episode) if len({one.run for one in episodes}) == 1 else shown_path(episode.directory)
            same.append(_replay(name, episode, replayer, last, verbose > 0))
    if not any(one is not None for one in same):
        raise UsageError(f"{place}: no step is saved, so there is nothing to play")
    if len(same) > 1:
        say(f"{same.count(True)} of {len(same)} episodes are the same")
    click.get_current_context().exit(1 if False in same else 0)


def _with_runs(
    episodes: Sequence[Episode], plugins: Plugins, terminal: str | None, trust: bool
) -> Iterator[tuple[Episode, Replayer]]:
    """Each episode with what plays those of its run.

    Raises:
        UsageError, PluginError: a run's config does not fit what is installed
    """
    from debug_gym_core.runs.replaying import Replayer

    if terminal is not None and terminal != "auto":
        plugins.get("terminals", terminal)
    known: dict[Path, Replayer] = {}
    for episode in episodes:
        if episode.run is None:
            raise UsageError(f"{episode.path} lies in no run; what plays it again stands in a run's run.json")
        if episode.run not in known:
            known[episode.run] = Replayer(episode.run, plugins, terminal, trusted=trust)
        yield episode, known[episode.run]


def _replay(name: str, episode: Episode, replayer: Replayer, last: int | None, whole: bool) -> bool | None:
    """Play an episode again and say what came of it.

    Returns:
        whether all is the same; None when there was nothing to play
    """
    from debug_gym_core.cli.tables import make_console

    trajectory = episode.read()
    for text in trajectory.remarks:
        say_note(f"{name}: {text}")
    if not trajectory.steps:
        say(f"{name}: no step is saved")
        return None
    try:
        outcome = replayer.play(episode, trajectory, last)
    except (PluginError, RequirementError):
        raise
    except DebugGymError as error:
        say(f"{name}: could not be played: {error}")
        return False
    for text in outcome.notes:
        say_note(f"{name}: {text}")
    say(f"{name}: {verdict(outcome)}")
    console = make_console()
    for line in _about(outcome, whole):
        console.print(line, soft_wrap=True)
    return outcome.same


def verdict(outcome: Outcome) -> str:
    """What came of a replay, in a line."""
    from debug_gym_core.cli.figures import plural, score_text

    words = [] if outcome.difference is None else [f"differs from step {outcome.difference.step} on"]
    grade, was = outcome.grade, outcome.was
    score = score_text(grade.score, grade.max_score) if grade else ""
    if grade is not None and was is not None and not outcome.scored_same:
        before = score_text(was["score"], was["max_score"])
        way = "" if grade.resolved == was["resolved"] else ", resolved" if grade.resolved else ", not resolved"
        words.append(f"score {score}, was {before}{way if score == before else ''}")
    elif words and score:
        words.append(f"score {score} as before")
    if words:
        return ", ".join(words)
    played = plural(outcome.steps, "step")
    played += "" if outcome.steps == outcome.of else f" of {outcome.of}"
    return f"same ({played}{f', score {score}' if score else ', no grade'})"


def _about(outcome: Outcome, whole: bool) -> Iterator[Text]:
    """What differs."""
    from rich.text import Text

    from debug_gym_core.cli import printable

    found = outcome.difference
    if found is None:
        return
    other = f" (Python {outcome.python} here, another one there)" if outcome.python else ""
    yield Text(f"    step {found.step}: {found.words}{other}", "dim")
    shown = found.diff if whole or len(found.diff) <= DIFF else found.diff[: DIFF - 1]
    for line in shown:
        yield Text(f"    {printable(line)}", COLOURS.get(line[:1], ""))
    if len(shown) < len(found.diff):
        yield Text(f"    (... and {len(found.diff) - len(shown)} more lines; -v shows them)", "dim")
