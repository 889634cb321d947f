"""Whether an entrypoint that does not report can be started at all."""

from __future__ import annotations

import re

from debug_gym_core.errors import TaskError
from debug_gym_core.grading.commands import not_found, scripts
from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.reported_run import UNSTARTED
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.entrypoint import Entrypoint, Kind
from debug_gym_core.tasks.results import Measurement

LOOK = 60.0
"""Seconds for a look at whether an entrypoint can be started."""


def require_start(session: Session, entrypoint: str, timeout: float) -> None:
    """Insist that an entrypoint which does not report can be started in a pristine repository; runs it once.

    Args:
        session: a sandbox with the pristine repository
        entrypoint: the command
        timeout: seconds

    Raises:
        TaskError: it cannot; names the cause
        SandboxLost: the sandbox went away
    """
    why = why_not_started(entrypoint, measure(session, entrypoint, timeout=timeout))
    if why:
        raise cannot_start(entrypoint, why)


def cannot_start(entrypoint: str, why: str) -> TaskError:
    """The error of an entrypoint that cannot be started in the pristine repository.

    Args:
        entrypoint: the command
        why: in a line
    """
    return TaskError(
        f"the entrypoint `{entrypoint}` cannot be started, even in the unchanged repository: {why}; "
        "correct env.entrypoint, or install what it starts where the sandbox finds it"
    )


def why_not_started(entrypoint: str, measurement: Measurement) -> str:
    """Why a run was none, in a line: what the entrypoint names was not there, or is not executable; empty: it was one.

    It goes by what the shell and Python print at the end, which a program can print as well: only of a run in the
    pristine repository is it more than a suspicion.

    Args:
        entrypoint: the command
        measurement: its run
    """
    if measurement.kind != "exit_status":
        return ""
    if measurement.reason.startswith(UNSTARTED):
        return measurement.reason.removeprefix(UNSTARTED)
    parsed = Entrypoint.parse(entrypoint)
    last = (measurement.output.strip().splitlines() or [""])[-1].strip()
    status, target = measurement.exit_status, re.escape(parsed.target)
    if parsed.kind is Kind.COMMAND:
        return not_found(parsed.text, status, measurement.output)
    if parsed.kind is Kind.MODULE and status == 1:
        package = re.escape(parsed.target.partition(".")[0])
        match = re.search(
            rf": (No module named '?{target}'?(\.__main__\b.*)?"
            rf"|Error while finding module specification for '{target}' "
            rf"\(ModuleNotFoundError: No module named '{package}[\w.]*'.*\))$",
            last,
        )
        return match[1] if match and not last.startswith("ModuleNotFoundError") else ""
    if parsed.kind is Kind.SCRIPT and status in (1, 2):
        match = re.search(rf": (can't (open file|find '__main__' module in) .*{target}.*)$", last)
        return match[1] if match else ""
    return ""


def names_no_module(entrypoint: Entrypoint, measurement: Measurement) -> str:
    """Why unittest ran nothing, in a line: none of the modules that the entrypoint names is there; empty: it did.

    A module that is there and cannot be imported is another matter: that may be the bug.

    Args:
        entrypoint: the command
        measurement: its run, or a collection
    """
    failed = measurement.failures
    if entrypoint.module != "unittest" or not failed or len(failed) < len(measurement.collected):
        return ""
    found = [re.search(r"\bNo module named '([^']+)'$", test.message.strip()) for test in failed]
    named = [f"{one}." for one in entrypoint.args]
    absent = [match[1] for match in found if match and any(one.startswith(f"{match[1]}.") for one in named)]
    return f"No module named {', '.join(map(repr, absent))}" if len(absent) == len(failed) else ""


def may_not_start(session: Session, entrypoint: Entrypoint) -> bool:
    """Whether a quick look finds what an entrypoint names missing; only a run tells for certain.

    Args:
        session: a sandbox with the pristine repository
        entrypoint: the command

    Raises:
        SandboxLost: the sandbox went away
    """
    script = '[ -e "$1" ]'
    program = 'case $1 in */*) [ -f "$1" ] && [ -x "$1" ] ;; *) command -v "$1" ;; esac'
    looks = [["/bin/sh", "-c", program, "sh", entrypoint.program]] if entrypoint.program else []
    if entrypoint.kind is Kind.SCRIPT:
        looks.append(["/bin/sh", "-c", script, "sh", entrypoint.target])
    elif entrypoint.program:
        looks += [["/bin/sh", "-c", script, "sh", one] for one in scripts(entrypoint.text)]
    elif entrypoint.kind is Kind.MODULE:
        code = "import sys\nfrom importlib.util import find_spec\nsys.exit(find_spec(sys.argv[1]) is None)"
        python = entrypoint.interpreter or session.python
        looks.append([python, *entrypoint.flags, "-c", code, entrypoint.target])
    try:
        return any(session.run(look, timeout=LOOK, env=entrypoint.env).exit_status != 0 for look in looks)
    except (OSError, CommandLost):
        return True
