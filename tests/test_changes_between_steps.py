"""What a program of ours does to the files between two steps: the tools are told before one of them works on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import repeated

import debug_gym_core
from debug_gym_core.testing.sample import ENTRYPOINT

OLD = "a = 1\n"
NEW = "a = 1\nb = 2\nc = 3\n"


@pytest.mark.parametrize("there", [False, *repeated("debugger", True)], ids=["a new file", "a file that there is"])
def test_a_breakpoint_is_set_in_what_was_written_before(sandbox: str, tmp_path: Path, there: bool) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert False\n")
    if there:
        (tmp_path / "other.py").write_text(OLD)
    command = "python other.py"
    env: Any = debug_gym_core.make(
        "repo",
        path=str(tmp_path),
        entrypoint=ENTRYPOINT,
        debug_entrypoint=command,
        tools=["pdb"],
        terminal=sandbox,
    )
    with env:
        env.reset()
        env.unwrapped.workspace.write_text("other.py", NEW)
        answer = env.step("pdb b other.py:3")[0]["text"]
        assert "Breakpoint 1 at /testbed/other.py:3" in answer
        assert "moved" not in answer and "dropped" not in answer and "ended" not in answer
        assert "stopped: breakpoint 1 at other.py:3" in env.step("pdb c")[0]["text"]


def test_breakpoints_move_before_the_next_step_uses_them(sandbox: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert False\n")
    (tmp_path / "other.py").write_text(NEW)
    env: Any = debug_gym_core.make(
        "repo",
        path=str(tmp_path),
        entrypoint=ENTRYPOINT,
        debug_entrypoint="python other.py",
        tools=["pdb"],
        terminal=sandbox,
    )
    with env:
        env.reset()
        env.step("pdb b other.py:3")
        env.unwrapped.workspace.write_text("other.py", "# first\n" + NEW)
        answer = env.step("pdb c")[0]["text"]
        assert "stopped: breakpoint 1 at other.py:4" in answer
        assert answer.index("stopped:") < answer.index("Breakpoint 1 moved from other.py:3 to other.py:4")
