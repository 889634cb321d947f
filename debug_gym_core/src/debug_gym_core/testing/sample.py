"""A small repository with a bug, to try components on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from debug_gym_core.tasks.task import Task

SHOP = """\
\"\"\"Prices of a shop.\"\"\"


def total(prices):
    result = 0
    for price in prices[1:]:
        result += price
    return result


if __name__ == "__main__":
    print("total", total([1, 2, 3]))
"""

FIXED_SHOP = SHOP.replace("prices[1:]", "prices")

TESTS = """\
from shop import total


def test_nothing():
    assert total([]) == 0


def test_some():
    assert total([1, 2, 3]) == 6
"""

SECRET = "what nobody may see"
"""Content of the ignored file `secret/plan.txt`."""

FILES: Mapping[str, str | bytes] = {
    "shop.py": SHOP,
    "test_shop.py": TESTS,
    "hello.txt": "hello, world\nand good night\n",
    "docs/guide.md": "# Guide\n\nCall `total` with a list of prices.\n",
    "odd.txt": b"\xef\xbb\xbfcaf\xe9\r\nform\x0cfeed\r\nno newline at the end",
    "secret/plan.txt": f"{SECRET}\n",
    ".debugignore": "secret/\n",
    ".debugreadonly": "test_*.py\n",
}
"""The files of the sample: `shop.py` has the bug, `secret/` is ignored, `test_*.py` is read-only."""

BUG = "shop.py:6"
"""Where the bug is, as `file:line`."""

GOLD_PATCH = b"""\
--- a/shop.py
+++ b/shop.py
@@ -3,5 +3,5 @@
 
 def total(prices):
     result = 0
-    for price in prices[1:]:
+    for price in prices:
         result += price
"""

ENTRYPOINT = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q"
"""An entrypoint for tests that are not about pytest's plugins: those of the author's environment would make it another
one everywhere, and take longer to start than pytest."""

UNITTESTS = """\
import unittest
from shop import total


class Tests(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(total([]), 0)

    def test_some(self):
        self.assertEqual(total([1, 2, 3]), 6)
"""

BY_UNITTEST: Mapping[str, Any] = {
    "more_files": {"test_shop.py": UNITTESTS},
    "entrypoint": "python -m unittest -q",
    "tests": ("test_shop.Tests.test_nothing", "test_shop.Tests.test_some"),
    "requires": (),
}
"""What `make_env` takes so that unittest runs the sample's tests, which starts sooner than pytest."""


def write_sample(directory: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """Write a repository.

    Args:
        directory: where; made when it is not there
        files: content by path; None: the sample's (`FILES`)

    Returns:
        the directory
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in (FILES if files is None else files).items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return directory


def sample_task(directory: Path, **changes: Any) -> Task:
    """The sample's repository as a task: one of its two tests fails until the bug is fixed.

    Args:
        directory: where the repository lies
        changes: fields of `Task` to set otherwise
    """
    facts: dict[str, Any] = {
        "benchmark": "sample",
        "name": "shop",
        "repository": directory,
        "entrypoint": ENTRYPOINT,
        "debug_entrypoint": "python shop.py",
        "description": "The total of some prices is wrong.",
        "tests": ("test_shop.py::test_nothing", "test_shop.py::test_some"),
        "stops": (BUG,),
        "gold_patch": GOLD_PATCH,
        "requires": ("pytest",),
        "time_limit": 60.0,
    }
    return Task(**{**facts, **changes})
