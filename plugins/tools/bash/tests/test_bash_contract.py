"""The bash tool keeps what every tool promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from debug_gym_core.testing import ToolContract
from debug_gym_tool_bash import Bash


class TestBash(ToolContract):
    tool = Bash
    repeats = {"faults": ["test_wrong_arguments_are_answered"]}  # noqa: RUF012
    # Wrong commands, such as those that lack a quotation mark, wait for it in vain.
    settings: ClassVar[Mapping[str, Any]] = {"timeout": 2}
    terminal = "bubblewrap"
    paths = ()
    tries = 30
    calls = (
        {"command": "cd docs && x=5"},
        {"command": "pwd; echo $x; echo error >&2; (exit 3)", "timeout": 30},
        {"command": "bash -c 'kill -SEGV $$' & wait $!", "timeout": 10},
        {"command": "exit 7", "timeout": 30},
        {"command": "pwd; echo $x", "timeout": 30},
    )
