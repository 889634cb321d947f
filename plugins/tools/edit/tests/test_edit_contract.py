"""The edit tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_edit import Edit


class TestEdit(ToolContract):
    tool = Edit
    writes = True
    calls = (
        {"path": "shop.py", "old": "prices[1:]", "new": "prices"},
        {"path": "hello.txt", "old": "o", "new": "0", "count": 4},
        {"path": "odd.txt", "old": "form\ffeed\nno", "new": "a\nb"},
    )
