"""An action's way to its tool, and back: parsed, checked, used; then what it did to the files, and who answers that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import NO_FAULT, ActionError, SandboxLost
from debug_gym_core.tools import action as actions
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.observation import Observation, as_observation
from debug_gym_core.tools.tool import expected

if TYPE_CHECKING:
    from debug_gym_core.environment.dropped_changes import DroppedChanges
    from debug_gym_core.environment.file_events import FileEvents
    from debug_gym_core.environment.live_sandbox import LiveSandbox
    from debug_gym_core.tools.environment import Environment
    from debug_gym_core.tools.queue import EventQueue


class Dispatcher:
    """Takes actions to the tools of one environment.

    Attributes:
        call: what the last action was understood as; None: as nothing
    """

    def __init__(
        self,
        env: Environment,
        sandbox: LiveSandbox,
        events: EventQueue,
        files: FileEvents,
        dropped: DroppedChanges,
        failed: Callable[[str, BaseException], str],
    ) -> None:
        """Know of no action yet.

        Args:
            env: whose tools they are
            sandbox: in which they work
            events: what they are told
            files: what happens to the files
            dropped: what of it grading drops
            failed: makes a tool's exception words for the agent, and keeps it
        """
        self._env = env
        self._sandbox = sandbox
        self._events = events
        self._files = files
        self._dropped = dropped
        self._failed = failed
        self.call: ToolCall | None = None
        self.at_work: str | None = None

    def carry_out(self, action: Any, observations: list[Observation]) -> None:
        """Carry out an action, with the events that it causes.

        Args:
            action: a ToolCall, its JSON form, or its text form
            observations: get what is said, as it is said

        Raises:
            SandboxLost: the sandbox, or the guest in it, went away
        """
        if self._sandbox.failure is not None:
            raise SandboxLost(str(self._sandbox.failure))
        tools = self._env.tools
        call = None
        malformed = {"malformed": True}
        try:
            self.call = call = actions.parse(action, {name: type(made) for name, made in tools.items()})
            arguments = self._checked(call)
            malformed = {}
            observations.append(self._use(call.name, arguments))
        except ActionError as error:
            meant = action.name if isinstance(action, ToolCall) else None
            speaker = call.name if call else meant if isinstance(meant, str) and meant in tools else "env"
            observations.append(Observation(speaker, str(error), malformed, error=True))
        told = self._files.look(self._sandbox)
        commands = self._sandbox.commands
        if call is not None:
            self._events.emit("on_step", call=call)
        observations += [*self._events.drain(self._env), *told]
        if self._sandbox.commands != commands:  # the events ran something
            observations += self.see_files()
        if not self._env.submitted:
            self._sandbox.keep_files()
            observations += self._dropped.look(observations)
        self._sandbox.worked()

    def see_files(self) -> list[Observation]:
        """What programs did to the files, answered by the tools that are told of it.

        Raises:
            SandboxLost: the sandbox, or the guest in it, went away
        """
        told = self._files.look(self._sandbox)
        return [*self._events.drain(self._env), *told]

    def _checked(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of a call, which the tool's own validators may be part of."""
        tool = type(self._env.tools[call.name])
        try:
            return tool.check(call.arguments)
        except (ActionError, *NO_FAULT):
            raise
        except BaseException as error:
            raise ActionError(f"{self._failed(call.name, error)}\n{expected(tool)}") from error

    def _use(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        self.at_work = name
        try:
            with self._env.interruption.ending():  # what it begins is, when somebody has asked for that by then
                return as_observation(name, self._env.tools[name].use(self._env, **arguments))
        except ActionError as error:
            if str(error).startswith(name):
                raise
            raise ActionError(f"{name}: {error}") from error  # such as of a path, which knows of no tool
        except (SandboxLost, *NO_FAULT):
            raise
        except BaseException as error:  # such as asyncio's CancelledError
            tool = type(self._env.tools[name])
            return Observation(name, f"{self._failed(name, error)}\n{expected(tool)}", error=True)
        finally:
            self.at_work = None
