"""The paths that a config holds: found, and made absolute, since a config may be read elsewhere than it was written."""

from __future__ import annotations

import copy
import dataclasses
import os
import typing
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.components.component import Component
from debug_gym_core.config.layers import Layer, tool_name
from debug_gym_core.config.model import COMPONENT_SECTIONS
from debug_gym_core.sandbox.pythons import is_word
from debug_gym_core.tasks.selection import FILE


def is_run(directory: Path) -> bool:
    """Whether a directory is surely a run's: others may have a file of such a name."""
    return all(os.path.isfile(directory / name) for name in ("run.json", "results.jsonl"))  # noqa: PTH113 (never raises)


def absolute(layer: Layer, plugins: Plugins, base: Path, *, but: Sequence[str] = ()) -> Layer:
    """Make the paths in a layer absolute.

    Args:
        layer: the values
        plugins: what is installed, whose settings may be paths
        base: where relative paths start
        but: keys whose relative paths stay so
    """
    result = dataclasses.replace(layer, data=copy.deepcopy(layer.data), origins=dict(layer.origins))
    agents = [key for key in layer.data if key in plugins.agents]
    for data in [result.data, *(result.data[key] for key in agents if isinstance(result.data[key], dict))]:
        for _, mapping, key, sure in _paths(data, plugins):
            value = mapping[key]
            if not isinstance(value, str):
                continue
            path = Path(value).expanduser()
            found = not (key == "python" and is_word(value)) and (base / path).exists()
            if key not in but and not path.is_absolute() and (sure or found):
                path = base.absolute() / path
            path = _without_steps_up(path)
            mapping[key] = str(path) if sure or path.is_absolute() else value
        section = data.get("benchmark")
        if isinstance(section, dict) and "tasks" in section:
            section["tasks"] = _files_absolute(section["tasks"], base)
    return result


def sources(data: dict[str, Any], plugins: Plugins, sections: Collection[str]) -> Iterator[tuple[str, str]]:
    """What a config takes of the machine it is used on, or has fetched: paths, an interpreter, another source of data.

    Args:
        data: a whole config
        plugins: what is installed, whose settings may be paths
        sections: which of its sections matter

    Yields:
        the dotted key and the value, as it stands
    """
    for section, mapping, key, _ in _paths(data, plugins):
        value = mapping[key]
        known = section == "env" and is_word(str(value))
        if value is not None and section in sections and not known:
            yield f"{section}.{key}", str(value)


def _paths(data: dict[str, Any], plugins: Plugins) -> Iterator[tuple[str, dict[str, Any], str, bool]]:
    """Every value that is a path: its section, the mapping it is in, its key, whether it is one for sure."""
    if "llm_config_file_path" in data:
        yield "", data, "llm_config_file_path", True
    sections = {key: value for key, value in data.items() if isinstance(value, dict)}
    if "output" in sections.get("run", {}):
        yield "run", sections["run"], "output", True
    if "python" in sections.get("env", {}):
        yield "env", sections["env"], "python", "/" in str(sections["env"]["python"])
    for name, kind in COMPONENT_SECTIONS.items():
        section = sections.get(name, {})
        classes = list(getattr(plugins, kind).values())
        for key, value in section.items():
            if any(_is_path(cls, key) for cls in classes) or (name, key) == ("benchmark", "path"):
                yield name, section, key, True
            elif (name, key) == ("benchmark", "source"):
                yield name, section, key, str(value).startswith(("./", "../", "~"))
            elif (name, key) == ("agent", "system_prompt") and str(value).endswith(".jinja"):
                yield name, section, key, "\n" not in str(value)
    tools = data.get("tools")
    for item in tools if isinstance(tools, list | tuple) else ():
        tool = tool_name(item)
        cls = plugins.tools.get(tool) if tool else None
        if cls is not None and isinstance(item, dict) and isinstance(item[tool], dict):
            yield from (("tools", item[tool], key, True) for key in item[tool] if _is_path(cls, key))


def _files_absolute(tasks: Any, base: Path) -> Any:
    """Patterns of tasks, in which files of them (`@names.txt`) have absolute paths."""
    if isinstance(tasks, list | tuple):
        return [_files_absolute(item, base) for item in tasks]
    if isinstance(tasks, str) and tasks.startswith(FILE) and len(tasks) > 1:
        return f"{FILE}{_without_steps_up(base.absolute() / Path(tasks.removeprefix(FILE)).expanduser())}"
    return tasks


def _without_steps_up(path: Path) -> Path:
    """A path without `..`, so that one place has one name; links before the last of them are followed, no others.

    A Python of a virtual environment is a link, and would be another one without it.
    """
    if not path.is_absolute() or ".." not in path.parts:
        return path
    last = len(path.parts) - path.parts[::-1].index("..")
    return Path(*path.parts[:last]).resolve().joinpath(*path.parts[last:])


def _is_path(cls: type[Component], key: str) -> bool:
    field = cls.Settings.model_fields.get(key)
    return field is not None and (field.annotation is Path or Path in typing.get_args(field.annotation))
