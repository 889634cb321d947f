"""The queue of an environment's events: tools are told of them in order, and what they answer is kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

from debug_gym_core.components.markers import PROJECT
from debug_gym_core.errors import NO_FAULT, ActionError, SandboxLost, UsageError
from debug_gym_core.tools import events
from debug_gym_core.tools.event_checks import CORE_EVENTS, Specification, methods, specifications
from debug_gym_core.tools.observation import Observation, as_observation
from debug_gym_core.tools.tool import Tool

if TYPE_CHECKING:
    from debug_gym_core.tools.environment import Environment

LIMIT = 100
"""Events that tools may cause by answering others; one that answers its own for ever is stopped there."""


class _Manager(pluggy.PluginManager):
    """A plugin manager that leaves methods out which cannot answer their event.

    Attributes:
        refused: what is wrong with each, by tool and method
    """

    def __init__(self) -> None:
        super().__init__(PROJECT)
        self.refused: dict[tuple[str, str], str] = {}

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        """See pluggy; None for what is no implementation of a hook."""
        if isinstance(plugin, Tool) and (plugin.name, name) in self.refused:
            return None
        return super().parse_hookimpl_opts(plugin, name)


class EventQueue:
    """Events that wait to be told to the tools of one environment."""

    def __init__(self, tools: Mapping[str, Tool], failed: Callable[[str, BaseException], str]) -> None:
        """Register the tools.

        Args:
            tools: by name, in the order in which they are told; `refresh` takes note of changes
            failed: makes a tool's exception words for the agent, and keeps it
        """
        self._failed = failed
        self._tools = tools
        self._known = dict(tools)
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque()
        self._specs: list[Any] = []
        self._specified: dict[str, Specification] = dict(CORE_EVENTS)
        self._refused: dict[str, dict[str, str]] = {}
        self._manager = _Manager()
        self._manager.add_hookspecs(events)
        self._register()

    def _misfits(self, specified: Mapping[str, Specification]) -> Iterator[tuple[str, str, str, str]]:
        """Methods that do not fit their event: name of the tool, event, what is wrong, method."""
        for name, made in self._known.items():
            for one in methods(type(made)):
                if one.marked and one.event in specified and (reason := one.wrong(specified[one.event])):
                    yield name, one.event, reason, one.name

    def _register(self) -> None:
        for name, made in reversed(list(self._tools.items())):  # pluggy calls the last one first
            self._manager.register(made, name=name)

    def _unregister(self) -> None:
        for made in self._manager.get_plugins():
            self._manager.unregister(made)

    def refresh(self) -> None:
        """Tell those tools of events that are there now."""
        self._unregister()
        self._register()

    @property
    def hook(self) -> pluggy.HookRelay:
        """The events, as pluggy's hooks."""
        return self._manager.hook

    def add_specs(self, specs: Any) -> None:
        """Add events: a module or object with `@hookspec` functions; once is enough, more often does no harm.

        A method that does not fit its event is told of none: its tool is said to have failed whenever there is one,
        and who added the event is not to blame.

        Raises:
            UsageError: it specifies nothing, or what is specified already
        """
        if specs in self._specs:
            return
        added = specifications(specs)
        where = getattr(specs, "__name__", None) or type(specs).__name__
        if not added:
            raise UsageError(f"{where} specifies no event; mark its functions with @hookspec")
        for event in added:
            if event in self._specified:
                raise UsageError(f"{where} specifies {event}, which is specified already; give it another name")
        misfits = list(self._misfits(added))
        if misfits:
            self._unregister()
            for name, event, reason, method in misfits:
                self._manager.refused[name, method] = reason
                self._refused.setdefault(event, {})[name] = f"{name}.{method}: {reason}"
            self._register()
        self._manager.add_hookspecs(specs)
        self._specs.append(specs)
        self._specified |= added

    def emit(self, event: str, /, **arguments: Any) -> None:
        """Queue an event.

        Raises:
            UsageError: nobody has specified it, or not with these arguments
        """
        specified = self._specified.get(event)
        if specified is None:
            raise UsageError(f"there is no event {event!r}; add it with env.add_event_specs")
        wanted = [one for one in specified.arguments if one != "env"]
        has = f"it has {', '.join(wanted) or 'none'}"
        if "env" in arguments:
            raise UsageError(f"event {event}: the environment gives the argument 'env' itself; {has}")
        for name in arguments:
            if name not in wanted:
                raise UsageError(f"event {event}: there is no argument {name!r}; {has}")
        for name in wanted:
            if name not in arguments and name not in specified.defaults:
                raise UsageError(f"event {event}: the argument {name!r} is missing; {has}")
        self._waiting.append((event, {**specified.defaults, **arguments}))

    def waiting(self, event: str) -> bool:
        """Whether an event of that name waits."""
        return any(name == event for name, _ in self._waiting)

    def clear(self) -> None:
        """Forget what waits."""
        self._waiting.clear()

    def drain(self, env: Environment) -> list[Observation]:
        """Tell the tools of the events that wait, and of those that their answers cause.

        Raises:
            SandboxLost: the sandbox went away
        """
        observations: list[Observation] = []
        count = -len(self._waiting)  # these happened, however many they are
        while self._waiting:
            event, arguments = self._waiting.popleft()
            count += 1
            if count > LIMIT:
                self.clear()
                text = f"tools caused more than {LIMIT} events by answering others; the rest is dropped"
                observations.append(Observation("env", text))
                break
            available = {"env": env, **arguments}
            for implementation in reversed(getattr(self.hook, event).get_hookimpls()):
                name = implementation.plugin_name
                try:
                    named = {one: available[one] for one in implementation.kwargnames if one in available}
                    answer = implementation.function(*(available[one] for one in implementation.argnames), **named)
                    if answer is not None:
                        observations.append(as_observation(name, answer))
                except (SandboxLost, *NO_FAULT):
                    raise
                except ActionError as error:
                    observations.append(_failure(name, event, str(error)))
                except BaseException as error:  # such as asyncio's CancelledError
                    observations.append(_failure(name, event, self._failed(f"{name}'s {event}", error)))
            for name, reason in self._refused.get(event, {}).items():
                if name not in self._tools:
                    continue
                observations.append(_failure(name, event, reason))
        return observations


def _failure(tool: str, event: str, text: str) -> Observation:
    """What is said when a tool did not answer an event, for programs too."""
    return Observation(tool, text, {"failed_on": event}, error=True)
