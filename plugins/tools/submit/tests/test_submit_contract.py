"""The submit tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_submit import Submit


class TestSubmit(ToolContract):
    tool = Submit
    repeats = {"faults": ["test_wrong_arguments_are_answered"]}  # noqa: RUF012
    calls = ({"message": "done"}, {})
    env_settings = {"entrypoint": "grep -q prices shop.py", "tests": (), "max_score": 1}  # noqa: RUF012
    tries = 10  # each grades
