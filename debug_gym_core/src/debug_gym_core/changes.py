"""What is different from the pristine repository, found without reading what was not touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from debug_gym_core.lines import encode
from debug_gym_core.session import Entry, Session
from debug_gym_core.snapshot import LEFT_OUT, FileState, Snapshot

FILE_LIMIT = 64 << 20
"""Bytes of one changed file that go into a patch."""

CHANGES_LIMIT = 256 << 20
"""Bytes of all changed files together that go into a patch."""


class Changes(Mapping[str, FileState | None]):
    """What is different from the pristine repository: files and links by path, None for those that are gone.

    Attributes:
        left_out: changed files that are not part of it, and why: too large, unreadable, neither file nor link
    """

    def __init__(self, files: Mapping[str, FileState | None], left_out: Mapping[str, str] | None = None) -> None:
        """Keep the states.

        Args:
            files: by path
            left_out: reason by path
        """
        self._files = dict(sorted(files.items()))
        self.left_out = dict(sorted((left_out or {}).items()))

    def __getitem__(self, path: str) -> FileState | None:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


class Comparison:
    """Compares a live workspace with the pristine repository that it was made from.

    Every entry has a stamp (size, permissions, times, inode), taken when the workspace was new. Only files whose stamp
    moved are read, and only those whose content, kind or owner's permission to execute is different are changes.
    """

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        """Take the stamps.

        Args:
            session: a sandbox in which the snapshot was unpacked and set up, and no agent did anything yet
            snapshot: the pristine repository
        """
        self._session = session
        self._snapshot = snapshot
        used = {part for path in snapshot.members for part in path.split("/")}
        names = {path.rpartition("/")[2] for path in snapshot.environments} | LEFT_OUT
        self._prune = sorted(names - used)
        self._stamps = {entry.path: entry.stamp for entry in self._entries()}

    def _entries(self) -> Iterator[Entry]:
        return self._session.walk(prune=self._prune)

    def run(self, wanted: Callable[[str], bool]) -> Changes:
        """Compare.

        Args:
            wanted: whether a path whose stamp moved is to be looked at

        Returns:
            the differences among the wanted
        """
        files: dict[str, FileState | None] = {}
        left_out: dict[str, str] = {}
        seen = set()
        room = CHANGES_LIMIT
        for entry in self._entries():
            if entry.kind == "directory":
                continue
            seen.add(entry.path)
            if self._stamps.get(entry.path) == entry.stamp or not wanted(entry.path):
                continue
            if entry.kind == "other":
                left_out[entry.path] = "neither file nor link"
            elif entry.size > min(FILE_LIMIT, room):
                left_out[entry.path] = f"{entry.size} bytes are too many"
            elif (state := read_state(self._session, entry)) is None:
                left_out[entry.path] = "cannot be read"
            elif not _same(state, self._snapshot.state(entry.path)):
                files[entry.path] = state
                room -= len(state.data)
        for path, member in self._snapshot.members.items():
            if member.kind != "directory" and path not in seen and path in self._stamps and wanted(path):
                files[path] = None
        return Changes(files, left_out)


def read_state(session: Session, entry: Entry) -> FileState | None:
    """A file or link as it is now.

    Args:
        session: where it is
        entry: what was found there

    Returns:
        its state, None when it cannot be read
    """
    if entry.kind == "link":
        return FileState(encode(entry.target or ""), 0o777, "link")
    try:
        return FileState(session.read(entry.path, 0, FILE_LIMIT), entry.mode)
    except OSError:
        return None


def _same(state: FileState, pristine: FileState | None) -> bool:
    """Whether two states are equal as far as a patch can say."""
    if pristine is None:
        return False
    return (state.kind, state.executable, state.data) == (pristine.kind, pristine.executable, pristine.data)
