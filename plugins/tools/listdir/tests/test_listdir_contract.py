"""The listdir tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_listdir import ListDir


class TestListDir(ToolContract):
    tool = ListDir
    calls = ({}, {"path": "docs"}, {"path": ".", "depth": 5})
