"""Listings of a workspace's files, under its rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from debug_gym_core.sandbox.answers import Entry
    from debug_gym_core.workspace.rules import Rules


@dataclass(frozen=True, eq=False)
class WorkspaceEntry(str):
    """One entry of a listing: its path, and what is known of it.

    Attributes:
        path: relative to the root
        kind: what it is
        readonly: whether it may not be changed
        size: bytes of a file
        target: where a symbolic link points
    """

    path: str
    kind: Literal["file", "directory", "link", "other"]
    readonly: bool
    size: int = 0
    target: str | None = None

    def __new__(cls, path: str, *facts: object, **named: object) -> WorkspaceEntry:
        """The path is the text."""
        return super().__new__(cls, path)


def listed(entries: Iterable[Entry], rules: Rules) -> Iterator[WorkspaceEntry]:
    """What of some entries is shown: ignored ones are left out.

    Args:
        entries: of the sandbox, their paths relative to the root
        rules: what is ignored and read-only
    """
    for entry in entries:
        is_dir = entry.kind == "directory"
        if not rules.ignored(entry.path, is_dir):
            yield WorkspaceEntry(entry.path, entry.kind, rules.readonly(entry.path, is_dir), entry.size, entry.target)
