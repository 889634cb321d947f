"""An environment that nobody holds any more, and nobody closed: it leaves nothing."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from support import reason_not_to_use, terminals

import debug_gym_core
from debug_gym_core.testing import processes_with, wait_until
from debug_gym_core.testing.sample import ENTRYPOINT


@pytest.mark.parametrize("terminal", terminals("local", "bubblewrap"))
def test_an_environment_that_is_dropped_ends_with_its_programs(
    terminal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = reason_not_to_use(terminal)
    if reason:
        pytest.skip(reason)
    (tmp_path / "test_a.py").write_text("def test_a():\n    assert 0\n")
    env = debug_gym_core.make(
        "repo",
        path=tmp_path,
        entrypoint=ENTRYPOINT,
        tools=["pdb", "bash", "eval"],
        terminal=terminal,
        allow_unsandboxed=True,
    )
    env.reset(seed=0)
    marker = f"marker-{id(env)}-{tmp_path.name}"
    for action in ("pdb b test_a.py:2", "pdb c", f"bash export MARK={marker}; sleep 1000 &", "eval"):
        env.step(action)
    wait_until(lambda: processes_with(marker) != [], "nothing runs")
    session = weakref.ref(env.session)
    del env
    gc.collect()
    assert session() is None
    wait_until(lambda: processes_with(marker) == [], "processes are left", seconds=60)
