"""Where this program keeps files of its own on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """What it can make again: `debug-gym` below `$XDG_CACHE_HOME`, or `~/.cache`."""
    return _base("XDG_CACHE_HOME", ".cache") / "debug-gym"


def state() -> Path:
    """What it has made for a person, and keeps: `debug-gym` below `$XDG_STATE_HOME`, or `~/.local/state`."""
    return _base("XDG_STATE_HOME", ".local/state") / "debug-gym"


def _base(variable: str, default: str) -> Path:
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path.home() / default
