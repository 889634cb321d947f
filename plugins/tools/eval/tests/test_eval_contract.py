"""The eval tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_core.testing.sample import BY_UNITTEST
from debug_gym_tool_eval import Eval


class TestEval(ToolContract):
    tool = Eval
    calls = ({},)
    # Not pytest, which takes longer to start: what it says is tried in the other modules.
    more_files = BY_UNITTEST["more_files"]
    env_settings = {name: value for name, value in BY_UNITTEST.items() if name != "more_files"}  # noqa: RUF012
    # What becomes of a step whose sandbox is lost is tried with this tool: tests/test_faults.py.
    repeats = {"faults": ["a_lost_sandbox_ends", "a_restarted_sandbox_is"]}  # noqa: RUF012
