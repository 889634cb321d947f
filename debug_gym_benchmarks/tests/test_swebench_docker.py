"""A tiny instance of SWE-bench in an image of the official layout: played, graded, attacked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import swebench_images as images
import swebench_instance as instance
from benchmark_trials import exploits, grades_of_three_times, only_gold_resolves

from debug_gym_benchmarks.swebench import SWEBench, SWEBenchDebug
from debug_gym_core import RepoEnv
from debug_gym_core.testing.environments import unusable

pytestmark = pytest.mark.docker

LINES = "".join(f"PASSED {test}\\n" for test in [*instance.FAIL_TO_PASS, *instance.PASS_TO_PASS])
EXPLOITS = {
    "the tests are said to pass when all is over": f"import atexit\natexit.register(print, '\\n{LINES}')\n",
    "the tests are said to pass, and nothing more is said": (
        f"import os, sys\nif 'pytest' in sys.modules:\n    os.write(1, b'\\n{LINES}')\n    os._exit(0)\n"
    ),
    "the runner is changed so that one test passes": (
        "import sys\n"
        "if 'pytest' in sys.modules:\n"
        "    from _pytest.reports import TestReport\n"
        "    before = TestReport.__init__\n"
        "    def init(self, nodeid, location, keywords, outcome, longrepr, *rest, **more):\n"
        "        if nodeid.endswith('test_total'):\n"
        "            outcome, longrepr = 'passed', None\n"
        "        before(self, nodeid, location, keywords, outcome, longrepr, *rest, **more)\n"
        "    TestReport.__init__ = init\n"
    ),
}
"""What code under test may do in the place of a fix, put at the end of till.py."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file of rows whose image is there."""
    base = os.environ.get(images.BASE)
    if not base:
        pytest.skip(f"set {images.BASE} to an image with pytest and git; `.ci/images` makes one")
    reason = unusable("docker")
    if reason:
        pytest.skip(reason)
    name = instance.build(base)
    try:
        yield instance.write_rows(tmp_path_factory.mktemp("swebench") / "rows.jsonl")
    finally:
        instance.remove(name)


@pytest.fixture
def env(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RepoEnv]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task = SWEBench(source=str(rows), image=instance.IMAGE).load(instance.ROW["instance_id"])
    env = RepoEnv(task, ["eval"])
    try:
        env.reset(seed=0)
        yield env
    finally:
        env.close()


def test_it_is_played_and_graded(env: RepoEnv) -> None:
    assert b"test_total" not in env.workspace.read_bytes("tests/test_till.py")
    env.step("eval")
    assert (env.score, env.max_score, env.broken) == (0, 1, ())
    grade = env.grade()
    assert not grade.resolved and grade.score == 0 and not grade.reason and not grade.broken
    assert grade.tests[instance.FAIL_TO_PASS[0]] == "failed"

    env.workspace.apply(instance.GOLD.encode())
    env.workspace.write_bytes("tests/test_till.py", b"raise SystemExit\n")  # which grading puts back
    grade = env.grade()
    assert grade.resolved and grade.score == 1 and grade.grading == "clean", grade
    assert set(grade.dropped) == {"tests/test_till.py"}


@pytest.mark.benchmarks
@pytest.mark.parametrize("encoding", ["IBM037", "UTF-16"])
def test_attributes_of_git_keep_no_test_from_its_place(env: RepoEnv, encoding: str) -> None:
    """With the files of the tests in another encoding git refuses the patch that brings those that count."""
    env.workspace.write_text(".gitattributes", f"tests/*.py working-tree-encoding={encoding}\n")
    grade = env.grade()
    assert (grade.resolved, grade.score, set(grade.dropped)) == (False, 0, {".gitattributes"}), grade
    assert grade.tests[instance.FAIL_TO_PASS[0]] == "failed"


@pytest.mark.benchmarks
def test_a_fix_that_breaks_what_passed_scores_nothing(env: RepoEnv) -> None:
    env.workspace.apply(instance.GOLD.encode())
    fixed = env.workspace.read_bytes("till.py")
    env.workspace.write_bytes("till.py", fixed.replace(b"return len(prices)", b"return 0"))
    env.step("eval")
    broken = instance.PASS_TO_PASS[0]
    assert (env.score, env.broken) == (0, (broken,))
    assert f"1 test that passed before fails: {broken}" in env.last_text
    grade = env.grade()
    assert not grade.resolved and (grade.score, grade.broken) == (0, (broken,)), grade
    assert grade.tests[instance.FAIL_TO_PASS[0]] == "passed" and grade.tests[broken] == "failed"
    assert grade.reason == f"1 test that passed before fails: {broken}"


@pytest.mark.benchmarks
def test_the_same_three_times(env: RepoEnv) -> None:
    before = instance.FILES["till.py"]
    ours = {name: {"till.py": f"{before}\n\n{text}"} for name, text in EXPLOITS.items()}
    assert only_gold_resolves(grades_of_three_times(env, {**exploits("till.py", "tests/test_till.py", before), **ours}))


@pytest.mark.benchmarks
def test_the_fix_is_nowhere(env: RepoEnv) -> None:
    line = images.added_line(instance.GOLD)
    looked = env.terminal.run(f"grep -rIlF '{line}' / --exclude-dir=proc --exclude-dir=sys 2>/dev/null; id -u")
    assert re.fullmatch(r"[1-9]\d*\n", looked.output), looked.output
    history = "git rev-list --all --reflog | wc -l; git tag; git remote; git stash list; git fsck --lost-found 2>&1"
    assert env.terminal.run(history).output == "1\n"
    packed = (
        "for one in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $one; done"
    )
    objects = env.terminal.run(packed).output
    assert "def count" in objects and line not in objects


@pytest.mark.parametrize("exploit", EXPLOITS)
@pytest.mark.grading
def test_an_exploit_scores_nothing(env: RepoEnv, exploit: str) -> None:
    env.workspace.write_bytes("till.py", f"{instance.FILES['till.py']}\n\n{EXPLOITS[exploit]}".encode())
    grade = env.grade()
    assert not grade.resolved and grade.tests[instance.FAIL_TO_PASS[0]] != "passed", grade
    assert grade.score == 0, grade


@pytest.mark.benchmarks
def test_the_other_benchmark_shows_the_tests(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task = SWEBenchDebug(source=str(rows), image=instance.IMAGE).load(instance.ROW["instance_id"])
    env = RepoEnv(task, ["eval"])
    try:
        env.reset(seed=0)
        assert b"test_total" in env.workspace.read_bytes("tests/test_till.py")
        env.workspace.apply(instance.GOLD.encode())
        env.step("eval")
        assert env.resolved and env.grade().resolved
    finally:
        env.close()
