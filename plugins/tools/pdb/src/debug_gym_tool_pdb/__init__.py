"""The pdb tool: the interactive debugger, on a channel of its own.

`typed` reads what was typed; a `session` has one process, into which `boot` brings the `debuggee`, and `render` makes
text of what that says. What the entrypoint debugs is found by `debug_gym_core.debugging.target`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from debug_gym_core import ActionError, Observation, Settings, Tool, hookimpl
from debug_gym_core.components.values import Flag, Seconds
from debug_gym_core.debugging.target import Target, find_target
from debug_gym_core.errors import SandboxError
from debug_gym_core.tasks.entrypoint import EXAMPLE
from debug_gym_core.tools.observation import bound
from debug_gym_tool_pdb import typed
from debug_gym_tool_pdb.debuggee.guide import overview
from debug_gym_tool_pdb.render import VALUE_LIMIT, Call, end_text, place
from debug_gym_tool_pdb.session import DebugSession, Reply

if TYPE_CHECKING:
    from debug_gym_core import Environment
    from debug_gym_core.tools.action import ToolCall
    from debug_gym_core.workspace.edits import Edit

ERROR_LIMIT = 2000
"""Characters of what was asked for that an error repeats."""

_QUIT = re.compile(r"\s*(?:q|quit|exit|EOF)\s*(?:\(\s*\))?\s*")
_PROGRAMS = ("python", "python3", "pytest")
_REWINDS = "Each stop has a number: `back` goes to the one before, `rewind N` to stop N."
_ARGUMENTS = "What follows `run` are arguments of the program; another program is named as the call's `entrypoint`."


class PdbSettings(Settings):
    """Settings of the pdb tool.

    Attributes:
        timeout: seconds that one command may run before it is interrupted
        persistent_breakpoints: whether breakpoints survive the end of a session
        warm: whether sessions may start from an interpreter that has been warmed up
        rewind: whether stops can be gone back to, with `back` and `rewind`; a copy of the program waits at each
    """

    timeout: Seconds = 60.0
    persistent_breakpoints: Flag = True
    warm: Flag = True
    rewind: Flag = False


class Pdb(Tool):
    """Debug the program with pdb, Python's debugger.

    Any pdb command, or several, one a line, carried out in order until one fails: `b file.py:12` or
    `b file.py:12, x > 3` sets a breakpoint, `c` continues to it, `n` and `s` step, `p expression` prints, `w` shows the
    stack, `u` and `d` move in it, `b` lists breakpoints, `cl 1` clears one, `restart` starts again, `q` ends the
    session, `help` lists the commands. The first command starts the program and stops before its first line.
    Breakpoints survive restarts and follow edits. A failing test or an uncaught exception stops where it was raised.
    """

    name = "pdb"
    examples = ({"command": "b app.py:12\nc\np total"}, {"command": "c", "entrypoint": EXAMPLE})
    sets_breakpoints = True
    Settings: ClassVar[type[Settings]] = PdbSettings
    settings: PdbSettings

    def __init__(self, **settings: Any) -> None:
        """Check and keep the settings; see `Component`."""
        super().__init__(**settings)
        self._session: DebugSession | None = None
        self._stopped: Mapping[str, Any] | None = None
        self._asked = ""
        self._running = False
        self._arguments: Sequence[str] | None = None
        self._aliases: dict[str, str] = {}

    def use(self, env: Environment, command: str, entrypoint: str | None = None) -> Observation:
        """Carry out pdb commands.

        Args:
            env: the environment
            command: one pdb command, or several, one a line
            entrypoint: what to debug instead of the task's own program, such as `python -m pytest -q test_app.py`
        """
        self._running = True  # what happens to files until the step is over, programs do that are debugged
        lines = typed.lines_of(command)
        entrypoint = (entrypoint or "").strip() or None
        if self._live is None and len(lines) == 1:
            if _QUIT.fullmatch(lines[0]):
                return Observation(self.name, "There is no session to end; the next pdb command starts one.")
            if typed.asks_for_help(lines[0]):
                return Observation(self.name, overview(self.settings.rewind))
        call = Call()
        if self._live is None and self.settings.rewind and typed.goes_back(lines[0]):
            call.say("There is no session, so no stop to go back to; the next pdb command starts one.")
            return self._observe(env, call, sum(1 for line in lines[1:] if line.strip()))
        if self._live is None or (entrypoint is not None and entrypoint != self._live.entrypoint.text):
            asked = entrypoint or env.debug_entrypoint
            target = find_target(asked, env)
            restart = typed.restart(lines[0])
            arguments: Sequence[str] | None = restart[0] if restart else None
            if arguments is None and entrypoint is None and asked == self._asked:
                arguments = self._arguments
            try:
                self._start(env, target, call, arguments)
            except ActionError as error:
                listed = [f"Breakpoint {one}" for one in env.breakpoints]
                if self._live is not None or not listed or len(lines) > 1 or not typed.lists_breakpoints(lines[0]):
                    raise
                text = "\n".join([*listed, f"There is no session: {error}"])
                return Observation(self.name, text, {"breakpoints": env.breakpoints.as_json()})
            self._asked = asked
            if restart:  # done already
                lines.pop(0)
        while lines and self._live is not None and not env.interruption.asked:
            line = lines.pop(0)
            if line.strip() and not self._repeat(env, line, lines, call):
                break
        return self._observe(env, call, sum(1 for line in lines if line.strip()))

    def interrupt(self) -> bool:
        """No further command is carried out; see `Tool`. A program that runs is stopped at a prompt without this."""
        return self._session is None or not self._session.replaced

    def close(self) -> None:
        """End the session; see `Tool`."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    @hookimpl
    def on_reset(self) -> None:
        """Forget the arguments of the last episode's program, and the aliases."""
        self._arguments = None
        self._aliases = {}

    @hookimpl
    def on_file_changed(self, env: Environment, path: str, edits: Sequence[Edit]) -> Observation | None:
        """Let breakpoints follow the edit, and end a session whose code is no longer the file's."""
        followed = any(one.file == path for one in env.breakpoints)
        moves = env.breakpoints.moved(path, edits)
        said = [
            f"Breakpoint {was.number} moved from {path}:{was.line} to {path}:{now.line}." for was, now in moves.moved
        ]
        why = "its file is gone" if moves.dropped and env.session.stat(path) is None else "its line was replaced"
        said += [f"Breakpoint {one} was dropped: {why}." for one in moves.dropped]
        live, ended = self._live, None
        if live is not None and (followed or live.has_loaded(path)):
            if self._running and not followed:  # a program that writes code for itself knows what it does
                return Observation(self.name, f"{path} changed while the program ran, which goes on with what it has.")
            ended = {"how": "file_changed", "status": None, "exception": None}
            self.close()
            self._forget(env)
            said.append("The debugger session ended because a file changed; the next pdb command starts a new one.")
        if not said:
            return None
        return Observation(self.name, "\n".join(said), {"breakpoints": env.breakpoints.as_json(), "ended": ended})

    @property
    def _live(self) -> DebugSession | None:
        """The session that has a prompt."""
        return self._session if self._session is not None and self._session.alive else None

    @hookimpl
    def on_step(self, env: Environment, call: ToolCall) -> Observation | None:
        """Say where the program is stopped while other tools are used."""
        self._running = False
        if call.name == self.name or self._live is None or self._stopped is None:
            return None
        said = f"The debugger is stopped {place(self._stopped)}."
        return Observation(self.name, said, {"breakpoints": env.breakpoints.as_json()})

    def _start(self, env: Environment, target: Target, call: Call, arguments: Sequence[str] | None) -> None:
        """Start a session in the place of any other; `arguments` take the place of the program's, if there are any."""
        entrypoint, ignored = target.entrypoint, env.workspace.ignored_files(".py")
        notes = list(target.notes)
        if arguments is not None:
            if arguments != self._arguments and arguments[:1] and arguments[0] in (entrypoint.target, *_PROGRAMS):
                notes.append(_ARGUMENTS)
            entrypoint = entrypoint.with_args(arguments)
        warm, rewind = self.settings.warm, self.settings.rewind
        known = env.breakpoints, self._aliases
        session = DebugSession(env.session, entrypoint, *known, ignored, target.cwd, warm, rewind)
        try:
            started = session.start()
        except ActionError as error:
            raise ActionError(bound(f"pdb: {error}", ERROR_LIMIT)) from None
        if self._session is not None:
            self._session.close()
        self._session = session
        self._stopped = started.stop
        self._arguments = arguments
        call.say(f"Started `{entrypoint.text}`, stopped before its first line.", *notes)
        call.say(*(f"Breakpoint {one}" for one in session.lost))
        if session.rewind:
            why_not = session.not_rewinding
            call.say(f"Stops cannot be gone back to: {why_not}." if why_not else _REWINDS)
        call.replies.append(("", self._without_ignored(env, started)))

    def _repeat(self, env: Environment, line: str, lines: list[str], call: Call) -> bool:
        """Carry out one line, `n 5` five times; whether to go on with the next."""
        command, count = typed.counted(line)
        for done in range(count):
            reply, refused = self._carry_out(env, command, lines, call)
            if reply.failed or reply.timed_out or reply.end is not None or refused:
                return False
            stepped = reply.stop is not None and reply.stop["reason"] in ("step", "call", "return")
            stepped &= not env.interruption.asked
            if done + 1 < count and (not stepped or done + 1 == typed.MOST_STEPS):
                call.say(f"[{done + 1} of {count} steps taken]")
                break
        return True

    def _carry_out(self, env: Environment, line: str, lines: list[str], call: Call) -> tuple[Reply, bool]:
        """Carry out one command, which may take some of the lines after it; whether a breakpoint was refused."""
        assert self._session is not None
        before = {one.number for one in env.breakpoints}
        try:
            reply = self._session.execute(line, lines, self.settings.timeout, env.interruption)
        except SandboxError:
            self._session = None
            raise
        except BaseException:  # a reply may still come: this session cannot be used again
            self.close()
            raise
        reply = self._without_ignored(env, reply)
        command = "\n".join([line, *lines[: reply.used]])
        del lines[: reply.used]
        call.replies.append((command, reply))
        self._stopped = reply.stop or self._stopped
        refused = self._refuse_ignored(env, before)
        call.say(*refused)
        if reply.end is not None:
            self.close()
            self._forget(env)
            call.say(end_text(reply, self.settings.timeout))
        elif reply.timed_out:
            call.say(
                f"The command ran longer than {self.settings.timeout:g} s and was interrupted; the session is stopped"
                " where the program was, breakpoints are kept."
            )
        elif reply.restart:
            target = Target(self._session.entrypoint, self._session.cwd)
            self.close()
            self._forget(env)
            self._start(env, target, call, self._arguments if reply.restart[0] is None else reply.restart[0])
        return reply, bool(refused)

    def _forget(self, env: Environment) -> None:
        if not self.settings.persistent_breakpoints:
            env.breakpoints.clear()

    def _without_ignored(self, env: Environment, reply: Reply) -> Reply:
        """A reply without what a stop in an ignored file would show of it."""
        stop = reply.stop
        if stop is None or "file" not in stop or stop["file"].startswith("/"):
            return reply
        if not env.workspace.is_ignored(stop["file"]):
            return reply
        kept = {key: value for key, value in stop.items() if key not in ("source", "locals", "return")}
        return dataclasses.replace(reply, stop={**kept, "ignored": True})

    def _refuse_ignored(self, env: Environment, before: set[int]) -> list[str]:
        """Clear new breakpoints in files that the agent must not see."""
        said = []
        for one in [one for one in env.breakpoints if one.number not in before]:
            try:
                if not one.file.startswith("/"):
                    env.workspace.resolve(one.file)
            except ActionError as error:
                said.append(f"Breakpoint {one.number} was cleared: {error}")
                if self._live is not None:
                    self._live.execute(f"cl {one.number}", (), self.settings.timeout)
                else:
                    env.breakpoints.remove(one.number)
        return said

    def _observe(self, env: Environment, call: Call, left: int) -> Observation:
        """What the agent gets to see of a call."""
        if left:
            call.say(f"[{left} more command{'s' if left > 1 else ''} not carried out]")
        last = call.replies[-1][1] if call.replies else Reply()
        ended = None
        if last.end is not None:
            exception = dict(last.exception) if last.exception else None
            ended = {"how": last.end.value, "status": last.status, "exception": exception}
        stops = [reply.stop for _, reply in call.replies if reply.stop is not None]
        data = {
            "commands": [
                {
                    "command": command if len(command) <= VALUE_LIMIT else f"{command[:VALUE_LIMIT]}...",
                    "output": reply.text,
                    "printed": reply.printed,
                    "failed": reply.failed,
                }
                for command, reply in call.replies
                if command
            ],
            "stop": dict(stops[-1]) if stops and ended is None else None,
            "ended": ended,
            "timed_out": last.timed_out,
            "breakpoints": env.breakpoints.as_json(),
        }
        return Observation(self.name, call.text() or "[done]", data)


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """This plugin's tools."""
    return [Pdb]
