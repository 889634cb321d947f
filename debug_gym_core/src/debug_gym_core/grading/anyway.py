"""What of a run's problems the repository shows as it was, too: that is held against no change of it."""

from __future__ import annotations

import re

from debug_gym_core.grading.twins import Twins
from debug_gym_core.tasks.results import PASSING, Measurement

_OWN = re.compile(r"a hook \w+ was added by ")
"""Begins a problem that is forgiven: a hook of the repository's own.

Whatever decides on outcomes, or is asked whether they hold, may be changed into anything where it may be changed once.
"""


def shown_anyway(before: Measurement) -> frozenset[str]:
    """The problems that are held against nobody.

    Args:
        before: a run of the tests in the repository as it was
    """
    return frozenset(one for one in before.problems if _OWN.match(one))


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
