"""What of a run's problems the repository shows as it was, too: that is held against no change of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from debug_gym_core.grading.runner.tampering import HOOK, STAND_IN
from debug_gym_core.grading.twins import When
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.tasks.results import PASSING, Measurement, Problem

THROUGHOUT = ("--maxfail=0", "--continue-on-collection-errors")
"""Options by which pytest runs all tests that it can, whatever the repository's own options say."""


def throughout(entrypoint: str) -> str:
    """The command that runs all tests, also those after one that fails: of none it is open then whether it passed.

    Args:
        entrypoint: the task's
    """
    parsed = Entrypoint.parse(entrypoint)
    if parsed.module != "pytest":
        return entrypoint
    args = list(parsed.args)
    end = args.index("--") if "--" in args else len(args)  # after which all are files
    return parsed.with_args([*args[:end], *THROUGHOUT, *args[end:]]).text


@dataclass
class Unchanged:
    """What the repository as it was shows, the same whatever is graded: above all the run of all its tests.

    Attributes:
        run: that; None: nobody asked for it yet, or nothing of it says that another one would be the same
        tried: whether it was ended before by a signal or its timeout: once this may be chance
        installed: names of the modules that must not be shadowed; empty: nobody asked for them yet, or it is not told
    """

    run: Measurement | None = None
    tried: bool = False
    installed: frozenset[str] = frozenset()

    def or_else(self, run: Callable[[], Measurement]) -> Measurement:
        """That run, made once; twice, where it does not end by itself; a lost one tells nothing and is made again.

        Args:
            run: makes it
        """
        if self.run is not None:
            return self.run
        found = run()
        if found.lost:
            return found
        if self.tried or not (found.timed_out or found.exit_status < 0):
            self.run = found
        self.tried = True
        return found


def forgivable(run: Measurement) -> frozenset[Problem]:
    """The problems of a run that are held against nobody where the repository shows them as it was.

    They are hooks of its own, and what it puts in a module's place, as who imports lazily does.

    Whatever decides on outcomes, or is asked whether they hold, may be changed into anything where it may be changed
    once.

    Args:
        run: of the tests
    """
    return frozenset(one for one in run.problems if one.kind in (HOOK, STAND_IN))


def forgiven(run: Measurement) -> Measurement:
    """A run without such problems, where it has no others.

    Args:
        run: of the tests
    """
    return run.but(forgivable(run))


def is_undecided(run: Measurement, twins: When) -> bool:
    """Whether only such problems keep a run from counting, so that it takes one of the repository as it was to tell.

    Without twins nobody would tell what the repository does itself from what the changes do in the same place.

    Args:
        run: of the tests
        twins: when twins are run
    """
    return twins != "never" and bool(run.problems) and forgiven(run).valid


def passing_newly(before: Measurement, run: Measurement) -> frozenset[str]:
    """The tests that a run with such problems shows to pass, and the one before did not: they need twins.

    Who takes part as tests run may keep them from asking.

    Args:
        before: a run of the tests in the repository as it was
        run: of the tests
    """
    then, now = ({one.id for one in each.tests if one.outcome in PASSING} for each in (before, run))
    return frozenset(now - then - before.unsure)  # in the unchanged repository nobody tampers
