"""A run of pytest or unittest under a runner of ours (`runner/`), which reports each test over a channel of its own."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from debug_gym_core.grading import masking
from debug_gym_core.grading.beside import Beside
from debug_gym_core.grading.runner import stuck, tampering
from debug_gym_core.grading.written_names import numbered
from debug_gym_core.names import killed_by
from debug_gym_core.sandbox import shipping
from debug_gym_core.sandbox.interruption import Interruption
from debug_gym_core.sandbox.process import Process
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.stacks import split_stack
from debug_gym_core.sandbox.warm import PREPARED, READY, Warm
from debug_gym_core.tasks.entrypoint import RUNNERS, Entrypoint
from debug_gym_core.tasks.results import FAILING, PASSING, Measurement, Outcome, Problem, TestResult

REPORT_LIMIT = 64 << 20
"""Bytes of reports that the host takes from one run."""

GRACE = 10.0
"""Seconds that the sandbox has to end a run."""

TELLING = 0.75
"""Seconds that a run which reached its timeout has to tell where it is."""

PROBLEMS = 1500
"""Characters of what is told of all that changed."""

COPIES = 3
"""Packages that are named which were imported from elsewhere."""

CRASHED, CRASH = 3, "INTERNALERROR>"
"""pytest's exit status where it, or a hook, raised, and how it begins the lines that tell what."""

UNSTARTED = "it cannot be started: "
"""How the reason begins for which a run was none."""

TIMED_OUT = "it reached its timeout"
INTERRUPTED = "it was interrupted"
"""Why a run does not count that was ended."""

RUNNER = "debug_gym_core.grading.runner"

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

_RANK = {name: place for place, name in enumerate(("passed", "xpassed", "xfailed", "skipped", "failed", "error"))}


AT_ONCE = True
"""Whether the first warm run, too, is a fork; see `Warm`."""


def _warm_start(target: str) -> Warm:
    """How a run of pytest or unittest is started warm."""
    others = tuple(name for one in RUNNERS - {target} for name in (one, f"_{one}"))
    imports = [name for name in shipping.imports(RUNNER) if name.partition(".")[0] not in others]
    return Warm(tuple(imports), at_once=AT_ONCE)


@dataclass(frozen=True)
class Turned:
    """Test modules that are run with what they expect turned (see `runner.turning`).

    Attributes:
        sources: their texts by path
        tests: names of the functions and methods that are tests
        secret: what the failure says of a test that is believed, and of one that has no twin why it is skipped
        name: of the global by which a module asks; names nothing that a module could name
        doctests: ids of doctests that are asked too
        beside: what stands beside these modules
    """

    sources: Mapping[str, bytes]
    tests: Sequence[str]
    secret: str
    name: str
    doctests: Sequence[str]
    beside: Beside

    def told(self) -> dict[str, Any]:
        """What the runner is told."""
        sources, helpers = (
            {path: base64.b64encode(text).decode() for path, text in texts.items()}
            for texts in (self.sources, self.beside.helpers)
        )
        fields = {"tests": list(self.tests), "secret": self.secret, "doctests": list(self.doctests)}
        beside = {"helpers": helpers, "shadowed": sorted(self.beside.shadowed), "said": sorted(self.beside.said)}
        return {**fields, **beside, "name": "_" + self.name, "sources": sources}


@dataclass
class ReportedRun:
    """One run that reports.

    Attributes:
        session: where
        entrypoint: the command
        timeout: seconds
        nonce: 32 hexadecimal digits that authenticate the report
        python: the interpreter; None: the session's
        trusted: files of the repository that may add hooks to pytest; None goes by their names
        mode: whether the tests are run, or only found
        warm: the run may be a fork of an interpreter that is kept for this
        ignored: files of the repository whose source pytest's tracebacks do not show
        turned: what is run of them instead of the test modules as they are; None: these
        given: modules that are loaded as they are before any of the repository runs
        details: failures have frames with their variables, and somebody reads all that is told
        interruption: by which another thread may end it
        elsewhere: name and file of packages that the repository has, and that were imported from another place, once
            it has run in mode `collect`
    """

    session: Session
    entrypoint: Entrypoint
    timeout: float
    nonce: str
    python: str | None
    trusted: Sequence[str] | None
    mode: Literal["run", "collect"]
    warm: bool = False
    ignored: Sequence[str] = ()
    turned: Turned | None = None
    given: Sequence[str] = ()
    details: bool = False
    interruption: Interruption = field(default_factory=Interruption)

    results: dict[str, TestResult] = field(default_factory=dict)
    collected: tuple[str, ...] = ()
    unable: frozenset[str] = frozenset()
    elsewhere: tuple[tuple[str, str], ...] = ()
    problems: list[Problem] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    end: int | None = None
    messages: int = 0
    size: int = 0
    forged: str = ""
    asked: bool = False
    printed: str | None = None

    def measure(self) -> Measurement:
        """Run it; once.

        Raises:
            SandboxLost: the sandbox went away
        """
        started, since = time.monotonic(), time.time_ns()
        argv = [self.entrypoint.interpreter or self.python or self.session.python, *self.entrypoint.flags]
        try:
            process = self.session.process(
                [*argv, "-c", BOOT, "{channel}", "{blob:code}"],
                blobs={"code": shipping.parcel(RUNNER).blob()},
                env=self.entrypoint.env,
                timeout=self.timeout + TELLING,
                warm=_warm_start(self.entrypoint.target) if self.warm else None,
            )
        except OSError as error:
            return Measurement((), 127, f"{error}\n", valid=False, reason=f"{UNSTARTED}{error}")
        lost = ""
        with process:
            try:
                process.send(json.dumps(self._config()).encode())
                with self.interruption.ending(lambda: self._interrupt(process), unbegun=process.kill) as running:
                    timed_out = not self._listen(process, started + self.timeout)
                if timed_out:
                    self.asked = process.signal(stuck.SIGNAL)
                    self._listen(process, time.monotonic() + TELLING)
                interrupted = running.ended and self.end is None
                if timed_out or interrupted:
                    process.kill()
                status = process.wait(GRACE)
            except CommandLost as error:
                lost, status, timed_out, interrupted = str(error), -9, False, False
            except TimeoutError:  # the sandbox ends a run that takes too long: it does nothing any more
                raise process.give_up("the guest did not end a run that reached its timeout") from None
            process.kill()
            output, cut = process.take_output()
        timed_out = timed_out or process.timed_out
        output, stack = self.session.mask(output), ""
        if timed_out or interrupted:
            output, stack = split_stack(output)
        unsure, seconds, printed = self._unsure(), time.monotonic() - started, self._mask(self.printed or "")
        otherwise = self._why_not_valid(status, timed_out, interrupted, lost) or self._internal_error(output)

        def show(names: masking.DrawnNames) -> Measurement:
            tests = tuple(_masked(one, names) for one in self.results.values() if one.id not in unsure)
            problems = [Problem(one.kind, names.mask(one.text)) for one in self.problems]
            reason = self.forged or "; ".join(one.text for one in problems)[:PROBLEMS] or otherwise
            return Measurement(
                tests=tests,
                unsure=unsure,
                exit_status=status,
                output=masking.mask(output, names),
                output_cut=cut,
                timed_out=timed_out,
                interrupted=interrupted,
                collected=self.collected,
                valid=not reason,
                reason=reason,
                tampered=bool(self.forged or problems),
                problems=frozenset() if self.forged else frozenset(problems),
                otherwise=otherwise if problems else "",
                seconds=seconds,
                unable=self.unable,
                lost=bool(lost),
                stack=stack,
                printed=names.mask(printed),
            )

        # Of a grade, what is told must be the same whether or not a file was changed, too.
        return numbered(show, self.session, since if self.details else None)

    def _config(self) -> dict[str, Any]:
        return {
            "argv": ["-m", self.entrypoint.target, *self.entrypoint.args],
            "nonce": self.nonce,
            "canary": secrets.token_hex(8),
            "root": self.session.root,
            "mode": self.mode,
            "trusted": None if self.trusted is None else list(self.trusted),
            "ignored": list(self.ignored),
            "given": list(self.given),
            "turned": self.turned.told() if self.turned is not None else None,
            "details": self.details,
        }

    def _interrupt(self, process: Process) -> bool:
        """Have it end, once it has told where it is, or at once when it was asked before; another thread listens."""
        again, self.asked = self.asked, True
        if again or not process.signal(stuck.SIGNAL):
            process.kill()
        return True

    def _listen(self, process: Process, deadline: float) -> bool:
        """Take the messages until the program ends or tells where it is stuck; whether that was before the deadline.

        A message that is not the runner's ends the report.
        """
        seal = self.nonce.encode()
        while not (self.asked and self.printed is not None):
            try:
                message = process.receive(max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                return False
            if message is None:
                return True
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
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                self.forged = "a message on the channel cannot be understood"
        return True

    def _take(self, message: dict[str, Any]) -> None:
        # Where it is stuck it may say after its end, as long as threads of the program keep it.
        if message["i"] != self.messages or (self.end is not None and message["t"] != "stuck"):
            self.forged = "the report's messages are not in order"
        self.messages += 1
        kind = message["t"]
        if kind == "collected":
            self.collected = tuple(self.session.mask(str(one)) for one in message["ids"])
            self.unable = frozenset(self.session.mask(str(one)) for one in message["cannot_pass"])
            copies, names = message.get("elsewhere", ())[:COPIES], masking.DrawnNames()
            self.elsewhere = tuple((str(name)[:200], names.mask(self._mask(path))[:500]) for name, path in copies)
        elif kind == "test":
            self._add(message)
        elif kind == "problem":
            self.problems.append(self._problem(message["of"], message["text"]))
        elif kind == "stuck" and self.asked:
            self.printed = str(message["printed"])
        elif kind == "end":
            status = message["status"]
            if type(status) is not int:
                raise TypeError(kind)
            self.end = status
            self.unsure.clear()  # what changed until then was told

    def _add(self, message: dict[str, Any]) -> None:
        """Keep a result; of several for one test, the worst."""
        name, outcome = self.session.mask(str(message["id"])), cast(Outcome, str(message["outcome"]))
        frames = tuple(
            {
                "file": str(frame["file"]),
                "line": int(frame["line"]),
                "function": str(frame["function"]),
                "locals": {str(key): self._mask(value) for key, value in frame["locals"].items()},
                **({"of": self._mask(frame["of"])} if "of" in frame else {}),
                **({"left_out": int(frame["left_out"])} if "left_out" in frame else {}),
            }
            for frame in message.get("frames", ())
        )
        known, rank = self.results.get(name), _RANK[outcome]
        if known is None or rank > _RANK[known.outcome]:
            self.results[name] = TestResult(name, outcome, self._mask(message.get("message", "")), frames)
        if message.get("sure") is True:
            self.unsure.clear()
        else:
            self.unsure.add(name)

    def _mask(self, text: object) -> str:
        return masking.mask_temporary(self.session.mask(str(text)))

    def _problem(self, kind: object, text: object) -> Problem:
        if kind not in tampering.KINDS or not isinstance(text, str):
            raise TypeError(kind)
        return Problem(str(kind), self._mask(text))

    def _unsure(self) -> frozenset[str]:
        """Tests that passed, as the run says, since all was last seen to be as it was."""
        return frozenset(one for one in self.unsure if self.results[one].outcome in PASSING)

    def _why_not_valid(self, status: int, timed_out: bool, interrupted: bool, lost: str) -> str:
        """Why the report does not count as it stands, empty when it does."""
        failing = any(test.outcome in FAILING for test in self.results.values())
        if timed_out:
            return TIMED_OUT
        if interrupted:
            return INTERRUPTED
        if lost:
            return f"the run was lost: {lost}"
        if self.end is None:
            how = killed_by(-status) if status < 0 else f"ended with status {status}"
            return f"it {how} before its report was complete"
        if status != self.end:
            return f"its exit status {status} is not the {self.end} that the tests ended with"
        if status == 0 and failing:
            return "its exit status is 0 although tests failed"
        if status == 1 and not failing and self.mode == "run":
            return "its exit status is 1 although no test failed"
        return ""

    def _internal_error(self, output: str) -> str:
        """That pytest itself ended with an error, and what it says last of it; empty where it did not."""
        said = [line.removeprefix(CRASH).strip() for line in output.splitlines() if line.startswith(CRASH)]
        if self.end != CRASHED or not any(said):
            return ""
        return f"it ended with an internal error of pytest: {masking.mask_temporary(next(filter(None, said[::-1])))}"


def _masked(test: TestResult, names: masking.DrawnNames) -> TestResult:
    """A test with the names of temporary files numbered, those in its frames first."""
    if not (test.message or test.frames):
        return test
    frames = []
    for frame in test.frames:
        values = cast("dict[str, str]", frame["locals"])
        of = {"of": names.mask(str(frame["of"]))} if "of" in frame else {}
        frames.append({**frame, "locals": {key: names.mask(value) for key, value in values.items()}, **of})
    return replace(test, message=names.mask(test.message), frames=tuple(frames))
