"""What is said of a config that is refused: of keys, values, and spellings of the original's."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pydantic

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.components.component import in_words
from debug_gym_core.components.homes import AGENTS, HOMES
from debug_gym_core.config.layers import Layer, leaves
from debug_gym_core.config.model import COMPONENT_SECTIONS, Config
from debug_gym_core.config.spellings import answer
from debug_gym_core.errors import UsageError
from debug_gym_core.names import nearest
from debug_gym_core.redaction import may_be_key, name_alone

TOLD = 4
"""Problems that are told at once."""

Place = tuple[str | int, ...]
"""Where something stands, as pydantic tells it."""


class Refusals:
    """Says what is wrong with a config: where it was written, what was meant, what to write instead."""

    def __init__(self, plugins: Plugins) -> None:
        """Know what may have been meant.

        Args:
            plugins: what is installed, with its names and settings
        """
        self.plugins = plugins
        self.agents = agent_names(plugins)

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

    def refuse(self, problems: Sequence[Any], layer: Layer, under: str | None = None) -> None:
        """Raise for the first problem, and say how many more there are.

        Args:
            problems: as pydantic tells them, with places from the config's top
            layer: the values
            under: the agent whose section they are in

        Raises:
            UsageError: there is a problem
        """
        if not problems:
            return
        texts = list(dict.fromkeys(self._say(item, layer, under) for item in problems))
        more = f"\nAlso: {'; '.join(texts[1:TOLD])}" if len(texts) > 1 else ""
        more += f"; and {len(texts) - TOLD} more" if len(texts) > TOLD else ""
        raise UsageError(texts[0] + more)

    def _say(self, item: Any, layer: Layer, under: str | None) -> str:
        loc: Place = item["loc"]
        path = ".".join(str(step) for step in loc)
        shown = f"{under}.{path}" if under else path
        where = layer.origin(loc)
        says_it = where in (f"-p {shown}", f"--{loc[-1]}")
        place = where if says_it else f"{where}: {shown}"
        if item["type"] == "extra_forbidden":
            if loc == ("llm", "api_key"):
                return f"{place}: a key stands in the model's entry in llm.yaml only: the run's record would show it"
            owners = self._owners(steps_of(loc))
            if owners:
                section = f"{under}.{loc[0]}" if under else loc[0]
                return f"{place} belongs to {' and '.join(owners)}; say {section}.name: {owners[0]}"
            if path in self.plugins.agents:  # of one that is right, the section was taken out
                return f"{where}: {path} is an agent's section, with keys of its own"
            alone = ".".join(map(name_alone, shown.split(".")))
            return f"{where}: unknown key {alone}{self._instead(steps_of(loc), layer, under)}"
        if item["type"] in ("model_type", "model_attributes_type"):
            named = "name" in getattr(Config.model_fields[path].annotation, "model_fields", {})
            meant = item["input"] if isinstance(item["input"], str) else None
            hint = (
                f"; write {shown}: {{name: {meant if meant == name_alone(meant) else 'NAME'}}}"
                if named and meant
                else ""
            )
            return f"{where}: {shown} is a section with keys of its own{hint}"
        text = in_words(item)
        text = text[:1].lower() + text[1:]
        if item["type"] == "literal_error" and isinstance(item.get("input"), str):
            meant = nearest(item["input"], re.findall(r"'(\w+)'", item["ctx"]["expected"]))
            text += meant if "did you mean" in meant else ""
        if loc[0] == "llm" and may_be_key(item.get("input")):
            return f"{place}: {text}"
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
        if len(steps) != 2 or steps[0] not in COMPONENT_SECTIONS:
            return []
        installed = getattr(self.plugins, COMPONENT_SECTIONS[steps[0]])
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
        for cls in getattr(self.plugins, COMPONENT_SECTIONS[path[0]]).values() if path[0] in COMPONENT_SECTIONS else ():
            fields |= set(cls.Settings.model_fields)
        return fields


def agent_names(plugins: Plugins) -> Sequence[str]:
    """Names of agents, also of those that are not installed."""
    return [*plugins.agents, *HOMES["agents"], *AGENTS]


def steps_of(place: Place) -> tuple[str, ...]:
    """The key path of a place."""
    return tuple(str(step) for step in place)
