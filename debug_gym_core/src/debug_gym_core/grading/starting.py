"""Whether an entrypoint that does not report can be started at all."""

from __future__ import annotations

import re

from debug_gym_core.errors import TaskError
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
        raise TaskError(
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
        said = last if status in (126, 127) and last.startswith("/bin/sh: ") else ""
        return re.sub(r"^/bin/sh: (line )?(\d+: )?", "", said)
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
    elif entrypoint.kind is Kind.MODULE:
        code = "import sys\nfrom importlib.util import find_spec\nsys.exit(find_spec(sys.argv[1]) is None)"
        python = entrypoint.interpreter or session.python
        looks.append([python, *entrypoint.flags, "-c", code, entrypoint.target])
    try:
        return any(session.run(look, timeout=LOOK, env=entrypoint.env).exit_status != 0 for look in looks)
    except (OSError, CommandLost):
        return True
