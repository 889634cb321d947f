"""SWE-bench: rows become tasks, and logs are believed as far as they can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import published_rows
import pytest
import swebench_instance as instance
from support import repeated

from debug_gym_benchmarks.swebench import DATA_SETS, FIELDS, SWEBench, SWEBenchDebug, masked
from debug_gym_benchmarks.swebench import canaries as canary_tests
from debug_gym_benchmarks.swebench.canaries import Canary
from debug_gym_benchmarks.swebench.judge import SWEBenchJudge, _Log
from debug_gym_core import Task, UsageError
from debug_gym_core.tasks.results import Measurement, is_resolved, score
from debug_gym_core.testing import BenchmarkContract

NAME = instance.ROW["instance_id"]
TESTS = [*instance.FAIL_TO_PASS, *instance.PASS_TO_PASS]
PASSED = "".join(f"PASSED {test}\n" for test in TESTS)
FILE = "tests/test_till.py"
CANARIES = [Canary(FILE, "test_00aa", True), Canary(FILE, "test_11bb", False)]
HEALTHY = f"PASSED {FILE}::test_00aa\nFAILED {FILE}::test_11bb - assert 3 == 4\n"
SYMPY = {
    "instance_id": "sympy__sympy-990002",
    "repo": "sympy/sympy",
    "version": "1.0",
    "FAIL_TO_PASS": ["test_total"],
    "PASS_TO_PASS": ["test_count"],
}
DJANGO = {
    "instance_id": "django__django-990003",
    "repo": "django/django",
    "version": "3.0",
    "FAIL_TO_PASS": ["test_total (test_till.Total)"],
    "PASS_TO_PASS": [],
}


class TestSWEBench(BenchmarkContract):
    benchmark = SWEBench

    @pytest.fixture
    def made(self, tmp_path: Path) -> SWEBench:
        return self.benchmark(source=str(instance.write_rows(tmp_path / "rows.jsonl", {}, SYMPY)))


class TestSWEBenchDebug(BenchmarkContract):
    benchmark = SWEBenchDebug

    @pytest.fixture
    def made(self, tmp_path: Path) -> SWEBenchDebug:
        return self.benchmark(source=str(instance.write_rows(tmp_path / "rows.jsonl", {}, DJANGO)))


def load(tmp_path: Path, changes: dict[str, Any] | None = None, **settings: Any) -> Task:
    source = instance.write_rows(tmp_path / "rows.jsonl", changes or {})
    benchmark = SWEBench(source=str(source), **settings)
    return benchmark.load(benchmark.names()[0])


def judge_of(task: Task) -> SWEBenchJudge:
    assert isinstance(task.judge, SWEBenchJudge)
    return task.judge


def test_a_row_is_a_task(tmp_path: Path) -> None:
    task = load(tmp_path)
    assert task.image == "swebench/sweb.eval.x86_64.psf_1776_requests-990001:latest"
    assert task.repository is None and task.git and task.mode == "hidden"
    assert task.python == "/opt/miniconda3/envs/testbed/bin/python"
    assert task.entrypoint == "pytest -rA tests/test_till.py" and task.test_files == (FILE,)
    assert task.tests == tuple(instance.FAIL_TO_PASS) and task.max_score == 1
    assert task.pass_to_pass == tuple(instance.PASS_TO_PASS) and task.gold_patch == instance.GOLD.encode()
    script = judge_of(task).evaluation.script
    assert "git checkout 5a5a5a" in script and instance.TESTS in script and "pip install ." in script


def test_the_other_benchmark_shows_the_tests(tmp_path: Path) -> None:
    source = str(instance.write_rows(tmp_path / "rows.jsonl"))
    benchmark = SWEBenchDebug(source=source)
    assert benchmark.load(NAME).mode == "debug"
    assert benchmark.titles() == {NAME: instance.ROW["problem_statement"].splitlines()[0]}
    with pytest.raises(UsageError, match=r"swebench is hidden; debug is the benchmark swebench-debug"):
        SWEBench(source=source, mode="debug")
    with pytest.raises(UsageError, match="mode"):
        SWEBench(source=source, mode="visible")


@pytest.mark.parametrize(("changes", "entrypoint", "debug_entrypoint"), [
    (SYMPY, "PYTHONWARNINGS=ignore::UserWarning,ignore::SyntaxWarning python bin/test -C --verbose tests/test_till.py",
     None),
    (DJANGO, "python ./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 test_till", None),
    ({"repo": "sphinx-doc/sphinx", "version": "4.0"}, "tox --current-env -epy39 -v -- tests/test_till.py",
     "python -m pytest -rA tests/test_till.py"),
])  # fmt: skip
def test_tests_can_be_run_and_debugged(
    tmp_path: Path, changes: dict[str, Any], entrypoint: str, debug_entrypoint: str | None
) -> None:
    task = load(tmp_path, changes)
    assert (task.entrypoint, task.debug_entrypoint) == (entrypoint, debug_entrypoint)


def test_a_row_may_say_how_it_is_evaluated(tmp_path: Path) -> None:
    script = "cd /testbed\n: '>>>>> Start Test Output'\npytest -rA own.py\n: '>>>>> End Test Output'\n"
    own = {"eval_script": script, "log_parser": "parse_log_pytest_v2", "image": "own/image:1", "repo": "a/b"}
    task = load(tmp_path, {**own, "version": None})
    assert task.image == "own/image:1" and task.entrypoint == "pytest -rA own.py"
    evaluation = judge_of(task).evaluation
    assert (evaluation.script, evaluation.parser) == (script, "parse_log_pytest_v2")


@pytest.mark.parametrize(("field", "how", "told"), published_rows.changes(FIELDS, "instance_id"))
def test_a_changed_field_is_named(tmp_path: Path, field: str, how: str, told: str) -> None:
    path = published_rows.written(tmp_path / "rows.jsonl", published_rows.changed(instance.ROW, FIELDS, field, how))
    with pytest.raises(UsageError) as refused:
        SWEBench(source=path).load(NAME)
    assert str(refused.value).startswith(f"{path}, line 1") and str(refused.value).endswith(f": {told}")


@pytest.mark.parametrize(("changes", "says"), [
    ({"test_patch": None}, r"rows.jsonl, line 1 .*there is no field 'test_patch'"),
    ({"FAIL_TO_PASS": "not json"}, "'FAIL_TO_PASS' must be a list of texts"),
    ({"FAIL_TO_PASS": []}, "'FAIL_TO_PASS' names no test"),
    ({"base_commit": 5}, "'base_commit' must be a text"),
    ({"repo": "no/such"}, "the field 'repo' is 'no/such'"),
    ({"version": "0.0"}, "the field 'version' is '0.0'"),
    ({"version": None}, "there is no field 'version'"),
    ({"eval_script": "true"}, "there is a field 'eval_script', but no field 'log_parser'"),
    ({"eval_script": "true", "log_parser": "parse_log_pytest"}, "lacks the line"),
    ({"eval_script": ">>>>> Start Test Output\n>>>>> End Test Output", "log_parser": "nobody"}, "'log_parser' is"),
])  # fmt: skip
def test_a_changed_schema_is_named(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load(tmp_path, changes)


@pytest.mark.parametrize(("split", "hub", "named"), [
    (None, DATA_SETS["lite"], "test"),
    ("verified", DATA_SETS["verified"], "test"),
    ("full/dev", DATA_SETS["full"], "dev"),
    ("dev", DATA_SETS["lite"], "dev"),
])  # fmt: skip
def test_splits_are_data_sets_and_their_parts(split: str | None, hub: str, named: str) -> None:
    rows = SWEBench(split=split)._rows
    assert (rows._hub, rows._split) == (hub, named)


def test_wrong_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"benchmark\.split: swebench has no 'light'.*'lite'"):
        SWEBench(split="light/test")
    for image in ("mine", "{name", "{number}", "{id.upper.x}", "{id}{", "{name}:{x}"):
        with pytest.raises(UsageError, match=r"say a name with \{id\} or \{name\}"):
            SWEBench(image=image)
    assert load(tmp_path, image="mine/{id}:2").image == "mine/psf__requests-990001:2"
    assert load(tmp_path, image=instance.IMAGE).image == instance.IMAGE.format(name="psf_1776_requests-990001")


def test_a_prediction_is_as_the_official_harness_takes_it() -> None:
    line = SWEBench().prediction(NAME, b"diff\n", "agent, model")
    assert line == {"instance_id": NAME, "model_name_or_path": "agent, model", "model_patch": "diff\n"}


def test_names_import_nothing_heavy(tmp_path: Path) -> None:
    source = instance.write_rows(tmp_path / "rows.jsonl")
    code = (
        "import sys; from debug_gym_benchmarks.swebench import SWEBench; print(SWEBench(source=sys.argv[1]).names(), "
        "[one for one in ('swebench', 'datasets', 'modal', 'docker') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, source], capture_output=True, text=True, check=True)
    assert done.stdout == f"['{NAME}'] []\n"


def test_the_missing_package_is_named(tmp_path: Path) -> None:
    source = instance.write_rows(tmp_path / "rows.jsonl")
    code = (
        "import sys; from debug_gym_benchmarks.swebench import SWEBench; sys.modules['swebench'] = None\n"
        f"SWEBench(source=sys.argv[1]).load('{NAME}')"
    )
    done = subprocess.run([sys.executable, "-c", code, source], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert "RequirementError" in last and "pip install 'debug-gym-benchmarks[swebench]'" in last


def test_later_releases_are_masked() -> None:
    assert {"/opt/miniconda3/pkgs", "/root/.cache", "/var/tmp"} == set(masked("sympy/sympy"))
    assert "/opt/miniconda3/lib/python3.11/site-packages/requests" in masked("psf/requests")


# The log


def judged(tmp_path: Path, between: str, *, other: Measurement | None = None, log: str | None = None) -> Measurement:
    text = log or f"+ : '>>>>> Start Test Output'\n{between}+ : '>>>>> End Test Output'\n"
    return judge_of(load(tmp_path))._measurement(_Log(text, 0), CANARIES, other)


def resolved(measurement: Measurement) -> bool:
    return is_resolved(measurement, TESTS, len(TESTS))


def test_a_healthy_log_is_believed(tmp_path: Path) -> None:
    measurement = judged(tmp_path, PASSED + HEALTHY)
    assert measurement.kind == "log" and resolved(measurement), measurement.reason


@pytest.mark.parametrize(("status", "test", "counts"), [
    ("XFAIL", instance.FAIL_TO_PASS[0], True),
    ("SKIPPED", instance.PASS_TO_PASS[0], True),
    ("SKIPPED", instance.FAIL_TO_PASS[0], False),
    ("FAILED", instance.PASS_TO_PASS[0], False),
    ("ERROR", instance.FAIL_TO_PASS[0], False),
    ("", instance.PASS_TO_PASS[0], False),
])  # fmt: skip
def test_what_counts_as_passed(tmp_path: Path, status: str, test: str, counts: bool) -> None:
    line = f"{status} {test}\n" if status else ""
    assert resolved(judged(tmp_path, PASSED.replace(f"PASSED {test}\n", line) + HEALTHY)) is counts


@pytest.mark.parametrize(("between", "reason", "tampered"), [
    (PASSED, "does not report the canary", True),
    (PASSED + HEALTHY.replace("FAILED", "PASSED"), "canary in tests/test_till.py that has to fail", True),
    (PASSED + HEALTHY.replace("PASSED", "FAILED"), "canary in tests/test_till.py that has to pass", True),
    (PASSED + HEALTHY + "+ : '>>>>> Start Test Output'\n", "more than one marker", True),
    (PASSED + ">>>>> End Test Output" + HEALTHY, "more than one marker", True),
    (PASSED + HEALTHY + ">>>>> Tests Errored\n", "the log says", False),
    ("ERROR tests/test_till.py\n", "does not report the canary", False),
])  # fmt: skip
def test_a_log_that_cannot_be_believed(tmp_path: Path, between: str, reason: str, tampered: bool) -> None:
    measurement = judged(tmp_path, between)
    assert reason in measurement.reason and measurement.tampered is tampered and not resolved(measurement)
    if tampered:
        assert score(measurement, TESTS, 3)[0] == 0


@pytest.mark.parametrize("log", ["", PASSED + HEALTHY, ">>>>> Start Test Output>>>>> End Test Output" + PASSED])
def test_results_outside_of_the_markers_are_none(tmp_path: Path, log: str) -> None:
    measurement = judged(tmp_path, "", log=log or "nothing")
    assert not measurement.valid and not measurement.tests


@pytest.mark.parametrize("first", ["FAILED", "PASSED"])
def test_a_result_that_is_stated_twice_differently_is_none(tmp_path: Path, first: str) -> None:
    """Printed at the end, after the runner's own summary, or before it."""
    test = instance.FAIL_TO_PASS[0]
    other = "PASSED" if first == "FAILED" else "FAILED"
    log = f"{first} {test}\n{PASSED.replace(f'PASSED {test}', f'{other} {test}')}{HEALTHY}"
    assert judged(tmp_path, log).outcomes[test] == "failed"


def test_a_line_that_the_official_parser_fails_at_is_no_error_of_ours(tmp_path: Path) -> None:
    task = load(tmp_path, DJANGO)
    text = "+ : '>>>>> Start Test Output'\nFAIL:\n+ : '>>>>> End Test Output'\n"
    measurement = judge_of(task)._measurement(_Log(text, 1), [])
    assert "the official parser parse_log_django fails" in measurement.reason


def test_a_huge_line_is_read_in_time(tmp_path: Path) -> None:
    """The official expression for sympy takes quadratic time on it, or worse."""
    task = load(tmp_path, SYMPY)
    between = "test_total ok\n" + " " * 2_000_000 + ".py:" * 100_000 + "\ntest_count ok\n"
    text = f"+ : '>>>>> Start Test Output'\n{between}+ : '>>>>> End Test Output'\n"
    measurement = judge_of(task)._measurement(_Log(text, 0), [])
    assert measurement.outcomes == {"test_total": "passed", "test_count": "passed"}


@pytest.mark.parametrize("outcome", ["failed", None])
def test_what_the_second_run_does_not_confirm_did_not_pass(tmp_path: Path, outcome: Any) -> None:
    from debug_gym_core.tasks.results import TestResult

    test = instance.FAIL_TO_PASS[0]
    told = (TestResult(test, outcome),) if outcome else ()
    assert judged(tmp_path, PASSED + HEALTHY, other=Measurement(told, 1, "")).outcomes[test] == "failed"
    agreed = Measurement((TestResult(test, "passed"),), 0, "")
    assert resolved(judged(tmp_path, PASSED + HEALTHY, other=agreed))
    tampered = Measurement(
        (TestResult(test, "passed"),), 0, "", valid=False, reason="pytest was changed", tampered=True
    )
    measurement = judged(tmp_path, PASSED + HEALTHY, other=tampered)
    assert measurement.tampered and "pytest was changed" in measurement.reason


# Canaries


def test_canaries_are_put_where_tests_count() -> None:
    files = ["tests/test_a.py", "tests/data.txt", "tests/roots/test_b.py"]
    chosen = canary_tests.choose("pytest", files, ["tests/test_a.py::test_x"])
    assert {(one.file, one.passes) for one in chosen} == {("tests/test_a.py", True), ("tests/test_a.py", False)}
    assert {one.file for one in canary_tests.choose("sympy", files, ["test_x"])} == {files[0], files[2]}
    assert not canary_tests.choose("other", files, ["test_x"])
    again = canary_tests.choose("pytest", files, ["tests/test_a.py::test_x"])
    assert not {one.name for one in chosen} & {one.name for one in again}


@pytest.mark.parametrize("kind", ["pytest", *repeated("benchmarks", "sympy", "django")])
def test_canaries_pass_and_fail_as_they_must(tmp_path: Path, kind: Any) -> None:
    """In a file whose last line has no end."""
    (tmp_path / "test_a.py").write_text("x = 1\nif x:\n    y = 2")
    chosen = canary_tests.choose(kind, ["test_a.py", "test_absent.py"], ["test_a.py::test_x", "test_absent.py::test_x"])
    script = "\n".join(canary_tests.lines(chosen, kind))
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True)
    assert not (tmp_path / "test_absent.py").exists()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-q", "test_a.py"]
    log = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    for canary in (one for one in chosen if one.file == "test_a.py"):
        line = next(line for line in log.splitlines() if canary.name in line and line.startswith(("PASSED", "FAILED")))
        assert line.startswith("PASSED") is canary.passes


def test_canaries_are_recognized_in_each_form() -> None:
    good, bad = Canary("test_a.py", "test_0a", True), Canary("test_a.py", "test_0b", False)
    django = {"test_0a (test_a.Test0a)": "PASSED", "test_0b (test_a.Test0b.test_0b)": "FAILED", "test_0b": "FAILED"}
    assert good.reported(django, "django") and bad.reported(django, "django")
    assert not bad.reported({**django, "test_0b (x)": "PASSED"}, "django")
    assert good.reported({"test_0a": "PASSED"}, "sympy") and not good.reported({}, "sympy")
    assert not good.reported({"test_0a": "PASSED"}, "pytest")


# The published rows


def test_published_rows_load() -> None:
    path = os.environ.get("DEBUG_GYM_TEST_SWEBENCH_ROWS")
    if path is None:
        pytest.skip("set DEBUG_GYM_TEST_SWEBENCH_ROWS to a jsonl file with published rows of SWE-bench")
    benchmark = SWEBench(source=path)
    rows = {row["instance_id"]: row for row in map(json.loads, Path(path).read_text().splitlines())}
    assert list(benchmark.names()) == list(rows)
    for name, row in rows.items():
        task = benchmark.load(name)
        assert set(task.tests) == set(json.loads(row["FAIL_TO_PASS"])) and task.max_score == len(task.tests)
        assert set(task.pass_to_pass) == set(json.loads(row["PASS_TO_PASS"])) - set(task.tests)
        assert task.test_files and all(f"b/{file}" in row["test_patch"] for file in task.test_files)
