"""A tiny package that poses as an instance of SWE-bench, in the published schema, and its image."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import swebench_images as images

FILES = {
    "till.py": "def total(prices):\n    return sum(prices[1:])\n\n\ndef count(prices):\n    return len(prices)\n",
    "tests/__init__.py": "",
    "tests/test_till.py": (
        "from till import count, total\n\n\ndef test_count():\n    assert count([1, 2]) == 2\n\n\n"
        "def test_nothing():\n    assert total([]) == 0\n"
    ),
}
GOLD = """\
diff --git a/till.py b/till.py
--- a/till.py
+++ b/till.py
@@ -1,5 +1,5 @@
 def total(prices):
-    return sum(prices[1:])
+    return sum(prices)
 
 
 def count(prices):
"""
TESTS = """\
diff --git a/tests/test_till.py b/tests/test_till.py
--- a/tests/test_till.py
+++ b/tests/test_till.py
@@ -7,3 +7,7 @@
 
 def test_nothing():
     assert total([]) == 0
+
+
+def test_total():
+    assert total([1, 2]) == 3
"""
FAIL_TO_PASS = ["tests/test_till.py::test_total"]
PASS_TO_PASS = ["tests/test_till.py::test_count", "tests/test_till.py::test_nothing"]
ROW: dict[str, Any] = {
    "instance_id": "psf__requests-990001",
    "repo": "psf/requests",
    "version": "2.10",
    "base_commit": "5a" * 20,
    "environment_setup_commit": "5a" * 20,
    "problem_statement": "The till forgets the first price.",
    "hints_text": "",
    "created_at": "2021-01-01T00:00:00Z",
    "patch": GOLD,
    "test_patch": TESTS,
    "FAIL_TO_PASS": json.dumps(FAIL_TO_PASS),
    "PASS_TO_PASS": json.dumps(PASS_TO_PASS),
}
IMAGE = f"debug-gym-test-swebench-{os.getpid()}:{{name}}"
"""A template, as `benchmark.image` takes it."""


def write_rows(path: Path, *changes: dict[str, Any]) -> Path:
    """Write a file of rows: the instance, changed as each says; None takes a field away."""
    rows = ({key: value for key, value in {**ROW, **one}.items() if value is not None} for one in changes or ({},))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def build(base: str) -> str:
    """Build the image of the instance; returns its name."""
    name = IMAGE.format(name=ROW["instance_id"].replace("__", "_1776_"))
    with tempfile.TemporaryDirectory(prefix="debug-gym-swebench-") as scratch:
        testbed = Path(scratch) / "testbed"
        for path, text in FILES.items():
            (testbed / path).parent.mkdir(parents=True, exist_ok=True)
            (testbed / path).write_text(text, encoding="utf-8")
        images.git(testbed, "init", "--quiet", "--initial-branch=main")
        images.git(testbed, "add", "--all")
        images.git(testbed, "commit", "--quiet", "--message", "base")
        images.leak(testbed, GOLD.encode())
        images.build(name, base, testbed, more=dict.fromkeys(images.LEAKS[ROW["repo"]], GOLD))
    return name


def remove(name: str) -> None:
    """Remove an image."""
    subprocess.run(["docker", "rmi", "--force", name], capture_output=True, check=True)
