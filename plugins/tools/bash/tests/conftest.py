"""Environments with a shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from shells import Say, make, speaker
from support import terminals

from debug_gym_core.environment.env import RepoEnv


@pytest.fixture
def env(tmp_path: Path) -> Iterator[RepoEnv]:
    made = make(tmp_path / "repo")
    made.reset(seed=0)
    yield made
    made.close()


@pytest.fixture
def say(env: RepoEnv) -> Say:
    return speaker(env)


@pytest.fixture(params=terminals())
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Say]:
    made = make(tmp_path / "repo", request.param)
    made.reset(seed=0)
    yield speaker(made)
    made.close()
