"""The rewrite tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_rewrite import Rewrite


class TestRewrite(ToolContract):
    tool = Rewrite
    writes = True
    calls = (
        {"path": "shop.py", "start": 6, "new_code": "    for price in prices:\n"},
        {"path": "new/file.txt", "new_code": "new\n"},
        {"path": "odd.txt", "start": 1, "end": 2, "new_code": "été"},
    )
