"""The pdb tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_pdb import Pdb


class TestPdb(ToolContract):
    tool = Pdb
    repeats = {"faults": ["test_wrong_arguments_are_answered"]}  # noqa: RUF012
    calls = (
        {"command": "b shop.py:7\nc\np price"},
        {"command": "p 1", "entrypoint": "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q -p no:cacheprovider"},
        {"command": "q"},
    )
