"""Releases of pytest that published tasks are pinned to, each in its own environment: run, debugged and graded."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import PYTHONS, version_of

import debug_gym_core

RELEASES = {
    "3.3.1": ((3, 6), ["attrs==17.3.0", "py==1.10.0"]),
    "4.4.2": ((3, 9), ["attrs==19.1.0", "pluggy==0.11.0", "setuptools==41.0.1"]),
    "4.6.11": ((3, 9), []),
    "5.0.1": ((3, 9), []),
    "5.1.3": ((3, 9), []),
    "6.2.5": ((3, 9), []),
    "7.4.4": ((3, 11), []),
    "8.4.2": (None, []),
}
"""The Python that each is used with (None: the one that runs the tests), and what else it needs of its time.

Up to 5.1 pytest is a module and no package; up to 4.6 its assertion rewriting takes other arguments, and 3.3 has marks
and hooks of its own. 7 and 8 put functions around some hooks.
"""

IN_GATE = "8.4.2"
"""What most who are not on the newest release have, and what the gate runs tests with beside that."""

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": """\
import unittest

import pytest

import calc


@pytest.fixture
def two():
    return 2


def test_add(two):
    total = calc.add(two, 2)
    assert total == 4


@pytest.mark.parametrize("number", [1, 2])
def test_zero(number):
    assert calc.add(number, 0) == number


@pytest.mark.skip(reason="later")
def test_skipped():
    assert False


@pytest.mark.xfail
def test_expected():
    assert False


def test_raises():
    with pytest.raises(TypeError):
        calc.add("a", 1)


class TestZero(unittest.TestCase):
    def test_zero(self):
        self.assertEqual(calc.add(3, 0), 3)
""",
}


@pytest.fixture(scope="module", params=RELEASES)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with that release."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv on the PATH: pip install uv")
    version, needs = RELEASES[request.param]
    base = next((one for one in PYTHONS if version_of(one) == version), None if version else sys.executable)
    if base is None:
        pytest.skip(f"needs Python {version[0]}.{version[1]}: DEBUG_GYM_TEST_PYTHONS names others")
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([uv, "venv", "-q", "--no-project", "-p", base, environment], check=True)
    python = environment / "bin" / "python"
    install = [uv, "pip", "install", "-q", "-p", python, f"pytest=={request.param}", *needs]
    done = subprocess.run(install, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return python


def told(env: Any, tool: str, **arguments: object) -> str:
    """What a tool answers."""
    return str(env.step({"name": tool, "arguments": arguments})[0]["text"])


@pytest.fixture
def env(python: Path, sandbox: str, tmp_path: Path) -> Any:
    """The files above, run by that interpreter."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return debug_gym_core.make(
        "repo",
        path=str(tmp_path),
        entrypoint="python -m pytest -q",
        python=str(python),
        tools=["eval", "pdb", "rewrite"],
        terminal=sandbox,
    )


@pytest.mark.parametrize("python", [IN_GATE], indirect=True)
def test_its_tests_are_run_and_their_failures_told(env: Any) -> None:
    with env:
        assert env.reset()[1]["max_score"] == 5
        observed = told(env, "eval")
        assert "FAILED test_calc.py::test_add: AssertionError: assert 0 == 4" in observed
        assert "1 failed, 4 passed, 1 skipped, 1 xfailed in <time>" in observed


@pytest.mark.interpreters
def test_it_is_run_debugged_and_graded(env: Any) -> None:
    with env:
        assert env.reset()[1]["max_score"] == 5
        observed = told(env, "eval")
        assert "FAILED test_calc.py::test_add: AssertionError: assert 0 == 4" in observed
        assert "1 failed, 4 passed, 1 skipped, 1 xfailed in <time>" in observed
        told(env, "pdb", command="b calc.py:2")
        assert "locals: a = 2, b = 2" in told(env, "pdb", command="c")
        told(env, "rewrite", path="calc.py", start=2, new_code="    return a + b")
        assert told(env, "eval").startswith("5 of 5 tests pass (measured in place and on a clean copy)")
        grade = env.unwrapped.grade()
        assert (grade.resolved, grade.score, grade.twins, grade.doubts) == (True, 5, 5, {})
