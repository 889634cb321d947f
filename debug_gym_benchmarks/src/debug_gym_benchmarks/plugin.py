"""Registration of the benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

from debug_gym_benchmarks.mini_nightmare import MiniNightmare
from debug_gym_benchmarks.repo import Repo
from debug_gym_core import Benchmark, hookimpl


@hookimpl
def debug_gym_register_benchmarks() -> Sequence[type[Benchmark]]:
    """The benchmarks of this package."""
    return [MiniNightmare, Repo]
