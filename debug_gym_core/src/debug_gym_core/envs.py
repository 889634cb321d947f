"""Gymnasium's registry: importing this module registers every benchmark.

`gymnasium.make("debug_gym_core.envs:debug_gym/mini_nightmare-v0", task="counter")` then works.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.making import make
from debug_gym_core.plugins import default_plugins


def make_benchmark(benchmark: str, task: str | None = None, **settings: Any) -> RepoEnv:
    """Make an environment, as gymnasium's registry calls it.

    Args:
        benchmark: name of the benchmark
        task: name or id of the task; None where the benchmark has only one
        settings: see `debug_gym_core.make`
    """
    return make(f"{benchmark}/{task.removeprefix(f'{benchmark}/')}" if task else benchmark, **settings)


def register_benchmarks() -> None:
    """Register `debug_gym/<benchmark>-v0` for every benchmark that is installed, once."""
    for name in default_plugins().benchmarks:
        identity = f"debug_gym/{name}-v0"
        if identity not in gymnasium.registry:
            gymnasium.register(
                identity,
                entry_point="debug_gym_core.envs:make_benchmark",
                kwargs={"benchmark": name},
                disable_env_checker=True,
                order_enforce=False,
            )


register_benchmarks()
