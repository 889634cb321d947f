"""The bash tool: a persistent shell."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pydantic

from debug_gym_core import ActionError, Observation, Tool, hookimpl
from debug_gym_core.components.component import Settings
from debug_gym_core.components.values import Seconds
from debug_gym_core.errors import SandboxLost
from debug_gym_core.names import some
from debug_gym_core.sandbox.terminal import ROOT

if TYPE_CHECKING:
    from debug_gym_core import Environment
    from debug_gym_core.sandbox.session import Session
    from debug_gym_tool_bash.printed import Printed
    from debug_gym_tool_bash.shell import Outcome, Shell, State

OUTPUT_LIMIT = 10_000
"""Characters of a command's output that are shown, head and tail."""
BACKGROUND_LIMIT = 2_000
"""Characters of what background jobs printed since the last command."""

_ROOT = re.compile(rf"(?<![\w.~/-]){ROOT}(?![\w.-])")
_EVAL = re.compile(r"^bash: eval: line ", re.MULTILINE)


class BashSettings(Settings):
    """Settings of the tool.

    Attributes:
        timeout: seconds that a command may take unless the call says otherwise
        max_timeout: seconds that a call may ask for, at least `timeout`
    """

    timeout: Seconds = 60.0
    max_timeout: Seconds = 600.0

    @pydantic.model_validator(mode="after")
    def _check_timeout(self) -> BashSettings:
        if self.timeout > self.max_timeout:
            numbers = f"timeout ({self.timeout:g}) is more than max_timeout ({self.max_timeout:g})"
            raise ValueError(f"{numbers}: lower one or raise the other")
        return self


class Bash(Tool):
    """Run a command in a bash shell that keeps its directory, variables, functions and background jobs between calls.

    Standard input is empty: give input by a pipe or a here-document. What a command leaves running with `&` goes on. A
    command that reaches its timeout is ended with everything that it started. A shell that ends (`exit`, `exec`,
    `set -e` and an error) is replaced by one with the same directory, variables, functions and options.
    """

    name = "bash"
    examples = ({"command": "python -m pytest -q 2>&1 | tail -n 5"}, {"command": "python -m pytest -q", "timeout": 120})
    Settings: ClassVar[type[Settings]] = BashSettings
    settings: BashSettings

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._shell: Shell | None = None
        self._state: State | None = None
        self._interrupted = False

    def use(self, env: Environment, command: str, timeout: float | None = None) -> Observation:
        """Run a command.

        Args:
            env: the environment
            command: what to run; any bash, several lines too
            timeout: seconds until it is ended; the tool's setting, 60 unless configured
        """
        seconds = self._seconds(timeout)
        session = env.session
        typed = _checked(command if session.root == ROOT else _ROOT.sub(lambda _: session.root, command))
        notes: list[str] = []
        shell = self._living_shell(session, notes)
        earlier = shell.take_printed()
        directory = shell.state.directory
        try:
            outcome = shell.run(typed, seconds, env.interruption)
        except SandboxLost:
            self._shell = None
            raise
        except BaseException:  # Ctrl-C: what was started does not go on behind the next command
            self._interrupted = True
            self.close()
            raise
        self._state = shell.state
        if outcome.timed_out:
            notes.append(f"reached its timeout of {seconds:g} s and was ended")
        elif outcome.exit_status:
            notes.append(_status(outcome.exit_status))
        if outcome.flooded:
            notes.append("it left so many processes running that they were ended")
        if outcome.died:
            self._replace(session, outcome, notes)
        if self._state.directory != directory:
            notes.append(f"directory: {session.mask(self._state.directory)}")
        return self._observe(session, outcome, earlier, notes)

    def interrupt(self) -> bool:
        """A command that has not begun does not begin; see `Tool`. One that has is ended without this."""
        return True

    @hookimpl
    def on_reset(self) -> None:
        """Forget the shell of the episode before."""
        self.close()
        self._state = None
        self._interrupted = False

    def close(self) -> None:
        """End the shell; the next call starts one with its directory, variables and functions."""
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.close()

    def _seconds(self, timeout: float | None) -> float:
        if timeout is None:
            return self.settings.timeout
        if not 0 < timeout <= self.settings.max_timeout:
            raise ActionError(
                f"bash: timeout is more than 0 and at most {self.settings.max_timeout:g} seconds, not {timeout:g}; "
                "leave it out for the usual one, or run what takes longer in the background with &"
            )
        return timeout

    def _living_shell(self, session: Session, notes: list[str]) -> Shell:
        """The shell, or one that goes on where it ended."""
        if self._shell is not None and not self._shell.alive:
            self.close()
            notes.append("the shell had ended since the last command; this one has its directory, variables, functions")
        if self._interrupted:
            notes.append("the last command was interrupted and ended; this shell has the state of before it")
            self._interrupted = False
        if self._shell is None:
            self._shell = self._start(session, notes)
            self._state = self._shell.state
        return self._shell

    def _start(self, session: Session, notes: list[str]) -> Shell:
        from debug_gym_tool_bash.shell import Shell, ShellFailed

        try:
            if self._state is not None:
                try:
                    shell = Shell(session, self._state)
                except ShellFailed:
                    notes.append("its state could not be restored: this is a new shell")
                    shell = Shell(session)
                if shell.state.directory != self._state.directory:
                    notes.append(f"{session.mask(self._state.directory)} is gone")
                if self._state.large:
                    notes.append(f"variables too large to be kept are lost: {_named(self._state.large)}")
                return shell
            return Shell(session)
        except FileNotFoundError as error:
            raise ActionError(
                "bash: there is no bash in this sandbox; it needs an image in which bash is installed"
            ) from error
        except ShellFailed as error:
            raise ActionError(f"bash: {error}; try again") from error

    def _replace(self, session: Session, outcome: Outcome, notes: list[str]) -> None:
        """Put a new shell in the place of one that died, and say so."""
        assert self._state is not None
        self.close()
        text = "the shell did not come back" if outcome.killed else "the shell ended with this command"
        kept = "a new one has its directory, variables, functions and options"
        if outcome.untold:
            kept += " of before this command"
        if self._state.ends_on_errors:
            kept += " but `set -e`, which is off"
        notes.append(f"{text}; {kept}; background jobs were ended")
        try:
            self._shell = self._start(session, notes)
            self._state = self._shell.state
        except ActionError as error:
            notes.append(str(error))

    def _observe(self, session: Session, outcome: Outcome, earlier: Printed, notes: list[str]) -> Observation:
        assert self._state is not None
        text, cut = outcome.printed.show(OUTPUT_LIMIT)
        text = session.mask(_EVAL.sub("bash: line ", text)).rstrip("\n")
        parts = list(_background(session, earlier))
        if text or not notes:
            parts.append(text or "(no output)")
        parts += [f"[{note}]" for note in notes]
        data = {
            "exit_status": outcome.exit_status,
            "timed_out": outcome.timed_out,
            "directory": session.mask(self._state.directory),
            "output_cut": cut,
            "restarted": outcome.died,
        }
        return Observation(self.name, "\n".join(parts), data)


def _background(session: Session, earlier: Printed) -> Iterator[str]:
    text, _ = earlier.show(BACKGROUND_LIMIT)
    if text.strip():
        yield "[printed in the background since the last command]"
        yield session.mask(text).rstrip("\n")
        yield "[printed by this command]"


def _checked(command: str) -> str:
    """A command that bash can be given.

    Raises:
        ActionError: it holds what no shell takes
    """
    if "\0" in command:
        raise ActionError(
            r"bash: the command holds a NUL character, which no shell takes; write it as \0 in printf, for example"
        )
    try:
        command.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ActionError(f"bash: the command holds half a surrogate pair at character {error.start + 1}") from error
    return command


def _named(names: Sequence[str]) -> str:
    """The first of some names, which may be many and long."""
    return some([name[:40] for name in names])


def _status(status: int) -> str:
    names = {int(one): one.name for one in signal.Signals}
    if status < 0:
        return f"ended by signal {-status} ({names.get(-status, 'unknown')})"
    name = names.get(status - 128)
    return f"exit status {status}, as after {name}" if name else f"exit status {status}"


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """The tool of this package."""
    return [Bash]
