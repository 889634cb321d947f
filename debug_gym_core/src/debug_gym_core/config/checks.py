"""Checks of a config's values against the models of its sections and the settings of the components it names."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.components.component import Component, validated
from debug_gym_core.components.homes import HOMES
from debug_gym_core.config.layers import Layer, Override, leaves, tool_name
from debug_gym_core.config.model import (
    COMPONENT_SECTIONS,
    BenchmarkSection,
    ComponentSection,
    Config,
    TaskChoice,
)
from debug_gym_core.config.paths import absolute
from debug_gym_core.config.refusals import Place, Refusals, agent_names, steps_of
from debug_gym_core.config.spellings import answer
from debug_gym_core.environment.terminal_settings import by_owner, wrong_for_all
from debug_gym_core.errors import DebugGymError, UsageError
from debug_gym_core.redaction import KEY, QUERY, SENT_SECRET, address_alone

if TYPE_CHECKING:
    from debug_gym_core.sandbox.terminal import Terminal


class Checker:
    """Knows what is installed, and so which keys and names a config may use.

    Attributes:
        plugins: what is installed
    """

    def __init__(self, plugins: Plugins) -> None:
        self.plugins = plugins
        self._agents = agent_names(plugins)
        self._refusals = Refusals(plugins)

    def shipped(self, benchmark: str) -> Layer:
        """The config that a benchmark ships; only its name when nobody provides it (`check` will say so)."""
        cls = self.plugins.benchmarks.get(benchmark)
        if cls is None and ":" in benchmark:
            cls = self.plugins.get("benchmarks", benchmark)
        layer = Layer({"benchmark": {"name": benchmark}})
        if cls is not None:
            layer = Layer(dict(cls.config), name=shipped_in(benchmark)).over(layer)
        return layer

    def without_foreign(self, merged: Layer, benchmark: str) -> Layer:
        """Values without what a benchmark ships for another terminal than the one that is taken, or for none here.

        Args:
            merged: values over those that it ships
            benchmark: its name

        Raises:
            UsageError: there is no such terminal
            PluginError: its plugin failed
        """
        section = merged.data.get("terminal")
        if not isinstance(section, dict):
            return merged
        written = [path for path, _ in leaves(section) if merged.origin(("terminal", *path)) != shipped_in(benchmark)]
        kept = {"name", *(path[0] for path in written), *by_owner(section, self._terminal(merged), self.plugins).own}
        terminal = {key: value for key, value in section.items() if key in kept}
        return Layer({**merged.data, "terminal": terminal}, merged.origins, merged.name)

    def agent_sections(self, layer: Layer) -> dict[str, Layer]:
        """The sections of agents' names.

        Raises:
            UsageError: a section has the form of an agent's, but there is no such agent
        """
        found = {}
        for key, value in layer.data.items():
            if key in Config.model_fields or not isinstance(value, dict | None):
                continue
            known = key in self.plugins.agents
            if not known and value and answer((key,)) is None and self._is_of_agent(key, value):
                with _said_at(layer.origin((key,))):
                    self.plugins.get("agents", key)
            if known:
                found[key] = layer.part(key)
        return found

    def unfolded(self, given: Override) -> Iterator[Override]:
        """A value that is given; of an agent's whole section, each of its values."""
        path, value, _ = given
        if len(path) > 1 or path[0] not in self.plugins.agents or not isinstance(value, dict | None):
            yield given
        elif value:
            yield from (Override(one, inner, f"-p {'.'.join(one)}") for one, inner in leaves({path[0]: value}))

    def is_for_agent(self, path: tuple[str, ...], origin: str) -> bool:
        """Whether a key's path leads into an agent's section.

        Raises:
            UsageError: it does, and there is no such agent here
        """
        if len(path) < 2 or path[0] in Config.model_fields or path[0] not in self._agents:
            return False
        if path[0] not in self.plugins.agents:
            with _said_at(origin):
                self.plugins.get("agents", path[0])
        return path[0] in self.plugins.agents

    def _is_of_agent(self, key: str, value: Mapping[str, Any]) -> bool:
        """Whether a section has the form of an agent's."""
        return key in self._agents or set(value) <= set(Config.model_fields)

    def ends_on_resolved(self, agent: str, layer: Layer) -> bool:
        """Whether an agent's episodes end when the task is resolved, by the values of a config or by its own nature."""
        ends = layer.part("env").data.get("end_on_resolved")
        cls = self.plugins.agents.get(agent)
        return ends is not False and (ends is True or cls is None or cls.end_on_resolved)

    def check_keys(self, section: Layer, merged: Layer, *, under: str) -> None:
        """Check the section of an agent that plays.

        Args:
            section: its values
            merged: what holds where the agent plays, the section's values in it
            under: its name

        Raises:
            UsageError: a key of it is unknown, or a value of it is wrong
        """
        written = [path for path, _ in leaves(section.data)]
        mine = [
            item
            for item in (self._problems(merged) if written else ())
            if any(_overlap(steps_of(item["loc"]), path) for path in written)
            and merged.origin(item["loc"]) == section.origin(item["loc"])
        ]
        self._refusals.refuse(mine, merged, under=under)

    def check_apart(self, section: Layer, *, under: str) -> None:
        """Check the section of an agent that does not play, for what is wrong whatever else the config says.

        What it names, of its own tools too, tells what is wrong; where it names nothing a key is right that any
        component has, and a value that any of those takes.

        Args:
            section: its values
            under: the agent's name

        Raises:
            UsageError: a key or name in it is unknown, or a value of it is wrong
        """
        layer = Layer(section.data, section.origins)
        data = _filled(layer.data)
        found = _invalid(data)
        for name, model in _component_sections().items():
            given = data.get(name)
            if not isinstance(given, dict):
                continue
            chosen = given.get("name")
            if isinstance(chosen, str):
                found += self._problems_of(name, given, self._component(name, chosen, layer), found)
                continue
            every = getattr(self.plugins, COMPONENT_SECTIONS[name])
            known = {key for cls in every.values() for key in cls.Settings.model_fields} - {"api_key"}
            known |= {*model.model_fields, *self._fields(name, None, given)}
            found += [_unknown((name, key)) for key in given if key not in known]
            own = [every[under]] if name == "agent" and under in every else []
            wrong = wrong_for_all(given, own) or wrong_for_all(given, every.values())
            found += _unless_told(name, wrong, found)
        found += self._problems_of_tools(data.get("tools"), layer)
        self._refusals.refuse(found, layer, under=under)

    def check(self, layer: Layer) -> Config:
        """Check everything.

        Raises:
            UsageError: a key or name is unknown, or a value is wrong
            PluginError: a component is named whose plugin failed to load
        """
        layer = absolute(layer, self.plugins, Path.cwd(), but=("output",))
        self._refusals.refuse(self._problems(layer), layer)
        _refuse_secrets(layer)
        config = Config.model_validate(_filled(layer.data))
        changes: dict[str, Any] = {}
        for section in COMPONENT_SECTIONS:
            cls = self._component(section, getattr(config, section).name, layer)
            if cls is not None:
                given = self._given(layer, section, cls)
                complete = {**_filled(layer.data).get(section, {}), **validated(cls, given).model_dump()}
                changes[section] = type(getattr(config, section)).model_validate(complete)
        with _said_at(layer.origin(("run", "executor"))):
            self.plugins.get("executors", config.run.executor)
        return config.model_copy(update=changes)

    def _problems(self, layer: Layer) -> list[Any]:
        """What pydantic finds wrong, in the sections and in the settings of the components."""
        data = _filled(layer.data)
        found = _invalid(data)
        for section, model in _component_sections().items():
            given = data.get(section, {})
            name = given.get("name", model.model_fields["name"].default) if isinstance(given, dict) else None
            if not isinstance(name, str):
                continue
            found += self._problems_of(section, given, self._component(section, name, layer), found)
        return found + self._problems_of_tools(data.get("tools"), layer)

    def _problems_of(
        self, section: str, given: Mapping[str, Any], cls: type[Component] | None, known: Sequence[Any]
    ) -> list[Any]:
        """What is wrong with a section for the component that it names, where it was not known before."""
        allowed = {*_component_sections()[section].model_fields, *self._fields(section, cls, given)}
        found = [_unknown((section, key)) for key in given if key not in allowed]
        if section == "benchmark" and cls is not None:
            found += without_use(given, cls)
        if cls is not None:
            try:
                validated(cls, {key: value for key, value in given.items() if key in cls.Settings.model_fields})
            except pydantic.ValidationError as error:
                found += _unless_told(section, error.errors(), [*known, *found])
        elif section == "terminal":
            found += _unless_told(section, wrong_for_all(given, self.plugins.terminals.values()), [*known, *found])
        return found

    def _problems_of_tools(self, tools: Any, layer: Layer) -> list[Any]:
        found = []
        if isinstance(tools, dict):
            tools = [{name: settings} for name, settings in tools.items()]
        for item in tools if isinstance(tools, list | tuple) else ():
            name = tool_name(item)
            if name is None:
                continue
            origin = layer.origin(("tools", name))
            cls = self.plugins.tools.get(name)
            if cls is None and origin != layer.name:
                with _said_at(origin):
                    cls = self.plugins.get("tools", name)
            if cls is None:
                continue
            settings: Any = item[name] if isinstance(item, dict) else None
            try:
                if isinstance(settings, dict | None):
                    validated(cls, settings or {})
            except pydantic.ValidationError as error:
                found += [{**problem, "loc": ("tools", name, *problem["loc"])} for problem in error.errors()]
        return found

    def _terminal(self, layer: Layer) -> type[Terminal] | None:
        """The terminal that a config names; None: any may be taken."""
        name = layer.part("terminal").data.get("name")
        cls = self._component("terminal", name, layer) if isinstance(name, str) else None
        return typing.cast("type[Terminal] | None", cls)

    def _component(self, section: str, name: str, layer: Layer) -> type[Component] | None:
        """The class that a section names; None when that is only known later."""
        if section == "terminal" and name == "auto":
            return None
        if section == "llm" and self._is_configured(name):
            return None
        origin = layer.origins.get((section, "name"))
        if section == "agent" and origin is None and name not in self.plugins.agents:
            return None  # Nobody asked for it: only a run needs it, and says so.
        with _said_at(origin):
            return self.plugins.get(COMPONENT_SECTIONS[section], name)

    def _is_configured(self, name: str) -> bool:
        """Whether a model's settings come from llm.yaml, which is read when the model is needed."""
        from debug_gym_core.models.service import ServiceLLM

        cls = self.plugins.llms.get(name)
        return issubclass(cls, ServiceLLM) if cls is not None else name not in HOMES["llms"] and ":" not in name

    def _fields(self, section: str, cls: type[Component] | None, given: Mapping[str, Any]) -> set[str]:
        """Keys that a section may have beside its own."""
        if section == "terminal":
            return {*by_owner(given, typing.cast("type[Terminal] | None", cls), self.plugins).own}
        if cls is not None:
            return set(cls.Settings.model_fields)
        if section == "llm":
            from debug_gym_core.models.service import ServiceSettings

            known = [ServiceSettings, *(other.Settings for other in self.plugins.llms.values())]
            return {key for one in known if issubclass(one, ServiceSettings) for key in one.model_fields} - {"api_key"}
        return set()

    def _given(self, layer: Layer, section: str, cls: type[Component]) -> dict[str, Any]:
        """What somebody wrote for a component's settings."""
        data = _filled(layer.data).get(section) or {}
        return {key: value for key, value in data.items() if key in cls.Settings.model_fields}


def _refuse_secrets(layer: Layer) -> None:
    """What a config says of a model is in the run's record, for all to read: no place for a secret.

    Raises:
        UsageError: one is there
    """
    given = layer.data.get("llm")
    for path, value in leaves(given if isinstance(given, dict) else {}, ("llm",)):
        address = path[1:] == ("endpoint",) and address_alone(str(value)) != str(value)
        sent = {"extra_headers", "extra_query"}.intersection(path) and SENT_SECRET.search(str(path[-1]))
        given_away = "generate_kwargs" in path and KEY.search(str(path[-1]))
        if address or sent or given_away:
            query = f"; {QUERY}" if address and "?" in str(value) else ""
            raise UsageError(
                f"{layer.origin(path)}: {'.'.join(map(str, path))} holds what may be secret, which the run's record "
                f"would show; put it into the model's entry in llm.yaml{query}"
            )


class _said_at:
    """Put the place of a name before the error that says it is unknown."""

    def __init__(self, where: str | None) -> None:
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DebugGymError) and self.where not in (None, "default"):
            raise type(error)(f"{self.where}: {error}") from error


def _component_sections() -> dict[str, type[ComponentSection]]:
    models = {name: Config.model_fields[name].annotation for name in COMPONENT_SECTIONS}
    return typing.cast("dict[str, type[ComponentSection]]", models)


def _filled(data: Mapping[str, Any]) -> dict[str, Any]:
    """The values without empty sections (`env:` and nothing below it)."""
    return {key: value for key, value in data.items() if value is not None or key not in Config.model_fields}


def _invalid(data: Mapping[str, Any]) -> list[Any]:
    """What is wrong with values for the sections themselves."""
    try:
        Config.model_validate(data)
    except pydantic.ValidationError as error:
        return list(error.errors())
    return []


def _unless_told(section: str, problems: Iterable[Mapping[str, Any]], told: Iterable[Any]) -> list[Any]:
    """Problems in a section, but for those with keys of which there is one already."""
    places = {item["loc"][:2] for item in told}
    found = [{**item, "loc": (section, *item["loc"])} for item in problems]
    return [item for item in found if item["loc"][:2] not in places]


def _unknown(loc: Place) -> dict[str, Any]:
    return {"type": "extra_forbidden", "loc": loc, "msg": "unknown key", "input": None}


def shipped_in(benchmark: str) -> str:
    """Where values come from that a benchmark ships."""
    return f"the config of {benchmark}"


def without_use(given: Mapping[str, Any], benchmark: type[Component]) -> list[Any]:
    """Values for a benchmark that does not take them, though others do, as pydantic tells what is wrong.

    Args:
        given: what somebody wrote in the section
        benchmark: that is chosen
    """
    known = {*TaskChoice.model_fields, *benchmark.Settings.model_fields}
    refused = {
        key: given[key]
        for key, field in BenchmarkSection.model_fields.items()
        if key in given and key not in known and given[key] != field.default
    }
    why = f"{benchmark.name} has none; leave it out"
    return [{"type": "no_use", "loc": ("benchmark", key), "msg": why, "input": value} for key, value in refused.items()]


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]
