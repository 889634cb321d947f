"""Finds the tests that count, in a pristine repository."""

from __future__ import annotations

import posixpath
import re
import secrets
from collections.abc import Callable

from debug_gym_core.errors import TaskError
from debug_gym_core.grading.reported_run import ReportedRun
from debug_gym_core.grading.starting import cannot_start, may_not_start, names_no_module, require_start
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.workspace.lines import shown

_IMPORT_ERROR = re.compile(
    r"(ModuleNotFoundError|ImportError): (?!ModuleNotFoundError|Failed to import|.*while importing)[^\n()]+"
)
_NO_PYTHON = re.compile(r"(?:Syntax|Indentation|Tab)Error: .*\((?P<file>[^/]+), line \d+\)")
_NOT_PYTEST = "unittest finds no TestCase there; tests that are written for pytest need `python -m pytest`"
_USAGE_ERROR = re.compile(r"ERROR: |\S+: error: |pytest\.main\(\): error: ")
"""How pytest begins what it says of a wrong command line."""


def collect(
    session: Session,
    entrypoint: str,
    timeout: float,
    notify: Callable[[str], None] | None = None,
    unread: dict[str, str] | None = None,
) -> tuple[str, ...]:
    """Find the tests that count in a pristine repository: all that are collected and can pass.

    Tests that the repository itself marks as skipped or as expected to fail do not count.

    Args:
        session: a sandbox with the pristine repository
        entrypoint: the command that runs the tests
        timeout: seconds
        notify: is told, in a line, when tests were found but none can be imported, or when they import the
            repository's own package from elsewhere
        unread: gets the files that pytest does not collect as they are no Python themselves, and why, by path

    Returns:
        the ids in order; a file that cannot be collected is one, under its path; none for an entrypoint that does not
        report

    Raises:
        UsageError: the entrypoint cannot be read
        TaskError: no test that could pass was found, or the entrypoint cannot be started
        SandboxLost: the sandbox went away
    """
    parsed = Entrypoint.parse(entrypoint)
    if not parsed.runs_tests:
        if may_not_start(session, parsed):
            require_start(session, entrypoint, timeout)
        return ()
    run = ReportedRun(session, parsed, timeout, secrets.token_hex(16), None, None, "collect")
    found = run.measure()
    if absent := names_no_module(parsed, found):
        raise cannot_start(entrypoint, absent)
    failed = [test.id for test in found.failures]
    tests = tuple(dict.fromkeys([*(one for one in found.collected if one not in found.unable), *failed]))
    if not tests:
        lines = [line.strip() for line in (found.output.strip() or found.reason).splitlines() if line.strip()]
        said = [line for line in lines if _USAGE_ERROR.match(line)] or lines
        words = " / ".join(said[-3:]).removesuffix(" in <time>")
        words = words or (_NOT_PYTEST if parsed.module == "unittest" else "it says nothing")
        error = TaskError(f"`{entrypoint}` (env.entrypoint) finds no test that could pass: {words}")
        error.without_tests = True
        raise error
    if unread is not None:
        wrong = {test.id: _NO_PYTHON.match(test.message) for test in found.failures}
        unread |= {path: one[0] for path, one in wrong.items() if one and one["file"] == posixpath.basename(path)}
    if notify is not None and run.elsewhere:
        names = ", ".join(f"{shown(name)} from {shown(path)}" for name, path in run.elsewhere)
        notify(
            f"the tests import {names}, not from the repository, so no change in it is tested (install it into"
            f" {parsed.interpreter or session.python} with pip install -e, name another interpreter by env.python, or"
            " begin the entrypoint with PYTHONPATH=src)"
        )
    if notify is not None and set(tests) <= set(failed):
        why = [match for test in found.failures if (match := _IMPORT_ERROR.search(test.message))]
        if len(why) == len(found.failures):
            python = parsed.interpreter or session.python
            notify(
                f"no test file can be imported: {why[0][0]} (is the package installed in {python}? "
                "env.python names another interpreter, and an entrypoint may begin with PYTHONPATH=src)"
            )
    return tests
