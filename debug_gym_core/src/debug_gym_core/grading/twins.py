"""Whether a pass is believed: what a second run of the tests that passed, with what they expect turned, comes to.

A test whose expectations hold, and whose opposites fail, must fail there. One that passes whatever it expects is not
believed. How that is told is in `runner.turning` and `runner.expectations`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from debug_gym_core.grading.runner.statements import STRANGE
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.tasks.results import Measurement

When = Literal["auto", "always", "never"]

UNASKED = "it has no twin, and its run has hooks or stand-ins for modules, as that of the repository itself"
"""Why a test is not believed that needs one."""


@dataclass(frozen=True)
class Twins:
    """What the second run came to.

    Attributes:
        count: how many tests that passed have a twin
        doubts: why a test is not believed, by its id
        lost: whether what ran it in the sandbox died meanwhile
        asked: the tests that have one
        unread: why a module with tests cannot be read, by its path: they have none
    """

    count: int = 0
    doubts: Mapping[str, str] = field(default_factory=dict)
    lost: bool = False
    asked: frozenset[str] = frozenset()
    unread: Mapping[str, str] = field(default_factory=dict)

    def strange(self, test: str) -> frozenset[str]:
        """What a test uses that is not what it was, by name.

        Args:
            test: its id
        """
        names = self.doubts.get(test, "").partition(STRANGE)[2]
        return frozenset(names.split(", ") if names else ())

    def holds(self, test: str) -> bool:
        """Whether a test is doubted for that alone: what it expects holds, and the opposite does not.

        Args:
            test: its id
        """
        return self.doubts.get(test, "").startswith(STRANGE)

    def but(self, tests: Collection[str]) -> Twins:
        """The same, where some tests are not doubted: the twins of those that are doubted for more tell nothing."""
        doubts = {test: why for test, why in self.doubts.items() if test not in tests}
        lost = [test for test in self.doubts if test not in doubts and not self.holds(test)]
        return replace(self, count=self.count - len(lost), doubts=doubts)

    def with_doubts_of(self, tests: Iterable[str]) -> Twins:
        """The same, where some tests need a twin to be believed.

        Args:
            tests: their ids
        """
        return replace(self, doubts={**{test: UNASKED for test in tests if test not in self.asked}, **self.doubts})


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
    return Entrypoint.parse(entrypoint).runs_tests
