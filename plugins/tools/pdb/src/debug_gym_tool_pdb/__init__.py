"""The pdb tool: the interactive debugger, on a channel of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from debug_gym_core.entrypoint import EXAMPLE, Entrypoint
from pydantic import Field

from debug_gym_core import ActionError, Observation, Settings, Tool, UsageError, hookimpl
from debug_gym_tool_pdb.render import end_text, reply_text
from debug_gym_tool_pdb.session import DebugSession, Reply, quit_politely

if TYPE_CHECKING:
    from debug_gym_core.breakpoints import Edit
    from debug_gym_core.env import RepoEnv

QUIT_COMMANDS = frozenset(("q", "quit", "exit", "EOF"))


class PdbSettings(Settings):
    """Settings of the pdb tool.

    Attributes:
        timeout: seconds that one command may run before it is interrupted
        persistent_breakpoints: whether breakpoints survive the end of a session
        warm: whether sessions may start from an interpreter that has been warmed up
        rewind: whether stops can be gone back to
    """

    timeout: float = Field(60.0, gt=0)
    persistent_breakpoints: bool = True
    warm: bool = True
    rewind: bool = False


class Pdb(Tool):
    """Debug the program with pdb, Python's debugger.

    Any pdb command, or several, one a line, carried out in order until one fails: `b file.py:12` or
    `b file.py:12, x > 3` sets a breakpoint, `c` continues to it, `n` and `s` step, `p expression` prints, `w` shows the
    stack, `u` and `d` move in it, `b` lists breakpoints, `cl 1` clears one, `restart` starts again, `q` ends the
    session. The first command starts the program and stops before its first line. Breakpoints survive restarts and follow
    edits. A failing test or an uncaught exception stops where it was raised.
    """

    name = "pdb"
    examples = ({"command": "b app.py:12\nc\np total"}, {"command": "c", "entrypoint": EXAMPLE})
    Settings: ClassVar[type[Settings]] = PdbSettings
    settings: PdbSettings

    def __init__(self, **settings: Any) -> None:
        """Check and keep the settings; see `Component`."""
        super().__init__(**settings)
        self._session: DebugSession | None = None

    def use(self, env: RepoEnv, command: str, entrypoint: str | None = None) -> Observation:
        """Carry out pdb commands.

        Args:
            command: one pdb command, or several, one a line
            entrypoint: what to debug instead of the task's own program, such as `python -m pytest -q test_app.py`
        """
        lines = command.splitlines()
        while lines and not lines[0].strip():
            lines.pop(0)
        if not lines:
            raise ActionError("pdb: the command is empty; an example: b app.py:12")
        if self._live is None and lines[0].strip() in QUIT_COMMANDS:
            return Observation(self.name, "There is no session to end; the next pdb command starts one.")
        parts, commands, stop = [], [], None
        if self._live is None or (entrypoint is not None and entrypoint.strip() != self._live.entrypoint.text):
            started, text = self._start(env, entrypoint or env.debug_entrypoint)
            parts.append(text)
            stop = started.stop
        several = len(lines) > 1
        reply = Reply()
        while lines and self._live is not None:
            line = lines.pop(0)
            if not line.strip():
                continue
            before = {one.number for one in env.breakpoints}
            reply = self._live.execute(line, lines, self.settings.timeout)
            taken = [lines.pop(0) for _ in range(min(reply.used, len(lines)))]
            refused = self._refuse_ignored(env, before)
            commands.append({"command": "\n".join([line, *taken]), "output": reply.text, "failed": reply.failed})
            stop = reply.stop or stop
            failed = reply.failed or reply.timed_out or bool(refused) or reply.end is not None
            text = reply_text(reply, last=failed or not any(map(str.strip, lines)))
            shown = "".join(f"(Pdb) {one}\n" for one in [line, *taken]) if several else ""
            parts.append((shown + text).rstrip("\n"))
            parts += refused
            parts.append(self._after(env, reply))
            if reply.restart:
                stop, text = self._restart(env, reply)
                parts.append(text)
            if failed:
                break
        left = sum(1 for line in lines if line.strip())
        if left:
            parts.append(f"[{left} more command{'s' if left > 1 else ''} not carried out]")
        data = self._data(env, commands, stop, reply)
        return Observation(self.name, "\n".join(part for part in parts if part) or "[done]", data)

    def close(self) -> None:
        """End the session; see `Tool`."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    @hookimpl
    def on_file_changed(self, env: RepoEnv, path: str, edits: Sequence[Edit]) -> Observation | None:
        """Let breakpoints follow the edit, and end a session whose code is no longer the file's."""
        moves = env.breakpoints.moved(path, edits)
        said = [
            f"Breakpoint {was.number} moved from {path}:{was.line} to {path}:{now.line}." for was, now in moves.moved
        ]
        said += [f"Breakpoint {one} was dropped: its line was replaced." for one in moves.dropped]
        if self._live is not None:
            self.close()
            self._forget(env)
            said.append("The debugger session ended because a file changed; the next pdb command starts it again.")
        if not said:
            return None
        return Observation(self.name, "\n".join(said), {"breakpoints": env.breakpoints.as_json(), "ended": True})

    @property
    def _live(self) -> DebugSession | None:
        """The session that has a prompt."""
        return self._session if self._session is not None and self._session.alive else None

    def _start(self, env: RepoEnv, text: str) -> tuple[Reply, str]:
        """Start a session in the place of any other; returns the stop before the first line and what to say."""
        try:
            entrypoint = Entrypoint.parse(text)
        except UsageError as error:
            raise ActionError(f"pdb: {error}") from None
        if not entrypoint.debuggable:
            raise ActionError(
                f"pdb: {text!r} cannot be debugged: {entrypoint.why_not}; give `entrypoint`, for example {EXAMPLE!r}"
            )
        return self._start_parsed(env, entrypoint)

    def _start_parsed(self, env: RepoEnv, entrypoint: Entrypoint) -> tuple[Reply, str]:
        session = DebugSession(env.session, entrypoint, env.breakpoints)
        try:
            started = session.start()
        except ActionError as error:
            raise ActionError(f"pdb: {error}") from None
        if self._session is not None:
            quit_politely(self._session)
        self._session = session
        said = [f"Started `{entrypoint.text}`, stopped before its first line."]
        said += [f"Breakpoint {one}" for one in session.lost]
        return started, "\n".join([*said, started.text.rstrip("\n")]).rstrip("\n")

    def _restart(self, env: RepoEnv, reply: Reply) -> tuple[Any, str]:
        """What `run` and `restart` ask for."""
        assert self._session is not None
        entrypoint = self._session.entrypoint
        arguments = reply.restart[0]
        if arguments is not None:
            entrypoint = entrypoint.with_args(arguments)
        self.close()
        self._forget(env)
        started, text = self._start_parsed(env, entrypoint)
        return started.stop, text

    def _after(self, env: RepoEnv, reply: Reply) -> str:
        """What to say of a session that ended or was interrupted."""
        if reply.end is not None:
            self.close()
            self._forget(env)
            return end_text(reply, self.settings.timeout)
        if reply.timed_out:
            return (
                f"The command ran longer than {self.settings.timeout:g} s and was interrupted; the session is stopped"
                " where the program was, breakpoints are kept."
            )
        return ""

    def _forget(self, env: RepoEnv) -> None:
        if not self.settings.persistent_breakpoints:
            env.breakpoints.clear()

    def _refuse_ignored(self, env: RepoEnv, before: set[int]) -> list[str]:
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
        return said

    def _data(self, env: RepoEnv, commands: list[dict[str, Any]], stop: Any, reply: Reply) -> dict[str, Any]:
        ended = None
        if reply.end is not None:
            exception = dict(reply.exception) if reply.exception else None
            ended = {"how": reply.end.value, "status": reply.status, "exception": exception}
        return {
            "commands": commands,
            "printed": reply.printed,
            "stop": stop if ended is None else None,
            "ended": ended,
            "timed_out": reply.timed_out,
            "breakpoints": env.breakpoints.as_json(),
        }


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """This plugin's tools."""
    return [Pdb]
