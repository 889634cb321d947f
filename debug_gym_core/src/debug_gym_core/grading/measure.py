"""Runs a task's entrypoint in a sandbox and finds out which tests pass.

`pytest` and `unittest` run under a runner of ours that reports each test; anything else is judged by its exit status.
"""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Sequence

from debug_gym_core.grading import masking
from debug_gym_core.grading.reported_run import INTERRUPTED, TIMED_OUT, UNSTARTED, ReportedRun, Turned
from debug_gym_core.grading.written_names import numbered
from debug_gym_core.sandbox.interruption import Interruption
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.tasks.results import Measurement


def measure(
    session: Session,
    entrypoint: str,
    *,
    timeout: float,
    nonce: str | None = None,
    python: str | None = None,
    trusted: Sequence[str] | None = None,
    warm: bool = False,
    ignored: Sequence[str] = (),
    turned: Turned | None = None,
    given: Sequence[str] = (),
    details: bool = False,
    interruption: Interruption | None = None,
) -> Measurement:
    """Run the entrypoint and find out which tests pass.

    Args:
        session: where; the files are used as they are
        entrypoint: the command
        timeout: seconds; a run that reaches it is ended, and what it reported counts
        nonce: 32 hexadecimal digits that authenticate the report; None makes them up
        python: the interpreter; None: the session's
        trusted: files of the repository (directories end in `/`) that may add hooks to pytest; None goes by their names
        warm: the run may be a fork of an interpreter that is kept for this; never for a grade
        ignored: files of the repository whose source pytest's tracebacks do not show
        turned: test modules that are run with what they expect turned
        given: modules that are loaded as they are before any of the repository runs, whatever it does then
        details: failures have frames with their variables, for which the tested code's `repr` is called, and names are
            left as they are that the repository's files have; never for a grade
        interruption: by which another thread may end the run

    Raises:
        UsageError: the entrypoint cannot be read
        SandboxLost: the sandbox went away
    """
    parsed, interruption = Entrypoint.parse(entrypoint), interruption or Interruption()
    if parsed.runs_tests:
        nonce = nonce or secrets.token_hex(16)
        run = ReportedRun(
            session, parsed, timeout, nonce, python, trusted, "run", warm, ignored, turned, given, details, interruption
        )
        return run.measure()
    return _exit_status(session, parsed, timeout, python, interruption, details)


def _exit_status(
    session: Session,
    entrypoint: Entrypoint,
    timeout: float,
    python: str | None,
    interruption: Interruption,
    details: bool,
) -> Measurement:
    """Run what does not report."""
    started, since, argv = time.monotonic(), time.time_ns(), entrypoint.argv(python or session.python)
    try:
        with interruption.beginning() as running:
            result = session.run(argv, timeout=timeout, env=entrypoint.env, interruption=interruption)
    except (OSError, CommandLost) as error:
        return Measurement(
            (),
            127,
            f"{error}\n",
            kind="exit_status",
            valid=False,
            reason=f"{UNSTARTED}{error}" if isinstance(error, OSError) else str(error),
            seconds=time.monotonic() - started,
            lost=isinstance(error, CommandLost),
        )
    interrupted = running.ended and result.exit_status == -signal.SIGKILL
    reason = TIMED_OUT if result.timed_out else INTERRUPTED if interrupted else ""
    seconds, output = time.monotonic() - started, session.mask(result.output)
    return Measurement(
        tests=(),
        exit_status=result.exit_status,
        output=numbered(lambda names: masking.mask(output, names), session, since if details else None),
        output_cut=result.output_cut,
        timed_out=result.timed_out,
        interrupted=interrupted,
        kind="exit_status",
        valid=not reason,
        reason=reason,
        seconds=seconds,
    )
