"""What a run of the tests showed, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
PASSING = frozenset({"passed", "xpassed"})
FAILING = frozenset({"failed", "error"})
MISSING = "missing"
"""What `Grade.tests` says of a test that counts and was not reported; such a test failed."""


@dataclass(frozen=True)
class TestResult:
    """One test.

    Attributes:
        id: pytest node id, or dotted unittest name; the path of a file that could not be collected
        outcome: what happened; an error in set-up or tear-down counts as `error`
        message: for what failed, the exception in a line
        frames: for what failed, the repository's frames, innermost last: `file`, `line`, `function`, `locals`
    """

    __test__ = False

    id: str
    outcome: Outcome
    message: str = ""
    frames: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True)
class Measurement:
    """What one run of the entrypoint showed.

    Attributes:
        tests: each test that was reported, in the order in which they ended
        exit_status: the exit status, or minus the signal's number
        output: what the run printed, head and tail when it was long; pytest's header, durations and addresses masked
        output_cut: bytes left out of the middle of `output`
        timed_out: whether it was ended for reaching its timeout
        collected: ids of the tests that were found
        kind: whether `tests` come from a report, or there is only the exit status
        valid: whether the report is complete, agrees with the exit status and shows no tampering
        reason: why it is not valid
        tampered: whether the report cannot be trusted at all
        seconds: wall-clock time
        unable: ids of collected tests that the marks in the repository say cannot pass (skipped, expected to fail)
    """

    tests: tuple[TestResult, ...]
    exit_status: int
    output: str
    output_cut: int = 0
    timed_out: bool = False
    collected: tuple[str, ...] = ()
    kind: Literal["report", "exit_status"] = "report"
    valid: bool = True
    reason: str = ""
    tampered: bool = False
    seconds: float = 0.0
    unable: frozenset[str] = field(default_factory=frozenset)

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome by test id."""
        return {test.id: test.outcome for test in self.tests}

    @property
    def failures(self) -> tuple[TestResult, ...]:
        """What failed."""
        return tuple(test for test in self.tests if test.outcome in FAILING)


@dataclass(frozen=True)
class Grade:
    """The measured state of a workspace.

    Attributes:
        resolved: whether every test that counts passed
        score: how many tests that count passed
        max_score: how many count; the task's, never the tested code's word
        tests: outcome by test id; `missing` for one that counts and was not reported
        grading: `clean` (fresh sandbox), `in_place` (the agent's own) or `exit_status` (no report to be had)
        reason: why the run of the tests does not count as it stands (tampering, no agreement with the exit status, ...)
        dropped: changes that were not taken over, and why, by path
    """

    resolved: bool
    score: int
    max_score: int
    tests: dict[str, str]
    grading: Literal["clean", "in_place", "exit_status"]
    reason: str = ""
    dropped: Mapping[str, str] = field(default_factory=dict)


def score(measurement: Measurement, tests: Sequence[str], max_score: int) -> tuple[int, dict[str, str]]:
    """Count the tests that count and passed.

    Args:
        measurement: a run of the tests
        tests: ids of the tests that count; the path of a file counts as one, and passes when all tests in it do; none:
            they are not known, all that pass count, but the last point needs a run without failures
        max_score: how many tests count

    Returns:
        the score, and outcomes by test id: those reported, and `missing` for others that count
    """
    outcomes = measurement.outcomes
    if measurement.tampered:
        return 0, {**dict.fromkeys(tests, MISSING), **outcomes}
    if measurement.kind == "exit_status":
        return (max_score if measurement.valid and measurement.exit_status == 0 else 0), outcomes
    if not tests:
        count = sum(outcome in PASSING for outcome in outcomes.values())
        whole = measurement.valid and measurement.exit_status == 0
        return min(count, max_score if whole else max_score - 1), outcomes
    count = 0
    for test in dict.fromkeys(tests):
        outcome = _outcome(test, outcomes)
        outcomes.setdefault(test, outcome)
        count += outcome in PASSING
    return min(count, max_score), outcomes


def is_resolved(measurement: Measurement, tests: Sequence[str], max_score: int) -> bool:
    """Whether every test that counts passed and the run can be believed.

    Args:
        measurement: a run of the tests
        tests: as for `score`
        max_score: as for `score`
    """
    reached, _ = score(measurement, tests, max_score)
    ended = measurement.exit_status in (0, 1)  # 1: tests failed that do not count; more is an interrupted run.
    return measurement.valid and ended and max_score > 0 and reached == max_score


def _outcome(test: str, outcomes: Mapping[str, str]) -> str:
    """The outcome of a test, or of all tests in a file."""
    if test in outcomes:
        return outcomes[test]
    if "::" in test or not test.endswith(".py"):
        return MISSING
    module = test.removesuffix(".py").replace("/", ".")
    inside = [outcome for one, outcome in outcomes.items() if one.startswith((f"{test}::", f"{module}."))]
    if not inside:
        return MISSING
    return next((one for one in inside if one not in PASSING), "passed")
