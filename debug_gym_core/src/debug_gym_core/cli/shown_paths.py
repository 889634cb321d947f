"""Paths as a person reads and types them."""

from __future__ import annotations

from pathlib import Path


def shown_path(path: Path) -> str:
    """A path as a person here would type it."""
    import shlex

    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return shlex.quote(str(shown))
