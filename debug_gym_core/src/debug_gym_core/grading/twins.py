"""Whether a pass is believed: the tests that passed run again, in another sandbox, with what they expect turned.

A test whose expectations hold, and whose opposites fail, must fail there. One that passes whatever it expects is not
believed. How that is told is in `runner.turning` and `runner.expectations`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.reported_run import REPORTING, Turned
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.tasks.results import FAILING, PASSING, Measurement
from debug_gym_core.workspace.snapshot import Snapshot

When = Literal["auto", "always", "never"]

TIMES = 3.0
"""How much longer than the tests themselves their twins may run."""

LEAST = 10.0
"""Seconds that they have at least: starting is most of a short run."""


@dataclass(frozen=True)
class Twins:
    """What the second run came to.

    Attributes:
        count: how many tests that passed have a twin
        doubts: why a test is not believed, by its id
    """

    count: int = 0
    doubts: Mapping[str, str] = field(default_factory=dict)


def without(measurement: Measurement, doubts: Mapping[str, str]) -> Measurement:
    """A run of the tests in which those that are not believed failed.

    Args:
        measurement: the run
        doubts: why, by the tests' ids
    """
    if not doubts:
        return measurement
    tests = tuple(replace(one, outcome="failed") if one.id in doubts else one for one in measurement.tests)
    return replace(measurement, tests=tests, exit_status=1)


def have_twins(entrypoint: str) -> bool:
    """Whether tests that an entrypoint runs can be turned."""
    return Entrypoint.parse(entrypoint).module in REPORTING


def run_twins(
    session: Session,
    entrypoint: str,
    snapshot: Snapshot,
    files: Iterable[str],
    trusted: Sequence[str],
    passed: Measurement,
    timeout: float,
) -> Twins:
    """Run the twins of the tests that passed.

    Args:
        session: a fresh sandbox with the graded state
        entrypoint: the command that runs the tests
        snapshot: the pristine repository
        files: paths of the modules that hold tests that count
        trusted: files of the repository that may add hooks to pytest
        passed: the run in which they passed
        timeout: seconds for a run of the tests

    Raises:
        SandboxLost: the sandbox went away
    """
    sources = {path: snapshot.read(path) for path in files if path.endswith(".py")}
    tests = [test.id for test in passed.tests if test.outcome in PASSING]
    inside = [one for one in tests if _is_in(one, sources)]
    if not inside:
        return Twins()
    turned = Turned(sources, sorted({_name(one) for one in inside}), secrets.token_hex(8))
    bound = min(timeout, max(LEAST, TIMES * passed.seconds))
    run = measure(session, entrypoint, timeout=bound, trusted=trusted, turned=turned)
    told = {test.id: test for test in run.tests}
    count, doubts = 0, {}
    for test in inside:
        result = told.get(test)
        if result is None:
            if not run.timed_out:
                doubts[test] = "its twin did not run"
        elif result.outcome in FAILING:
            count += 1
        elif result.outcome != "skipped" or turned.secret not in result.message:
            count += 1
            doubts[test] = "it passes whatever it expects"
    return Twins(count, doubts)


def _is_in(test: str, sources: Mapping[str, bytes]) -> bool:
    """Whether a test stands in one of some modules."""
    if "::" in test:
        return test.partition("::")[0] in sources
    # unittest names a module from where it began to look for tests, which may be below the root.
    modules = (path.removesuffix(".py").split("/") for path in sources)
    return any(test.startswith(".".join(parts[first:]) + ".") for parts in modules for first in range(len(parts)))


def _name(test: str) -> str:
    """The name of the function or method that a test is."""
    return re.split(r"::|\.", test.partition("[")[0])[-1]
