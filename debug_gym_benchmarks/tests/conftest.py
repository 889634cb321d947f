"""Where tests of several benchmarks run their tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import reason_not_to_use

from debug_gym_core.testing.environments import Environments, unusable


@pytest.fixture(scope="session")
def sandbox() -> str:
    """The terminal for tasks whose repository is on this machine."""
    if reason := reason_not_to_use("bubblewrap"):
        pytest.skip(reason)
    return "bubblewrap"


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Environments]:
    """Environments for tasks that come as an image."""
    if reason := unusable("docker"):
        pytest.skip(reason)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with Environments(tmp_path, "docker") as made:
        yield made
