"""Runs a task's entrypoint in a sandbox and finds out which tests pass.

`pytest` and `unittest` run under a runner of ours (`runner/`) that reports each test over a channel of its own;
anything else is judged by its exit status.
"""

from __future__ import annotations

import functools
import json
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from debug_gym_core.errors import TaskError
from debug_gym_core.grading import masking
from debug_gym_core.sandbox import shipping
from debug_gym_core.sandbox.connection import CommandLost
from debug_gym_core.sandbox.process import Process
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.warm import PREPARED, READY, Warm
from debug_gym_core.tasks.entrypoint import Entrypoint, Kind
from debug_gym_core.tasks.results import FAILING, Measurement, Outcome, TestResult

REPORTING = frozenset({"pytest", "unittest"})
"""Modules whose runs are reported test by test."""

OUTPUT_LIMIT = 64 * 1024
REPORT_LIMIT = 64 << 20
"""Bytes of reports that the host takes from one run."""
LOOK = 60.0
"""Seconds for a look at whether an entrypoint can be started."""
UNSTARTED = "it cannot be started: "
GRACE = 10.0
"""Seconds beyond the timeout that the sandbox has to end a run."""

BOOT = f"""\
# debug-gym: runner
codes=globals().pop({PREPARED!r},None)
ready=globals().pop({READY!r},None)
import sys
implicit=sys.path[:1]==['']
if implicit:del sys.path[0]
import os
{shipping.BOOT}
if codes is None:
 with open(int(sys.argv[2]),'rb',closefd=False) as file:codes=unpack(file.read())
main=enter(codes,IMPLICIT=implicit).main
if ready is not None:ready()
os.close(int(sys.argv[2]))
main(int(sys.argv[1]))
"""
"""Started by `python -c`: nothing of the workspace may be imported before the runner is."""

_IMPORT_ERROR = re.compile(
    r"(ModuleNotFoundError|ImportError): (?!ModuleNotFoundError|Failed to import|.*while importing)[^\n()]+"
)
_RANK = {name: place for place, name in enumerate(("passed", "xpassed", "xfailed", "skipped", "failed", "error"))}


RUNNER = "debug_gym_core.grading.runner"


@functools.cache
def _warm_start() -> Warm:
    """How a run is started warm."""
    return Warm(shipping.imports(RUNNER))


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

    Raises:
        UsageError: the entrypoint cannot be read
        SandboxLost: the sandbox went away
    """
    parsed = Entrypoint.parse(entrypoint)
    if parsed.module in REPORTING:
        nonce = nonce or secrets.token_hex(16)
        return _Run(session, parsed, timeout, nonce, python, trusted, "run", warm, ignored).measure()
    return _exit_status(session, parsed, timeout, python)


def collect(
    session: Session, entrypoint: str, timeout: float, notify: Callable[[str], None] | None = None
) -> tuple[str, ...]:
    """Find the tests that count in a pristine repository: all that are collected and can pass.

    Tests that the repository itself marks as skipped or as expected to fail do not count.

    Args:
        session: a sandbox with the pristine repository
        entrypoint: the command that runs the tests
        timeout: seconds
        notify: is told, in a line, when tests were found but none can be imported

    Returns:
        the ids in order; a file that cannot be collected is one, under its path; none for an entrypoint that does not
        report

    Raises:
        UsageError: the entrypoint cannot be read
        TaskError: no test that could pass was found, or the entrypoint cannot be started
        SandboxLost: the sandbox went away
    """
    parsed = Entrypoint.parse(entrypoint)
    if parsed.module not in REPORTING:
        if _may_not_start(session, parsed):
            require_start(session, entrypoint, timeout)
        return ()
    found = _Run(session, parsed, timeout, secrets.token_hex(16), None, None, "collect").measure()
    failed = [test.id for test in found.failures]
    tests = tuple(dict.fromkeys([*(one for one in found.collected if one not in found.unable), *failed]))
    if not tests:
        said = (found.output.strip() or found.reason).splitlines()[-3:]
        raise TaskError(f"`{entrypoint}` finds no test that could pass: {' / '.join(line.strip() for line in said)}")
    if notify is not None and set(tests) <= set(failed):
        why = [match for test in found.failures if (match := _IMPORT_ERROR.search(test.message))]
        if len(why) == len(found.failures):
            notify(
                f"no test file can be imported: {why[0][0]} (is the package installed in {_known_as(session, parsed)}? "
                "env.python names another interpreter, and an entrypoint may begin with PYTHONPATH=src)"
            )
    return tests


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


def _may_not_start(session: Session, entrypoint: Entrypoint) -> bool:
    """Whether a quick look finds what an entrypoint names missing; only a run tells for certain."""
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


def _known_as(session: Session, entrypoint: Entrypoint) -> str:
    """The interpreter of a run, as a person would call it."""
    return entrypoint.interpreter or session.python


def _exit_status(session: Session, entrypoint: Entrypoint, timeout: float, python: str | None) -> Measurement:
    """Run what does not report."""
    started = time.monotonic()
    try:
        result = session.run(
            entrypoint.argv(python or session.python), timeout=timeout, env=entrypoint.env, output_limit=OUTPUT_LIMIT
        )
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
    return Measurement(
        tests=(),
        exit_status=result.exit_status,
        output=masking.mask(session.mask(result.output)),
        output_cut=result.output_cut,
        timed_out=result.timed_out,
        kind="exit_status",
        valid=not result.timed_out,
        reason="it reached its timeout" if result.timed_out else "",
        seconds=result.seconds,
    )


@dataclass
class _Run:
    """One run that reports."""

    session: Session
    entrypoint: Entrypoint
    timeout: float
    nonce: str
    python: str | None
    trusted: Sequence[str] | None
    mode: Literal["run", "collect"]
    warm: bool = False
    ignored: Sequence[str] = ()

    results: dict[str, TestResult] = field(default_factory=dict)
    collected: tuple[str, ...] = ()
    unable: frozenset[str] = frozenset()
    end: dict[str, Any] | None = None
    messages: int = 0
    size: int = 0
    forged: str = ""

    def measure(self) -> Measurement:
        started = time.monotonic()
        argv = [self.entrypoint.interpreter or self.python or self.session.python, *self.entrypoint.flags]
        try:
            process = self.session.process(
                [*argv, "-c", BOOT, "{channel}", "{blob:code}"],
                blobs={"code": shipping.parcel(RUNNER).blob()},
                env=self.entrypoint.env,
                timeout=self.timeout,
                output_limit=OUTPUT_LIMIT,
                warm=_warm_start() if self.warm else None,
            )
        except OSError as error:
            return Measurement((), 127, f"{error}\n", valid=False, reason=f"{UNSTARTED}{error}")
        lost = ""
        with process:
            try:
                process.send(json.dumps(self._config()).encode())
                self._listen(process, started + self.timeout + GRACE)
                status = process.wait(GRACE)
            except CommandLost as error:
                lost, status = str(error), -9
            except TimeoutError:  # the sandbox ends a run that takes too long: it does nothing any more
                raise process.give_up("the guest did not end a run that reached its timeout") from None
            process.kill()
            output, cut = process.take_output()
        reason, tampered = self._judge(status, process.timed_out, lost)
        return Measurement(
            tests=tuple(self.results.values()),
            exit_status=status,
            output=masking.mask(self.session.mask(output)),
            output_cut=cut,
            timed_out=process.timed_out,
            collected=self.collected,
            valid=not reason,
            reason=reason,
            tampered=tampered,
            seconds=time.monotonic() - started,
            unable=self.unable,
            lost=bool(lost),
        )

    def _config(self) -> dict[str, Any]:
        return {
            "argv": ["-m", self.entrypoint.target, *self.entrypoint.args],
            "nonce": self.nonce,
            "canary": secrets.token_hex(8),
            "root": self.session.root,
            "mode": self.mode,
            "trusted": None if self.trusted is None else list(self.trusted),
            "ignored": list(self.ignored),
        }

    def _listen(self, process: Process, deadline: float) -> None:
        """Take the messages until the program ends; a message that is not the runner's ends the report."""
        seal = self.nonce.encode()
        while True:
            message = process.receive(max(0.0, deadline - time.monotonic()))
            if message is None:
                return
            self.size += len(message)
            if self.forged or self.size > REPORT_LIMIT:
                self.forged = self.forged or "the report is too long"
                process.kill()
                continue
            if not message.startswith(seal):
                self.forged = "a message on the channel is not the runner's"
                continue
            try:
                self._take(json.loads(message[len(seal) :]))
            except (ValueError, KeyError, TypeError, RecursionError):
                self.forged = "a message on the channel cannot be understood"

    def _take(self, message: dict[str, Any]) -> None:
        if message["i"] != self.messages or self.end is not None:
            self.forged = "the report's messages are not in order"
        self.messages += 1
        kind = message["t"]
        if kind == "collected":
            self.collected = tuple(map(str, message["ids"]))
            self.unable = frozenset(map(str, message["cannot_pass"]))
        elif kind == "test":
            self._add(message)
        elif kind == "end":
            self.end = message

    def _add(self, message: dict[str, Any]) -> None:
        """Keep a result; of several for one test, the worst."""
        name, outcome = str(message["id"]), cast(Outcome, str(message["outcome"]))
        frames = tuple(
            {
                "file": str(frame["file"]),
                "line": int(frame["line"]),
                "function": str(frame["function"]),
                "locals": {str(key): self._mask(value) for key, value in frame["locals"].items()},
            }
            for frame in message.get("frames", ())
        )
        known = self.results.get(name)
        if known is None or _RANK[outcome] > _RANK[known.outcome]:
            self.results[name] = TestResult(name, outcome, self._mask(message.get("message", "")), frames)

    def _mask(self, text: object) -> str:
        return masking.mask_temporary(self.session.mask(str(text)))

    def _judge(self, status: int, timed_out: bool, lost: str) -> tuple[str, bool]:
        """Why the report does not count as it stands, empty when it does; and whether it cannot be trusted at all."""
        failing = any(test.outcome in FAILING for test in self.results.values())
        if self.forged:
            return self.forged, True
        if self.end is not None and self.end["tampered"]:
            return self._mask("; ".join(map(str, self.end["tampered"])))[:1000], True
        if timed_out:
            return "it reached its timeout", False
        if lost:
            return f"the run was lost: {lost}", False
        if self.end is None:
            return f"it ended with status {status} before its report was complete", False
        if status != self.end["status"]:
            return f"its exit status {status} is not the {self.end['status']} that the tests ended with", False
        if status == 0 and failing:
            return "its exit status is 0 although tests failed", False
        if status == 1 and not failing and self.mode == "run":
            return "its exit status is 1 although no test failed", False
        return "", False
