"""A config as YAML that explains itself, for `debug-gym config show`."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pydantic

from debug_gym_core.components.catalogue import Plugins, installed
from debug_gym_core.config.model import COMPONENT_SECTIONS, Config
from debug_gym_core.config.yaml_types import dumped

WIDTH = 28
"""Column, counted from a value's key, where comments start."""


def as_yaml(config: Config, plugins: Plugins | None = None) -> str:
    """Write a config as YAML with a comment for each key; reading it gives the same config.

    Args:
        config: the config
        plugins: what is installed, for the words about the components' own settings; None: what is installed here
    """
    data = config.model_dump(mode="json")
    words = attribute_help(Config)
    parts = []
    for key, value in data.items():
        section = getattr(config, key)
        if isinstance(section, pydantic.BaseModel):
            about = attribute_help(type(section))
            about = {**_words_of_component(key, value, plugins or installed()), **about}
            lines = [_line("  ", name, item, about.get(name, "")) for name, item in value.items()]
            parts.append("\n".join([f"# {_sentence(words[key])}", f"{key}:", *lines]))
        elif key == "tools":
            items = [f"  - {_scalar(item)}" for item in value]
            parts.append("\n".join([f"# {_sentence(words[key])}", f"{key}:{'' if items else ' []'}", *items]))
        else:
            parts.append("\n".join([f"# {_sentence(words[key])}", f"{key}: {_scalar(value)}"]))
    return "\n\n".join(parts) + "\n"


def attribute_help(model: type[Any]) -> dict[str, str]:
    """What the docstrings of a class and its bases say about each attribute, under `Attributes:`."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        _, _, text = inspect.cleandoc(cls.__doc__ or "").partition("Attributes:\n")
        text = text.lstrip("\n")
        indent = text[: len(text) - len(text.lstrip(" "))]
        for name, words in re.findall(rf"^{indent}(\w+): (.*(?:\n{indent} +\S.*)*)", text, re.MULTILINE):
            found[name] = " ".join(words.split())
    return found


def _words_of_component(section: str, data: dict[str, Any], plugins: Plugins) -> dict[str, str]:
    kind = getattr(plugins, COMPONENT_SECTIONS[section]) if section in COMPONENT_SECTIONS else {}
    cls = kind.get(data["name"]) if kind else None
    return attribute_help(cls.Settings) if cls is not None else {}


def _line(indent: str, key: str, value: Any, words: str) -> str:
    text = f"{indent}{key}: {_scalar(value)}"
    return f"{text:<{len(indent) + WIDTH}}  # {words}" if words else text


def _scalar(value: Any) -> str:
    """A value in YAML, on one line."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return dumped(value)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
