"""The eval tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_eval import Eval


class TestEval(ToolContract):
    tool = Eval
    calls = ({},)
