"""Registration of the benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

from debug_gym_benchmarks.aider import Aider
from debug_gym_benchmarks.bugsinpy import BugsInPy
from debug_gym_benchmarks.mini_nightmare import MiniNightmare
from debug_gym_benchmarks.quixbugs import QuixBugs
from debug_gym_benchmarks.r2egym import R2EGym
from debug_gym_benchmarks.repo import Repo
from debug_gym_benchmarks.swebench import SWEBench, SWEBenchDebug
from debug_gym_benchmarks.swesmith import SWESmith
from debug_gym_core import Benchmark, hookimpl


@hookimpl
def debug_gym_register_benchmarks() -> Sequence[type[Benchmark]]:
    """The benchmarks of this package."""
    return [Aider, BugsInPy, MiniNightmare, QuixBugs, R2EGym, Repo, SWEBench, SWEBenchDebug, SWESmith]
