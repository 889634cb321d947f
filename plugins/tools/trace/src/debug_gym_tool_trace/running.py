"""Runs a program and hears what was seen of the call."""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from debug_gym_core.debugging.boot import ARGUMENTS, blob, warm_start, why_ended
from debug_gym_core.debugging.inside.process import LOST_STATUS
from debug_gym_core.debugging.shown_texts import ShownTexts
from debug_gym_core.debugging.target import Target
from debug_gym_core.errors import ActionError
from debug_gym_core.grading import masking
from debug_gym_core.sandbox.interruption import Interruption
from debug_gym_core.sandbox.session import Process, Session
from debug_gym_core.sandbox.stacks import split_stack
from debug_gym_tool_trace.seen import About, Call, End, Message, Place, Test, cleaned

TRACEE = f"{__package__}.tracee"

START_SECONDS = 30.0
"""How long an interpreter may take until the program begins."""

TEST_SECONDS = 5.0
"""How long a test may go on after the call, to hear how it ends."""

INTERRUPT_SECONDS = 1.0
"""How long a program may take to tell what it has seen; only one long call of C code takes longer."""

STACK_SECONDS = 0.5
"""How long it may take then until Python has written where it is."""

END_SECONDS = 2.0
PRINTED_LIMIT = 16 * 1024


@dataclass(frozen=True)
class Wanted:
    """What is to be followed.

    Attributes:
        file: relative to the workspace
        function: its qualified name, the end of one, or a line
        call: which call, from 1
        depth: levels of calls below it that are followed too
        case: the one of a test, as `[3]`; pytest runs only that; empty: all count
    """

    file: str
    function: str
    call: int
    depth: int
    case: str = ""


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        about: the function
        story: the call, as far as it was seen; None: it was not made
        calls: how many calls of the function there were
        all: whether these are all that there were
        blind: whether some may not have been heard of, as the program traced itself
        done: whether the call is over
        problem: why it was not followed to its end
        test: how the test ended that it was in
        tests: how many tests ended how
        end: how the program ended by itself; None: it was ended, or died
        status: exit status of a program that died, or minus a signal's number
        timed_out: whether its time was over
        interrupted: whether somebody ended it before its time
        now: where it was then
        stuck: whether it did not say so
        stack: what Python wrote of where it was, where the program could not say so
        lost: whether the program took the channel away, or wrote to it
        printed: what the program printed
        printed_cut: bytes left out of it
    """

    about: About | None = None
    story: Call | None = None
    calls: int = 0
    all: bool = True
    blind: bool = False
    done: bool = False
    problem: str = ""
    test: Test | None = None
    tests: Mapping[str, int] | None = None
    end: End | None = None
    status: int | None = None
    timed_out: bool = False
    interrupted: bool = False
    now: Place | None = None
    stuck: bool = False
    stack: str = ""
    lost: bool = False
    printed: str = ""
    printed_cut: int = 0


@dataclass
class Tracing:
    """One program in which one call is followed.

    Attributes:
        session: the sandbox
        target: the program
        wanted: the call
        ignored: files of which nothing is shown, relative to the workspace
        timeout: seconds that the program may take until the call is over
        warm: whether it may start from an interpreter that has modules loaded
        interruption: by which another thread may end it
    """

    session: Session
    target: Target
    wanted: Wanted
    ignored: Sequence[str]
    timeout: float
    warm: bool = True
    interruption: Interruption = field(default_factory=Interruption)
    _process: Process = field(init=False)
    _signals: Mapping[str, int] = field(init=False)
    _before: tuple[str, int] = field(init=False, default=("", 0))
    _shown: ShownTexts = field(init=False)
    _heard: threading.Event = field(init=False, default_factory=threading.Event)
    _outcome: Outcome = field(init=False, default_factory=Outcome)

    def run(self) -> Outcome:
        """Run the program until the call is over.

        Raises:
            ActionError: the program or the function is not there; says why
            SandboxError: the sandbox failed
        """
        self._start()
        outcome = self._outcome
        try:
            with self.interruption.ending(self._stop, unbegun=lambda: None) as call:  # see `_hear`
                try:
                    self._hear()
                finally:
                    self._heard.set()
            outcome.interrupted = call.ended and not outcome.done and outcome.end is None
            self._take_output()
        finally:
            self._process.kill()
        return outcome

    def _take_output(self) -> None:
        """Take what the program printed, and apart from it the stack that it was asked for."""
        outcome, (before, cut_before) = self._outcome, self._before
        printed, cut = self._process.take_output()
        if outcome.stuck:
            printed, outcome.stack = split_stack(self._shown.text(printed))
        outcome.printed, outcome.printed_cut = self._shown.printed(before + printed), cut_before + cut

    def _stop(self) -> bool:
        """Have it end, once it has told where it is, or without that; another thread hears it."""
        for seconds in self._asked():
            if self._heard.wait(seconds):
                return True
        self._outcome.stuck = True
        self._process.kill()
        return True

    def _asked(self) -> Iterator[float]:
        """Ask the program where it is, in one way after the other; yields how many seconds the answer may take.

        Twice itself: of a signal that comes just before a system call, Python hears when that has ended. Then Python,
        which writes it to the output.
        """
        for _ in range(2):
            self._process.signal(self._signals["interrupt"])
            yield INTERRUPT_SECONDS / 2
        self._before = self._process.take_output()
        self._process.signal(self._signals["stack"])
        yield STACK_SECONDS

    def _start(self) -> None:
        entrypoint = self.target.entrypoint
        mask = functools.partial(masking.mask, names=masking.DrawnNames())
        self._shown = ShownTexts(self.session, mask if entrypoint.runs_tests else None)
        python = entrypoint.interpreter or self.session.python
        try:
            self._process = self.session.process(
                [python, *entrypoint.flags, *ARGUMENTS],
                blobs={"code": blob(TRACEE)},
                cwd=self.target.cwd,
                env=entrypoint.env,
                output_limit=PRINTED_LIMIT,
                warm=warm_start(TRACEE) if self.warm else None,
            )
        except OSError as error:
            raise ActionError(f"{entrypoint.text!r} cannot be started: {python}: {error.strerror or error}") from None
        config: Mapping[str, Any] = {
            "kind": entrypoint.kind.value,
            "target": entrypoint.target,
            "args": entrypoint.args,
            "root": self.session.root,
            "ignored": list(self.ignored),
            "file": self.wanted.file,
            "function": self.wanted.function,
            "call": self.wanted.call,
            "depth": self.wanted.depth,
            "case": self.wanted.case,
        }
        self._process.send(json.dumps(config).encode())
        try:
            message = self._receive(START_SECONDS)
        except TimeoutError:
            self._process.kill()
            raise ActionError(f"{entrypoint.text!r}: the interpreter did not start in {START_SECONDS:g} s") from None
        if message is None or message.t != "begun":
            printed = self.session.mask(self._process.take_output()[0]).strip()
            self._process.kill()
            why = message.why if message is not None else ""
            if message is not None and message.what == "Unknown":
                raise ActionError(why)
            why = why or why_ended(printed)
            raise ActionError(f"{entrypoint.text!r} cannot be traced: {why}")
        self._signals, self._shown.root = message.signals, message.root
        self._outcome.about = message.about

    def _hear(self) -> None:
        """Hear what the program says until the call is over, the program is, or the time."""
        outcome = self._outcome
        deadline = time.monotonic() + (0.0 if self.interruption.asked else self.timeout)
        while True:
            try:
                message = self._receive(deadline - time.monotonic())
            except TimeoutError:
                if not outcome.done and outcome.end is None:
                    self._interrupt()
                return
            if message is None:
                self._ended()
                return
            if message.t == "test":
                outcome.test = Test(test=message.test, outcome=message.outcome, message=message.message)
                return
            self._take(message)
            if message.now is not None and self.interruption.asked:
                return
            if message.end is not None:  # what it does at exit may make the call
                deadline = min(deadline, time.monotonic() + END_SECONDS)
            elif outcome.done:
                if outcome.story is None or not outcome.story.test:
                    return
                deadline = time.monotonic() + TEST_SECONDS

    def _take(self, message: Message) -> None:
        outcome = self._outcome
        outcome.story = message.story or outcome.story
        outcome.calls, outcome.done = message.calls, message.done
        outcome.all = message.all or message.now is not None or message.end is not None
        outcome.blind = message.blind
        outcome.problem, outcome.now = message.problem, message.now or outcome.now
        outcome.tests, outcome.end = message.tests or outcome.tests, message.end or outcome.end

    def _interrupt(self) -> None:
        """Have the program say what it has seen and where it is."""
        outcome = self._outcome
        outcome.timed_out = not self.interruption.asked
        for seconds in self._asked():
            deadline = time.monotonic() + seconds
            while True:
                try:
                    message = self._receive(deadline - time.monotonic())
                except TimeoutError:
                    break
                if message is None:
                    self._ended()
                    return
                if message.t == "story":
                    self._take(message)
                    if message.now is not None or message.done:
                        return
        outcome.stuck = outcome.now is None

    def _ended(self) -> None:
        """The program is over, or something else took the channel."""
        if self._outcome.lost:
            return
        try:
            self._outcome.status = self._process.wait(END_SECONDS)
        except TimeoutError:
            self._outcome.lost = True
        self._outcome.lost |= self._outcome.status == LOST_STATUS

    def _receive(self, timeout: float) -> Message | None:
        data = self._process.receive(max(0.0, timeout))
        if data is None:
            return None
        try:
            return Message.model_validate(self._shown.json(cleaned(json.loads(data.decode("utf-8", "replace")))))
        except (ValueError, ValidationError, RecursionError):  # something of the program's own
            self._outcome.lost = True
            return None
