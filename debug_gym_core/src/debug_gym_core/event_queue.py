"""The queue of an environment's events: tools are told of them in order, and what they answer is kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

from debug_gym_core import events, hookspecs
from debug_gym_core.errors import ActionError, SandboxLost
from debug_gym_core.observation import Observation
from debug_gym_core.tool import Tool, as_observation

if TYPE_CHECKING:
    from debug_gym_core.env import RepoEnv

LIMIT = 100
"""Events that one step may cause; a tool that answers its own events for ever is stopped there."""


class EventQueue:
    """Events that wait to be told to the tools of one environment."""

    def __init__(self, tools: Mapping[str, Tool], failed: Callable[[str, BaseException], str]) -> None:
        """Register the tools.

        Args:
            tools: by name, in the order in which they are told
            failed: makes a tool's exception words for the agent, and keeps it
        """
        self._failed = failed
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque()
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(events)
        for name, made in tools.items():
            self._manager.register(made, name=name)

    @property
    def hook(self) -> pluggy.HookRelay:
        """The events, as pluggy's hooks."""
        return self._manager.hook

    def add_specs(self, specs: Any) -> None:
        """Add events: a module or object with `@hookspec` functions."""
        self._manager.add_hookspecs(specs)

    def emit(self, event: str, **arguments: Any) -> None:
        """Queue an event."""
        self._waiting.append((event, arguments))

    def waiting(self, event: str) -> bool:
        """Whether an event of that name waits."""
        return any(name == event for name, _ in self._waiting)

    def clear(self) -> None:
        """Forget what waits."""
        self._waiting.clear()

    def drain(self, env: RepoEnv) -> list[Observation]:
        """Tell the tools of the events that wait, and of those that their answers cause.

        Raises:
            SandboxLost: the sandbox went away
        """
        observations: list[Observation] = []
        count = 0
        while self._waiting:
            event, arguments = self._waiting.popleft()
            count += 1
            if count > LIMIT:
                self.clear()
                observations.append(Observation("env", f"more than {LIMIT} events in one step; the rest is dropped"))
                break
            available = {"env": env, **arguments}
            for implementation in reversed(getattr(self.hook, event).get_hookimpls()):
                name = implementation.plugin_name
                try:
                    answer = implementation.function(*(available[one] for one in implementation.argnames))
                    if answer is not None:
                        observations.append(as_observation(name, answer))
                except SandboxLost:
                    raise
                except ActionError as error:
                    observations.append(Observation(name, str(error), error=True))
                except (Exception, SystemExit) as error:
                    observations.append(Observation(name, self._failed(f"{name} on {event}", error), error=True))
        return observations
