"""The entry points that name plugins, looked up once a process."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from pathlib import Path

GROUP = "debug_gym"


@functools.cache
def entry_points() -> tuple[importlib.metadata.EntryPoint, ...]:
    """The entry points of plugins, by name."""
    return tuple(sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: entry.name))


@functools.cache
def package_directories() -> tuple[Path, ...]:
    """Directories of the packages that bring plugins, and of the core: what a sandbox must not show."""
    found = {Path(__file__).parent.parent}
    for entry in entry_points():
        spec = importlib.util.find_spec(entry.module.partition(".")[0])
        if spec is not None:
            found.update(Path(place) for place in spec.submodule_search_locations or ())
    return tuple(sorted(found))
