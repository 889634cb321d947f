"""What a run of the tests showed, and what it is worth."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from debug_gym_core.names import some

Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
PASSING = frozenset({"passed", "xpassed"})
FAILING = frozenset({"failed", "error"})
SKIPPED = "skipped"
MISSING = "missing"
"""What `Grade.tests` says of a test that matters and was not reported; such a test failed."""
NAMED = 3
"""Tests that a reason names at most."""
REASON = 500
"""Characters of a reason that is told."""


@dataclass(frozen=True)
class TestResult:
    """One test.

    Attributes:
        id: pytest node id, or dotted unittest name; the path of a file that could not be collected
        outcome: what happened; an error in set-up or tear-down counts as `error`
        message: for what failed, the exception in a line
        frames: for what failed, the repository's frames, innermost last: `file`, `line`, `function`, `locals` (whose
            `...` tells of those that are not in it); where it is a frame of the exception that caused it, or of one in
            the group, what that is (`of`); and how many were left out before it (`left_out`)
    """

    __test__ = False

    id: str
    outcome: Outcome
    message: str = ""
    frames: tuple[Mapping[str, object], ...] = ()


class Problem(NamedTuple):
    """What changed in a run that must not.

    Attributes:
        kind: `hook` (of pytest, which came later), `stand-in` (what is no module is in the place of one) or `changed`
        text: what, in words
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Measurement:
    """What one run of the entrypoint showed.

    Attributes:
        tests: each test that was reported, in the order in which they ended
        exit_status: the exit status, or minus the signal's number
        output: what the run printed, head and tail when it was long; pytest's header, durations and addresses masked
        output_cut: bytes left out of the middle of `output`
        timed_out: whether it was ended for reaching its timeout
        interrupted: whether whoever had it run ended it before its time
        unsure: ids of tests that are not in `tests` though the run said that they passed: it ended before its report
            was complete, and after them all was not seen again to be as it was
        collected: ids of the tests that were found
        kind: whether `tests` come from a report of ours, from a log that a judge read, or there is only the exit status
        valid: whether the report is complete, agrees with the exit status and shows no tampering
        reason: why it is not valid
        tampered: whether the report cannot be trusted at all
        problems: where it is only that something changed which must not: what
        otherwise: why it would not be valid without these
        undecided: whether all that keeps it from being valid are problems that a clean grade may forgive
        seconds: wall-clock time
        unable: ids of collected tests that the marks in the repository say cannot pass (skipped, expected to fail)
        lost: whether what ran it in the sandbox died meanwhile, and the run with it
        stack: where a run was that was ended by one of these: the stack of each thread, innermost frame first
        printed: what the test had printed that was running then, where the runner kept it
    """

    tests: tuple[TestResult, ...]
    exit_status: int
    output: str
    output_cut: int = 0
    timed_out: bool = False
    interrupted: bool = False
    unsure: frozenset[str] = frozenset()
    collected: tuple[str, ...] = ()
    kind: Literal["report", "log", "exit_status"] = "report"
    valid: bool = True
    reason: str = ""
    tampered: bool = False
    problems: frozenset[Problem] = field(default_factory=frozenset)
    otherwise: str = ""
    undecided: bool = False
    seconds: float = 0.0
    unable: frozenset[str] = field(default_factory=frozenset)
    lost: bool = False
    stack: str = ""
    printed: str = ""

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome by test id."""
        return {test.id: test.outcome for test in self.tests}

    @property
    def why(self) -> str:
        """`reason` as it is told: it may hold what the tested code made up, such as the name of a plugin."""
        line = " ".join(self.reason.split())
        return line if len(line) <= REASON else f"{line[: REASON - 3]}..."

    def but(self, problems: Collection[Problem]) -> Measurement:
        """The same, where all that changed is among some problems that are held against nobody.

        Args:
            problems: they
        """
        if not self.problems or not self.problems.issubset(problems):
            return self
        run = replace(self, valid=not self.otherwise, reason=self.otherwise, otherwise="")
        return replace(run, tampered=False, problems=frozenset(), undecided=False)

    def spoilt(self, reason: str) -> Measurement:
        """The same, which cannot be trusted at all, whatever else is the matter with it.

        Args:
            reason: why
        """
        run = replace(self, valid=False, reason=reason, tampered=True)
        return replace(run, problems=frozenset(), otherwise="", undecided=False)

    @property
    def failures(self) -> tuple[TestResult, ...]:
        """What failed."""
        return tuple(test for test in self.tests if test.outcome in FAILING)


@dataclass(frozen=True)
class Grade:
    """The measured state of a workspace.

    Attributes:
        resolved: whether every test that counts passed, and every one that passed before
        score: how many tests that count passed; 0 when one failed that passed before
        max_score: how many count; the task's, never the tested code's word
        tests: outcome by test id; `missing` for one that was not reported and counts or passed before
        grading: `clean` (fresh sandbox), `in_place` (the agent's own) or `exit_status` (no report to be had)
        reason: why the run of the tests does not count as it stands (tampering, no agreement with the exit status, ...)
            or is worth nothing (tests that passed before fail)
        dropped: changes that were not taken over, and why, by path; those too that no patch can hold (too large, ...)
        broken: ids of tests that passed before (`Task.pass_to_pass`) and do not any more
        doubts: why a test that passed was not believed, by its id; it counts as failed
        twins: how many tests that passed were run again with what they expect turned; None: none was, nobody asked
        timed_out: whether the run of the tests was ended for reaching its timeout
    """

    resolved: bool
    score: int
    max_score: int
    tests: dict[str, str]
    grading: Literal["clean", "in_place", "exit_status"]
    reason: str = ""
    dropped: Mapping[str, str] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    doubts: Mapping[str, str] = field(default_factory=dict)
    twins: int | None = None
    timed_out: bool = False


def score(
    measurement: Measurement,
    tests: Sequence[str],
    max_score: int,
    pass_to_pass: Sequence[str] = (),
    skipped: Collection[str] = (),
) -> tuple[int, dict[str, str]]:
    """Count the tests that count and passed.

    Args:
        measurement: a run of the tests
        tests: ids of the tests that count; a file, a class or a parametrized test counts as one, and passes when all
            tests in it do; none: they are not known, all that pass count, but the last point needs a run without
            failures
        max_score: how many tests count
        pass_to_pass: ids of tests that passed before; the score is 0 unless all of them pass
        skipped: ids of tests that count and are skipped whatever is changed: none of them keeps a point back

    Returns:
        the score, and outcomes by test id: those reported, and `missing` for others that matter
    """
    outcomes = measurement.outcomes
    if measurement.kind == "exit_status":
        return (max_score if measurement.valid and measurement.exit_status == 0 else 0), outcomes
    reported = _Reported(measurement)
    counted = {test: reported.outcome(test) for test in tests}
    before = {test: reported.outcome(test) for test in pass_to_pass}
    if not measurement.tampered and all(outcome in PASSING for outcome in before.values()):
        count = sum(outcome in PASSING or test in skipped for test, outcome in (counted or outcomes).items())
        whole = bool(tests) or (measurement.valid and measurement.exit_status == 0)
        count = min(count, max_score if whole else max(0, max_score - 1))
    else:
        count = 0
    return count, {**outcomes, **counted, **before}


def broken(measurement: Measurement, pass_to_pass: Sequence[str]) -> tuple[str, ...]:
    """The tests that passed before and do not pass any more; none when there is only an exit status.

    Of a run that tampers this is known of those alone that it says did not pass: why it scores 0 is its reason.

    Args:
        measurement: a run of the tests
        pass_to_pass: ids of tests that passed before
    """
    if measurement.kind == "exit_status":
        return ()
    reported, others = _Reported(measurement), (*PASSING, MISSING) if measurement.tampered else PASSING
    return tuple(one for one in dict.fromkeys(pass_to_pass) if reported.outcome(one) not in others)


def reported(measurement: Measurement, tests: Sequence[str]) -> frozenset[str]:
    """The tests of a run that are among some: each by its own id.

    Args:
        measurement: a run of the tests
        tests: ids as for `score`
    """
    known = _Reported(measurement)
    return frozenset(one for test in tests for one in known.named(test)) if tests else frozenset(measurement.outcomes)


def is_void(score: int, reason: str) -> bool:
    """Whether a score is 0 for what the run did: it does not say then how many tests pass.

    Args:
        score: tests that count, pass and are believed
        reason: why the run does not count as it stands, or is worth nothing; empty: it counts
    """
    return not score and bool(reason)


def about_score(score: int, max_score: int, *, others: bool = False, reason: str = "", by_status: bool = False) -> str:
    """How many tests pass, such as `2 of 3 tests pass`; or what else a score says.

    Args:
        score: tests that count and pass
        max_score: tests that count
        others: there are tests that passed before and still do, which do not count
        reason: as for `is_void`
        by_status: nothing is known but the exit status of the run
    """
    if by_status:
        return f"the run {'passes' if score else 'fails'}"
    if is_void(score, reason):
        return f"the score is 0 of {max_score}"
    which, verb = ("tests", "pass") if max_score != 1 else ("test", "passes")
    said = f"{score} of {max_score} {which} that failed before" if others else f"{score} of {max_score} {which}"
    return f"{said} {verb}"


def about_broken(tests: Sequence[str], *, named: bool = True) -> str:
    """That tests which passed before fail, and which; empty when there are none."""
    if not tests:
        return ""
    what = "1 test that passed before fails" if len(tests) == 1 else f"{len(tests)} tests that passed before fail"
    return f"{what}: {some(tests, NAMED)}" if named else what


def about_doubts(tests: Sequence[str], *, named: bool = True) -> str:
    """That tests pass whatever they expect, and which; empty when there are none."""
    if not tests:
        return ""
    what = "1 test passes whatever it expects" if len(tests) == 1 else f"{len(tests)} tests pass whatever they expect"
    return f"{what}, or cannot be tried: {some(tests, NAMED)}" if named else f"{what}, or cannot be tried"


def about_reason(grade: Grade, *, hidden: bool = False) -> str:
    """Why a grade's run of the tests does not count as it stands, or is worth nothing; empty: it counts.

    Args:
        grade: of the workspace
        hidden: the tests are not the agent's to know: neither they are named, nor what the tested code may have read in
            them and named something after
    """
    doubts = tuple(grade.doubts)
    if not hidden or not grade.reason:
        return grade.reason
    if grade.reason == about_doubts(doubts):
        return about_doubts(doubts, named=False)
    if grade.reason == about_broken(grade.broken):
        return about_broken(grade.broken, named=False)
    return "the run of the tests reached its timeout" if grade.timed_out else "the run of the tests does not count"


def about_grade(grade: Grade, *, others: bool = False, hidden: bool = False) -> str:
    """What a clean copy had to say, such as `1 of 2 tests pass on a clean copy`, and why that does not count.

    Args:
        grade: of the workspace
        others: as for `about_score`
        hidden: as for `about_reason`
    """
    by_status = grade.grading == "exit_status"
    found = about_score(grade.score, grade.max_score, others=others, reason=grade.reason, by_status=by_status)
    lost = about_broken([one for one in grade.broken if one not in grade.doubts], named=not hidden)
    why = "; ".join(dict.fromkeys(one for one in (about_reason(grade, hidden=hidden), lost) if one))
    return f"{found} on a clean copy" + (f" ({why})" if why else "")


def is_resolved(
    measurement: Measurement,
    tests: Sequence[str],
    max_score: int,
    pass_to_pass: Sequence[str] = (),
    skipped: Collection[str] = (),
) -> bool:
    """Whether every test that counts or passed before passed, and the run can be believed.

    Args:
        measurement: a run of the tests
        tests: as for `score`
        max_score: as for `score`
        pass_to_pass: as for `score`
        skipped: as for `score`
    """
    reached, _ = score(measurement, tests, max_score, pass_to_pass, skipped)
    # 1: tests failed that do not count; more is an interrupted run, unless a judge knows better.
    ended = measurement.exit_status in (0, 1) or measurement.kind == "log"
    return measurement.valid and ended and max_score > 0 and reached == max_score


def skipped_only(measurement: Measurement, tests: Sequence[str], max_score: int) -> tuple[str, ...]:
    """The tests that skipped themselves, where all others that count passed; else none.

    Args:
        measurement: a run of the tests
        tests: ids of the tests that count, as they were found: each names one
        max_score: how many tests count
    """
    if measurement.kind != "report":
        return ()
    outcomes = measurement.outcomes
    left = tuple(one for one in tests if outcomes.get(one) == SKIPPED)
    is_all = 0 < len(left) < len(tests) and is_resolved(measurement, tests, max_score, skipped=frozenset(left))
    return left if is_all else ()


class _Reported:
    """The outcomes that a run reported."""

    def __init__(self, measurement: Measurement) -> None:
        self._outcomes = measurement.outcomes
        # A judge of logs names each test as it is named in the task.
        self._ids = sorted(self._outcomes) if measurement.kind != "log" else []

    def outcome(self, test: str) -> str:
        """The outcome of a test, or of all tests in what an id names: a file, a class, a test that is parametrized."""
        outcomes = [self._outcomes[one] for one in self.named(test)]
        return next((one for one in outcomes if one not in PASSING), outcomes[0] if outcomes else MISSING)

    def named(self, test: str) -> list[str]:
        """The ids of the tests that an id names."""
        if test in self._outcomes:
            return [test]
        starts = [f"{test}::", f"{test}[", f"{test}."]
        if test.endswith(".py"):
            starts.append(test.removesuffix(".py").replace("/", ".") + ".")
        return [one for start in starts for one in self._starting(start)]

    def _starting(self, start: str) -> Iterator[str]:
        """The ids that begin so, which stand beside each other."""
        for place in range(bisect.bisect_left(self._ids, start), len(self._ids)):
            if not self._ids[place].startswith(start):
                return
            yield self._ids[place]
