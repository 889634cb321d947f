"""Runs a task's entrypoint in a sandbox and finds out which tests pass.

`pytest` and `unittest` run under a runner of ours (`guest/runner.py`) that reports each test over a channel of its own;
anything else is judged by its exit status.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import marshal
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal, cast

from debug_gym_core import run_output
from debug_gym_core.connection import CommandLost
from debug_gym_core.entrypoint import Entrypoint
from debug_gym_core.errors import TaskError
from debug_gym_core.process import Process
from debug_gym_core.results import FAILING, Measurement, Outcome, TestResult
from debug_gym_core.session import Session

REPORTING = frozenset({"pytest", "unittest"})
"""Modules whose runs are reported test by test."""

OUTPUT_LIMIT = 64 * 1024
REPORT_LIMIT = 64 << 20
"""Bytes of reports that the host takes from one run."""
GRACE = 10.0
"""Seconds beyond the timeout that the sandbox has to end a run."""

BOOT = """\
import sys
implicit=sys.path[:1]==['']
if implicit:del sys.path[0]
import os
from _frozen_importlib_external import MAGIC_NUMBER
with os.fdopen(int(sys.argv[2]),'rb') as f:data=f.read()
size=int.from_bytes(data[4:8],'big')
if data[:4]==MAGIC_NUMBER:
 import marshal
 code=marshal.loads(data[8:8+size])
else:code=compile(data[8+size:],'<debug-gym>','exec')
space={'__name__':'debug_gym_runner'}
exec(code,space)
space['START']['implicit']=implicit
space['main'](int(sys.argv[1]))
"""
"""Started by `python -c`: nothing of the workspace may be imported before the runner is."""

_RANK = {name: place for place, name in enumerate(("passed", "xpassed", "xfailed", "skipped", "failed", "error"))}


@functools.cache
def runner_blob() -> bytes:
    """The runner: compiled by this interpreter, for those that understand it, and its source for all others."""
    source = resources.files("debug_gym_core.guest").joinpath("runner.py").read_bytes()
    compiled = marshal.dumps(compile(source, "<debug-gym>", "exec", dont_inherit=True))
    return importlib.util.MAGIC_NUMBER + len(compiled).to_bytes(4, "big") + compiled + source


def measure(
    session: Session,
    entrypoint: str,
    *,
    timeout: float,
    nonce: str | None = None,
    python: str | None = None,
    trusted: Sequence[str] | None = None,
) -> Measurement:
    """Run the entrypoint and find out which tests pass.

    Args:
        session: where; the files are used as they are
        entrypoint: the command
        timeout: seconds; a run that reaches it is ended, and what it reported counts
        nonce: 32 hexadecimal digits that authenticate the report; None makes them up
        python: the interpreter; None: the session's
        trusted: files of the repository (directories end in `/`) that may add hooks to pytest; None goes by their names

    Raises:
        UsageError: the entrypoint cannot be read
        SandboxLost: the sandbox went away
    """
    parsed = Entrypoint.parse(entrypoint)
    if parsed.module in REPORTING:
        return _Run(session, parsed, timeout, nonce or secrets.token_hex(16), python, trusted, "run").measure()
    return _exit_status(session, parsed, timeout, python)


def collect(session: Session, entrypoint: str, timeout: float) -> tuple[str, ...]:
    """Find the tests that count in a pristine repository: all that are collected and can pass.

    Tests that the repository itself marks as skipped or as expected to fail do not count.

    Args:
        session: a sandbox with the pristine repository
        entrypoint: the command that runs the tests
        timeout: seconds

    Returns:
        the ids in order; a file that cannot be collected is one, under its path; none for an entrypoint that does not
        report

    Raises:
        UsageError: the entrypoint cannot be read
        TaskError: no test that could pass was found
        SandboxLost: the sandbox went away
    """
    parsed = Entrypoint.parse(entrypoint)
    if parsed.module not in REPORTING:
        return ()
    found = _Run(session, parsed, timeout, secrets.token_hex(16), None, None, "collect").measure()
    failed = [test.id for test in found.failures]
    tests = tuple(dict.fromkeys([*(one for one in found.collected if one not in found.unable), *failed]))
    if not tests:
        said = (found.output.strip() or found.reason).splitlines()[-3:]
        raise TaskError(f"`{entrypoint}` finds no test that could pass: {' / '.join(line.strip() for line in said)}")
    return tests


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
            reason=str(error),
            seconds=time.monotonic() - started,
        )
    return Measurement(
        tests=(),
        exit_status=result.exit_status,
        output=run_output.mask(session.mask(result.output)),
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
                blobs={"code": runner_blob()},
                env=self.entrypoint.env,
                timeout=self.timeout,
                output_limit=OUTPUT_LIMIT,
            )
        except OSError as error:
            return Measurement((), 127, f"{error}\n", valid=False, reason=f"it cannot be started: {error}")
        lost = ""
        with process:
            try:
                process.send(json.dumps(self._config()).encode())
                self._listen(process, started + self.timeout + GRACE)
                status = process.wait(GRACE)
            except (CommandLost, TimeoutError) as error:
                lost, status = str(error), -9
            process.kill()
            output, cut = process.take_output()
        reason, tampered = self._judge(status, process.timed_out, lost)
        return Measurement(
            tests=tuple(self.results.values()),
            exit_status=status,
            output=run_output.mask(self.session.mask(output)),
            output_cut=cut,
            timed_out=process.timed_out,
            collected=self.collected,
            valid=not reason,
            reason=reason,
            tampered=tampered,
            seconds=time.monotonic() - started,
            unable=self.unable,
        )

    def _config(self) -> dict[str, Any]:
        return {
            "argv": ["-m", self.entrypoint.target, *self.entrypoint.args],
            "nonce": self.nonce,
            "canary": secrets.token_hex(8),
            "root": self.session.root,
            "mode": self.mode,
            "trusted": None if self.trusted is None else list(self.trusted),
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
        return run_output.mask_temporary(self.session.mask(str(text)))

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
