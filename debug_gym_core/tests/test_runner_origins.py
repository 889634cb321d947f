"""Whose a function is, and who may name plugins, as the runner tells it: by itself, without a sandbox."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.grading.runner.describe import Describer
from debug_gym_core.grading.runner.origins import TAKING_PART, Origins

HELPER = "def hook(): return 1\n\ndef made(other):\n    def hook(): return other()\n    return hook\n"


class Repository:
    """A repository with modules that help its tests, and what tells of their functions."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for path in ("tests/helper.py", "other/helper.py", "shop.py"):
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(HELPER)
        self.root, self.monkeypatch = root, monkeypatch
        self.origins = Origins(str(root), Describer(str(root)).inside, ["tests/"])
        self.origins.began = float("inf")

    def module(self, path: str = "tests/helper.py", name: str = "helper") -> Any:
        """A module as it is imported."""
        module = types.ModuleType(name)
        module.__file__ = str(self.root / path)
        exec(compile((self.root / path).read_text(), module.__file__, "exec", dont_inherit=True), vars(module))
        self.monkeypatch.setitem(sys.modules, name, module)
        return module


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return Repository(tmp_path, monkeypatch)


def moved(repository: Repository) -> Any:
    (repository.root / "tests").rename(repository.root / "aside")
    (repository.root / "other").rename(repository.root / "tests")
    return repository.module().hook


MAY_TAKE_PART: dict[str, tuple[Callable[[Repository], Any], bool]] = {
    "of the tests": (lambda one: one.module().hook, True),
    "of a directory that was moved to theirs": (moved, False),
}


@pytest.mark.parametrize(("function", "may"), MAY_TAKE_PART.values(), ids=MAY_TAKE_PART)
def test_who_may_take_part(repository: Repository, function: Callable[[Repository], Any], may: bool) -> None:
    assert repository.origins.may_replace(function(repository), TAKING_PART) is may
