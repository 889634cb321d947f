"""The eval tool: runs the tests."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from debug_gym_core import Observation, Settings, Tool, hookimpl
from debug_gym_core.components.values import Flag
from debug_gym_core.grading.dropped import about_dropped, listed
from debug_gym_core.tasks.results import about_broken, about_score
from debug_gym_core.tools.observation import bound
from debug_gym_tool_eval.report import without_repetitions

if TYPE_CHECKING:
    from debug_gym_core import Environment
    from debug_gym_core.tasks.results import Measurement, TestResult
    from debug_gym_core.tools.action import ToolCall

OUTPUT_LIMIT = 8_000
"""Characters of the run's output that are shown, head and tail."""
PASSED_LIMIT = 2_000
"""Characters of the output of a run in which nothing failed."""
MESSAGE_LIMIT = 240
"""Characters of a failure's message where failures are listed; pytest's output has all of it."""
STACK_LIMIT = 4_000
"""Characters of the stack of a run that hangs, and as many of what its test had printed."""
DETAILS_LIMIT = 8_000
"""Characters of failures with their frames."""
LISTED = 60
"""Tests that failed and are listed by name."""
NAMED = 100
"""Tests that are named in the data, those that passed too; of more, only those that did not."""
NAMED_FAILURES = 500
"""Tests that did not pass and are named in the data."""
FAILURES = 10
"""Failures that are shown with their frames."""
FRAMES = 6
NOT_THERE = "A clean copy has your changes of the repository's files, and nothing that was installed or lies elsewhere."
DECIDED = "Once all that counts passes, a clean copy decides: what the unchanged repository does as well is forgiven."
MARKS = {
    "passed": "PASSED",
    "failed": "FAILED",
    "error": "ERROR",
    "skipped": "SKIPPED",
    "xfailed": "XFAIL",
    "xpassed": "XPASS",
}


class EvalSettings(Settings):
    """Settings of the eval tool.

    Attributes:
        warm: whether runs may start from an interpreter that has been warmed up
    """

    warm: Flag = True


MORE = {
    "bash": "in bash, the entrypoint with its output in a file shows them in parts",
    "pdb": "pdb shows what is printed from one stop to the next",
}
"""How to see what is left out of the output, by the tool that does it."""


class Eval(Tool):
    """Run the tests: which pass, and for each failure the exception and the repository's frames with their locals."""

    name = "eval"
    examples = ({},)
    Settings: ClassVar[type[Settings]] = EvalSettings
    settings: EvalSettings

    def use(self, env: Environment) -> Observation:
        """Run the tests as they stand."""
        measurement = _without_ignored(env.measure(warm=self.settings.warm), env)
        return Observation(
            self.name,
            render(
                measurement,
                env.score,
                env.max_score,
                env.broken,
                others=bool(env.task.pass_to_pass),
                resolved=env.resolved,
                dropped=env.dropped,
                unconfirmed=env.unconfirmed,
                more=next((how for name, how in MORE.items() if name in env.tools), ""),
            ),
            _data(measurement, env),
        )

    @hookimpl
    def on_step(self, env: Environment, call: ToolCall) -> Observation | None:
        """Run the tests at the end of a step that changed files, when the settings say so: once, however many files."""
        if not (env.auto_eval_on_rewrite and env.rewritten) or env.submitted or call.name == self.name:
            return None
        return self.use(env)


def _without_ignored(measurement: Measurement, env: Environment) -> Measurement:
    """A measurement without the variables of frames in files that are ignored in the task."""

    def shown(frame: Mapping[str, object]) -> Mapping[str, object]:
        if not env.workspace.is_ignored(str(frame["file"])):
            return frame
        return {**frame, "locals": {}, "ignored": True}

    tests = [dataclasses.replace(one, frames=tuple(map(shown, one.frames))) for one in measurement.tests]
    return dataclasses.replace(measurement, tests=tuple(tests))


def render(
    measurement: Measurement,
    score: int,
    max_score: int,
    broken: Sequence[str] = (),
    *,
    others: bool = False,
    resolved: bool = False,
    dropped: Mapping[str, str] | None = None,
    unconfirmed: str = "",
    more: str = "",
) -> str:
    """What the agent reads.

    Args:
        measurement: a run of the tests
        score: tests that count and pass
        max_score: tests that count
        broken: tests that passed before and do not any more
        others: there are tests that passed before and do not count
        resolved: the task is, as a clean copy confirms
        dropped: changes that grading does not take over, and why, by path
        unconfirmed: why the task is not resolved though all tests pass
        more: how to see what of the output is left out
    """
    if unconfirmed:
        summary = [f"All that counts passes here, but {unconfirmed}: the task is not resolved."]
    else:
        summary = list(_summary(measurement, score, max_score, broken, others, resolved))
    if dropped:
        summary.append(f"{about_dropped(dropped)}.")
    elif unconfirmed:
        summary.append(NOT_THERE)
    parts = ["\n".join(summary)]
    if listing := "\n".join(_listing(measurement)):
        parts.append(listing)
    details = "\n\n".join(_describe(one) for one in measurement.failures[:FAILURES] if one.frames)
    if details:
        parts.append(bound(details, DETAILS_LIMIT))
        if left := sum(bool(one.frames) for one in measurement.failures[FAILURES:]):
            failures = f"{left} more failures have" if left > 1 else "1 more failure has"
            parts.append(f"[{failures} frames and locals that are not shown]")
    ended = "timed out" if measurement.timed_out else "interrupted" if measurement.interrupted else ""
    status = ended or f"exit status {measurement.exit_status}"
    output = measurement.output if measurement.kind != "report" else without_repetitions(measurement.output)
    output = output.rstrip("\n")
    if measurement.stack:
        parts.append(f"It was here:\n{bound(measurement.stack, STACK_LIMIT)}")
    if printed := measurement.printed.strip("\n"):
        parts.append(f"The test that was running had printed:\n{bound(printed, STACK_LIMIT)}")
    limit = PASSED_LIMIT if measurement.exit_status == 0 and not measurement.failures else OUTPUT_LIMIT
    parts.append(
        f"Output ({status}):\n{bound(output, limit, missing=measurement.output_cut, more=more)}"
        if output
        else f"No output ({status})."
    )
    return "\n\n".join(parts)


def _summary(
    measurement: Measurement, score: int, max_score: int, broken: Sequence[str], others: bool, resolved: bool
) -> Iterator[str]:
    where = "in place and on a clean copy" if resolved else "in place"
    by_status, lost = measurement.kind == "exit_status", about_broken(broken)
    reason = measurement.reason or lost
    first = about_score(score, max_score, others=others, reason=reason, by_status=by_status)
    how = f"by its exit status, {measurement.exit_status}; " if by_status else ""
    note = "" if resolved or by_status else "; what is recorded is measured on a clean copy"
    yield f"{first[0].upper()}{first[1:]} ({how}measured {where}{note})"
    if lost:
        yield f"{lost}."
    if measurement.timed_out or measurement.interrupted:
        ended = "was interrupted" if measurement.interrupted else "reached its time limit and was ended"
        at = next(iter(_unreported(measurement)), None)
        yield f"The run {ended}{f' in {at}' if at else ''}."
    elif measurement.undecided:
        yield f"Whether this run counts is open: {measurement.why}. {DECIDED}"
    elif measurement.reason:
        yield f"This run would not count: {measurement.why}."


def _listing(measurement: Measurement) -> Iterator[str]:
    """A line for each test that failed, and how many others there are; of a run that ended early, where it was."""
    listed = measurement.failures[:LISTED]
    for test in listed:
        yield f"{MARKS[test.outcome]} {test.id}" + (f": {_in_short(test.message)}" if test.message else "")
    counts = collections.Counter[str](one.outcome for one in measurement.tests)
    counts.subtract(one.outcome for one in listed)
    if rest := counts.total():
        said = ", ".join(f"{counts[outcome]} {mark}" for outcome, mark in MARKS.items() if counts[outcome])
        yield f"... and {rest} more: {said}" if listed else said
    if measurement.unsure:
        yield f"{len(measurement.unsure)} that passed do not count: the run ended before this was confirmed"
    if missing := _unreported(measurement):
        yield f"{len(missing)} collected but not reported, first {missing[0]}"


def _in_short(message: str) -> str:
    return message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 3] + "..."


def _unreported(measurement: Measurement) -> list[str]:
    """The tests that were found and of which nothing more was heard, in the order in which they run."""
    known = measurement.unsure.union(one.id for one in measurement.tests)
    return [one for one in measurement.collected if one not in known]


def _describe(test: TestResult) -> str:
    """A failure's frames of the repository with their locals, innermost last; of many the first and the last."""
    lines = [f"In {test.id}:"]
    gone = max(0, len(test.frames) - FRAMES)
    gap = gone + sum(int(str(frame.get("left_out", 0))) for frame in test.frames[1 : gone + 2])
    of = ""
    for place, frame in enumerate([*test.frames[:1], *test.frames[1 + gone :]]):
        if place == 1 and gap:
            lines.append(f"  ... {gap} frame{'' if gap == 1 else 's'} ...")
        if str(frame.get("of", "")) != of:
            of = str(frame.get("of", ""))
            lines.append(f"  where {of} was raised:")
        note = " (the file is ignored in this task: its variables are not shown)" if frame.get("ignored") else ""
        lines.append(f"  {frame['file']}:{frame['line']} in {frame['function']}{note}")
        values = frame["locals"]
        if isinstance(values, Mapping):
            lines += ["    " + (" " if name == "..." else " = ").join((name, value)) for name, value in values.items()]
    return "\n".join(lines)


def _data(measurement: Measurement, env: Environment) -> dict[str, object]:
    """The same facts as JSON types, without what differs from run to run; of many tests only failures are named."""
    tests = measurement.outcomes
    if len(tests) > NAMED:
        odd = (name for name, outcome in tests.items() if outcome != "passed")
        tests = {name: tests[name] for name in itertools.islice(odd, NAMED_FAILURES)}
    grading = "clean" if env.resolved or env.unconfirmed else "in_place"
    return {
        "score": env.score,
        "max_score": env.max_score,
        "resolved": env.resolved,
        **({"broken": list(env.broken)} if env.broken else {}),
        **({"dropped": listed(env.dropped)} if env.dropped else {}),
        **({"unconfirmed": env.unconfirmed} if env.unconfirmed else {}),
        "grading": grading if measurement.kind == "report" else "exit_status",
        "counts": dict(collections.Counter(one.outcome for one in measurement.tests)),
        "tests": dict(tests),
        "failures": [
            {
                "id": one.id,
                "outcome": one.outcome,
                "message": one.message,
                "frames": [dict(frame) for frame in one.frames] if number < FAILURES else [],
            }
            for number, one in enumerate(measurement.failures[:LISTED])
        ],
        "exit_status": measurement.exit_status,
        "timed_out": measurement.timed_out,
        **({"interrupted": True} if measurement.interrupted else {}),
        **({"stack": bound(measurement.stack, STACK_LIMIT)} if measurement.stack else {}),
        "valid": measurement.valid,
        "reason": measurement.why,
    }


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """The tool of this package."""
    return [Eval]
