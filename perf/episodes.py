"""How fast whole episodes are, beside the runs of pytest and pdb that nobody could do without, in one run.

    uv run python perf/episodes.py [--count N] [--workers N] [--json FILE]

Prints a table: the measure, ours, the bare commands' figure, their ratio, the bar, and whether it holds; exits 1 when a
bar is missed. An episode of `solution_agent` runs the tests twice, stops the debugger at the bug, and is graded in a
fresh sandbox; bare are three runs of pytest and one stop of Python's pdb in the same directory, as many at a time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from figures import Row, arguments, finish

from debug_gym_core.plugins import default_plugins
from debug_gym_core.tasks.task import Task

BENCHMARK = "mini_nightmare"
EPISODE = 0.8
"""An episode in times of the bare commands: its two sandboxes must cost less than what starts warm in them saves."""
WHOLE = 10.0
"""Seconds for the benchmark, as README.md runs it."""


def seconds(action: Callable[[], object]) -> float:
    """Wall-clock time of an action."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def ours(workers: int, *more: str) -> float:
    """Seconds of a run."""
    command = [str(Path(sys.executable).parent / "debug-gym"), "run", BENCHMARK, "--agent", "solution_agent"]
    with tempfile.TemporaryDirectory() as directory:
        words = [*command, "-n", str(workers), "-o", f"{directory}/run", *more]
        return seconds(lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL))


def bare(task: Task) -> None:
    """What an episode comes to without us."""
    words = task.entrypoint.split()[1:]
    environment = {**os.environ, **task.environment, "PYTHONDONTWRITEBYTECODE": "1"}
    stops = "".join(f"b {stop}\n" for stop in task.stops)

    def run(*command: str, said: str = "") -> None:
        subprocess.run(
            [sys.executable, *command], cwd=task.repository, env=environment, input=said, text=True, capture_output=True
        )

    run(*words)
    run("-m", "pdb", *words, "-s", said=f"{stops}c\nq\n")
    run(*words)
    run(*words)


def all_bare(tasks: list[Task], workers: int) -> float:
    """Seconds of what many episodes come to."""
    with ThreadPoolExecutor(workers) as pool:
        return seconds(lambda: list(pool.map(bare, tasks)))


def main() -> int:
    """Measure, print, and say by the exit status whether all bars hold."""
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=40, metavar="N", help="episodes of counter")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="episodes at the same time")
    options = parser.parse_args()
    benchmark = default_plugins().get("benchmarks", BENCHMARK)()
    count, workers = options.count, options.workers
    ours(workers)  # warms caches
    whole = ours(workers), all_bare([benchmark.load(name) for name in benchmark.names()], workers)
    repeated = ours(workers, "--task", "counter", "--repeats", str(count))
    plain = all_bare([benchmark.load("counter")] * count, workers)
    rows = [
        Row(f"{BENCHMARK}, {workers} workers", *whole, "s", WHOLE),
        Row(
            f"an episode of counter, {workers} workers",
            repeated / count * 1e3,
            plain / count * 1e3,
            "ms",
            EPISODE,
            "ratio",
        ),
    ]
    print(f"counter: {60 * count / repeated:.0f} episodes a minute, bare {60 * count / plain:.0f}")
    return finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
