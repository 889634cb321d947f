"""Which tasks of a benchmark are meant by names and globs."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core.errors import UsageError
from debug_gym_core.names import nearest

if TYPE_CHECKING:
    from debug_gym_core.task import Benchmark

ALL = "all"


def select_tasks(benchmark: Benchmark, patterns: str | Sequence[str]) -> list[str]:
    """Choose tasks.

    A task that the benchmark leaves out because it cannot be solved as published is chosen by its full name only.

    Args:
        benchmark: where the tasks are
        patterns: `all`, a name or id (`benchmark/name`), a glob over either, or several of them

    Returns:
        names of tasks, each once, in the benchmark's order

    Raises:
        UsageError: a pattern means no task; the text names the nearest
    """
    names = list(benchmark.names())
    chosen: set[str] = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        plain = pattern.removeprefix(f"{benchmark.name}/")
        if plain in names or plain in benchmark.excluded():
            chosen.add(plain)
            continue
        matching = names if plain == ALL else fnmatch.filter(names, plain)
        if not matching:
            raise UsageError(f"{benchmark.name} has no task {plain!r}{nearest(plain, names)}")
        chosen.update(matching)
    return [name for name in [*names, *benchmark.excluded()] if name in chosen]
