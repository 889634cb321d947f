"""A live environment with the tools that a person plays with, and one with every kind of argument."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from debug_gym_core import Tool
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.tasks.task import Task


class Paint(Tool):
    """Paint a file. It is not changed."""

    name = "paint"
    examples = ({"colour": "red", "path": "src/app.py"},)

    def use(
        self,
        env: RepoEnv,
        colour: Literal["red", "dark green", "reddish"],
        path: str,
        *,
        twice: bool = False,
        note: str | None = None,
    ) -> str:
        """Paint.

        Args:
            env: the environment
            colour: which colour
            path: the file
            twice: whether two layers are needed
            note: what else is to be said
        """
        return f"painted {path} {colour}"


class Breaks(Tool):
    """Do nothing well."""

    name = "breaks"

    def use(self, env: RepoEnv) -> str:
        """Fail."""
        raise RuntimeError("it is broken")


@pytest.fixture
def env(tmp_path: Path) -> Iterator[RepoEnv]:
    made = live(tmp_path / "repo")
    yield made
    made.close()


@pytest.fixture(scope="module")
def quiet_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RepoEnv]:
    """The same one for all tests that only look at it."""
    made = live(tmp_path_factory.mktemp("human") / "repo")
    yield made
    made.close()


def live(root: Path) -> RepoEnv:
    """An environment of a repository that is written there."""
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "app.py").write_text("".join(f"x = {number}\n" for number in range(1, 31)))
    (root / "src" / "deep" / "inner.py").touch()
    (root / "src" / "my file.py").touch()
    (root / "it's.txt").touch()
    (root / "secret.py").touch()
    (root / "fixed.py").touch()
    (root / ".hidden").touch()
    (root / "test_app.py").write_text("def test():\n    pass\n")
    (root / ".debugignore").write_text("secret*\n")
    (root / ".debugreadonly").write_text("fixed.py\n")
    task = Task("tests", "human", root, entrypoint="python src/app.py", max_score=1)
    tools = ["view", "listdir", "rewrite", "edit", "eval", "pdb", "bash", Paint(), Breaks()]
    made = RepoEnv(task, tools, "local", trusted=True, max_steps=50)
    made.reset(seed=0)
    return made
