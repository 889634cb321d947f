"""A small commit as R2E-Gym publishes its own: a row, and the image with the tests that count beside the code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import swebench_images as images

from debug_gym_benchmarks.r2egym import plain

BUGGY = "def middle(items):\n    return items[len(items) // 2 - 1]\n"
FIXED = "def middle(items):\n    return items[len(items) // 2]\n"
HIDDEN_TESTS = (
    "import pytest\nfrom numbers_of import middle\n\n\nclass TestMiddle:\n    def test_odd(self):\n"
    "        assert middle([1, 2, 3]) == 2\n\n    @pytest.mark.parametrize('n', [1, 5])\n    def test_range(self, n):\n"
    "        assert middle(list(range(n))) == n // 2\n\n\ndef test_never():\n    assert middle([]) is None\n"
)
EXPECTED = {
    "TestMiddle.test_odd": "PASSED",
    "\x1b[1mTestMiddle.test_range[1]\x1b[0m": "PASSED",
    "TestMiddle.test_range[5]": "PASSED",
    "test_never - IndexError: list index out of range": "FAILED",
}
BEFORE = """\
1 passed, 3 failed
=========================== short test summary info ============================
PASSED r2e_tests/test_1.py::TestMiddle::test_range[1]
\x1b[31mFAILED\x1b[0m r2e_tests/test_1.py::TestMiddle::test_odd - assert 1 == 2
FAILED r2e_tests/test_1.py::TestMiddle::test_range[5] - assert 1 == 2
FAILED r2e_tests/test_1.py::test_never - IndexError: list index out of range
"""
IMAGE = "acme12/numbers_final:0123456789abcdef"
AFTER = "short test summary info\n" + "".join(
    f"{outcome} r2e_tests/test_1.py::{plain(test).replace('.', '::')}\n" for test, outcome in EXPECTED.items()
)
NAME = "numbers-0123456789abcdef"


def commit(**changes: Any) -> dict[str, Any]:
    """`parsed_commit_content` of the fix, as R2E-Gym takes diffs apart."""

    def line(kind: str, content: str) -> dict[str, str]:
        return {"type": kind, "content": content}

    def file(path: str, old: str, new: str, **more: Any) -> dict[str, Any]:
        lines = [line("context", "def middle(items):"), line("deleted", old), line("added", new)]
        ranges = {"old_range": {"start": 1, "length": 2}, "new_range": {"start": 1, "length": 2}, "section": ""}
        return {
            "old_file_content": "",
            "new_file_content": "",
            "header": {"file": {"path": path}, "misc_line": None},
            "index_line": {"old_commit_hash": "1" * 7, "new_commit_hash": "2" * 7, "mode": "100644"},
            "is_binary_file": False,
            "minus_file": {"path": f"a/{path}"},
            "plus_file": {"path": f"b/{path}"},
            "hunks": [{"descriptor": ranges, "line_group": {"all_lines": lines}}],
            **more,
        }

    fix = file("numbers_of.py", "    return items[len(items) // 2 - 1]", "    return items[len(items) // 2]", **changes)
    return {"file_diffs": [file("tests/test_numbers.py", "old", "new"), fix], "new_commit_hash": "0123456789abcdef"}


def row(**changes: Any) -> dict[str, Any]:
    return {
        "repo_name": "numbers",
        "docker_image": IMAGE,
        "commit_hash": "0123456789abcdef",
        "parsed_commit_content": json.dumps(commit()),
        "execution_result_content": json.dumps({"old_commit_res_stdout": BEFORE}),
        "modified_files": ["numbers_of.py"],
        "prompt": "",
        "problem_statement": "Write it.\n[ISSUE]\nmiddle() is one off.\n[/ISSUE]\n",
        "expected_output_json": json.dumps(EXPECTED),
        **changes,
    }


def build(base: str, python: str, context: Path, tag: str, more: Mapping[str, str]) -> None:
    """Build an image in the published layout: repository, history and environment at /testbed, tests at /r2e_tests.

    Args:
        base: the image below
        python: its Python
        context: an empty directory
        tag: what to call it
        more: files to add, text by absolute path
    """
    files = {
        "/testbed/numbers_of.py": BUGGY,
        "/testbed/run_tests.sh": "python -m pytest -rA r2e_tests\n",
        "/r2e_tests/__init__.py": "",
        "/r2e_tests/test_1.py": HIDDEN_TESTS,
        **more,
    }
    venv = Path(python).parent.parent
    commands = (
        f"mkdir -p .venv/bin && ln -s $(readlink -f {python}) .venv/bin/python && ln -s {venv}/lib .venv/lib"
        f" && cp {venv}/pyvenv.cfg .venv && git init -q && git add -A ."
        " && git -c user.name=t -c user.email=t@localhost commit -qm 'all of it'"
    )
    images.build_of(base, context, tag, files, commands)
