"""What tests and tools leave in a person's repository besides a change: files that git ignores there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from debug_gym_core.workspace import patch

NAME = "fix.diff"
"""The change without by-products, beside the `patch.diff` that has all."""


def without_byproducts(change: Path, directory: Path) -> tuple[Path, list[str]]:
    """Leave out of a change what git ignores, such as the data of a coverage measurement.

    Args:
        change: a patch of git
        directory: what it is for, a repository of git or none

    Returns:
        the patch to show and to apply, another file where something was left out, and the paths that were
    """
    data = change.read_bytes()
    ignored = _ignored(patch.touched(data), directory) if data else set()
    if not ignored:
        return change, []
    sections = [section for section in re.split(rb"(?m)^(?=diff --git )", data) if section]
    kept = change.with_name(NAME)
    kept.write_bytes(b"".join(section for section in sections if not ignored.issuperset(patch.touched(section))))
    return kept, sorted(ignored)


def _ignored(paths: Sequence[str], directory: Path) -> set[str]:
    """Those that git ignores and does not know; none where there is no git, or no repository of its."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # A repository's own settings can name a program that git asks which files changed.
    command = ["git", "-c", "core.fsmonitor=false", "check-ignore", "-z", "--stdin"]
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    try:
        done = subprocess.run(command, cwd=directory, env=environment, input=names, capture_output=True)
    except FileNotFoundError:
        return set()
    return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
