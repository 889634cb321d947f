"""The grep tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_grep import Grep


class TestGrep(ToolContract):
    tool = Grep
    calls = (
        {"pattern": "total"},
        {"pattern": r"def \w+\(", "path": "shop.py", "context": 2},
        {"pattern": "CAF.", "glob": "*.txt", "case_sensitive": False, "max_results": 1},
        {"pattern": "nobody", "path": "docs"},
    )
