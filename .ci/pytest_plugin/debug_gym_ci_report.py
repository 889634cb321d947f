"""A pytest plugin for CI: writes each test's outcome to the file that DEBUG_GYM_CI_REPORT names, a JSON line a test.

It is loaded through PYTEST_ADDOPTS and PYTHONPATH and takes itself out of the environment at once, so that a pytest
that the tests start runs as it would without.
"""

import collections
import json
import os
import platform
from pathlib import Path

import pytest

_report = os.environ.pop("DEBUG_GYM_CI_REPORT", None)
os.environ.pop("PYTEST_ADDOPTS", None)
_others = [entry for entry in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if entry != str(Path(__file__).parent)]
if any(_others):
    os.environ["PYTHONPATH"] = os.pathsep.join(_others)


MODULES = 20
"""Modules that are named, of those that took longest."""

_seconds: collections.Counter[str] = collections.Counter()


def _write(line: dict[str, object]) -> None:
    if _report is not None:
        with Path(_report).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Write which Python runs the tests."""
    if not hasattr(session.config, "workerinput"):
        _write({"python": platform.python_version()})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write a phase of a test that tells its outcome: the call, or what failed or skipped around it."""
    _seconds[report.nodeid.partition("::")[0]] += report.duration
    if report.when == "call" or report.outcome != "passed":
        _write({"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 3)})


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Have pytest's last lines tell all of what failed, which it does only where it knows that it runs in CI."""
    if not hasattr(session.config, "workerinput"):
        os.environ["CI"] = "true"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell where the time went, with all that is set up and torn down."""
    terminalreporter.section(f"slowest {MODULES} modules")
    for module, seconds in _seconds.most_common(MODULES):
        terminalreporter.write_line(f"{seconds:.2f}s {module}")
    terminalreporter.write_line(f"{sum(_seconds.values()):.2f}s in all")
