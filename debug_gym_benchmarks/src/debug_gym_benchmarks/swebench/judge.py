"""The judge of SWE-bench: the official evaluation script and log parser, and whether the log can be believed.

The log of a run is the word of the code under test. The official harness takes it as it is; here a result counts when

- the log has each marker around the tests once, and is not cut;
- the log does not state the test's result twice differently;
- canaries, tests with random names that were put into the files of tests, are reported as they must be;
- of FAIL_TO_PASS: a second run says so too, whose results come over a channel of ours and not from a log. It comes
  first, on files that no tested code has touched. It is made where pytest runs the tests, and for sympy, whose own
  runner the agent may change, by unittest. Where pytest makes it, it is made once more with what they expect turned.

Else the verdict is the official one: a test passed when its status is PASSED or XFAIL, and a test of PASS_TO_PASS that
was skipped is no regression. A test of FAIL_TO_PASS that was skipped did not pass, as in version 5 of the package.

What this cannot see: code under test that knows the canaries (it can read the files of tests), prints a whole log, and
deceives the second run as well, which proves as much as any of ours (the page "What a score proves"). Without a second
run (Django, Sphinx's tox, pytest's own repository, whose runner is what is worked on) the canaries are all there is;
PASS_TO_PASS rests on log and canaries everywhere.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from debug_gym_benchmarks.swebench import canaries, official, second
from debug_gym_core.errors import GradingError, TaskError
from debug_gym_core.grading import masking
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.judge import Judge, Twinned
from debug_gym_core.tasks.results import Measurement, TestResult

LOG_LIMIT = 32 << 20
"""Bytes of a log; a longer one is not read."""
LINE_LIMIT = 1000
"""Characters of a line that are read: the parsers' expressions take quadratic time on what no test runner prints."""
SHOWN = 32 * 1024
"""Characters of the log, at each end, that a measurement shows."""
GRACE = 10.0
LEAST = 1.0
"""Seconds that a run is given at least, so that it fails for its own reason."""
GIT_TIMEOUT = 300.0

STATUSES = {"PASSED": "passed", "XFAIL": "passed", "SKIPPED": "skipped", "FAILED": "failed", "ERROR": "error"}
BROKEN = (">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored", ">>>>> Tests Timed Out")
"""What a log may not say for the official harness to read it."""

# In the grading sandbox there is nothing to hide. Two commits, as in the official images: `git show` prints the last.
_COMMIT = """\
set -e
rm -rf .git
git init -q
git add -A
for file; do [ ! -e "$file" ] || git add -f -- "$file"; done
git -c user.name=SWE-bench -c user.email=swe-bench@localhost -c commit.gpgsign=false commit -q --no-verify -m base
git rev-parse HEAD
git -c user.name=SWE-bench -c user.email=swe-bench@localhost -c commit.gpgsign=false \\
    commit -q --no-verify --allow-empty -m SWE-bench
"""
_RESTORE = "git checkout -q -f HEAD -- . && git clean -fdq"
# The script is kept from the code that it runs: in no file, and no descriptor of it is left open.
_START = 'script=$(cat <&"$1"); eval "exec $1<&-"; set --; eval "$script"'


class _Unapplied(Exception):
    """The tests are not what they have to be; says why."""


@dataclass(frozen=True)
class SWEBenchJudge(Judge):
    """Judges one instance.

    Attributes:
        evaluation: the official script and parser
        base_commit: the commit that the script resets the files of tests to
        fail_to_pass: ids of the tests that the fix makes pass
        tests: ids of all tests that are measured
        tests_patch: puts them there
        test_files: the files that it changes
    """

    evaluation: official.Evaluation
    base_commit: str
    fail_to_pass: tuple[str, ...]
    tests: tuple[str, ...]
    tests_patch: str
    test_files: tuple[str, ...]

    def measure(self, session: Session, *, timeout: float, clean: bool) -> Measurement:
        """Run the official evaluation (`clean`), or only its tests, on the files as they are.

        Raises:
            TaskError: the image has no git
            SandboxLost: the sandbox went away
        """
        if not clean:
            log = _run(session, self.evaluation.tests_only(), timeout)
            return self._measurement(log, [])
        deadline = time.monotonic() + timeout
        try:
            commit = self._commit(session)
            other = self._second(session, timeout)
            chosen = canaries.choose(self.evaluation.kind, self.test_files, self.tests)
            log = _run(session, self._script(commit, chosen), max(LEAST, deadline - time.monotonic()))
        except CommandLost as error:
            return Measurement((), -9, "", kind="log", valid=False, reason=f"the run was lost: {error}", lost=True)
        except _Unapplied as error:  # else the tests would be those of before
            return Measurement((), 1, "", kind="log", valid=False, reason=f"the tests cannot be put in place: {error}")
        return self._measurement(log, chosen, other)

    def twinned(self, session: Session, measured: Measurement) -> Twinned | None:
        """The second run, where pytest makes it, of the tests of FAIL_TO_PASS."""
        plan = second.plan(session, self.evaluation, self.fail_to_pass, self.test_files)
        if plan is None or plan.file:
            return None
        try:
            self._apply(session)
        except _Unapplied as error:
            raise GradingError(f"the tests cannot be put in place a second time: {error}") from error
        modules = {test.partition("::")[0] for test in self.fail_to_pass} & set(self.test_files)
        return Twinned(
            plan.entrypoint,
            {path: session.read(path) for path in sorted(modules)},
            frozenset(
                test.id
                for test in measured.tests  # of one that was expected to fail, and did, it is said
                if test.id in self.fail_to_pass and test.id.partition("::")[0] in modules and not test.message
            ),
            lambda test: official.parse(self.evaluation.parser, f"PASSED {test}"),
        )

    def _commit(self, session: Session) -> str:
        """Make the repository of the script's git commands; returns the commit in the place of the base."""
        done = session.run(["/bin/sh", "-c", _COMMIT, "sh", *self.test_files], timeout=GIT_TIMEOUT)
        if done.exit_status != 0:
            raise TaskError(
                f"SWE-bench's evaluation needs git in the image, which failed: {done.output.strip()[-300:]}"
            )
        return done.output.split()[-1]

    def _script(self, commit: str, chosen: Sequence[canaries.Canary]) -> str:
        """The official script; another commit in the place of the base, and canaries after the tests patch."""
        before, tests, after = self.evaluation.lines()
        added = canaries.lines(chosen, self.evaluation.kind)
        marks = f": '{official.START}'", f": '{official.END}'"
        script = "\n".join([*before, *added, marks[0], *tests, marks[1], *after, ""])
        return script.replace(self.base_commit, commit)

    def _second(self, session: Session, timeout: float) -> Measurement | None:
        """What a run that needs no log says of FAIL_TO_PASS; None: there is none."""
        plan = second.plan(session, self.evaluation, self.fail_to_pass, self.test_files)
        if plan is None:
            return None
        self._apply(session)
        measured = second.measure(session, plan, timeout=timeout)
        restored = session.run(["/bin/sh", "-c", _RESTORE], timeout=GIT_TIMEOUT)
        if restored.exit_status != 0:
            raise _Unapplied(f"what the second run left cannot be undone: {restored.output.strip()[-300:]}")
        return measured

    def _apply(self, session: Session) -> None:
        """Put the tests in place.

        Raises:
            _Unapplied: git refuses to
        """
        applied = session.run(["git", "apply", "-"], stdin=self.tests_patch.encode(), timeout=GIT_TIMEOUT)
        if applied.exit_status != 0:
            raise _Unapplied(applied.output.strip()[-300:])

    def _measurement(
        self, log: _Log, chosen: Sequence[canaries.Canary], other: Measurement | None = None
    ) -> Measurement:
        """What a log shows."""
        reason, tests, tampered = self._read(log, chosen)
        if other is not None:
            if other.tampered:
                reason, tampered = f"in the second run: {other.reason}", True
            tests = self._agreed(tests, other)
        shown, cut = _shown(log.text)
        return Measurement(
            tests=tests,
            exit_status=log.exit_status,
            output=masking.mask(shown),
            output_cut=cut + log.cut,
            timed_out=log.timed_out,
            kind="log",
            valid=not reason,
            reason=reason,
            tampered=tampered,
            seconds=log.seconds + (other.seconds if other is not None else 0.0),
            lost=log.lost,
        )

    def _read(self, log: _Log, chosen: Sequence[canaries.Canary]) -> tuple[str, tuple[TestResult, ...], bool]:
        """Why a log cannot be believed, empty when it can; the results that it states; whether it was tampered with."""
        if log.failure:
            return log.failure, (), False
        said = next((text for text in BROKEN if text in log.text), None)
        if said is not None:
            return f"the log says {said!r}", (), False
        start, end = (_marker(mark) for mark in (official.START, official.END))
        counts = log.text.count(official.START), log.text.count(official.END)
        if counts != (1, 1) or not (start.search(log.text) and end.search(log.text)):
            missing = 0 in counts
            return f"the log has {'no' if missing else 'more than one'} marker around the tests", (), not missing
        between = log.text.split(official.START)[1].split(official.END)[0]
        lines = [line[:LINE_LIMIT] for line in between.splitlines() if self._speaks(line)]
        try:
            statuses = official.parse(self.evaluation.parser, "\n".join(lines))
            results = tuple(self._results(statuses, _contradicted(self.evaluation.parser, lines)))
        except ValueError as error:
            return str(error), (), False
        for canary in sorted(chosen, key=lambda one: (one.file, one.passes)):  # the same reason each time
            if not canary.reported(statuses, self.evaluation.kind):
                must = "pass" if canary.passes else "fail"
                reason = f"the log does not report the canary in {canary.file} that has to {must}"
                return reason, results, self._claims(results, canary.file)
        return "", results, False

    def _claims(self, results: Iterable[TestResult], file: str) -> bool:
        """Whether a test passed of which it is not known that it is in another file: else, the file was not loaded."""
        by_file = self.evaluation.kind == "pytest"
        return any(one.outcome == "passed" and (not by_file or one.id.startswith(f"{file}::")) for one in results)

    def _speaks(self, line: str) -> bool:
        """Whether the parser takes a result from a line; sympy's reads every line with a quadratic expression."""
        return self.evaluation.kind != "sympy" or line.strip().startswith("test_")

    def _results(self, statuses: dict[str, str], contradicted: frozenset[str]) -> Iterable[TestResult]:
        for test in self.tests:
            status = statuses.get(test)
            if status is None or status not in STATUSES:
                continue
            if test in contradicted:
                yield TestResult(test, "failed", "the log states its result twice, differently")
            elif status == "SKIPPED" and test not in self.fail_to_pass:
                yield TestResult(test, "passed", "skipped, which is no regression")
            else:
                outcome = STATUSES[status]
                yield TestResult(test, outcome, "expected to fail, and did" if status == "XFAIL" else "")  # type: ignore[arg-type]

    def _agreed(self, tests: tuple[TestResult, ...], other: Measurement) -> tuple[TestResult, ...]:
        """The results, without what the second run does not confirm."""
        confirmed = second.passed(other, self.evaluation)
        return tuple(
            TestResult(test.id, "failed", f"it failed in the second run {other.reason}".strip())
            if test.id in self.fail_to_pass and test.outcome == "passed" and test.id not in confirmed
            else test
            for test in tests
        )


@dataclass(frozen=True)
class _Log:
    """What a script printed."""

    text: str
    exit_status: int
    cut: int = 0
    timed_out: bool = False
    lost: bool = False
    failure: str = ""
    seconds: float = 0.0


def _run(session: Session, script: str, timeout: float) -> _Log:
    """Run a script to its end."""
    started = time.monotonic()
    try:
        process = session.process(
            ["/bin/bash", "-c", _START, "bash", "{blob:script}"],
            channel=False,
            blobs={"script": script.encode()},
            timeout=timeout,
            output_limit=LOG_LIMIT,
        )
    except OSError as error:
        raise TaskError(f"SWE-bench's evaluation needs /bin/bash in the image: {error}") from error
    with process:
        failure, lost = "", False
        try:
            status = process.wait(timeout + GRACE)
        except CommandLost as error:
            failure, lost, status = f"the run was lost: {error}", True, -9
        except TimeoutError:
            raise process.give_up("the guest did not end a run that reached its timeout") from None
        text, cut = process.take_output()
    text = session.mask(text)
    if process.timed_out:
        failure = "it reached its timeout"
    elif cut:
        failure = f"the log is longer than {LOG_LIMIT >> 20} MB"
    return _Log(text, status, cut, process.timed_out, lost, failure, time.monotonic() - started)


def _marker(mark: str) -> re.Pattern[str]:
    """A marker as bash prints the command that it is in."""
    return re.compile(rf"^\++ : '{re.escape(mark)}'$", re.MULTILINE)


def _contradicted(parser: str, lines: Iterable[str]) -> frozenset[str]:
    """Tests of which one line says that they passed and another one that they did not."""
    good: set[str] = set()
    bad: set[str] = set()
    for line in lines:
        for test, status in official.parse(parser, line).items():
            (good if STATUSES.get(status) == "passed" else bad).add(test)
    return frozenset(good & bad)


def _shown(text: str) -> tuple[str, int]:
    """Head and tail of a log, and how many bytes were left out between them."""
    if len(text) <= 2 * SHOWN:
        return text, 0
    return text[:SHOWN] + text[-SHOWN:], len(text[SHOWN:-SHOWN].encode("utf-8", "replace"))
