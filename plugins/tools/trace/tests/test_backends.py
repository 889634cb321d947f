"""Both ways to follow a call see the same; on Python 3.12 and newer, where there are two."""

from __future__ import annotations

from pathlib import Path

import pytest
from following import follow
from support import interpreters, version_of
from traced_programs import PROGRAMS

QUICK = ("exceptions", "generator", "method", "coroutine")
"""Programs that the gate tries."""


@pytest.mark.parametrize("depth", [0, pytest.param(2, marks=pytest.mark.debugger)])
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in QUICK else pytest.mark.debugger) for one in PROGRAMS]
)
@pytest.mark.parametrize(
    "python", [one for one in interpreters(handful=True) if version_of(str(one.values[0])) >= (3, 12)]
)
def test_monitoring_sees_what_a_trace_function_sees(name: str, depth: int, python: str, tmp_path: Path) -> None:
    target, text = PROGRAMS[name]
    seen = [
        follow(python, tmp_path, f"app.py:{target}", files={"app.py": text}, depth=depth, backend=backend)
        for backend in ("monitoring", "settrace")
    ]
    assert seen[0].last["story"] == seen[1].last["story"]
    assert seen[0].text == seen[1].text
    assert not seen[0].last["problem"]
    assert seen[0].printed == seen[1].printed and seen[0].status == seen[1].status


def test_the_program_does_what_it_does_alone(python: str, tmp_path: Path) -> None:
    text = (
        "import gc, sys\n\nclass A:\n    def __del__(self):\n        print('gone')\n\n"
        "def f(n):\n    a = A()\n    del a\n    print('after')\n    b = A()\n    return n\n\n"
        "print(f(1), sys.gettrace(), __name__, sys.argv)\nprint([x for x in map(f, [2])])\n"
    )
    found = follow(python, tmp_path, "app.py:f", "python app.py 1", files={"app.py": text})
    assert found.printed.splitlines() == [
        *("gone", "after", "gone", "1 None __main__ ['app.py', '1']", "gone", "after", "gone", "[2]")
    ]
