"""What the summary of a run says beside its table: why tasks are not resolved, which are broken, which are flaky."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from debug_gym_core.cli.steps import error_line, shorten
from debug_gym_core.runs.trajectory import FAILED, Result
from debug_gym_core.tasks.results import is_void

TASKS = 20
"""Lines of a kind that a summary has at most."""

TESTS = 3
"""Tests that a line names at most."""

NUMBERS = 5
"""Repeats that a line names at most."""

LENGTH = 300
"""Characters of why a run does not count."""

ENDED = {
    "max_steps": "out of steps",
    "max_rewrites": "out of rewrites",
    "time": "out of time",
    "max_cost": "out of money",
    "context": "the model takes no more",
    "gave_up": "the model's last answer called no tool, which ends the episode",
    "over": "the person left, or the script ended, before the tests passed",
    "refused": "the model refused to answer",
    "length": "the model's answers were cut off at the bound on their length (max_tokens)",
    "malformed": "nothing in the model's answers was a call, however often it was asked",
    "no_patch": "there is no patch for it",
    "unapplied": "its patch does not apply",
}
"""What ended an episode before its agent was through."""

MODES = {
    "hidden": "only grading had the tests that count",
    "debug": "the agent had the tests, which the benchmark publishes hidden; these numbers compare with no others",
}
"""What a reader of the results should know, by mode."""


def verdicts(results: Sequence[Result], told: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is to be said of single tasks, each kind bounded.

    Args:
        results: of all the run's episodes that have one
        told: errors that were shown already, as `error: ...`

    Yields:
        a word (`error`, `unresolved`, `broken`, `flaky`, `varies`; empty: how many more there are) and a line
    """
    errors = {text: tasks for text, tasks in _errors(results).items() if f"error: {text}" not in told}
    failed = [(_several(tasks), text) for text, tasks in errors.items()]
    yield from _bounded("error", failed)
    yield from _bounded("unresolved", list(_unresolved(results)))
    broken = dict.fromkeys(one.task for one in results if one.resolved and one.changed is False)
    yield from _bounded("broken", [(task, "its tests pass without a change") for task in broken])
    without_model = all(one.llm is None for one in results)
    yield from _bounded("flaky" if without_model else "varies", list(_differing(results, without_model)))


def about_modes(results: Iterable[Result]) -> Iterator[str]:
    """What the modes of results other than `visible` mean for who reads them."""
    for mode in dict.fromkeys(one.mode for one in results):
        if mode in MODES:
            yield f"mode {mode}: {MODES[mode]}"


def why_unresolved(result: Result) -> str:
    """Why an episode's task is not resolved, in a line."""
    parts = []
    if result.grading == "exit_status":
        parts.append("the entrypoint failed")
    elif result.max_score is not None:
        parts += _counted(result, result.max_score)
    if result.reason:
        parts.append(shorten(result.reason, LENGTH))
    if result.ended in ENDED:
        parts.append(ENDED[result.ended])
    return "; ".join(parts)


def _counted(result: Result, max_score: int) -> Iterator[str]:
    """What is to be said of the tests that count; nothing when none failed, and the reason tells why it is 0."""
    missing = max_score - result.score
    if is_void(result.score, result.reason):  # whatever passed; a result names so many at most
        if not result.failed:
            return
        missing = len(result.failed) if len(result.failed) < FAILED else missing
    told = result.doubts and set(result.failed) <= set(result.doubts)  # by the reason
    names = f": {_names(result.failed, missing)}" if result.failed and not told else ""
    yield f"{missing} of {max_score} failed{names}" if missing else f"all {max_score} passed"


def _unresolved(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Each task that is not resolved and why, repeats with the same cause as one."""
    repeats = Counter(one.task for one in results)
    found: dict[tuple[str, str], list[Result]] = {}
    for one in results:
        if one.status == "unresolved":
            found.setdefault((one.task, why_unresolved(one)), []).append(one)
    for (task, text), same in found.items():
        each = len(same) == repeats[task]
        yield task if each else f"{task} {_numbers(same)}", text


def _differing(results: Sequence[Result], tests_too: bool) -> Iterator[tuple[str, str]]:
    """Each task whose repeats ended differently, and how; also in the tests that failed when `tests_too`."""
    tasks: dict[str, list[Result]] = {}
    for one in results:
        tasks.setdefault(one.task, []).append(one)
    for task, repeats in tasks.items():
        failed = [{*one.failed, *one.broken} for one in repeats if one.status != "error"]
        # In the order in which a result names them.
        named = dict.fromkeys(test for one in repeats for test in (*one.failed, *one.broken))
        tests = [test for test in named if not all(test in one for one in failed)]
        statuses = dict.fromkeys(one.status for one in repeats)
        if len(statuses) == 1 and not (tests and tests_too):
            continue
        ways = [(status, [one for one in repeats if one.status == status]) for status in statuses]
        words = ", ".join(f"{status} {len(same)} of {len(repeats)} ({_numbers(same)})" for status, same in ways)
        if len(ways) == 1:
            words = f"{next(iter(statuses))} each time"
        yield task, words + (f"; tests that differ: {_names(tests, len(tests))}" if tests else "")


def _errors(results: Iterable[Result]) -> dict[str, list[str]]:
    """What failed, and for which tasks: one cause often fails many."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.error is not None:
            found.setdefault(error_line(result.error), []).append(result.task)
    return found


def _bounded(word: str, lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for task, text in lines[:TASKS]:
        yield word, f"{task}: {text}"
    if len(lines) > TASKS:
        yield "", f"... and {len(lines) - TASKS} more {word} in results.jsonl"


def _several(tasks: Sequence[str]) -> str:
    return tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks ({tasks[0]}, ...)"


def _names(tests: Sequence[str], count: int) -> str:
    """A few tests, and how many more there are."""
    shown = [shorten(test, 100) for test in tests[:TESTS]]
    return ", ".join(shown) + (f" and {count - len(shown)} more" if count > len(shown) else "")


def _numbers(repeats: Sequence[Result]) -> str:
    """Which repeats they are."""
    shown = ", ".join(f"#{one.repeat}" for one in repeats[:NUMBERS])
    return shown + (", ..." if len(repeats) > NUMBERS else "")
