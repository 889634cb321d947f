"""Programs that are followed with each interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from following import Follow, Followed, follow
from support import has, interpreters, version_of


@pytest.fixture(params=interpreters())
def python(request: pytest.FixtureRequest) -> str:
    """Each interpreter to test with."""
    return str(request.param)


@pytest.fixture
def trace(python: str, tmp_path: Path) -> Follow:
    """Follow a call of a program with each interpreter; the program is `app.py`."""

    def trace(app: str, target: str = "f", **settings: Any) -> Followed:
        files = {"app.py": app, **settings.pop("files", {})}
        return follow(python, tmp_path, target if ":" in target else f"app.py:{target}", files=files, **settings)

    return trace


@pytest.fixture
def version(python: str) -> tuple[int, int]:
    """The version of the interpreter."""
    return version_of(python)


@pytest.fixture
def trace_tests(python: str, trace: Follow) -> Follow:
    """The same with each interpreter that has pytest."""
    if not has(python, "pytest"):
        pytest.skip("this interpreter has no pytest")
    return trace
