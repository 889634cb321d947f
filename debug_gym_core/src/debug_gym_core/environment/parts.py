"""The parts of an environment: what a caller names, looked up and checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pydantic

from debug_gym_core.components.component import construct, explain, in_a_line
from debug_gym_core.environment.backend import choose_terminal, unused
from debug_gym_core.environment.image_repositories import image_settings
from debug_gym_core.environment.settings import Conditions, EnvSection
from debug_gym_core.environment.terminal_settings import by_owner, wrong_for_all
from debug_gym_core.errors import PluginError, UsageError
from debug_gym_core.names import nearest
from debug_gym_core.sandbox.patterns import Patterns
from debug_gym_core.tools.event_checks import CORE_EVENTS, examine, methods
from debug_gym_core.tools.tool import Tool

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.task import Task


ELSEWHERE = {
    "task_timeout": "is a run's (run.task_timeout); an environment's is max_seconds",
    "max_cost": "is a run's (run.max_cost): an environment asks no model and spends nothing",
}
"""Bounds of an episode that a config has for runs, and where they are in Python."""


INTERNAL = ("notify", "plugins", "run", "trusted")
"""Arguments of an environment that are for those who build on it; nobody is told of them who mistyped another."""


def refuse_unknown(settings: Iterable[str], more: Iterable[str] = ()) -> None:
    """Refuse keyword arguments that mean nothing.

    Args:
        settings: their names
        more: names that are known beside those of an environment

    Raises:
        UsageError: one is unknown
    """
    known = {*EnvSection.model_fields, *Conditions.model_fields, "terminal", "tools", *more}
    for name in settings:
        if name in ELSEWHERE:
            raise UsageError(f"env: {name} {ELSEWHERE[name]}")
        if name not in known and name not in INTERNAL:
            raise UsageError(f"env: unknown key {name!r}{nearest(name, known.difference(INTERNAL))}")


def checked_settings(settings: Mapping[str, Any]) -> EnvSection:
    """Check keyword arguments as the `env` section of a config.

    Raises:
        UsageError: a key is unknown or a value wrong
    """
    refuse_unknown(settings)
    try:
        return EnvSection(**settings)
    except pydantic.ValidationError as error:
        raise UsageError(f"env: {explain(error, EnvSection)}") from error


def check_conditions(**conditions: Any) -> None:
    """Check the keyword arguments that are no settings of a config.

    Raises:
        UsageError: a value is wrong
    """
    try:
        Conditions(**conditions)
    except pydantic.ValidationError as error:
        raise UsageError(explain(error)) from error


def with_settings(task: Task, settings: EnvSection) -> Task:
    """The task with what the config says on top.

    Raises:
        UsageError: one of `allowed` is no pattern
    """
    Patterns(settings.allowed, lenient=False)
    changes: dict[str, Any] = {
        "ignore": (*task.ignore, *settings.ignore),
        "readonly": (*task.readonly, *settings.readonly),
        "allowed": (*task.allowed, *settings.allowed),
    }
    if settings.entrypoint and settings.entrypoint != task.entrypoint:
        changes.update(entrypoint=settings.entrypoint, environment={}, tests=(), pass_to_pass=(), max_score=None)
        changes["known_to_fail"] = False
    if settings.debug_entrypoint:
        changes["debug_entrypoint"] = settings.debug_entrypoint
    return dataclasses.replace(task, **changes)


def make_tools(choices: Sequence[Any] | Mapping[str, Mapping[str, Any] | None], plugins: Plugins) -> dict[str, Tool]:
    """Make the tools of an environment.

    Args:
        choices: names, `{name: settings}` or Tool instances; or a mapping of names to settings
        plugins: where names are looked up

    Raises:
        UsageError: a name is unknown or listed twice, a setting is wrong
        PluginError: the plugin of a tool failed, the name of a method of it is a slip in an event's, or it answers an
            event with a method that does not fit it
    """
    if isinstance(choices, Mapping):
        choices = [{name: settings} for name, settings in choices.items()]
    if isinstance(choices, str) or not isinstance(choices, Iterable):
        raise UsageError(f'tools: say a list, as in ["view", {{"pdb": {{"timeout": 60}}}}], not {choices!r:.80}')
    tools: dict[str, Tool] = {}
    for choice in choices:
        if isinstance(choice, Tool):
            made = choice
        else:
            if not isinstance(choice, str | Mapping):
                raise UsageError(f"tools: say a name, {{name: settings}} or an instance of a Tool, not {_told(choice)}")
            name, settings = one_choice(choice)
            made = construct(plugins.get("tools", name), **settings)
        if made.name in tools:
            raise UsageError(f"tool {made.name!r} is listed twice")
        tools[made.name] = made
    _refuse_deaf(tools.values(), plugins)
    return tools


def _told(choice: object) -> str:
    """What is no choice of a tool, in words."""
    if isinstance(choice, type) and issubclass(choice, Tool):
        return f"the class {choice.__name__}: {choice.__name__}() is an instance"
    return f"{choice!r:.80}"


def _refuse_deaf(tools: Collection[Tool], plugins: Plugins) -> None:
    """Refuse tools with a method that is marked as an event's and can be told of none.

    Its name is a slip in an event's, or it does not fit its event. Any other name may be that of an event that a plugin
    adds later.

    Raises:
        PluginError: there is one; names the event that is meant, or what is wrong
    """
    modules = [one.__name__ for one in plugins.manager.get_plugins()] + [type(one).__module__ for one in tools]
    for made in tools:
        for text in examine(type(made), modules).misspelled:
            raise PluginError(text)
        for one in methods(type(made)):
            if one.marked and one.event in CORE_EVENTS and (reason := one.wrong(CORE_EVENTS[one.event])):
                raise PluginError(f"tool {made.name!r} cannot be told of {one.event}: {made.name}.{one.name}: {reason}")


def one_choice(choice: Any) -> tuple[str, dict[str, Any]]:
    """A name, or `{name: settings}`."""
    if isinstance(choice, str):
        return choice, {}
    if isinstance(choice, Mapping) and len(choice) == 1:
        name, settings = next(iter(choice.items()))
        if not isinstance(settings, Mapping | None):
            raise UsageError(f"{name}: say {{{name!r}: {{setting: value}}}}, not {settings!r:.80}")
        for key in settings or ():
            if not isinstance(key, str):
                raise UsageError(f"{name}: a setting is named by a word, not {key!r:.80}")
        return str(name), dict(settings or {})
    raise UsageError(f"say a name or {{name: settings}}, not {choice!r:.80}")


def terminal_choice(choice: Any) -> tuple[str, dict[str, Any]]:
    """A terminal's name, and its settings.

    Args:
        choice: the name, `{name: settings}`, or a config's section: `name` and the settings side by side

    Raises:
        UsageError: it is none of these, or there is a name among the settings, too
    """
    if isinstance(choice, Mapping) and isinstance(choice.get("name"), str):
        choice = {choice["name"]: {key: value for key, value in choice.items() if key != "name"}}
    name, settings = one_choice(choice)
    if "name" in settings:
        raise UsageError(f"terminal: {name!r} is its name; leave `name` out of its settings")
    return name, settings


def with_terminal(
    task: Task,
    terminal: str | Mapping[str, Any],
    plugins: Plugins,
    *,
    trusted: bool,
    allow_unsandboxed: bool,
) -> tuple[type[Terminal], dict[str, Any], list[str]]:
    """Look up the terminal of a task, with the settings that its image needs.

    Args:
        task: what is worked on
        terminal: see `terminal_choice`; a backend's name, or `auto`
        plugins: where names are looked up
        trusted: whether a person or code of ours acts, not a model
        allow_unsandboxed: do without a sandbox where none can be had

    Returns:
        the backend, its settings, and lines that a person should read

    Raises:
        UsageError: there is no such backend, a setting of it is wrong, or it isolates nothing and who acts is not
            trusted
        PluginError: the backend's plugin failed
        RequirementError: no backend can be had on this machine
    """
    name, settings = terminal_choice(terminal)
    if allow_unsandboxed:
        settings = {**settings, "allow_unsandboxed": True}
    if name != "auto":  # what is wrong with the settings is said before what the machine lacks
        plugins.get("terminals", name).check_settings(settings)
    elif problems := wrong_for_all(settings, plugins.terminals.values()):
        raise UsageError(f"terminal: {in_a_line(problems)}")
    backend, note = choose_terminal(name, task, trusted, plugins, settings)
    notes = [note] if note else []
    if name == "auto":
        notes += unused(settings, backend, plugins)
        told = by_owner(settings, backend, plugins)
        settings = {**told.own, **told.unknown}
    backend.check_settings(settings)
    if task.image and backend.runs_images:
        settings = {**settings, "image": settings.get("image") or task.image}
        settings |= image_settings(task, settings)
    return backend, settings, notes
