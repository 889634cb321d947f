"""The benchmark `quixbugs`, on small programs in the layout that QuixBugs publishes, and whole on the published one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmark_trials import (
    checkout_of,
    collected,
    exploits,
    files_of,
    grade_after,
    grades_of_three_times,
    in_few,
    is_seen,
    only_gold_resolves,
    places_of,
    rows_of_all,
    with_text,
)
from quixbugs_instance import FILES, PROGRAM, RIGHT, TEST, write_programs

from debug_gym_benchmarks import quixbugs
from debug_gym_benchmarks.quixbugs import QuixBugs
from debug_gym_core import RepoEnv, ToolCall, UsageError
from debug_gym_core.testing import BenchmarkContract
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.snapshot import FileState

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    return write_programs(tmp_path / "bugs")


class TestQuixBugs(BenchmarkContract):
    benchmark = QuixBugs
    repeats = {"benchmarks": ["test_gold_patches_make_the_tests_pass"]}  # noqa: RUF012
    validated = ("last", "triple")

    @pytest.fixture
    def made(self, programs: Path) -> QuixBugs:
        return QuixBugs(source=str(programs))


class TestQuixBugsHidden(BenchmarkContract):
    benchmark = QuixBugs

    @pytest.fixture
    def made(self, programs: Path) -> QuixBugs:
        return QuixBugs(source=str(programs), mode="hidden")


def test_a_task_has_one_program_with_what_its_tests_need(programs: Path) -> None:
    made = QuixBugs(source=str(programs))
    assert made.names() == ["count_down", "last", "triple"]
    shared = {"conftest.py", "python_testcases/load_testdata.py", "python_testcases/node.py"}
    assert files_of(made.load("triple")) == {PROGRAM, TEST, "json_testcases/triple.json", *shared}
    assert files_of(made.load("last")) == {"python_programs/last.py", "python_testcases/test_last.py", *shared}
    assert made.excluded() == {}


def test_the_tests_that_count_are_those_that_pytest_finds_but_the_slow_ones(programs: Path) -> None:
    (programs / "json_testcases/triple.json").write_text(FILES["json_testcases/triple.json"])
    task = QuixBugs(source=str(programs)).load("triple")
    assert set(task.tests) == collected(task) - {f"{TEST}::test_triple[input_data2-21]"}
    assert task.max_score == len(task.tests) == 6
    own = QuixBugs(source=str(programs)).load("last")
    assert set(own.tests) == collected(own) == {f"python_testcases/test_last.py::test{one}" for one in (1, 2)}


def test_programs_are_called_what_they_call_themselves(programs: Path) -> None:
    assert QuixBugs(source=str(programs)).titles() == {"count_down": "Count Down", "triple": "Three Times"}


def test_the_gold_patch_is_the_first_right_function(programs: Path) -> None:
    task = QuixBugs(source=str(programs)).load("triple")
    assert task.gold_patch is not None
    fixed = patch.apply(task.gold_patch, {PROGRAM: FileState(FILES[PROGRAM].encode())})[PROGRAM].data.decode()
    assert fixed == RIGHT + FILES[PROGRAM].partition("    return marked\n")[2]


@pytest.mark.parametrize(("fixed", "line"), [
    ("def f(a):\n    b = g(\n        a,\n        2,\n    )\n\n    if b:\n        c = b\n    return b\n", 2),
    ("def f(a):\n    b = g(\n        a,\n        1,\n    )\n    a = b\n\n    if b:\n        c = b\n    return b\n", 7),
    ("def f(a):\n    b = g(\n        a,\n        1,\n    )\n\n    if not b:\n        c = b\n    return b\n", 7),
    ("def f(a):\n    b = g(\n        a,\n        1,\n    )\n\n    if b:\n        c = b\n    return a\n", 9),
])  # fmt: skip
def test_the_debugger_stops_where_the_statement_begins(fixed: str, line: int) -> None:
    buggy = "def f(a):\n    b = g(\n        a,\n        1,\n    )\n\n    if b:\n        c = b\n    return b\n"
    assert quixbugs._stop(buggy, fixed) == line


def test_hidden_tests_are_only_in_the_patch(programs: Path) -> None:
    task = QuixBugs(source=str(programs), mode="hidden").load("triple")
    assert files_of(task) == {PROGRAM} and task.mode == "hidden" and task.tests_patch is not None
    data = "json_testcases/triple.json"
    assert set(patch.apply(task.tests_patch, {})) == {"conftest.py", TEST, data, *quixbugs.SHARED}
    assert task.tests == QuixBugs(source=str(programs)).load("triple").tests


@pytest.mark.parametrize(("settings", "said"), [
    ({"mode": "debug"}, "mode: say visible or hidden"),
    ({"split": "test"}, "unknown key 'split'"),
])  # fmt: skip
def test_settings_without_a_use_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        QuixBugs(**settings)


DATA = "json_testcases/triple.json"
NO_PAIR = "no pair of input_data and expected"
OTHER_TESTS = rf"{TEST} in .* has not tests as QuixBugs has"
CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no right one": (lambda top: (top / "correct_python_programs/triple.py").unlink(), "no correct_python_program"),
    "no loader": (lambda top: (top / "python_testcases/load_testdata.py").unlink(), r"is no .*load_testdata\.py in "),
    "no data": (lambda top: (top / DATA).unlink(), OTHER_TESTS),
    "other data": (lambda top: (top / DATA).write_text('[[1], 2, "three"]\n'), NO_PAIR),
    "a number": (lambda top: (top / DATA).write_text("1\n"), rf"{NO_PAIR}: 1 is"),
    "a text": (lambda top: (top / DATA).write_text('"ab"\n'), NO_PAIR),
    "an object": (lambda top: (top / DATA).write_text('{"input_data": [1], "expected": 3}\n'), NO_PAIR),
    "no JSON": (lambda top: (top / DATA).write_text("1,2\n"), NO_PAIR),
    "other tests": (
        lambda top: (top / TEST).write_text((top / TEST).read_text().replace("input_data,expected", "given,wanted")),
        OTHER_TESTS,
    ),
    "no tests": (lambda top: shutil.rmtree(top / "python_testcases"), "there is no python_testcases in "),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES)
def test_another_layout_is_an_error_that_says_what(programs: Path, change: Callable[[Path], object], said: str) -> None:
    change(programs)
    with pytest.raises(UsageError, match=said) as error:
        QuixBugs(source=str(programs)).load("triple")
    assert str(error.value).startswith("benchmark.source: ") and "\n" not in str(error.value)


# In a sandbox


@pytest.mark.benchmarks
def test_what_loops_is_a_failing_test(programs: Path, sandbox: str) -> None:
    """And the tests after it are run."""
    task = QuixBugs(source=str(programs)).load("count_down")
    grade = grade_after(task, sandbox, {})
    name = "python_testcases/test_count_down.py::test_count_down"
    assert grade.tests == {
        f"{name}[input_data0-0]": "failed", f"{name}[input_data1-0]": "passed", f"{name}[input_data2-0]": "failed"
    }  # fmt: skip
    assert (grade.resolved, grade.score, grade.reason) == (False, 1, "")
    with RepoEnv(task, ["eval"], sandbox, trusted=True) as env:
        env.reset(seed=0)
        env.step(ToolCall("eval"))
        assert "it took more than 5 s of processor time" in env.last_text


@pytest.mark.parametrize("name", exploits(PROGRAM, TEST))
@pytest.mark.grading
def test_an_exploit_scores_0(programs: Path, sandbox: str, name: str) -> None:
    grade = grade_after(QuixBugs(source=str(programs)).load("triple"), sandbox, exploits(PROGRAM, TEST)[name])
    assert (grade.resolved, grade.score, grade.max_score, grade.grading) == (False, 0, 5, "clean"), grade


@pytest.mark.benchmarks
def test_without_a_change_it_fails_and_with_the_solution_all_pass(programs: Path, sandbox: str) -> None:
    task = QuixBugs(source=str(programs)).load("triple")
    assert grade_after(task, sandbox, {}).score == 0
    solved = grade_after(task, sandbox, {PROGRAM: RIGHT})
    assert (solved.resolved, solved.score) == (True, 5)


@pytest.mark.grading
def test_only_the_solution_scores_three_times(programs: Path, sandbox: str) -> None:
    with RepoEnv(QuixBugs(source=str(programs)).load("triple"), [], sandbox, trusted=True) as env:
        assert only_gold_resolves(grades_of_three_times(env, in_few(exploits(PROGRAM, TEST))))


def test_the_solution_cannot_be_found_in_the_sandbox(programs: Path, cache: Path, sandbox: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=0"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run(["git", *identity, *command], cwd=programs, check=True, capture_output=True, timeout=60)
    task = QuixBugs(source=f"file://{programs}", revision=head(programs)).load("triple")
    clones = cache / "debug-gym" / "benchmarks" / "clones"
    assert clones.is_dir()
    assert places_of(task, sandbox, ["marked_as_right", "3 * number"]) == []
    assert not is_seen(task, sandbox, programs) and not is_seen(task, sandbox, clones)
    assert (
        places_of(with_text(task, "left.py", RIGHT), sandbox, ["marked_as_right"]) != []
    )  # the search finds what is there


def head(directory: Path) -> str:
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=directory, text=True, timeout=60).strip()


# The published programs


@pytest.fixture
def published() -> QuixBugs:
    return QuixBugs(source=checkout_of("DEBUG_GYM_TEST_QUIXBUGS", "jkoppel/QuixBugs"))


@pytest.mark.benchmarks
def test_every_published_program_fails_before_and_passes_after(
    published: QuixBugs, tmp_path: Path, sandbox: str
) -> None:
    source = str(published.settings.source)
    before = rows_of_all(tmp_path, "quixbugs", "noop_agent", source)
    after = rows_of_all(tmp_path, "quixbugs", "solution_agent", source)
    assert list(published.names()) == sorted(before) == sorted(after)
    assert len(after) == 40
    assert {name: row["error"] or row["score"] for name, row in after.items() if row["status"] != "resolved"} == {}
    assert {name: row["error"] or row["score"] for name, row in before.items() if row["status"] != "unresolved"} == {}
    assert all(row["grading"] == "clean" and row["score"] == row["max_score"] > 0 for row in after.values())
    assert {name: row for name, row in before.items() if row["score"] or row["broken"]} == {}


@pytest.mark.benchmarks
def test_the_published_tests_are_those_that_pytest_finds(published: QuixBugs) -> None:
    slow = {"knapsack": 1, "levenshtein": 1}
    for name in published.names():
        task = published.load(name)
        found = collected(task)
        tests = {*task.tests, *task.pass_to_pass}
        assert tests <= found and len(found - tests) == slow.get(name, 0), name


@pytest.mark.benchmarks
def test_no_published_solution_can_be_found(published: QuixBugs, sandbox: str) -> None:
    texts = []
    for name in published.names():
        task = published.load(name)
        assert task.repository is not None and task.gold_patch is not None
        path = f"python_programs/{name}.py"
        fixed = patch.apply(task.gold_patch, {path: FileState((task.repository / path).read_bytes())})[path]
        assert fixed is not None
        lines = set(fixed.data.decode().splitlines()) - set((task.repository / path).read_text().splitlines())
        texts += ["\n" + "\n".join(sorted(lines)) + "\n"]
        assert not [one for one in task.repository.rglob("*") if one.is_file() and fixed.data in one.read_bytes()]
        assert [one.name for one in (task.repository / "python_programs").iterdir()] == [f"{name}.py"]
    task = published.load("bitcount")
    assert places_of(task, sandbox, texts) == []
    assert not is_seen(task, sandbox, Path(str(published.settings.source)).expanduser())


@pytest.mark.benchmarks
@pytest.mark.parametrize("name", ["gcd", "sieve"])
def test_of_a_published_program_only_the_solution_scores_three_times(
    published: QuixBugs, sandbox: str, name: str
) -> None:
    task = published.load(name)
    assert task.pass_to_pass
    assert task.repository is not None
    broken = (task.repository / f"python_programs/{name}.py").read_text()
    tried = exploits(f"python_programs/{name}.py", f"python_testcases/test_{name}.py", broken)
    with RepoEnv(task, [], sandbox, trusted=True) as env:
        assert only_gold_resolves(grades_of_three_times(env, tried))
