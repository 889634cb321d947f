"""Layered settings with dotted keys and references between them.

A `Config` is built from nested dictionaries, the later ones winning over the earlier ones. A value may refer to another
setting as `${section.name}`; references are expanded when a value is read.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Iterator, Mapping

REFERENCE = re.compile(r"\$\{([A-Za-z0-9_.]+)\}")

DEFAULTS = {
    "service": {
        "scheme": "https",
        "host": "localhost",
        "port": 8443,
        "url": "${service.scheme}://${service.host}:${service.port}",
    },
    "client": {
        "endpoint": "${service.url}/v1",
        "timeout": 10,
        "retries": {"count": 3, "wait": "${client.timeout}"},
    },
}


class ConfigError(Exception):
    """A key that does not exist, or references that go round in a circle."""


class Config:
    """The settings of one environment."""

    _expanded: dict[str, Any] = {}

    def __init__(self, *layers: Mapping[str, Any]) -> None:
        """Merge `layers`, later ones winning, into settings of our own."""
        self._tree: dict[str, Any] = {}
        for layer in layers:
            merge(self._tree, layer)

    def __repr__(self) -> str:
        return f"Config(sections={sorted(self._tree)})"

    def get(self, key: str) -> Any:
        """Return the value of a dotted key, with all references expanded."""
        return self._resolve(key, ())

    def set(self, key: str, value: Any) -> None:
        """Give a dotted key a new value, making the sections on the way where there are none."""
        *sections, leaf = key.split(".")
        node = self._tree
        for section in sections:
            node = node.setdefault(section, {})
            if not isinstance(node, dict):
                raise ConfigError(f"{section} in {key} is a value, not a section")
        node[leaf] = value

    @contextmanager
    def override(self, key: str, value: Any) -> Iterator[Config]:
        """Give an existing key another value for the length of a `with` block."""
        before = self._raw(key)
        self.set(key, value)
        try:
            yield self
        finally:
            self.set(key, before)

    def _raw(self, key: str) -> Any:
        node: Any = self._tree
        for part in key.split("."):
            if not isinstance(node, dict) or part not in node:
                raise ConfigError(f"no setting {key}")
            node = node[part]
        return node

    def _resolve(self, key: str, trail: tuple[str, ...]) -> Any:
        if key in trail:
            raise ConfigError(" -> ".join([*trail, key]))
        # Long chains of references are read over and over: expand each key once.
        if key not in self._expanded:
            self._expanded[key] = self._expand(self._raw(key), (*trail, key))
        return self._expanded[key]

    def _expand(self, value: Any, trail: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            return {name: self._expand(item, trail) for name, item in value.items()}
        if not isinstance(value, str):
            return value
        whole = REFERENCE.fullmatch(value)
        if whole:  # A value that is nothing but a reference keeps the type of what it refers to.
            return self._resolve(whole.group(1), trail)
        return REFERENCE.sub(lambda found: str(self._resolve(found.group(1), trail)), value)


def merge(target: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Lay `layer` over `target`, section by section, without keeping hold of any dictionary in `layer`."""
    for name, value in layer.items():
        if isinstance(value, Mapping):
            section = target.get(name)
            target[name] = section if isinstance(section, dict) else {}
            merge(target[name], value)
        else:
            target[name] = value


def client_settings(config: Config) -> str:
    """Return the line that the start script of the client is given."""
    endpoint, timeout = config.get("client.endpoint"), config.get("client.timeout")
    retries = config.get("client.retries")
    return f"{endpoint} timeout={timeout}s retry={retries['count']}x{retries['wait']}s"
