"""Stops at exception groups: which exceptions are in them, and where those were raised."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from debugged_programs import dedent
from support import version_of

from debug_gym_tool_pdb.render import stop_text


@pytest.fixture
def groups(python: str) -> str:
    """A line that imports `ExceptionGroup`."""
    if version_of(python) >= (3, 11):
        return "import builtins"
    if subprocess.run([python, "-c", "import exceptiongroup"], capture_output=True).returncode:
        pytest.skip("this interpreter has no exception groups")
    return "from exceptiongroup import ExceptionGroup"


def told(stop: dict[str, Any]) -> list[str]:
    """The lines of a stop that tell of its exceptions."""
    said = stop_text({"reason": "exception", "exceptions": stop["exceptions"]})
    return said.splitlines()[1:]


def test_a_task_groups_exception_tells_what_failed_in_its_tasks(debug: Any, python: str) -> None:
    if version_of(python) < (3, 11):
        pytest.skip("asyncio.TaskGroup came with Python 3.11")
    app = """\
    import asyncio

    def helper(key):
        try:
            return {}[key]
        except KeyError as error:
            raise LookupError("nothing there") from error

    async def work():
        helper("x")

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(work())

    asyncio.run(main())
    """
    stop = debug("python app.py", dedent(app)).do("c")["stop"]
    assert told(stop) == [
        "exception: ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
        "  sub-exception: LookupError: nothing there (at app.py:7 in helper)",
        "  caused by: KeyError: 'x' (at app.py:5 in helper)",
    ]


def test_groups_within_groups_are_told_in_bounds(debug: Any, groups: str) -> None:
    app = f"""\
    {groups}

    def group(depth):
        inside = [ValueError(n) for n in range(7)]
        return ExceptionGroup("level %d" % depth, inside if depth == 5 else [group(depth + 1)] + inside)

    raise group(1)
    """
    stop = debug("python app.py", dedent(app)).do("c")["stop"]
    lines = told(stop)
    assert [line.strip().partition(" (")[0] for line in lines[:4]] == [
        "exception: ExceptionGroup: level 1",
        "sub-exception: ExceptionGroup: level 2",
        "sub-exception: ExceptionGroup: level 3",
        "sub-exception: ExceptionGroup: level 4",
    ]
    assert lines[4:] == [
        "        [8 more]",
        "      [7 more]",
        "    sub-exception: ValueError: 0",
        "    sub-exception: ValueError: 1",
        "    [5 more]",
        *(f"  sub-exception: ValueError: {n}" for n in range(4)),
        "  [3 more]",
    ]


def test_a_group_of_odd_objects_costs_no_stop(debug: Any, groups: str) -> None:
    app = f"""\
    {groups}

    class Odd(ExceptionGroup):
        def __getattribute__(self, name):
            if name in ("exceptions", "_exceptions"):
                raise SystemExit(name)
            return super().__getattribute__(name)

    class Mute(Exception):
        def __str__(self):
            raise SystemExit("no text")

    raise Odd("odd", [Mute(), Odd("inner", [Mute()])])
    """
    stop = debug("python app.py", dedent(app)).do("c")["stop"]
    assert "note" not in stop and stop["line"] == 13
    inside = ["  sub-exception: Mute", "  sub-exception: Odd: inner (1 sub-exception)", "    sub-exception: Mute"]
    if "from" in groups:  # the package has its text and its members from what fails here
        assert told(stop) == ["exception: Odd"]
    else:
        assert told(stop) == ["exception: Odd: odd (2 sub-exceptions)", *inside]
