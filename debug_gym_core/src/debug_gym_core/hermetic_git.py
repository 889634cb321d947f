"""Git on what others wrote: it takes nothing from this machine's settings, starts no program and asks nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

ALONE = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Variables of a git that knows no settings but those of its repository, which is ours."""


def without_git() -> dict[str, str]:
    """This process' variables but those of git, which name other repositories, settings and programs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def make_empty(directory: Path) -> None:
    """Make a directory that is there a git directory with nothing in it, no settings either.

    Raises:
        OSError: it cannot be written to
    """
    for name in ("objects", "refs"):
        (directory / name).mkdir(parents=True)
    (directory / "HEAD").write_text("ref: refs/heads/none\n")


def objects(output: bytes, count: int) -> Iterator[bytes]:
    """The contents of objects, as `git cat-file --batch` prints them.

    Args:
        output: what it printed
        count: how many were asked for, all of them there
    """
    position = 0
    for _ in range(count):
        end = output.index(b"\n", position)
        size = int(output[position:end].split()[2])
        yield output[end + 1 : end + 1 + size]
        position = end + 1 + size + 1
