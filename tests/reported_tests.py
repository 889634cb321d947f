"""Tests with every outcome, and what runs them in a sandbox."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest
from support import has

from debug_gym_core.grading.measure import measure
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.results import Measurement
from debug_gym_core.testing.sample import ENTRYPOINT

QUICK = "-p no:hypothesispytest -p no:pytest_cov -p no:anyio"
"""Without plugins that we happen to have here: they take half a second to import."""

RunTests = Callable[..., Measurement]


def make_run_tests(session: Session, python: str | None = None) -> RunTests:
    """Write files of Python, named without their ending, and measure their tests, as where an agent works: warm.

    Args:
        session: where
        python: the interpreter; None: the session's
    """

    def run_tests(entrypoint: str = ENTRYPOINT, **files: str) -> Measurement:
        if python and "pytest" in entrypoint and not has(python, "pytest"):
            pytest.skip(f"{python} has no pytest")
        for name, text in files.items():
            session.write(name.replace("__", "/") + ".py", textwrap.dedent(text).encode())
        return measure(session, entrypoint, timeout=60, python=python, details=True, warm=True)

    return run_tests


ALL_OUTCOMES = """
    import unittest
    import pytest

    def test_passes(): pass
    def test_fails(): assert 1 + 1 == 3
    def test_raises(): {}["missing"]
    @pytest.mark.skip(reason="later")
    def test_skipped(): pass
    @pytest.mark.xfail
    def test_fails_as_expected(): assert False
    @pytest.mark.xfail
    def test_passes_unexpectedly(): pass
    @pytest.mark.xfail(strict=True)
    def test_must_fail(): pass
    @pytest.fixture
    def broken(): raise ValueError("two\\nlines")
    @pytest.fixture
    def leaky():
        yield
        raise OSError("not removed")
    def test_set_up(broken): pass
    def test_torn_down(leaky): pass
    class TestUnit(unittest.TestCase):
        def test_fails(self): self.assertEqual([1], [2])
        def test_passes(self): pass
    @pytest.mark.parametrize("number", [1, 2])
    class TestClass:
        def test_number(self, number): assert number == 1
"""
