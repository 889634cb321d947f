"""The eval tool keeps what every tool promises."""

from __future__ import annotations

from debug_gym_core.testing import ToolContract
from debug_gym_tool_eval import Eval

TESTS = """
import unittest
from shop import total

class T(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(total([]), 0)

    def test_some(self):
        self.assertEqual(total([1, 2, 3]), 6)
"""


class TestEval(ToolContract):
    tool = Eval
    calls = ({},)
    # Not pytest, which takes longer to start: what it says is tried in the other modules.
    more_files = {"test_shop.py": TESTS}  # noqa: RUF012
    env_settings = {  # noqa: RUF012
        "entrypoint": "python -m unittest -q",
        "tests": ("test_shop.T.test_nothing", "test_shop.T.test_some"),
    }
    # What becomes of a step whose sandbox is lost is tried with this tool: tests/test_faults.py.
    repeats = {"faults": ["a_lost_sandbox_ends", "a_restarted_sandbox_is"]}  # noqa: RUF012
