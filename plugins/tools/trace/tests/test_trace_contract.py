"""The trace tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_trace import Trace


class TestTrace(ToolContract):
    tool = Trace
    paths = ("target",)
    tries = 15
    calls = (
        {"target": "shop.py:total"},
        {
            "target": "shop.py:total",
            "entrypoint": "python -c 'import shop; shop.total([]), shop.total([1])'",
            "call": 2,
        },
    )
