"""How fast whole episodes are, beside the runs of pytest and pdb that nobody could do without, in one run.

    uv run python perf/episodes.py [--count N] [--workers N] [--json FILE]

Prints a table: the measure, ours, the bare commands' figure, their ratio, the bar, and whether it holds; exits 1 when a
bar is missed. An episode of `solution_agent` runs the tests twice, stops the debugger at the bug, and is graded in a
fresh sandbox. Bare is a copy of the repository outside of this checkout: one run of its tests by pytest, and, for what
an episode comes to without us, three of them and one stop of Python's pdb. Both are told in processor time, so that
others at work on the machine hardly count, and neither does how many processors there are.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from figures import NO_BAR, Row, arguments, finish
from processor_time import ProcessorTime, processor_time

from debug_gym_core.plugins import default_plugins
from debug_gym_core.tasks.task import Task

BENCHMARK = "mini_nightmare"
TASK = "counter"
STARTS = 3.0
"""An episode in bare runs of pytest, of which it has four, one of them under the debugger."""
WHOLE = 10.0
"""Seconds for the benchmark, as README.md runs it."""
FEW = 2
"""Episodes of a run whose time is that of a run's beginning and end."""
BARE = 20
"""Bare runs; half of them before and half after the episodes."""


def ours(processor: ProcessorTime, workers: int, *more: str) -> tuple[float, float]:
    """Seconds of a run: processor time, and by the clock."""
    command = [str(Path(sys.executable).parent / "debug-gym"), "run", BENCHMARK, "--agent", "solution_agent"]
    with tempfile.TemporaryDirectory() as directory:
        started, before = time.perf_counter(), processor.now()
        status = processor.run([*command, "-n", str(workers), "-o", f"{directory}/run", *more])
        if status:
            raise SystemExit(f"debug-gym run ended with {status}")
        return processor.now() - before, time.perf_counter() - started


class Bare:
    """What a task comes to without us, in a copy of its repository."""

    def __init__(self, processor: ProcessorTime, task: Task, directory: Path) -> None:
        self.processor = processor
        self.task = task
        self.copy = directory / task.name
        shutil.copytree(task.repository, self.copy)
        self.words = task.entrypoint.split()[1:]
        self.environment = {**os.environ, **task.environment, "PYTHONDONTWRITEBYTECODE": "1"}

    def tests(self) -> float:
        """Processor time of one run of the tests."""
        command = [sys.executable, *self.words]
        return self.processor.of(command, cwd=self.copy, env=self.environment)

    def stop(self) -> float:
        """Processor time of one stop at the bug."""
        stops = "".join(f"b {stop}\n" for stop in self.task.stops)
        command = [sys.executable, "-m", "pdb", *self.words, "-s"]
        return self.processor.of(command, cwd=self.copy, env=self.environment, said=f"{stops}c\nq\n")


def main() -> int:
    """Measure, print, and say by the exit status whether all bars hold."""
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=40, metavar="N", help=f"episodes of {TASK}")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="episodes at the same time")
    options = parser.parse_args()
    benchmark = default_plugins().get("benchmarks", BENCHMARK)()
    count, workers = options.count, options.workers
    if count <= FEW:
        parser.error(f"--count: more than {FEW}")
    with processor_time() as processor, tempfile.TemporaryDirectory() as directory:
        bare = Bare(processor, benchmark.load(TASK), Path(directory))
        ours(processor, workers)  # warms caches
        started = time.perf_counter()
        for name in benchmark.names():
            one = bare if name == TASK else Bare(processor, benchmark.load(name), Path(directory))
            for _ in range(3):
                one.tests()
            one.stop()
        by_hand = time.perf_counter() - started
        _, whole = ours(processor, workers)
        begun = [(bare.tests(), bare.stop()) for _ in range(BARE // 2)]
        few, clock_of_few = ours(processor, workers, "--task", TASK, "--repeats", str(FEW))
        many, clock_of_many = ours(processor, workers, "--task", TASK, "--repeats", str(count))
        begun += [(bare.tests(), bare.stop()) for _ in range(BARE // 2)]
        alone = processor.alone
    start, stop = (statistics.median(column) for column in zip(*begun, strict=True))
    episode = (many - few) / (count - FEW)
    rows = [
        Row(f"{BENCHMARK}, {workers} workers; bare: one by one", whole, by_hand, "s", WHOLE),
        Row(f"processor time: {TASK}, in runs of pytest", episode * 1e3, start * 1e3, "ms", STARTS, "ratio"),
        Row("processor time: the same, beside bare", episode * 1e3, (3 * start + stop) * 1e3, "ms", NO_BAR, "ratio"),
    ]
    minute = 60 * (count - FEW) / (clock_of_many - clock_of_few)
    print(f"{TASK}: {minute:.0f} episodes a minute by the clock, {workers} workers, {os.cpu_count()} processors here")
    if not alone:
        print("processor time is that of the whole machine (no control group can be made here): it must be quiet")
    return finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
