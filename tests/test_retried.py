"""What the gate does with tests that fail: `.ci/retried`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

RETRIED = Path(__file__).parents[1] / ".ci" / "retried"
PYTEST = f"{sys.executable} -m pytest -q -p xdist.plugin -c /dev/null --rootdir ."
FLAKY = """
import pathlib
def test_at_last():
    tries = pathlib.Path("tries")
    tries.write_text((tries.read_text() if tries.exists() else "") + "x")
    assert len(tries.read_text()) >= {needed}
def test_sound(): pass
"""


def retried(directory: Path, options: str = "") -> tuple[int, list[str]]:
    """The exit status, and what was said of failed tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "DEBUG_GYM_"))}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take half a second at each start
    command = [RETRIED, tempfile.mkdtemp(dir=directory), f"{PYTEST} {options}", PYTEST]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED test_", "FLAKY ", "ERROR "))]
    return done.returncode, [line.partition(" - ")[0] for line in said]


def test_one_that_passes_at_last_is_named_and_nothing_is_red(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FLAKY.format(needed=3))
    status, said = retried(tmp_path, "-n 2")
    assert status == 0
    assert said[-1] == "FLAKY test_it.py::test_at_last"


def test_one_that_fails_each_time_is_red(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FLAKY.format(needed=2) + "def test_broken(): assert False\n")
    status, said = retried(tmp_path)
    assert status == 1
    assert said[-2:] == ["FAILED test_it.py::test_broken", "FLAKY test_it.py::test_at_last"]
    assert (tmp_path / "tries").read_text() == "xx"  # what passed is not run once more


@pytest.mark.faults
def test_what_is_no_failed_test_is_red_at_once(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_sound(): pass\n")
    assert retried(tmp_path, "--no-such-option")[0] == 4
    (tmp_path / "test_it.py").write_text("import no_such_module\n")
    status, _ = retried(tmp_path)
    assert status == 2


@pytest.mark.faults
def test_a_worker_that_dies_is_a_failed_test(tmp_path: Path) -> None:
    code = "import os, pathlib\ndef test_dies():\n    if not pathlib.Path('died').exists():\n"
    code += "        pathlib.Path('died').touch()\n        os._exit(3)\n"
    (tmp_path / "test_it.py").write_text(code)
    assert retried(tmp_path, "-n 2") == (0, ["FAILED test_it.py::test_dies", "FLAKY test_it.py::test_dies"])
