"""What programs did to the files behind the tools' backs: which text files are different, and how."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from debug_gym_core.sandbox.answers import Entry
from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace.edits import Edit, edits_between
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import MTIME, Snapshot

TEXT_LIMIT = 4 << 20
"""Bytes of a file that is followed; nobody reads or edits larger ones."""

KNOWN_LIMIT = 64 << 20
"""Bytes of changed files that are kept, to tell what changes next."""

READ_LIMIT = 500
"""Files that are read after one step at most."""

MADE_LIMIT = 1000
"""Files that were made which are told at most; there may be any number of them."""

BINARY = 8000
"""Bytes at the beginning of a file among which a NUL makes it binary, as git sees it."""

_EVERYTHING = 1 << 31


class Unknown(enum.Enum):
    """The content of a file of which only that is known that there is one."""

    CONTENT = "unknown"


UNKNOWN: Final = Unknown.CONTENT


@dataclass(frozen=True)
class FileChange:
    """A text file that a program changed, made or removed.

    Attributes:
        path: relative to the root
        edits: which lines were replaced, in the old numbering
        own: whether the file is the repository's or a tool's, and not one that a program made for itself
    """

    path: str
    edits: tuple[Edit, ...]
    own: bool


class ProgramChanges:
    """Follows the text files of a workspace that are not ignored.

    Contents that are not the pristine ones are kept within a bound; of a file whose old content is not known, all
    lines count as replaced.
    """

    def __init__(self, session: Session, snapshot: Snapshot, rules: Rules, baseline: Mapping[str, Entry]) -> None:
        """Take the files as they are now.

        Args:
            session: where they are
            snapshot: the pristine repository
            rules: what is ignored
            baseline: the entries as they are now
        """
        self._session = session
        self._snapshot = snapshot
        self._rules = rules
        self._known: dict[str, bytes | Unknown | None] = {}
        self._size = 0
        self._programs: set[str] = set()
        self._found: list[FileChange] = []  # by a look that failed before its end
        for path, entry in baseline.items():
            member = snapshot.members.get(path)
            if entry.kind == "file" and (member is None or entry.mtime_ns != MTIME * 10**9):
                self._known[path] = UNKNOWN  # setting up the sandbox wrote it
        self._set_up = self._known.keys() - snapshot.members.keys()

    def files(self) -> list[str]:
        """Files that are there as far as is known: some that tools and programs made, then those of the repository.

        What setting up the sandbox made is left out: installing leaves copies of the repository's own.
        """
        pristine = [path for path, member in self._snapshot.members.items() if member.kind == "file"]
        others = self._known.keys() - self._set_up - {*pristine}
        made = sorted(path for path in others if self._known[path] is not None)[:MADE_LIMIT]
        return [*made, *(path for path in pristine if self._known.get(path, UNKNOWN) is not None)]

    def before(self, path: str) -> bytes | Unknown | None:
        """The content of a file as last known; None: there was none."""
        if path in self._known:
            return self._known[path]
        member = self._snapshot.members.get(path)
        if member is None or member.kind != "file":
            return None
        return self._snapshot.read(path) if member.size <= TEXT_LIMIT else UNKNOWN

    def written(self, path: str, content: bytes | None) -> None:
        """Learn that a tool gave a file a content, or removed it."""
        self._programs.discard(path)
        self._keep(path, content)

    def find(self, moved: Mapping[str, Entry | None], first: Collection[str] = ()) -> list[FileChange]:
        """Find out what happened to files.

        Args:
            moved: what was touched, with what is there now
            first: files to look at before others, should there be too many

        Returns:
            the changes: files of `first`, then those of the pristine repository, then others

        Raises:
            SandboxError: the sandbox failed; what was found until then is among the changes that the next call gives
        """
        members = self._snapshot.members
        found = self._found
        left = READ_LIMIT
        for path in sorted(moved, key=lambda path: (path not in first, path not in members, path)):
            entry = moved[path]
            if self._rules.ignored(path):
                continue
            before = self.before(path)
            after: bytes | Unknown | None = None
            if entry is not None and entry.kind == "file":
                try:
                    after = self._read(entry) if left > 0 else UNKNOWN
                except PermissionError:  # closed to everybody; should it be opened again, that is told
                    continue
                left -= 1
            if before == after and before is not UNKNOWN:
                continue
            own = (path in members or before is not None) and path not in self._programs
            if before is None:
                self._programs.add(path)
            self._keep(path, after)
            if after is not UNKNOWN and not _binary(after) and (before is UNKNOWN or not _binary(before)):
                found.append(FileChange(path, tuple(edits_of(before, after)), own))
        self._found = []
        return found

    def _read(self, entry: Entry) -> bytes | Unknown:
        if entry.size > TEXT_LIMIT:
            return UNKNOWN
        try:
            data = self._session.read(entry.path, 0, TEXT_LIMIT + 1)
        except (ConnectionError, TimeoutError, PermissionError):
            raise
        except OSError:
            return UNKNOWN
        return UNKNOWN if len(data) > TEXT_LIMIT else data

    def _keep(self, path: str, content: bytes | Unknown | None) -> None:
        """Remember a content; the oldest ones are forgotten when there are too many."""
        old = self._known.pop(path, None)
        self._size -= len(old) if isinstance(old, bytes) else 0
        if isinstance(content, bytes) and len(content) > TEXT_LIMIT:
            content = UNKNOWN
        self._known[path] = content
        self._size += len(content) if isinstance(content, bytes) else 0
        if self._size > KNOWN_LIMIT:
            for other, data in list(self._known.items()):
                if isinstance(data, bytes) and other != path:
                    self._known[other] = UNKNOWN
                    self._size -= len(data)
                if self._size <= KNOWN_LIMIT:
                    break


def edits_of(before: bytes | Unknown | None, after: bytes | None) -> list[Edit]:
    """What was done to the lines of a file; all are replaced where the old ones are not known.

    Args:
        before: the old content, None: there was no file
        after: the new content, None: there is none
    """
    if before is UNKNOWN:
        return [Edit(1, _EVERYTHING, (after or b"").count(b"\n"))]
    return edits_between(before, after)


def _binary(content: bytes | None) -> bool:
    return b"\0" in (content or b"")[:BINARY]
