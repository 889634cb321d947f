"""The view tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_view import View


class TestView(ToolContract):
    tool = View
    calls = ({"path": "hello.txt"}, {"path": "shop.py", "start": 4, "end": 6}, {"path": "odd.txt"})
