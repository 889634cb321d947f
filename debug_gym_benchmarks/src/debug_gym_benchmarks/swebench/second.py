"""The second run: the tests of FAIL_TO_PASS under our own runner, whose results are not taken from a log."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from debug_gym_benchmarks.swebench import official
from debug_gym_core.grading.measure import measure as measure_tests
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.results import PASSING, Measurement

PROBE = """\
import sys
import pytest
sys.exit(tuple(int(part) for part in pytest.__version__.split(".")[:2]) < (3, 6))
"""
PROBE_TIMEOUT = 120.0
MODULE = "debug_gym_second_run"

# A module that unittest loads: sympy's tests are functions, which only sympy's own runner finds.
_SYMPY = """\
import importlib, unittest
from sympy.core.cache import clear_cache
def load_tests(loader, tests, pattern):
    suite = unittest.TestSuite()
    for name in {modules!r}:
        functions = vars(importlib.import_module(name))
        methods = {{test: _method(functions[test]) for test in {tests!r} if test in functions}}
        suite.addTests(loader.loadTestsFromTestCase(type("Tests", (_Tests,), methods)))
    return suite
def _method(function):
    return lambda self: function() and None
class _Tests(unittest.TestCase):
    def setUp(self):
        clear_cache()
"""


@dataclass(frozen=True)
class Plan:
    """How the second run is made.

    Attributes:
        entrypoint: the command
        file: a file that it needs, in the workspace; empty: none
        text: what is in it
    """

    entrypoint: str
    file: str = ""
    text: str = ""


def plan(
    session: Session, evaluation: official.Evaluation, fail_to_pass: Sequence[str], files: Sequence[str]
) -> Plan | None:
    """How the tests of FAIL_TO_PASS are run once more; None: they cannot be, or it would prove nothing.

    Args:
        session: where
        evaluation: how the instance is evaluated
        fail_to_pass: ids of the tests
        files: that the tests patch changes
    """
    command = evaluation.entrypoint
    if evaluation.tests_its_runner:
        return None
    if evaluation.kind == "sympy":
        variables = " ".join(word for word in shlex.split(command) if re.match(r"PYTHONWARNINGS=", word))
        modules = [_module(file) for file in files if file.endswith(".py") and "/test_" in file]
        tests = sorted(set(fail_to_pass))
        return Plan(
            f"{variables} SYMPY_USE_CACHE=no python -m unittest {MODULE}".strip(),
            f"{MODULE}.py",
            _SYMPY.format(modules=modules, tests=tests),
        )
    if evaluation.kind != "pytest" or not re.match(r"pytest\b", command):
        return None
    found = list(dict.fromkeys(test.partition("::")[0] for test in fail_to_pass if "::" in test))
    if not found or session.run([session.python, "-I", "-c", PROBE], timeout=PROBE_TIMEOUT).exit_status != 0:
        return None
    return Plan(shlex.join(["python", "-m", "pytest", "-q", *found]))


def measure(session: Session, plan: Plan, *, timeout: float) -> Measurement:
    """Make the second run.

    Raises:
        SandboxLost: the sandbox went away
    """
    if plan.file:
        session.write(plan.file, plan.text.encode())
    return measure_tests(session, plan.entrypoint, timeout=timeout)


def passed(measurement: Measurement, evaluation: official.Evaluation) -> frozenset[str]:
    """The tests that passed in the second run, under the names that the official parser gives them.

    Of several that it gives one name, all have to pass.
    """
    good: set[str] = set()
    bad: set[str] = set()
    for test in measurement.tests:
        if evaluation.kind == "sympy":
            names = {test.id.rpartition(".")[2]}
        else:
            names = set(official.parse(evaluation.parser, f"PASSED {test.id}"))
        (good if test.outcome in PASSING or test.outcome == "xfailed" else bad).update(names)
    return frozenset(good - bad) if measurement.valid else frozenset()


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")
