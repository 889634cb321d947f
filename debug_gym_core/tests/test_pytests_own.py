"""A repository that pytest itself is of: what runs the tests is what is tested, and its plugins are no strangers."""

from __future__ import annotations

from pathlib import Path

import _pytest
from grading_bench import ENTRYPOINT, FIXED, IDS, REPOSITORY, Make


def test_it_is_run_and_graded(make: Make) -> None:
    packages = Path(_pytest.__file__).parent.parent
    sources = [path for name in ("pytest", "_pytest") for path in sorted((packages / name).rglob("*.py"))]
    files = {f"src/{path.relative_to(packages)}": path.read_text() for path in sources}
    bench = make({**REPOSITORY, **files}, f"PYTHONPATH=src {ENTRYPOINT}")
    result = bench.grade({"calc.py": FIXED}, IDS, twins="always")
    assert result.reason == ""
    assert (result.resolved, result.twins, result.reason) == (True, 2, "")
