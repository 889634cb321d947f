"""Checks of a config's values against the models of its sections and the settings of the components it names."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.components.component import Component
from debug_gym_core.components.homes import AGENTS, HOMES
from debug_gym_core.config.layers import Layer, leaves, tool_name
from debug_gym_core.config.model import ComponentSection, Config
from debug_gym_core.config.spellings import answer
from debug_gym_core.errors import DebugGymError, UsageError
from debug_gym_core.names import nearest
from debug_gym_core.tasks.selection import FILE

Path_ = tuple[str | int, ...]

KINDS = {"benchmark": "benchmarks", "terminal": "terminals", "agent": "agents", "llm": "llms"}
"""The sections about a component, and its kind."""


class Checker:
    """Knows what is installed, and so which keys and names a config may use.

    Attributes:
        plugins: what is installed
    """

    def __init__(self, plugins: Plugins) -> None:
        self.plugins = plugins

    def shipped(self, benchmark: str) -> Layer:
        """The config that a benchmark ships; only its name when nobody provides it (`check` will say so)."""
        cls = self.plugins.benchmarks.get(benchmark)
        if cls is None and ":" in benchmark:
            cls = self.plugins.get("benchmarks", benchmark)
        layer = Layer({"benchmark": {"name": benchmark}})
        if cls is not None:
            layer = Layer(dict(cls.config), name=f"the config of {benchmark}").over(layer)
        return layer

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

    def refuse_old_spellings(self, written: Layer, explicit: Iterable[tuple[str, ...]]) -> None:
        """Answer keys of the original's, before anything else that is wrong with them.

        Args:
            written: a file
            explicit: key paths of the command line

        Raises:
            UsageError: there are such keys; the text says what each is called now
        """
        paths = [(written.origin(path), path) for path, _ in leaves(written.data)]
        paths += [(f"-p {'.'.join(path)}", path) for path in explicit]
        found: dict[tuple[str, ...], tuple[str, str]] = {}
        for where, path in paths:
            inner = path[1:] if path[0] in self.agents and len(path) > 1 else path
            if inner[0] in Config.model_fields and (inner is path or path[0] in self.plugins.agents):
                continue  # The section is ours; its keys are checked with all others.
            for length in range(len(path), 0, -1):
                words = answer(path[:length], self.agents)
                if words is not None:
                    found.setdefault(path[:length], (where, words))
                    break
        if not found:
            return
        (path, (where, words)), *others = found.items()
        first = where if where.startswith("-p ") else f"{where}: {'.'.join(path)}"
        more = [f"{'.'.join(path)} {words.partition(':')[0]}" for path, (_, words) in others]
        also = f"\nAlso: {'; '.join(more)}" if more else ""
        raise UsageError(f"{first} {words}{also}")

    def is_for_agent(self, path: tuple[str, ...], origin: str) -> bool:
        """Whether a key's path leads into an agent's section.

        Raises:
            UsageError: it does, and there is no such agent here
        """
        if len(path) < 2 or path[0] in Config.model_fields or path[0] not in self.agents:
            return False
        if path[0] not in self.plugins.agents:
            with _said_at(origin):
                self.plugins.get("agents", path[0])
        return path[0] in self.plugins.agents

    def _is_of_agent(self, key: str, value: Mapping[str, Any]) -> bool:
        """Whether a section has the form of an agent's."""
        return key in self.agents or set(value) <= set(Config.model_fields)

    @property
    def agents(self) -> Sequence[str]:
        """Names of agents, also of those that are not installed."""
        return [*self.plugins.agents, *HOMES["agents"], *AGENTS]

    def check_keys(self, section: Layer, below: Layer, *, under: str) -> None:
        """Check the section of an agent that may not be playing.

        Args:
            section: its values
            below: what it overrides
            under: its name

        Raises:
            UsageError: a key of it is unknown, or a value of it is wrong
        """
        merged = section.over(below)
        written = [path for path, _ in leaves(section.data)]
        mine = [item for item in self._problems(merged) if any(_overlap(_steps(item["loc"]), path) for path in written)]
        self._refuse(mine, merged, under=under)

    def check(self, layer: Layer) -> Config:
        """Check everything.

        Raises:
            UsageError: a key or name is unknown, or a value is wrong
            PluginError: a component is named whose plugin failed to load
        """
        layer = self.absolute(layer, Path.cwd(), but=("output",))
        self._refuse(self._problems(layer), layer)
        config = Config.model_validate(_filled(layer.data))
        changes: dict[str, Any] = {}
        for section in KINDS:
            cls = self._component(section, getattr(config, section).name, layer)
            if cls is not None:
                given = self._given(layer, section, cls)
                complete = {**_filled(layer.data).get(section, {}), **cls.Settings(**given).model_dump()}
                changes[section] = type(getattr(config, section)).model_validate(complete)
        with _said_at(layer.origin(("run", "executor"))):
            self.plugins.get("executors", config.run.executor)
        return config.model_copy(update=changes)

    def absolute(self, layer: Layer, base: Path, *, but: Sequence[str] = ()) -> Layer:
        """Make the paths in a layer absolute.

        Args:
            layer: the values
            base: where relative paths start
            but: keys of which only `~` is expanded
        """
        result = Layer({}, layer.origins, layer.name).over(layer)
        agents = [key for key in layer.data if key in self.plugins.agents]
        for data in [result.data, *(result.data[key] for key in agents if isinstance(result.data[key], dict))]:
            for mapping, key, sure in self._paths(data):
                value = mapping[key]
                if not isinstance(value, str):
                    continue
                path = Path(value).expanduser()
                if key not in but and not path.is_absolute() and (sure or (base / path).exists()):
                    path = base.absolute() / path
                mapping[key] = str(path) if sure or path.is_absolute() else value
            section = data.get("benchmark")
            if isinstance(section, dict) and "tasks" in section:
                section["tasks"] = _files_absolute(section["tasks"], base)
        return result

    def _paths(self, data: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, bool]]:
        """Every value that is a path: the mapping it is in, its key, whether it is one for sure."""
        if "llm_config_file_path" in data:
            yield data, "llm_config_file_path", True
        sections = {key: value for key, value in data.items() if isinstance(value, dict)}
        if "output" in sections.get("run", {}):
            yield sections["run"], "output", True
        if "python" in sections.get("env", {}):
            yield sections["env"], "python", "/" in str(sections["env"]["python"])
        for name, kind in KINDS.items():
            section = sections.get(name, {})
            classes = list(getattr(self.plugins, kind).values())
            for key, value in section.items():
                if any(_is_path(cls, key) for cls in classes) or (name, key) == ("benchmark", "path"):
                    yield section, key, True
                elif (name, key) == ("benchmark", "source"):
                    yield section, key, str(value).startswith(("./", "../", "~"))
                elif (name, key) == ("agent", "system_prompt") and str(value).endswith(".jinja"):
                    yield section, key, "\n" not in str(value)
        for item in data.get("tools") or ():
            tool = tool_name(item)
            cls = self.plugins.tools.get(tool) if tool else None
            if cls is not None and isinstance(item, dict) and isinstance(item[tool], dict):
                yield from ((item[tool], key, True) for key in item[tool] if _is_path(cls, key))

    def _problems(self, layer: Layer) -> list[Any]:
        """What pydantic finds wrong, in the sections and in the settings of the components."""
        data = _filled(layer.data)
        found: list[Any] = []
        try:
            Config.model_validate(data)
        except pydantic.ValidationError as error:
            found += error.errors()
        for section, model in _component_sections().items():
            given = data.get(section, {})
            name = given.get("name", model.model_fields["name"].default) if isinstance(given, dict) else None
            if not isinstance(name, str):
                continue
            cls = self._component(section, name, layer)
            allowed = {*model.model_fields, *self._fields(section, cls)}
            found += [_unknown((section, key)) for key in given if key not in allowed]
            if cls is not None:
                try:
                    cls.Settings(**self._given(layer, section, cls))
                except pydantic.ValidationError as error:
                    reported = {item["loc"] for item in found}
                    more: list[Any] = [{**item, "loc": (section, *item["loc"])} for item in error.errors()]
                    found += [item for item in more if item["loc"][:2] not in {loc[:2] for loc in reported}]
        return found + self._problems_of_tools(data.get("tools"), layer)

    def _problems_of_tools(self, tools: Any, layer: Layer) -> list[Any]:
        found = []
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
                    cls.Settings(**(settings or {}))
            except pydantic.ValidationError as error:
                found += [{**problem, "loc": ("tools", name, *problem["loc"])} for problem in error.errors()]
        return found

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
            return self.plugins.get(KINDS[section], name)

    def _is_configured(self, name: str) -> bool:
        """Whether a model's settings come from llm.yaml, which is read when the model is needed."""
        from debug_gym_core.models.service import ServiceLLM

        cls = self.plugins.llms.get(name)
        return issubclass(cls, ServiceLLM) if cls is not None else name not in HOMES["llms"] and ":" not in name

    def _fields(self, section: str, cls: type[Component] | None) -> set[str]:
        """Keys that a section may have beside its own."""
        if cls is not None:
            return set(cls.Settings.model_fields)
        if section == "llm":
            from debug_gym_core.models.service import ServiceSettings

            known = [ServiceSettings, *(other.Settings for other in self.plugins.llms.values())]
            return {key for one in known if issubclass(one, ServiceSettings) for key in one.model_fields} - {"api_key"}
        if section == "terminal":
            return {key for other in self.plugins.terminals.values() for key in other.Settings.model_fields}
        return set()

    def _given(self, layer: Layer, section: str, cls: type[Component]) -> dict[str, Any]:
        """What somebody wrote for a component's settings."""
        data = _filled(layer.data).get(section) or {}
        return {key: value for key, value in data.items() if key in cls.Settings.model_fields}

    def _refuse(self, problems: Sequence[Any], layer: Layer, under: str | None = None) -> None:
        """Raise for the first problem, and say how many more there are."""
        if not problems:
            return
        texts = list(dict.fromkeys(self._say(item, layer, under) for item in problems))
        more = f"\n(and {len(texts) - 1} more like it)" if len(texts) > 1 else ""
        raise UsageError(texts[0] + more)

    def _say(self, item: Any, layer: Layer, under: str | None) -> str:
        loc: Path_ = item["loc"]
        path = ".".join(str(step) for step in loc)
        shown = f"{under}.{path}" if under else path
        where = layer.origin(loc)
        place = where if where == f"-p {shown}" else f"{where}: {shown}"
        if item["type"] == "extra_forbidden":
            owners = self._owners(_steps(loc))
            if owners:
                section = f"{under}.{loc[0]}" if under else loc[0]
                return f"{place} belongs to {' and '.join(owners)}; say {section}.name: {owners[0]}"
            return f"{where}: unknown key {shown}{self._instead(_steps(loc), layer, under)}"
        if item["type"] in ("model_type", "model_attributes_type"):
            named = "name" in getattr(Config.model_fields[path].annotation, "model_fields", {})
            hint = f"; write {shown}: {{name: {item['input']}}}" if named and isinstance(item["input"], str) else ""
            return f"{where}: {shown} is a section with keys of its own{hint}"
        text = item["msg"].removeprefix("Value error, ")
        text = text[:1].lower() + text[1:]
        if item["type"] == "literal_error" and isinstance(item.get("input"), str):
            meant = nearest(item["input"], re.findall(r"'(\w+)'", item["ctx"]["expected"]))
            text += meant if "did you mean" in meant else ""
        return f"{place}: {text} (got {json.dumps(item.get('input'), default=str):.60})"

    def _instead(self, steps: tuple[str, ...], layer: Layer, under: str | None) -> str:
        """Words for an unknown key: what it is called now, or the nearest known one."""
        prefix = f"{under}." if under else ""
        below = [path for path, _ in leaves(layer.data) if path[: len(steps)] == steps]
        for path in [*below[:1], steps]:
            whole = (under, *path) if under else path
            words = answer(whole, self.agents)
            if words is not None:
                return f"; {'it' if path == steps else '.'.join(whole)} {words}"
        known = self._known(steps[:-1])
        text = nearest(steps[-1], known)
        if "did you mean" not in text:
            elsewhere = [
                f"{section}.{steps[-1]}" for section in Config.model_fields if steps[-1] in self._known((section,))
            ]
            if elsewhere:
                return f"; did you mean {prefix}{elsewhere[0]}?"
        return text

    def _owners(self, steps: tuple[str, ...]) -> list[str]:
        """Components that have a key which the one that is named does not have."""
        if len(steps) != 2 or steps[0] not in KINDS:
            return []
        installed = getattr(self.plugins, KINDS[steps[0]])
        return [name for name, cls in installed.items() if steps[1] in cls.Settings.model_fields]

    def _known(self, path: tuple[str, ...]) -> Iterable[str]:
        if not path:
            return [*Config.model_fields, *self.plugins.agents]
        if path[0] == "tools":
            cls = self.plugins.tools.get(path[1]) if len(path) == 2 else None
            return cls.Settings.model_fields if cls is not None else []
        annotation = Config.model_fields[path[0]].annotation if len(path) == 1 else None
        if not (inspect.isclass(annotation) and issubclass(annotation, pydantic.BaseModel)):
            return []
        fields = set(annotation.model_fields)
        for cls in getattr(self.plugins, KINDS[path[0]]).values() if path[0] in KINDS else ():
            fields |= set(cls.Settings.model_fields)
        return fields


class _said_at:
    """Put the place of a name before the error that says it is unknown."""

    def __init__(self, where: str | None) -> None:
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DebugGymError) and self.where not in (None, "default"):
            raise type(error)(f"{self.where}: {error}") from error


def _files_absolute(tasks: Any, base: Path) -> Any:
    """Patterns of tasks, in which files of them (`@names.txt`) have absolute paths."""
    if isinstance(tasks, list | tuple):
        return [_files_absolute(item, base) for item in tasks]
    if isinstance(tasks, str) and tasks.startswith(FILE) and len(tasks) > 1:
        return f"{FILE}{base.absolute() / Path(tasks.removeprefix(FILE)).expanduser()}"
    return tasks


def _component_sections() -> dict[str, type[ComponentSection]]:
    models = {name: Config.model_fields[name].annotation for name in KINDS}
    return typing.cast("dict[str, type[ComponentSection]]", models)


def _filled(data: Mapping[str, Any]) -> dict[str, Any]:
    """The values without empty sections (`env:` and nothing below it)."""
    return {key: value for key, value in data.items() if value is not None or key not in Config.model_fields}


def _unknown(loc: Path_) -> dict[str, Any]:
    return {"type": "extra_forbidden", "loc": loc, "msg": "unknown key", "input": None}


def _steps(loc: Path_) -> tuple[str, ...]:
    return tuple(str(step) for step in loc)


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def _is_path(cls: type[Component], key: str) -> bool:
    field = cls.Settings.model_fields.get(key)
    return field is not None and (field.annotation is Path or Path in typing.get_args(field.annotation))
