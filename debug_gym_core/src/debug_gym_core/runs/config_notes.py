"""What a reader of a run's results should know of its config: what it weakens, and what it says to no effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from debug_gym_core.config.layers import tool_name
from debug_gym_core.environment.settings import DEFAULT_TOOLS
from debug_gym_core.names import some

if TYPE_CHECKING:
    from debug_gym_core.agents.agent import Agent
    from debug_gym_core.components.component import Component
    from debug_gym_core.config.model import Config
    from debug_gym_core.runs.chosen_model import ChosenModel


def weakened(config: Config) -> Iterator[str]:
    """What a config takes away from the sandbox's or the grading's strength."""
    if config.terminal.allow_unsandboxed:
        yield "terminal.allow_unsandboxed is true: an agent may run without isolation"
    if config.env.allowed:
        yield f"env.allowed: the agent may change test infrastructure: {some(config.env.allowed)}"


def without_effect(config: Config, agent: type[Agent], model: ChosenModel | None) -> Iterator[str]:
    """What a config sets for a player that does not use it, a line each; not its value, maybe a secret.

    Args:
        config: of the run
        agent: plays
        model: drives it; None: none does, and the config's is not looked at
    """
    own_tools = set(agent.tools or ())
    listed = [name.rpartition(":") for name in config.tool_settings()]
    named = {name for distribution, _, name in listed if not (distribution and name in own_tools)}
    usual = {tool_name(one) for one in DEFAULT_TOOLS}
    if agent.tools is not None and named and named - {"submit"} != usual and named != own_tools:
        if not agent.tools:
            yield f"tools: {agent.name} plays without any, so that those of the config are not used"
        else:
            own = ", ".join(agent.tools)
            yield f"tools: {agent.name} plays with tools of its own ({own}), of which only the settings are taken"
    if model is None:
        if config.llm.name != type(config.llm).model_fields["name"].default:
            yield f"llm.name is set, which {agent.name} does not use"
        return
    players: tuple[tuple[str, str, type[Component], frozenset[str]], ...] = (
        ("agent", agent.name, agent, agent.unused),
        ("llm", model.name, model.backend, frozenset()),
    )
    for section, player, cls, unused in players:
        chosen = getattr(config, section)
        fields = type(chosen).model_fields
        values = {key: getattr(chosen, key) for key in fields} | (chosen.__pydantic_extra__ or {})
        for key, value in values.items():
            is_set = key != "name" and (key not in fields or value != fields[key].default)
            if is_set and (key in unused or key not in cls.Settings.model_fields):
                yield f"{section}.{key} is set, which {player} does not use"
