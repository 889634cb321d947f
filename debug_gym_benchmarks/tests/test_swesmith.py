"""SWE-smith: rows in the published layout become tasks, in an image in the published layout they are solved."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import swesmith_instance as instance
from benchmark_trials import exploits, grades_of_three_times, only_gold_resolves
from published_rows import PASSES_ALL, changed, changes, written
from swesmith_instance import BUGGY, NAME, RIGHT, row

from debug_gym_benchmarks.swesmith import FIELDS, PYTHON, SWESmith
from debug_gym_core import UsageError
from debug_gym_core.testing import BenchmarkContract
from debug_gym_core.testing.environments import Environments
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.snapshot import FileState


class TestSWESmith(BenchmarkContract):
    benchmark = SWESmith

    @pytest.fixture
    def made(self, tmp_path: Path) -> SWESmith:
        mypy = row(instance_id="python__mypy.e93f06ce.pr_1", FAIL_TO_PASS=["testInference"])
        others = [row(instance_id=f"acme__shapes.12345678.lm_rewrite__{n:08}") for n in range(3)]
        return SWESmith(source=written(tmp_path / "rows.jsonl", row(), mypy, *others))


def test_a_row_is_a_task(tmp_path: Path) -> None:
    made = SWESmith(source=written(tmp_path / "rows.jsonl", row()))
    task = made.load(NAME)
    assert task.repository is None and task.image == "swesmith.x86_64.acme__shapes.12345678"
    assert task.python == PYTHON and task.mode == "hidden" and task.max_score == 2
    assert task.tests == tuple(row()["FAIL_TO_PASS"]) and task.pass_to_pass == tuple(row()["PASS_TO_PASS"])
    assert task.entrypoint == "python -m pytest -q tests/test_area.py tests/test_around.py"
    assert task.hidden_files == ("tests/test_area.py",)
    assert task.test_files == ("tests/test_area.py", "tests/test_around.py")
    (bug,) = task.patches
    buggy = patch.apply(bug, {"shapes.py": FileState(RIGHT.encode())})
    assert buggy["shapes.py"] == FileState(BUGGY.encode())
    assert task.gold_patch is not None
    assert patch.apply(task.gold_patch, buggy)["shapes.py"] == FileState(RIGHT.encode())
    assert made.titles() == {NAME: "acme/shapes at 12345678: func basic"}
    assert made.prediction(NAME, b"diff", "agent on model") == {
        "instance_id": NAME,
        "model_name_or_path": "agent on model",
        "model_patch": "diff",
    }
    assert SWESmith(source=str(tmp_path / "rows.jsonl"), mode="debug").load(NAME).mode == "debug"


@pytest.mark.parametrize(
    ("repository", "module"),
    [("acme__shapes", "shapes"), ("theskumar__python-dotenv", "dotenv"), ("pyca__pyopenssl", "OpenSSL")],
)
def test_copies_of_the_project_and_caches_are_masked(tmp_path: Path, repository: str, module: str) -> None:
    name = NAME.replace("acme__shapes", repository)
    masked = SWESmith(source=written(tmp_path / "rows.jsonl", row(instance_id=name))).load(name).masked
    base, own = (
        f"/opt/miniconda3/{place}/site-packages" for place in ("lib/python3.11", "envs/testbed/lib/python3.10")
    )
    assert {"/root/.cache", "/opt/miniconda3/pkgs", f"{base}/{module}", f"{own}/pip/_vendor/{module}"} <= set(masked)
    assert f"{own}/{module}" not in masked  # what is worked on


def test_what_pytest_does_not_run_is_excluded_with_the_reason(tmp_path: Path) -> None:
    name = "python__mypy.e93f06ce.pr_1"
    made = SWESmith(source=written(tmp_path / "rows.jsonl", row(instance_id=name, FAIL_TO_PASS=["testInference"])))
    assert made.names() == [] and list(made.excluded()) == [name]
    assert made.load(name).name == name


@pytest.mark.parametrize(("field", "how", "told"), changes(FIELDS, "instance_id"))
def test_a_changed_schema_names_the_field(tmp_path: Path, field: str, how: str, told: str) -> None:
    path = written(tmp_path / "rows.jsonl", changed(row(), FIELDS, field, how))
    with pytest.raises(UsageError) as refused:
        SWESmith(source=path).load(NAME)
    assert str(refused.value).startswith(f"{path}, line 1") and str(refused.value).endswith(f": {told}")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"FAIL_TO_PASS": []}, "the field 'FAIL_TO_PASS' is empty"),
        ({"FAIL_TO_PASS": ["test_area"]}, "the test 'test_area' is not one of pytest's node ids"),
        ({"patch": "diff --git a/x b/x\nGIT binary patch\n"}, "the field 'patch' cannot be reversed"),
    ],
)
def test_a_row_that_is_no_task_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=r"rows\.jsonl, line 1 \(acme") as refused:
        SWESmith(source=written(tmp_path / "rows.jsonl", row(**change))).load(NAME)
    assert told in str(refused.value)


def test_visible_tests_are_refused() -> None:
    with pytest.raises(UsageError, match="swesmith: mode: say hidden or debug"):
        SWESmith(mode="visible")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    base, python = os.environ.get("DEBUG_GYM_TEST_IMAGE"), os.environ.get("DEBUG_GYM_TEST_PYTHON")
    if not base or not python or not shutil.which("docker"):
        pytest.skip("set DEBUG_GYM_TEST_IMAGE and DEBUG_GYM_TEST_PYTHON, to an image and its Python; docker runs it")
    tag = f"debug-gym-swesmith-test:{os.getpid()}"
    instance.build(base, python, tmp_path_factory.mktemp("swesmith-image"), tag, {})
    try:
        yield tag
    finally:
        subprocess.run(["docker", "rmi", "-f", tag], check=True, capture_output=True)


EXPLOITS: dict[str, dict[str, str]] = {
    "tests, hooks and a pytest of its own": {
        "tests/test_area.py": "def test_area(): pass\n",
        "tests/test_around.py": "",
        "conftest.py": PASSES_ALL,
        "pytest.py": "print('4 passed')\n",
    },
    **exploits("shapes.py", "tests/test_area.py", BUGGY),
    "a fix that breaks what passed": {"shapes.py": RIGHT.replace("2 * (", "(")},
}


@pytest.mark.docker
@pytest.mark.benchmarks
def test_in_an_image_gold_resolves_and_nothing_else_does_three_times(
    tmp_path: Path, image: str, environments: Environments
) -> None:
    task = SWESmith(source=written(tmp_path / "rows.jsonl", row(image_name=image))).load(NAME)
    env = environments.make(task=task, tools=["bash"])
    seen = env.terminal.run("ls tests; cat shapes.py; git log --all --format=%s; git fsck --unreachable").output
    assert "test_area.py" not in seen and "test_around.py" in seen and "width + height\n" in seen
    assert "the right code" not in seen and "unreachable" not in seen
    grades = grades_of_three_times(env, EXPLOITS)
    assert only_gold_resolves(grades)
    assert grades["a fix that breaks what passed"].broken == ("tests/test_around.py::test_around",)


@pytest.mark.docker
def test_debug_mode_has_the_failing_tests_in_the_workspace(
    tmp_path: Path, image: str, environments: Environments
) -> None:
    made = SWESmith(source=written(tmp_path / "rows.jsonl", row(image_name=image)), mode="debug")
    env = environments.make(task=made.load(NAME), tools=["eval"])
    assert "test_area.py" in env.terminal.run("ls tests").output
    assert env.max_score == 2
