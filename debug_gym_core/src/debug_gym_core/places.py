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


def is_nowhere() -> bool:
    """Whether the working directory is gone."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def expanded(path: Path, instead: str = "write the path in full") -> Path:
    """A path with the user's home directory in the place of `~`.

    Args:
        path: it
        instead: what else may be done about it

    Raises:
        UsageError: there is no home
    """
    try:
        return path.expanduser()
    except RuntimeError:
        raise UsageError(f"{path}: whose home directory that is, is not known; set HOME, or {instead}") from None


def _base(variable: str, default: str) -> Path:
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else expanded(Path("~"), variable) / default
