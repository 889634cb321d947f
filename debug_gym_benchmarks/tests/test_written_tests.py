"""The tests of a file are found by reading it, or it is said that reading does not do: as pytest itself finds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from debug_gym_benchmarks.written_tests import written_tests

CASE = "import unittest\nfrom unittest import TestCase\n\n\n"

READABLE: dict[str, tuple[str, list[str]]] = {
    "functions": ("def test_a():\n    pass\n\n\ndef testb():\n    pass\n\n\ndef b():\n    pass\n", ["test_a", "testb"]),
    "a case": (CASE + "class Any(unittest.TestCase):\n    def test_a(self):\n        pass\n\n    def other(self):\n"
               "        pass\n\n    @staticmethod\n    def help():\n        pass\n", ["Any::test_a"]),
    "a case by its short name": (CASE + "class X(TestCase):\n    def test_a(self):\n        pass\n", ["X::test_a"]),
    "a plain class": ("class TestX:\n    size = 3\n\n    def test_a(self):\n        pass\n", ["TestX::test_a"]),
    "a class that is none": ("class Helper:\n    def test_a(self):\n        pass\n", []),
    "an exception": ("class Odd(ValueError):\n    def test_a(self):\n        pass\n", []),
    "the standard library's": ("import io\n\n\nclass Tin(io.BytesIO):\n    def test_a(self):\n        pass\n", []),
    "a test twice": ("def test_a():\n    pass\n\n\ndef test_a():\n    pass\n", ["test_a"]),
    "skipped": (CASE + "class X(TestCase):\n    @unittest.skip('no')\n    def test_a(self):\n        pass\n\n"
                "    def test_b(self):\n        pass\n", ["X::test_b"]),
    "all skipped": (CASE + "@unittest.skip('no')\nclass X(TestCase):\n    def test_a(self):\n        pass\n", []),
    "expected to fail": (CASE + "class X(TestCase):\n    @unittest.expectedFailure\n    def test_a(self):\n"
                         "        1 / 0\n", []),
    "patched": ("from unittest.mock import patch\n\n\n@patch('os.sep', '-')\ndef test_a():\n    pass\n", ["test_a"]),
    "a script as well": ("def test_a():\n    pass\n\n\nif __name__ == '__main__':\n    test_a()\n", ["test_a"]),
    "nothing": ("", []),
}  # fmt: skip

UNREADABLE = {
    "inherited": CASE + "class A(TestCase):\n    def test_a(self):\n        pass\n\n\nclass B(A):\n    pass\n",
    "of two classes": CASE + "class A:\n    pass\n\n\nclass B(A, TestCase):\n    pass\n",
    "inherited from elsewhere": "from other import Base\n\n\nclass TestB(Base):\n    pass\n",
    "parametrized": "import pytest\n\n\n@pytest.mark.parametrize('a', [1, 2])\ndef test_a(a):\n    pass\n",
    "sometimes skipped": CASE
    + "class A(TestCase):\n    @unittest.skipIf(1, 'no')\n    def test_a(self):\n        pass\n",
    "sometimes there": "import sys\nif sys.platform == 'x':\n    def test_a():\n        pass\n",
    "made": "test_a = lambda: None\n",
    "imported": "from other import test_a\n",
    "all imported": "from other import *\n",
    "marked": "import pytest\npytestmark = pytest.mark.skip\n\n\ndef test_a():\n    pass\n",
    "made in a class": "class TestA:\n    test_b = lambda self: None\n",
    "no Python": "def test_a(:\n",
}


@pytest.mark.parametrize(("text", "names"), READABLE.values(), ids=READABLE)
def test_tests_are_found(text: str, names: list[str]) -> None:
    assert written_tests("dir/x_test.py", text) == tuple(f"dir/x_test.py::{name}" for name in names)


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_only_running_tells_is_not_guessed(text: str) -> None:
    assert written_tests("x_test.py", text) is None


def test_pytest_finds_the_same(tmp_path: Path) -> None:
    """But for those that it cannot run or that are marked to fail."""
    expected = set()
    for number, (text, names) in enumerate(READABLE.values()):
        (tmp_path / f"case_{number}_test.py").write_text(text)
        expected |= {f"case_{number}_test.py::{name}" for name in names}
    reader = (
        "def pytest_collection_modifyitems(items):\n    import pytest\n    items[:] = [one for one in items if not ("
    )
    (tmp_path / "conftest.py").write_text(
        reader + "getattr(one.obj, '__unittest_skip__', False) or getattr(one.cls, '__unittest_skip__', False)"
        " or getattr(one.obj, '__unittest_expecting_failure__', False))]\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-W", "ignore"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert {line for line in done.stdout.splitlines() if "::" in line} == expected, done.stdout
