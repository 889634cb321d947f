"""The host's end of one debug session: one process, from its start to its end."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from debug_gym_core.debugging.boot import why_ended
from debug_gym_core.debugging.breakpoints import Breakpoint, Breakpoints
from debug_gym_core.debugging.inside.process import LOST_STATUS
from debug_gym_core.debugging.shown_texts import ShownTexts
from debug_gym_core.errors import ActionError
from debug_gym_core.grading import masking
from debug_gym_core.sandbox.interruption import Interruption
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.sandbox.session import Process, Session
from debug_gym_core.sandbox.stacks import readable_stack
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_tool_pdb.boot import ARGUMENTS, blob, warm_start

START_SECONDS = 30.0
"""How long an interpreter may take to the stop before the program's first line."""

INTERRUPT_SECONDS = 1.0
"""How long a program may take to stop after it was interrupted; only one long call of C code takes longer."""

STACK_SECONDS = 0.5
ANSWER_SECONDS = 5.0
QUIT_SECONDS = 1.0
END_SECONDS = 3.0
PRINTED_LIMIT = 16 * 1024

STARTED = {
    "spawn": "the program started processes by multiprocessing's start method spawn: breakpoints do not stop there, as"
    " they do in processes of the start method fork",
    "forkserver": "the program started processes by multiprocessing's start method forkserver: breakpoints do not stop"
    " there, as they do in processes of the start method fork",
    "python": "the program started another Python interpreter: breakpoints do not stop there; to debug what it runs,"
    " make that the entrypoint",
}
"""What is said of children that do not stop, by how they were started."""

NEVER = "breakpoint {number} at {file}:{line} never stopped: {why}"


class End(enum.Enum):
    """How a session ended."""

    EXITED = "exited"
    QUIT = "quit"
    DIED = "died"
    STUCK = "stuck"
    LOST = "lost"
    REPLACED = "replaced"
    STRANDED = "stranded"


@dataclass(frozen=True)
class Reply:
    """What one command brought about.

    Attributes:
        text: what pdb printed
        missing: by how many characters it is shorter than what pdb printed, of which it says itself where
        printed: what the program printed meanwhile
        printed_cut: bytes left out of `printed`
        stop: where the program stopped; None: it did not run
        failed: whether pdb refused the command
        used: lines that the command took from those after it
        timed_out: whether it was interrupted because it took too long
        end: how the session ended; None: it goes on
        status: exit status at the end, or minus a signal's number; None: it was ended
        exception: type and message of the uncaught exception that ended the program
        stack: Python stack of a program that could not be interrupted
        notes: what else there is to know
        restart: arguments to restart with, None for the same ones; in a tuple; empty: no restart is asked for
    """

    text: str = ""
    missing: int = 0
    printed: str = ""
    printed_cut: int = 0
    stop: Mapping[str, Any] | None = None
    failed: bool = False
    used: int = 0
    timed_out: bool = False
    end: End | None = None
    status: int | None = None
    exception: Mapping[str, str] | None = None
    stack: str = ""
    notes: tuple[str, ...] = ()
    restart: tuple[Sequence[str] | None, ...] = ()


@dataclass
class DebugSession:
    """One process under the debugger; at a prompt whenever no method runs.

    Attributes:
        session: the sandbox
        entrypoint: what is debugged
        breakpoints: all of them; follow what the commands do
        aliases: of pdb, and what they stand for; likewise
        ignored: files whose source pdb's own commands do not show, relative to the workspace
        cwd: where the program runs, relative to the workspace
        warm: whether it may start from an interpreter that has modules loaded
        rewind: whether stops are to be kept, to go back to them
        not_rewinding: why they cannot be; empty: they are, or are not to be
        lost: breakpoints that could not be set again, and why
        alive: whether there is a prompt
    """

    session: Session
    entrypoint: Entrypoint
    breakpoints: Breakpoints
    aliases: dict[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()
    cwd: str = "."
    warm: bool = True
    rewind: bool = False
    not_rewinding: str = ""
    lost: tuple[str, ...] = ()
    alive: bool = False
    _process: Process = field(init=False)
    _signals: dict[str, int] = field(init=False, default_factory=dict)
    _talking: int = field(init=False, default=0)
    _replaced: bool = field(init=False, default=False)
    _shown: ShownTexts = field(init=False)
    _told: set[str] = field(init=False, default_factory=set)

    def start(self) -> Reply:
        """Start the program and stop before its first line.

        Raises:
            ActionError: there is nothing that can be debugged; says why
            SandboxError: the sandbox failed
        """
        entrypoint = self.entrypoint
        mask = functools.partial(masking.mask, names=masking.DrawnNames())
        self._shown = ShownTexts(self.session, mask if entrypoint.runs_tests else None)
        python = entrypoint.interpreter or self.session.python
        try:
            self._process = self.session.process(
                [python, *entrypoint.flags, *ARGUMENTS],
                pty=True,
                stdin=True,
                blobs={"code": blob()},
                cwd=self.cwd,
                env=entrypoint.env,
                output_limit=PRINTED_LIMIT,
                warm=warm_start() if self.warm else None,
            )
        except OSError as error:
            raise ActionError(f"{entrypoint.text!r} cannot be started: {python}: {error.strerror or error}") from None
        self._process.write_stdin(b"", close=True)  # nobody types: as in `eval`, a program that reads sees the end
        self._send(
            {
                "kind": entrypoint.kind.value,
                "target": entrypoint.target,
                "args": entrypoint.args,
                "root": self.session.root,
                "ignored": list(self.ignored),
                "rewind": self.rewind,
                "breakpoints": {"list": self.breakpoints.as_json(), "next": self.breakpoints.next_number},
                "aliases": self.aliases,
            }
        )
        try:
            data = self._process.receive(START_SECONDS)
        except TimeoutError:
            self.close()
            raise ActionError(f"{entrypoint.text!r}: the interpreter did not start in {START_SECONDS:g} s") from None
        message = json.loads(data) if data is not None else {}
        if message.get("t") == "prompt":
            self.alive = True
            self._signals = message["hello"]["signals"]
            self._shown.root = message["hello"]["root"]
            self.not_rewinding = message["hello"]["rewind"]
            self.lost = tuple(f"{Breakpoint.from_json(_known(one))}: {one['why']}" for one in message["hello"]["lost"])
            return self._reply(message)
        printed = self.session.mask(self._process.take_output()[0]).strip()
        self.close()
        why = message.get("message") or why_ended(printed)
        raise ActionError(f"{entrypoint.text!r} cannot be debugged: {self.session.mask(str(why))}")

    def execute(
        self, command: str, rest: Sequence[str], timeout: float, interruption: Interruption | None = None
    ) -> Reply:
        """Carry out one command.

        Args:
            command: one line
            rest: the lines after it, which it may need
            timeout: seconds after which it is interrupted
            interruption: by which another thread may stop the program where it is

        Raises:
            SandboxError: the sandbox failed
        """
        if self._talking and not self._process.signal(0, self._talking):
            gone = "The process that was stopped has ended; the command was not carried out."
            return dataclasses.replace(self._interrupt(), notes=(gone,), timed_out=False, failed=True)
        try:
            self._send({"cmd": command, "rest": list(rest)})
            try:
                with (interruption or Interruption()).ending(self._stop):
                    message = self._receive(timeout)
            except TimeoutError:
                return self._interrupt()
            return self._reply(message)
        except CommandLost:
            self.alive = False
            return Reply(end=End.DIED)

    @property
    def replaced(self) -> bool:
        """Whether another program is in the place of the one that is debugged, which knows of no debugger."""
        return self._replaced

    def _stop(self) -> bool:
        """Stop the program where it is; another thread is in `execute`, which returns then. Whether it may."""
        number, processes = self._signals["interrupt"], sorted({self._talking, 0}, reverse=True)
        return not self._replaced and any(self._process.signal(number, one) for one in processes)

    def has_loaded(self, path: str) -> bool:
        """Whether the program runs code of a file; also when it does not say.

        Args:
            path: relative to the workspace

        Raises:
            SandboxError: the sandbox failed
        """
        self._send({"loaded": path})
        try:
            message = self._receive(ANSWER_SECONDS)
        except TimeoutError:
            return True
        return bool(message.get("loaded", True))

    def close(self) -> None:
        """End the program and all that it started; may be called twice."""
        self.alive = False
        self._process.kill()

    def _interrupt(self) -> Reply:
        if self._replaced:  # the signal would end what is there now
            printed, cut = self._process.take_output()
            self.close()
            return Reply(printed=self._shown.printed(printed), printed_cut=cut, timed_out=True, end=End.REPLACED)
        # The process that was told to go on; when it has ended or does not stop, the first one.
        for process in sorted({self._talking, 0}, reverse=True):
            # Twice: of a signal that comes just before a system call, Python hears when that has ended.
            for _ in range(2):
                if self._process.signal(self._signals["interrupt"], process) or not process:
                    try:
                        return self._reply(self._receive(INTERRUPT_SECONDS / 2), timed_out=True)
                    except TimeoutError:
                        pass
        printed, cut = self._process.take_output()
        self._process.signal(self._signals["stack"])
        try:
            return self._reply(self._receive(STACK_SECONDS), timed_out=True)
        except TimeoutError:
            pass
        stack = self._process.take_output()[0]
        self.close()
        return Reply(
            printed=self._shown.printed(printed),
            printed_cut=cut,
            timed_out=True,
            end=End.STUCK,
            stack=readable_stack(self._shown.text(stack)),
        )

    def _send(self, message: Mapping[str, Any]) -> None:
        self._process.send(json.dumps({**message, "for": self._talking}).encode())

    def _receive(self, timeout: float) -> dict[str, Any]:
        """The program's next message; `{"t": "dead"}` when it ended without one."""
        deadline = time.monotonic() + timeout
        while True:
            data = self._process.receive(max(0.0, deadline - time.monotonic()))
            if data is None:
                return {"t": "dead", "replaced": self._replaced}
            try:
                message: dict[str, Any] = json.loads(data)
            except ValueError:  # something of the program's own was written to the channel
                self._process.kill()
                return {"t": "dead", "lost": True}
            self._replaced = message["t"] == "replaced"
            if message["t"] not in ("replaced", "stayed"):
                self._talking = int(message.get("pid", 0))
                return message

    def _reply(self, message: dict[str, Any], *, timed_out: bool = False) -> Reply:
        kind = message["t"]
        if kind in ("exit", "dead", "stranded"):
            return self._ended(message, timed_out)
        if kind == "quit":
            return self._quit(message)
        printed, cut = self._process.take_output()
        self._mirror(message)
        return Reply(
            text=self._shown.text(message.get("out", "")),
            missing=message.get("missing", 0),
            printed=self._shown.printed(printed),
            printed_cut=cut,
            notes=self._notes(message),
            stop=self._shown.json(message.get("stop")),
            failed=message.get("failed", False),
            used=message.get("used", 0),
            timed_out=timed_out,
            restart=(message.get("args"),) if kind == "restart" else (),
        )

    def _quit(self, message: dict[str, Any]) -> Reply:
        """Give the program a moment to clean up behind itself, then end it; a child's parent would only go on."""
        self._mirror(message)
        if message.get("pid"):
            self.close()
            return Reply(self._shown.text(message["out"]), message.get("missing", 0), end=End.QUIT)
        with contextlib.suppress(TimeoutError):
            self._process.receive(QUIT_SECONDS)
            self._process.wait(QUIT_SECONDS)
        self.close()
        return Reply(self._shown.text(message["out"]), message.get("missing", 0), end=End.QUIT)

    def _ended(self, message: dict[str, Any], timed_out: bool) -> Reply:
        self.alive = False
        self._mirror(message)
        try:
            status: int | None = self._process.wait(END_SECONDS)
        except TimeoutError:
            status = None if message.get("replaced") else message.get("status") or 0
        self._process.kill()
        printed, cut = self._process.take_output()
        return Reply(
            text=self._shown.text(message.get("out", "")),
            missing=message.get("missing", 0),
            printed=self._shown.printed(printed),
            printed_cut=cut,
            timed_out=timed_out,
            notes=self._notes(message),
            end=_how(message, status),
            status=status,
            exception=self._shown.json(message.get("exception")),
        )

    def _mirror(self, message: dict[str, Any]) -> None:
        """Take over the debuggee's breakpoints and aliases."""
        state = message.get("breakpoints")
        if state is not None:
            self.breakpoints.replace([Breakpoint.from_json(one) for one in state["list"]], state["next"])
        if "aliases" in message:
            self.aliases.clear()
            self.aliases.update(message["aliases"])

    def _notes(self, message: Mapping[str, Any]) -> tuple[str, ...]:
        """What to know of breakpoints that did not stop: once, in processes that the program started; or anywhere."""
        started = [how for how in message.get("started", ()) if how in STARTED and how not in self._told]
        self._told.update(started)
        notes = [STARTED[how] for how in started]
        notes += [NEVER.format(**one) for one in message.get("never", ())]
        return tuple(notes)


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "why"}


def _how(message: Mapping[str, Any], status: int | None) -> End:
    """How a program ended by itself."""
    if message.get("replaced"):
        return End.REPLACED
    if message["t"] == "stranded":
        return End.STRANDED
    if message.get("lost") or (message["t"] == "dead" and status == LOST_STATUS):
        return End.LOST
    return End.DIED if message["t"] == "dead" else End.EXITED
