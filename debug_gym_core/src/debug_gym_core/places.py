"""Where this program keeps files of its own on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from debug_gym_core.errors import UsageError


def cache() -> Path:
    """What it can make again: `debug-gym` below `$XDG_CACHE_HOME`, or `~/.cache`."""
    return _base("XDG_CACHE_HOME", ".cache") / "debug-gym"


def state() -> Path:
    """What it has made for a person, and keeps: `debug-gym` below `$XDG_STATE_HOME`, or `~/.local/state`."""
    return _base("XDG_STATE_HOME", ".local/state") / "debug-gym"


def expanded(path: Path, instead: str) -> Path:
    """A path with the user's home directory in the place of `~`.

    Args:
        path: it
        instead: the variable that may be set where there is no home

    Raises:
        UsageError: there is none
    """
    try:
        return path.expanduser()
    except RuntimeError:
        raise UsageError(f"this user has no home directory: set HOME or {instead}") from None


def _base(variable: str, default: str) -> Path:
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else expanded(Path("~"), variable) / default
