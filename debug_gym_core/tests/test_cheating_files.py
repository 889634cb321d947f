"""Files that make a broken repository look fixed to a naive grader: none of them counts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from grading_bench import FIXED, IDS, REPOSITORY, Bench, Make
from support import handful, repeated

from debug_gym_core.workspace.snapshot import FileState

FORCE_PASSED = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
    outcome.get_result().longrepr = None
"""
RUN_NOTHING = """
def pytest_pyfunc_call(pyfuncitem):
    return True
"""
FILE_ATTACKS: dict[str, Mapping[str, str | FileState | None]] = {
    "replaced tests": {"test_calc.py": "def test_double(): pass\ndef test_add(): pass\n"},
    "deleted tests": {"test_calc.py": None},
    "a package in place of the tests": {"test_calc.py": None, "test_calc/__init__.py": "def test_add(): pass\n"},
    "conftest.py that forges reports": {"conftest.py": FORCE_PASSED},
    "conftest.py that runs nothing": {"conftest.py": RUN_NOTHING},
    "conftest.py that deselects": {"conftest.py": "def pytest_collection_modifyitems(items): del items[1]\n"},
    "pytest.ini that deselects": {"pytest.ini": "[pytest]\naddopts = --deselect test_calc.py::test_add\n"},
    "tox.ini that loads a plugin": {"tox.ini": "[pytest]\naddopts = -p forge\n", "forge.py": RUN_NOTHING},
    "setup.cfg that loads a plugin": {"setup.cfg": "[tool:pytest]\naddopts = -p forge\n", "forge.py": RUN_NOTHING},
    "pyproject.toml that loads a plugin": {
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p forge"\n',
        "forge.py": RUN_NOTHING,
    },
    "installed metadata that names a plugin": {
        "forge.egg-info/entry_points.txt": "[pytest11]\nforge = forge\n",
        "forge.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: forge\nVersion: 1\n",
        "forge.py": RUN_NOTHING,
    },
    "sitecustomize.py": {"sitecustomize.py": "print('2 passed')\nimport os\nos._exit(0)\n"},
    "pytest.py": {"pytest.py": "import sys\ndef main(*a, **k): return 0\nprint('2 passed')\nsys.exit(0)\n"},
    "json.py": {"json.py": "import os\nprint('2 passed')\nos._exit(0)\n"},
    "a package named pluggy": {"pluggy/__init__.py": "import os\nos._exit(0)\n"},
    "a link in place of the tests": {"test_calc.py": FileState(b"calc.py", 0o777, "link")},
    "compiled code": {"__pycache__/test_calc.cpython-311.pyc": "garbage", "calc.pyc": "garbage"},
}


AT_ONCE: dict[str, str | FileState | None] = {}
for one in FILE_ATTACKS.values():
    AT_ONCE |= {path: text for path, text in one.items() if path not in AT_ONCE}
FILES = {"all at once": AT_ONCE, **FILE_ATTACKS}


@pytest.mark.parametrize(
    "attack",
    handful("grading", FILES, "all at once", "a package in place of the tests", "a link in place of the tests"),
)
def test_files_that_cheat_are_not_taken_over(bench: Bench, attack: Mapping[str, str | FileState | None]) -> None:
    result = bench.grade(attack)
    assert result.tests == {IDS[0]: "passed", IDS[1]: "failed"}
    assert not result.resolved
    assert set(attack) - {"forge.py", "test_calc/__init__.py"} <= set(result.dropped)


@pytest.mark.parametrize("attack", FILE_ATTACKS.values(), ids=FILE_ATTACKS)
@pytest.mark.grading
def test_a_right_fix_counts_whatever_else_was_changed(
    bench: Bench, attack: Mapping[str, str | FileState | None]
) -> None:
    result = bench.grade({**attack, "calc.py": FIXED})
    assert (result.resolved, result.score) == (True, 2), result


FORCE_ONE = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if item.name == "test_add":
        outcome.get_result().outcome = "passed"
"""


def test_what_a_test_raised_counts_whatever_its_report_says(make: Make) -> None:
    result = make(allowed=["conftest.py"]).grade({"conftest.py": FORCE_ONE})
    assert (result.resolved, result.score) == (False, 1)
    assert result.tests == {IDS[0]: "passed", IDS[1]: "failed"}
    assert "its exit status is 0 although tests failed" in result.reason


@pytest.mark.parametrize(
    "hooks", [FORCE_PASSED, *repeated("grading", RUN_NOTHING)], ids=["forged reports", "tests not run"]
)
def test_the_canary_sees_hooks_that_were_allowed(make: Make, hooks: str) -> None:
    result = make(REPOSITORY, allowed=["conftest.py"]).grade({"conftest.py": hooks})
    assert not result.resolved
    assert result.score == 0
    assert "canary" in result.reason
