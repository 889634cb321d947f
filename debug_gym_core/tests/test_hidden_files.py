"""What only grading has: files of the repository, and tests that lie elsewhere in the image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.environment.image_repositories import image_settings
from debug_gym_core.tasks.task import Task
from debug_gym_core.workspace.pristine import Pristine


def pristine(tmp_path: Path, **fields: Any) -> tuple[set[str], set[str]]:
    """The files that the agent gets and that are graded."""
    for path in ("repo/app.py", "repo/tests/test_a.py", "repo/tests/test_b.py", "made/test_1.py", "made/data/one.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    task = Task(benchmark="b", name="n", repository=tmp_path / "repo", **fields)
    taken = Pristine.take(task, tmp_path / "repo", tmp_path / "made" if task.image_tests else None)
    try:
        agent, graded = (
            {path for path, member in one.members.items() if member.kind == "file"}
            for one in (taken.agent, taken.graded)
        )
        assert taken.graded.read("app.py") == b"repo/app.py"
        return agent, graded
    finally:
        taken.close()


ALL = {"app.py", "tests/test_a.py", "tests/test_b.py"}
TESTS = {"made/test_1.py", "made/data/one.txt"}


def test_hidden_files_are_gradings_alone(tmp_path: Path) -> None:
    fields = {"hidden_files": ("tests/test_a.py", "absent.py")}
    assert pristine(tmp_path, mode="hidden", **fields) == (ALL - {"tests/test_a.py"}, ALL)
    assert pristine(tmp_path, mode="debug", **fields) == (ALL, ALL)


def test_tests_of_the_image_are_gradings_alone_unless_they_are_shown(tmp_path: Path) -> None:
    fields = {"image_tests": ("/made", "made")}
    assert pristine(tmp_path, mode="hidden", **fields) == (ALL, ALL | TESTS)
    assert pristine(tmp_path, mode="debug", **fields) == (ALL | TESTS, ALL | TESTS)


@pytest.mark.parametrize("chosen", [{}, {"tmpfs": ("/var/cache",), "kept": ["/testbed/node_modules"]}])
def test_the_image_s_own_tests_are_covered_and_its_environment_stays(chosen: dict[str, Any]) -> None:
    task = Task(benchmark="b", name="n", image_kept=("/testbed/.venv",), image_tests=("/made", "made"))
    assert image_settings(task, chosen) == {
        "kept": (*chosen.get("kept", ()), "/testbed/.venv"),
        "tmpfs": (*chosen.get("tmpfs", ()), "/made"),
    }
    assert image_settings(Task(benchmark="b", name="n"), chosen) == {}
