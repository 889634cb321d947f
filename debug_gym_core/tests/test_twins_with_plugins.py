"""Twins of tests that plugins of pytest take part in."""

from __future__ import annotations

from pathlib import Path

import pytest
from grading_bench import ENTRYPOINT, Bench
from support import repeated

from debug_gym_core.tasks.results import Grade

PLUGIN = """
from unittest import mock
originals = {}
def wrap_assert_called_with(*args, **kwargs):
    originals["assert_called_with"](*args, **kwargs)
def wrap_assert_awaited(*args, **kwargs):
    originals["assert_awaited"](*args, **kwargs)
def pytest_configure(config):
    originals["assert_called_with"] = mock.NonCallableMock.assert_called_with
    mock.NonCallableMock.assert_called_with = wrap_assert_called_with
    if hasattr(mock, "AsyncMock"):
        originals["assert_awaited"] = mock.AsyncMock.assert_awaited
        mock.AsyncMock.assert_awaited = wrap_assert_awaited  # which that class has from another
"""
BROKEN = "def tell(listener, value):\n    listener(value + 1)\n"
FIXED = BROKEN.replace("value + 1", "value")
TESTS = """
from unittest import mock
import calc

def test_tell():
    listener = mock.Mock()
    calc.tell(listener, 5)
    listener.assert_called_with(5)
"""


IN_A_GROUP = """
import asyncio, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not asyncio.iscoroutinefunction(pyfuncitem.obj):
        return None
    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(pyfuncitem.obj())
    asyncio.run(main())
    return True
"""


def grade(directory: Path, plugin: str, code: str) -> Grade:
    """Grade a change, with a plugin that lies where others are installed."""
    place = directory / "site" / plugin
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("")
    (place / "plugin.py").write_text(PLUGIN)
    entrypoint = f"PYTHONPATH={place.parent} {ENTRYPOINT} -p {plugin}.plugin"
    bench = Bench(directory / "repository", {"calc.py": BROKEN, "test_calc.py": TESTS}, entrypoint)
    return bench.grade({"calc.py": code}, ["test_calc.py::test_tell"])


def test_a_mocks_assertions_are_those_of_pytest_mock(tmp_path: Path) -> None:
    result = grade(tmp_path, "pytest_mock", FIXED)
    assert (result.resolved, dict(result.doubts), result.twins, result.reason) == (True, {}, 1, "")


def test_what_pytest_mock_asks_is_asked_for_its_opposite_too(tmp_path: Path) -> None:
    code = f"import pytest_mock.plugin\npytest_mock.plugin.originals['assert_called_with'] = lambda *_: None\n{BROKEN}"
    result = grade(tmp_path, "pytest_mock", code)
    assert (result.resolved, list(result.doubts)) == (False, ["test_calc.py::test_tell"])


@pytest.mark.parametrize(
    ("plugin", "change"),
    [
        *repeated(
            "grading",
            ("other_mock", ""),
            ("pytest_mock", "mock.NonCallableMock.assert_called_with = pytest_mock.plugin.pytest_configure\n"),
            ("pytest_mock", "def wrap_assert_called_with(*_): pass\n"
                            "mock.NonCallableMock.assert_called_with = wrap_assert_called_with\n"),
        ),
        ("pytest_mock", "space = {'__name__': 'pytest_mock.plugin', '__file__': '/usr/lib/x.py'}\n"
                        "exec('def wrap_assert_called_with(*_): pass', space)\n"
                        "mock.NonCallableMock.assert_called_with = space['wrap_assert_called_with']\n"),
    ],
)  # fmt: skip
def test_nobody_else_may_stand_there(tmp_path: Path, plugin: str, change: str) -> None:
    result = grade(tmp_path, plugin, f"from unittest import mock\nimport {plugin}.plugin\n{change}{FIXED}")
    assert not result.resolved and "assert_called_with was replaced" in result.reason


def test_what_runs_tests_in_a_group_of_tasks_raises_groups(tmp_path: Path) -> None:
    tests = (
        "import calc\nasync def test_tell():\n    heard = []\n    calc.tell(heard.append, 5)\n    assert heard[0] == 5"
    )
    files = {"calc.py": BROKEN, "test_calc.py": tests, "conftest.py": IN_A_GROUP}
    result = Bench(tmp_path, files, ENTRYPOINT).grade({"calc.py": FIXED}, ["test_calc.py::test_tell"])
    assert (result.resolved, dict(result.doubts), result.twins, result.reason) == (True, {}, 1, "")
