"""R2E-Gym: rows in the published layout become tasks, in an image in the published layout they are solved."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import r2egym_instance as instance
from benchmark_trials import exploits, grades_of_three_times, only_gold_resolves
from published_rows import PASSES_ALL, changed, changes, written
from r2egym_instance import AFTER, BEFORE, BUGGY, FIXED, IMAGE, NAME, commit, row

from debug_gym_benchmarks.r2egym import FIELDS, R2EGym, name_of, outcomes_of, patch_of, plain
from debug_gym_core import UsageError
from debug_gym_core.testing import BenchmarkContract
from debug_gym_core.testing.environments import Environments
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.snapshot import FileState


class TestR2EGym(BenchmarkContract):
    benchmark = R2EGym

    @pytest.fixture
    def made(self, tmp_path: Path) -> R2EGym:
        orange = row(repo_name="orange3", docker_image="acme12/orange3_final:77")
        return R2EGym(source=written(tmp_path / "rows.jsonl", row(), orange))


def test_a_row_is_a_task(tmp_path: Path) -> None:
    made = R2EGym(source=written(tmp_path / "rows.jsonl", row()))
    task = made.load(NAME)
    assert (task.image, task.repository, task.mode) == (IMAGE, None, "hidden")
    assert task.tests == ("TestMiddle.test_odd", "TestMiddle.test_range[5]") and task.max_score == 2
    assert task.pass_to_pass == ("TestMiddle.test_range[1]", "test_never")
    assert task.description == "middle() is one off."
    assert task.gold_patch is not None and b"test_numbers" not in task.gold_patch
    fixed = patch.apply(task.gold_patch, {"numbers_of.py": FileState(BUGGY.encode())})
    assert fixed["numbers_of.py"] == FileState(FIXED.encode())
    assert made.titles() == {NAME: "numbers before 0123456789ab"}


@pytest.mark.parametrize("log", [None, "", "no summary", "collected 0 items / 1 error\n"])
def test_without_the_log_of_before_every_test_counts(tmp_path: Path, log: str | None) -> None:
    content = json.dumps({"old_commit_res_stdout": log})
    task = R2EGym(source=written(tmp_path / "rows.jsonl", row(execution_result_content=content))).load(NAME)
    assert (len(task.tests), task.max_score, task.pass_to_pass) == (4, 4, ())
    without = {key: value for key, value in row().items() if key != "execution_result_content"}
    assert R2EGym(source=written(tmp_path / "rows.jsonl", without)).load(NAME).tests == task.tests


def test_the_log_of_before_is_read_as_pytest_writes_it() -> None:
    assert outcomes_of(BEFORE + "ERROR r2e_tests/test_2.py\nPASSED: 3 of 4\n") == {
        "TestMiddle.test_range[1]": "PASSED",
        "TestMiddle.test_odd": "FAILED",
        "TestMiddle.test_range[5]": "FAILED",
        "test_never": "FAILED",
    }


def test_names_of_tests_are_those_of_the_published_parser() -> None:
    assert name_of("r2e_tests/test_1.py::TestMiddle::test_range[1]") == "TestMiddle.test_range[1]"
    assert plain("\x1b[1mtest_a\x1b[0m - assert 1 == 2") == "test_a"


@pytest.mark.parametrize(("field", "how", "told"), changes(FIELDS, "docker_image"))
def test_a_changed_schema_names_the_field(tmp_path: Path, field: str, how: str, told: str) -> None:
    path = written(tmp_path / "rows.jsonl", changed(row(), FIELDS, field, how))
    with pytest.raises(UsageError) as refused:
        R2EGym(source=path).load(NAME)
    assert str(refused.value).startswith(f"{path}, line 1") and str(refused.value).endswith(f": {told}")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"expected_output_json": "{}"}, "the field 'expected_output_json' is empty"),
        ({"expected_output_json": '{"a": "SKIPPED"}'}, "the field 'expected_output_json' has 'SKIPPED' for a"),
        (
            {"execution_result_content": json.dumps({"old_commit_res_stdout": AFTER})},
            "by the field 'execution_result_content' no test shows the bug (old_commit_res_stdout)",
        ),
        ({"parsed_commit_content": '{"files": []}'}, "the field 'parsed_commit_content' lacks 'file_diffs'"),
        *[
            ({"parsed_commit_content": content}, "the field 'parsed_commit_content' has another layout")
            for content in (
                {"file_diffs": 5},
                commit(header="numbers_of.py"),
                commit(header={"file": {"path": 5}}),
                commit(index_line="1111111..2222222"),
                commit(minus_file="a/numbers_of.py"),
                commit(hunks=5),
                commit(hunks=["@@"]),
            )
        ],
    ],
)
def test_a_row_that_is_no_task_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=r"rows\.jsonl, line 1 ") as refused:
        R2EGym(source=written(tmp_path / "rows.jsonl", row(**change))).load(NAME)
    assert told in str(refused.value)


def test_a_commit_with_a_binary_file_has_no_gold_patch() -> None:
    assert patch_of(commit(is_binary_file=True), "row") is None


def test_an_unknown_data_set_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"benchmark\.split: r2egym has no 'subsets'; did you mean 'subset'\?"):
        R2EGym(split="subsets").names()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    base, python = os.environ.get("DEBUG_GYM_TEST_IMAGE"), os.environ.get("DEBUG_GYM_TEST_PYTHON")
    if not base or not python or not shutil.which("docker"):
        pytest.skip("set DEBUG_GYM_TEST_IMAGE and DEBUG_GYM_TEST_PYTHON, to an image and its Python; docker runs it")
    tag = f"debug-gym-r2egym-test:{os.getpid()}"
    instance.build(base, python, tmp_path_factory.mktemp("r2egym-image"), tag, {})
    try:
        yield tag
    finally:
        subprocess.run(["docker", "rmi", "-f", tag], check=True, capture_output=True)


EXPLOITS = {
    "tests and hooks of its own": {"r2e_tests/test_1.py": "def test_never(): assert 0\n", "conftest.py": PASSES_ALL},
    **exploits("numbers_of.py", "r2e_tests/test_1.py", BUGGY),
    "a fix that lets more pass than published": {
        "numbers_of.py": FIXED.replace("return ", "return None if not items else ")
    },
}


@pytest.mark.docker
@pytest.mark.benchmarks
def test_in_an_image_gold_resolves_and_nothing_else_does_three_times(
    tmp_path: Path, image: str, environments: Environments
) -> None:
    task = R2EGym(source=written(tmp_path / "rows.jsonl", row(docker_image=image))).load(
        image.replace("debug-gym-r2egym-test:", "debug-gym-r2egym-test-")
    )
    env = environments.make(task=task, tools=["bash"], terminal={"docker": {"user": "root"}})
    look = "ls -A / /testbed /r2e_tests; git log --format=%s; find / -xdev -name 'test_1.py'; grep -rl TestMiddle / -s"
    seen = env.terminal.run(f"{look} --exclude-dir=proc --exclude-dir=sys", timeout=60).output
    assert "numbers_of.py" in seen and "pristine" in seen and ".venv" in seen
    for secret in ("all of it", "test_1.py", "run_tests.sh"):
        assert secret not in seen, seen
    grades = grades_of_three_times(env, EXPLOITS)
    assert only_gold_resolves(grades)
    assert grades["a fix that lets more pass than published"].broken == ("test_never",)


@pytest.mark.benchmarks
@pytest.mark.docker
def test_debug_mode_has_the_tests_in_the_workspace(tmp_path: Path, image: str, environments: Environments) -> None:
    made = R2EGym(source=written(tmp_path / "rows.jsonl", row(docker_image=image)), mode="debug")
    env = environments.make(task=made.load(made.names()[0]), tools=["eval"], terminal={"docker": {"user": "root"}})
    env.workspace.write_bytes("numbers_of.py", FIXED.encode())
    observation, _, _, _, info = env.step({"name": "eval", "arguments": {}})
    assert info["resolved"], observation["text"]
