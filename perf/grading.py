"""What twins cost: grades of mini_nightmare's tasks with and without them, taking turns, in one run.

    uv run python perf/grading.py [--count N] [--json FILE]

Prints a table: the measure, with twins, without ("bare"), their ratio, the bar, and whether it holds; exits 1 when a
bar is missed. A grade is what `submit` does after the gold patch, or after no change: a fresh sandbox, the changes, the
tests and, where all of them passed, their twins in another one. Medians are shown.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from contextlib import closing

from figures import Row, arguments, check, finish, milliseconds

import debug_gym_core
from debug_gym_core import RepoEnv, ToolCall
from debug_gym_core.plugins import default_plugins

BENCHMARK = "mini_nightmare"
RESOLVED = 3.0
"""A grade with twins, in grades without them."""
UNRESOLVED = 1.1
"""The same where nothing is resolved, so that none run: as long, but for the machine's moods."""


def grade_ms(env: RepoEnv, *, solved: bool) -> float:
    """Milliseconds of a grade, of the gold patch or of the repository as it is."""
    env.reset()
    if solved:
        assert env.task.gold_patch is not None, env.task.id
        env.workspace.apply(env.task.gold_patch)
    took = milliseconds(lambda: check(env, ToolCall("submit")))
    if env.resolved is not solved:
        raise SystemExit(f"{env.task.id} is {'' if env.resolved else 'not '}resolved")
    return took


def pair(task: str, count: int, *, solved: bool) -> tuple[float, float]:
    """Medians of grades with twins and without."""
    made = [debug_gym_core.make(f"{BENCHMARK}/{task}", ["submit"], twins=when) for when in ("auto", "never")]
    with closing(made[0]) as twice, closing(made[1]) as once:
        taken = [(grade_ms(twice, solved=solved), grade_ms(once, solved=solved)) for _ in range(count + 1)][1:]
    return statistics.median(one for one, _ in taken), statistics.median(other for _, other in taken)


def rows(count: int) -> Iterator[Row]:
    """A row a task, and those of all together."""
    names = default_plugins().get("benchmarks", BENCHMARK)().names()
    resolved = {name: pair(name, count, solved=True) for name in names}
    unresolved = [pair(name, count, solved=False) for name in names]
    for name, (ours, bare) in resolved.items():
        yield Row(f"{name}, gold patch: with twins / without", ours, bare, "ms", RESOLVED, "ratio")
    for text, figures, bar in (("gold patches", resolved.values(), RESOLVED), ("no change", unresolved, UNRESOLVED)):
        ours, bare = (sum(column) for column in zip(*figures, strict=True))
        yield Row(f"all tasks, {text}: with twins / without", ours, bare, "ms", bar, "ratio")


def main() -> int:
    """Measure, print, and say by the exit status whether all bars hold."""
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=7, metavar="N", help="grades of a task, of each kind")
    options = parser.parse_args()
    return finish(list(rows(options.count)), options)


if __name__ == "__main__":
    sys.exit(main())
