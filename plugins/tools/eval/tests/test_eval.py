"""What a run tells: what passes, why the rest fails, what was printed; and that all is bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from support import repeated

from debug_gym_core import RepoEnv
from debug_gym_core.tasks.results import Measurement, TestResult
from debug_gym_core.testing.sample import ENTRYPOINT
from debug_gym_tool_eval import (
    DETAILS_LIMIT,
    FAILURES,
    LISTED,
    MESSAGE_LIMIT,
    NAMED_FAILURES,
    OUTPUT_LIMIT,
    PASSED_LIMIT,
    render,
)
from debug_gym_tool_eval.report import without_repetitions

pytest_plugins = ["debug_gym_core.testing.fixtures"]


def test_it_tells_what_passes_and_why_the_rest_fails(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating()
    observation, reward, terminated, _, info = env.step("eval")
    text = observation["text"]
    assert text.startswith("1 of 2 tests pass (measured in place")
    assert "PASSED test_shop.py::test_nothing" not in text and "... and 1 more: 1 PASSED\n" in text
    assert "FAILED test_shop.py::test_some: AssertionError: wrong total assert -3 == 3" in text
    assert "  test_shop.py:9 in test_some\n    prices = [1, 2]\n" in text
    assert "Output (exit status 1):\n" in text
    assert "1 failed, 1 passed in <time>" in text
    assert (reward, terminated, info["score"], info["max_score"]) == (1.0, False, 1, 2)
    [spoken] = json.loads(observation["json"])
    outcomes = {"test_shop.py::test_nothing": "passed", "test_shop.py::test_some": "failed"}
    assert spoken["data"]["tests"] == outcomes
    assert spoken["data"]["counts"] == {"passed": 1, "failed": 1}
    assert spoken["data"]["failures"][0]["frames"][0]["locals"] == {"prices": "[1, 2]"}
    assert spoken["data"]["grading"] == "in_place"


def test_frames_of_the_code_under_test_are_innermost(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating()
    env.workspace.write_bytes("shop.py", b"def total(prices):\n    last = prices[-1]\n    return last.amount\n")
    text = env.step("eval")[0]["text"]
    assert "AttributeError: 'int' object has no attribute 'amount'" in text
    assert "  shop.py:3 in total\n    prices = [1, 2]\n    last = 2\n" in text


@pytest.mark.grading
def test_a_fix_resolves_the_task(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating()
    env.workspace.write_bytes("shop.py", b"total = sum\n")
    observation, reward, terminated, _, info = env.step("eval")
    assert observation["text"].startswith("2 of 2 tests pass")
    assert (reward, terminated, info["resolved"]) == (2.0, True, True)


MANY = """
import pytest
from shop import total

@pytest.mark.parametrize("number", range(300))
def test_a_number_is_what_it_is(number):
    assert total([]) == 0

def test_some():
    prices = [1, 2]
    assert total(prices) == 3, "wrong total"
"""


@pytest.mark.faults
@pytest.mark.parametrize("option", ["-v", *repeated("grading", "-q", "")])
def test_one_failure_of_many_tests_costs_little(evaluating: Callable[..., RepoEnv], option: str) -> None:
    entrypoint = f"{ENTRYPOINT.replace(' -q', '')} {option}".strip()
    few = evaluating(entrypoint).step("eval")[0]["text"]
    env = evaluating(entrypoint, tests=MANY)
    observation = env.step("eval")[0]
    text = observation["text"]
    assert "300 PASSED" in text and "%]" not in text and "[299]" not in text
    assert text.count("AssertionError: wrong total") == 2  # ours, and that of the traceback
    own = text[text.index("FAILED test_shop.py::test_some") : text.index("\n... and")]
    own += text[text.index("In test_shop.py::test_some") : text.index("\n\nOutput")]
    traceback = text[text.index("= FAILURES =") :]
    assert len(text) - len(own) - len(traceback) < 1_500
    assert len(text) < len(few) + 100 < 1_500
    journal = {"text": text, "json": json.loads(observation["json"])}
    assert len(json.dumps(journal)) < 20_000
    assert journal["json"][0]["data"]["tests"] == {"test_shop.py::test_some": "failed"}


@pytest.mark.parametrize(
    ("count", "said"),
    [(FAILURES, ""), (FAILURES + 1, "\n[1 more failure has frames and locals that are not shown]\n")],
)
def test_how_many_failures_are_not_described_is_said(evaluating: Callable[..., RepoEnv], count: int, said: str) -> None:
    env = evaluating(tests=MANY.replace("== 0", "== -1").replace("300", str(count - 1)))
    text = env.step("eval")[0]["text"]
    assert said in text and ("not shown]" in text) is bool(said)


@pytest.mark.faults
def test_data_of_many_failures_are_bounded(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating(tests=MANY.replace("== 0", "== 1").replace("300", str(NAMED_FAILURES)))
    [spoken] = json.loads(env.step("eval")[0]["json"])
    assert spoken["data"]["counts"] == {"failed": NAMED_FAILURES + 1}
    assert (len(spoken["data"]["tests"]), len(spoken["data"]["failures"])) == (NAMED_FAILURES, LISTED)
    assert [bool(one["frames"]) for one in spoken["data"]["failures"]].count(True) == FAILURES


@pytest.mark.parametrize("line", ["::", "a::b PASSED ", ".", ". ", "a.py ", "[", "[1", "= ", "=", "\t"])
def test_a_line_of_any_length_is_read_at_once(line: str) -> None:
    output = line * (1_000_000 // len(line)) + "x"
    assert without_repetitions(output) == output  # which took minutes


@pytest.mark.parametrize(
    "line", [".F [ 50%]", "t.py ..s [100%]", "t.py::test_a[x y] PASSED [ 50%]", "t.py::a FAILED [9%]"]
)
def test_progress_is_left_out(line: str) -> None:
    assert without_repetitions(f"a\n{line}\nb\n") == "a\nb\n"


@pytest.mark.parametrize(
    "line", ["done [ 50%]", " .F [ 50%]", "t.py::a DONE [ 50%]", "[ 50%]", ".F [ 5]", "a b.py . [1%]"]
)
def test_what_only_looks_like_progress_is_left(line: str) -> None:
    assert without_repetitions(f"a\n{line}\nb\n") == f"a\n{line}\nb\n"


def test_output_of_a_run_without_failures_is_short() -> None:
    lines = "".join(f"line {n}\n" for n in range(1000))
    passed = render(Measurement((TestResult("a", "passed"),), 0, lines), 1, 1)
    failed = render(Measurement((TestResult("a", "failed", "m" * 999),), 1, lines), 0, 1)
    assert len(passed) < PASSED_LIMIT + 300 < len(failed) < OUTPUT_LIMIT + MESSAGE_LIMIT + 300


def test_what_tests_print_is_left_as_it_is() -> None:
    printed = "..F [ 50%]\nFAILED a - b\n"
    summary = "=== short test summary info ===\nSKIPPED [1] a.py:1: no\n"
    output = f".F [100%]\n=== FAILURES ===\n{printed}{summary}FAILED a\n1 failed\n"
    assert without_repetitions(output) == f"=== FAILURES ===\n{printed}{summary}1 failed\n"


@pytest.mark.grading
def test_the_same_run_reads_the_same(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating()
    assert env.step("eval")[0] == env.step("eval")[0]


def sources(observation: dict[str, str]) -> list[str]:
    return [one["source"] for one in json.loads(observation["json"])]


def test_it_runs_by_itself_once_after_a_step_with_changes_when_told_to(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating(auto_eval_on_rewrite=True)
    observation, reward, terminated, *_ = env.step("change")
    assert sources(observation) == ["change", "eval"]
    assert "2 of 2 tests pass" in observation["text"]
    assert (reward, terminated) == (2.0, True)
    assert sources(env.step("eval")[0]) == ["eval"]


def test_it_does_not_run_by_itself_unless_told(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating()
    assert sources(env.step("change")[0]) == ["change"]
    assert env.score == 0


def test_an_entrypoint_without_a_report_is_judged_by_its_exit_status(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating("grep -rq sum --include=*.py . && echo found")
    assert env.step("eval")[0]["text"] == (
        "The run fails (by its exit status, 1; measured in place)\n\nNo output (exit status 1)."
    )
    env.workspace.write_bytes("shop.py", b"total = sum\n")
    assert env.step("eval")[0]["text"] == (
        "The run passes (by its exit status, 0; measured in place and on a clean copy)\n\n"
        "Output (exit status 0):\nfound"
    )


def test_everything_is_bounded() -> None:
    values = {f"name{number}": "x" * 160 for number in range(20)}
    frames = tuple({"file": "a.py", "line": 1, "function": "f", "locals": values} for _ in range(12))
    failures = tuple(TestResult(f"t.py::t{number}", "failed", "m" * 500, frames) for number in range(500))
    text = render(Measurement(failures, 1, "line\n" * 10_000, 123), 0, 500, more="ask bash")
    assert len(text) < OUTPUT_LIMIT + DETAILS_LIMIT + LISTED * 560 + 1_000
    assert "... and 440 more: 440 FAILED" in text
    [left] = re.findall(r"\[\.\.\. (\d+) characters left out; ask bash \.\.\.\]\nline", text)
    assert int(left) == 49_999 + 123 - text.count("\nline") * 5 + 1


def test_of_many_frames_the_first_and_the_last_are_shown() -> None:
    frames: list[dict[str, object]] = [{"file": "a.py", "line": n, "function": "f", "locals": {}} for n in range(12)]
    frames[4]["left_out"] = 26
    frames[11]["of"] = "KeyError: 8"
    text = render(Measurement((TestResult("t.py::t", "failed", "m", tuple(frames)),), 1, "", 0), 0, 1)
    shown = text.partition("In t.py::t:\n")[2].splitlines()[:8]
    lines = [f"  a.py:{number} in f" for number in (0, 7, 8, 9, 10, 11)]
    assert shown == [lines[0], "  ... 32 frames ...", *lines[1:5], "  where KeyError: 8 was raised:", lines[5]]
    text = render(Measurement((TestResult("t.py::t", "failed", "m", tuple(frames[:4])),), 1, "", 0), 0, 1)
    assert "frames ..." not in text and text.count("a.py:") == 4


def test_what_is_not_told_of_variables_is_said_in_their_place() -> None:
    frame = {"file": "a.py", "line": 1, "function": "f", "locals": {"one": "1", "...": "more"}}
    text = render(Measurement((TestResult("t.py::t", "failed", "m", (frame,)),), 1, "", 0), 0, 1)
    assert "  a.py:1 in f\n    one = 1\n    ... more\n" in text


def test_a_run_that_does_not_count_says_why() -> None:
    text = render(Measurement((), 0, "", valid=False, reason="it was tampered with", tampered=True), 0, 3)
    assert "This run would not count: it was tampered with." in text


SUBTESTS = """
import unittest

class Sub(unittest.TestCase):
    def test_sub(self):
        for i in range(4):
            with self.subTest(i=i):
                self.assertEqual(i, 0)
"""


def test_a_failed_subtest_is_described_as_it_failed(evaluating: Callable[..., RepoEnv]) -> None:
    env = evaluating("python -m unittest test_shop", tests=SUBTESTS)
    [spoken] = json.loads(env.step("eval")[0]["json"])
    (failure,) = spoken["data"]["failures"]
    assert failure["message"] == "(i=1) AssertionError: 1 != 0"
    assert failure["frames"][0]["locals"]["i"] == "1"


PATCHED = """
import os.path
from unittest import mock

def test_missing(monkeypatch):
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    monkeypatch.setattr(os.path, "realpath", lambda path: "/nowhere")
    got = mock.Mock(name="it")
    assert got.get(1) == 0
"""


@pytest.mark.grading
def test_what_a_test_has_replaced_describes_no_failure(evaluating: Callable[..., RepoEnv]) -> None:
    texts = [evaluating(tests=PATCHED).step("eval")[0] for _ in range(2)]
    assert texts[0]["text"] == texts[1]["text"] and texts[0]["json"] == texts[1]["json"]
    [spoken] = json.loads(texts[0]["json"])
    (failure,) = spoken["data"]["failures"]
    assert failure["frames"][0]["line"] == 9 and failure["frames"][0]["locals"]["got"] == "<Mock name='it'>"
