"""What a summary says beside its table."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from debug_gym_core.cli.display import PlainDisplay
from debug_gym_core.cli.summary import summary
from debug_gym_core.cli.verdicts import about_modes, verdicts, why_unresolved
from debug_gym_core.runs.trajectory import Result


def result(name: str = "a", *failed: str, **more: Any) -> Result:
    facts = {"resolved": not failed, "score": 10 - len(failed), "max_score": 10, "grading": "clean", "changed": True}
    status = more.pop("status", "unresolved" if failed else "resolved")
    return Result(f"toy/{name}", "x", more.pop("llm", None), status, failed=failed, **{**facts, **more})


def said(*results: Result) -> list[str]:
    return [f"{word} {text}".lstrip() for word, text in verdicts(results, {})]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (result("a", "t.py::x", "t.py::y"), "2 of 10 failed: t.py::x, t.py::y"),
        (result("a", *(f"t{number}" for number in range(7))), "7 of 10 failed: t0, t1, t2 and 4 more"),
        (result("a", "x", reason="it reached its timeout"), "1 of 10 failed: x; it reached its timeout"),
        (result("a", status="unresolved", reason="no report"), "all 10 passed; no report"),
        (result("a", "x", ended="max_steps"), "1 of 10 failed: x; out of steps"),
        (result("a", "x", ended="submitted"), "1 of 10 failed: x"),
        (
            result("a", "x", reason="1 test passes whatever it expects: x", doubts={"x": "it does"}),
            "1 of 10 failed; 1 test passes whatever it expects: x",
        ),
        (
            result("a", "x", ended="length"),
            "1 of 10 failed: x; the model's answers were cut off at the bound on their length (max_tokens)",
        ),
        (result("a", status="unresolved", grading="exit_status", score=0), "the entrypoint failed"),
    ],
)
def test_why_a_task_is_not_resolved(given: Result, words: str) -> None:
    assert why_unresolved(given) == words
    assert said(given) == [f"unresolved toy/a: {words}"]


def test_more_tests_failed_than_a_result_names() -> None:
    assert why_unresolved(result("a", "x", "y", score=0, max_score=900)) == "900 of 900 failed: x, y and 898 more"


def test_tests_that_broke_are_named_and_nothing_is_said_of_a_count_that_is_not() -> None:
    reason = "2 tests that passed before fail: t.py::a, t.py::b"
    broken = result("a", status="unresolved", resolved=False, score=0, broken=("t.py::a", "t.py::b"), reason=reason)
    assert said(broken) == [f"unresolved toy/a: {reason}"]
    both = result("a", "t.py::x", score=0, broken=("t.py::a", "t.py::b"), reason=reason)
    assert said(both) == [f"unresolved toy/a: 1 of 10 failed: t.py::x; {reason}"]
    assert Result.from_json(both.as_json()) == both
    spoilt = result("a", status="unresolved", resolved=False, score=0, reason="a hook was added by calc")
    assert said(spoilt) == ["unresolved toy/a: a hook was added by calc"]


def test_repeats_that_break_other_tests_are_flaky() -> None:
    results = [result("a", "x", score=0, broken=(test,), repeat=n, reason=test) for n, test in enumerate("ab", 1)]
    assert said(*results)[-1] == "flaky toy/a: unresolved each time; tests that differ: a, b"


def test_a_task_that_passes_without_a_change_is_broken() -> None:
    told = said(result("a", changed=False), result("b"), result("c", changed=None), result("d", "x", changed=False))
    assert told == ["unresolved toy/d: 1 of 10 failed: x", "broken toy/a: its tests pass without a change"]
    assert said(*(result("a", changed=False, repeat=number) for number in (1, 2))) == told[1:]


def test_repeats_with_the_same_cause_are_one_line() -> None:
    results = [result("a", "x", repeat=number) for number in (1, 2, 3)]
    assert said(*results) == ["unresolved toy/a: 1 of 10 failed: x"]


def test_verdicts_that_differ_are_flaky() -> None:
    results = [result("a", repeat=1), result("a", "x", repeat=2), result("a", repeat=3), result("b", repeat=1)]
    assert said(*results) == [
        "unresolved toy/a #2: 1 of 10 failed: x",
        "flaky toy/a: resolved 2 of 3 (#1, #3), unresolved 1 of 3 (#2); tests that differ: x",
    ]


def test_an_episode_that_could_not_be_run_differs_from_one_that_could() -> None:
    gone = {"kind": "TaskError", "message": "the debugger did not stop at a.py:3 but at none"}
    results = [result("a", repeat=1), result("a", repeat=2, status="error", error=gone, max_score=None)]
    assert said(*results) == [
        "error toy/a: the debugger did not stop at a.py:3 but at none",
        "flaky toy/a: resolved 1 of 2 (#1), error 1 of 2 (#2)",
    ]


def test_other_tests_that_fail_are_flaky_too_unless_a_model_played() -> None:
    results = [result("a", "x", "y", repeat=1), result("a", "x", "z", repeat=2)]
    assert said(*results)[-1] == "flaky toy/a: unresolved each time; tests that differ: y, z"
    results = [result("a", "x", "y", repeat=1, llm="m"), result("a", "x", "z", repeat=2, llm="m")]
    assert all(line.startswith("unresolved") for line in said(*results))
    results = [result("a", repeat=1, llm="m"), result("a", "z", repeat=2, llm="m")]
    assert said(*results)[-1].startswith("varies toy/a: resolved 1 of 2 (#1), unresolved 1 of 2 (#2)")


def test_what_is_said_is_bounded() -> None:
    told = said(*(result(f"t{number}", "x" * 1000, *"yzuvw", repeat=1) for number in range(500)))
    assert len(told) == 21 and told[-1] == "... and 480 more unresolved in results.jsonl"
    assert max(map(len, told)) < 200
    many = said(*(result("a", *(["x"] if number % 2 else []), repeat=number) for number in range(1, 101)))
    assert len(many) == 2 and max(map(len, many)) < 200
    errors = [{"kind": "TaskError", "message": f"cause {number}"} for number in range(50)]
    assert len(said(*(result(str(n), status="error", error=one) for n, one in enumerate(errors)))) == 21


def test_the_summary_says_what_a_mode_means() -> None:
    assert list(about_modes([result()])) == []
    stream = io.StringIO()
    display = PlainDisplay(Console(file=stream, width=200), 50, 0)
    results = [result("a", mode="debug", repeat=1), result("a", mode="debug", repeat=2)]
    summary(results, 0, 3.0, 0.0, 0.0, "exps/x", display)
    text = stream.getvalue()
    assert "resolved 2 of 2 episodes of 1 task, 3.0 s\n" in text
    assert "\nmode debug: the agent had the tests, which the benchmark publishes hidden;" in text
    assert "compare with no others" in text
