"""What a benchmark of this package has no use for, it refuses when it is made."""

from __future__ import annotations

from debug_gym_core import Benchmark, UsageError

DATA = ("source", "split", "revision")


def refuse_other_data(benchmark: Benchmark) -> None:
    """Make sure that a benchmark whose tasks lie at one place, tests and all, is asked for nothing else.

    Args:
        benchmark: with its settings

    Raises:
        UsageError: other data or another mode is asked for
    """
    mode = benchmark.settings.mode
    if mode != "visible":
        raise UsageError(f"{benchmark.name} has no mode {mode!r}; its mode is visible (benchmark.mode)")
    for key in DATA:
        if getattr(benchmark.settings, key) is not None:
            raise UsageError(f"{benchmark.name} has no {key}; leave benchmark.{key} out")
