"""What of a run's problems the repository shows as it was, too: that is held against no change of it."""

from __future__ import annotations

import re

from debug_gym_core.grading.twins import Twins
from debug_gym_core.tasks.results import PASSING, Measurement

_DECIDING = re.compile(
    r"(the (code|bases) of )?(_?pytest|pluggy|unittest|runner)\b|sys\.modules\b|the (canary|tests of)\b"
)
"""Begins a problem of what decides on outcomes: who may be changed there once may be changed into anything."""


def shown_anyway(before: Measurement) -> frozenset[str]:
    """The problems that are held against nobody, and not those of what decides on outcomes.

    Args:
        before: a run of the tests in the repository as it was
    """
    return frozenset(one for one in before.problems if not _DECIDING.match(one))


def doubts_of(found: Twins, before: Measurement, run: Measurement) -> dict[str, str]:
    """Why tests are not believed in a run with such problems: who changes tests as they run may keep them from asking.

    So a test that nobody asked is believed only where it passed before.

    Args:
        found: what the twins came to
        before: a run of the tests in the repository as it was
        run: of the tests that passed
    """
    known = found.asked | {one.id for one in before.tests if one.outcome in PASSING}
    why = "it has no twin, and functions are replaced or hooks added in its run, as by the repository itself"
    passed = [one.id for one in run.tests if one.outcome in PASSING]
    return {**{one: why for one in passed if one not in known}, **found.doubts}
