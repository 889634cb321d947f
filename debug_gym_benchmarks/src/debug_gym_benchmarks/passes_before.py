"""Which tests of benchmarks that do not say so pass before the fix: facts, found by running the published tasks."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def split(benchmark: str, name: str, tests: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tests that count, since they fail before the fix, and those that pass already.

    Of a later version of a benchmark, a test that is not known counts. What resolves a task is the same either way.

    Args:
        benchmark: its name
        name: of the task
        tests: ids of all its tests
    """
    known = frozenset(_facts().get(benchmark, {}).get(name, ()))
    kept = tuple(test for test in tests if test in known)
    counting = tuple(test for test in tests if test not in known)
    return (counting, kept) if counting else (tuple(tests), ())


@functools.cache
def _facts() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Ids of tests by benchmark and task."""
    path = Path(__file__).with_name("passes_before.json")
    facts: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(path.read_text(encoding="utf-8"))
    return facts
