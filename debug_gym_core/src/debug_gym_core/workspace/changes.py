"""What is different from the pristine repository, found without reading what was not touched."""

from __future__ import annotations

import io
import logging
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox.answers import Entry
from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.lines import encode
from debug_gym_core.workspace.snapshot import LEFT_OUT, MTIME, FileState, Snapshot, archive_of

FILE_LIMIT = 64 << 20
"""Bytes of one changed file that go into a patch."""

CHANGES_LIMIT = 256 << 20
"""Bytes of all changed files together that go into a patch."""

PATH_LIMIT = 4096
"""Bytes of a directory's path from which on the guest does not look into it."""

_AHEAD = 32
_GROWTH = 1 << 16

log = logging.getLogger("debug_gym")


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

    Attributes:
        baseline: every entry as it was when the stamps were taken, by path
    """

    def __init__(self, session: Session, snapshot: Snapshot, closely: Iterable[str] = ()) -> None:
        """Take the stamps.

        Args:
            session: a sandbox in which the snapshot was unpacked and set up, and no agent did anything yet
            snapshot: the pristine repository
            closely: files of which `moved` tells even what was done through another name, outside the workspace
        """
        self._session = session
        self._snapshot = snapshot
        used = {part for path in snapshot.members for part in path.split("/")}
        self._prune = sorted((LEFT_OUT - used) | {f"/{path}" for path in snapshot.environments})
        self._closely = tuple(closely)
        self.baseline = {entry.path: entry for entry in self._entries(watch=True)}
        self._latest: dict[str, str | None] = {}
        self._same_at: dict[str, str] = {}

    def _entries(self, *, watch: bool = False) -> Iterator[Entry]:
        """All entries; directories that a command has closed are opened, since what is in them is not gone.

        Raises:
            SandboxError: the workspace cannot be walked
        """
        try:
            return self._session.walk(prune=self._prune, watch=self._closely if watch else None, open_up=True)
        except OSError as error:
            raise SandboxError(f"the workspace cannot be walked: {error}") from error

    def _told(self) -> dict[str, Entry | None] | None:
        """What the guest saw happen; None: anything may have."""
        try:
            return self._session.changed()
        except OSError as error:
            log.debug("changes not told", exc_info=error)
            return None

    def moved(self, *, everything: bool = False) -> dict[str, Entry | None]:
        """What was touched since this was last asked, or since the stamps were taken: None for what is gone.

        The guest watches, so that it costs next to nothing where nothing was touched, however large the repository is;
        where it cannot, all stamps are compared.

        Args:
            everything: compare all stamps in any case

        Raises:
            SandboxError: the sandbox failed, or the workspace cannot be walked
        """
        told = None if everything else self._told()
        if told is None or any(self._opened(entry) for entry in told.values()):
            told = {entry.path: entry for entry in self._entries(watch=True)}
            known = (path for path in (*self.baseline, *self._latest) if self._stamp(path) is not None)
            told = {**told, **dict.fromkeys(path for path in known if path not in told)}
        moved = {}
        for path, entry in told.items():
            stamp = None if entry is None else entry.stamp
            if stamp != self._stamp(path):
                self._latest[path] = stamp
                moved[path] = entry
        return moved

    def _opened(self, entry: Entry | None) -> bool:
        """Whether it is a directory whose permissions changed, by which what is in it may come in sight or go."""
        stamp = self._stamp(entry.path) if entry is not None and entry.kind == "directory" else None
        return stamp is not None and entry is not None and stamp.split("-")[1] != entry.stamp.split("-")[1]

    def _stamp(self, path: str) -> str | None:
        """The stamp of an entry as last seen."""
        if path in self._latest:
            return self._latest[path]
        entry = self.baseline.get(path)
        return None if entry is None else entry.stamp

    def _is_same(self, entry: Entry, state: FileState) -> bool:
        """Whether a file is what it was; if it is, it need not be read again until its stamp moves."""
        same = _same(state, self._snapshot.state(entry.path))
        if same:
            self._same_at[entry.path] = entry.stamp
        return same

    def _is_known(self, entry: Entry) -> bool:
        """Whether an entry is as it was when the workspace was new, by its stamp or since it was read with that one."""
        first = self.baseline.get(entry.path)
        return first is not None and entry.stamp in (first.stamp, self._same_at.get(entry.path))

    def run(self, wanted: Callable[[str], bool]) -> Changes:
        """Compare.

        Args:
            wanted: whether a path whose stamp moved is to be looked at

        Returns:
            the differences among the wanted

        Raises:
            SandboxError: the sandbox failed, or the workspace cannot be walked
        """
        files: dict[str, FileState | None] = {}
        left_out: dict[str, str] = {}
        seen = set()
        room = CHANGES_LIMIT
        reading: deque[tuple[Entry, Callable[[], bytes]]] = deque()

        def take(count: int) -> None:
            """Compare what was asked for first, until no more than `count` files are under way."""
            nonlocal room
            while len(reading) > count:
                entry, data = reading.popleft()
                room += entry.size
                try:
                    state = FileState(data(), entry.mode)
                except OSError:
                    left_out[entry.path] = "cannot be read"
                    continue
                if not self._is_same(entry, state):
                    files[entry.path] = state
                    room -= len(state.data)

        for entry in self._entries():
            if entry.kind == "directory":
                if len(encode(entry.path)) >= PATH_LIMIT and wanted(entry.path):
                    left_out[entry.path] = "what is in it has too long a path"
                continue
            seen.add(entry.path)
            if self._is_known(entry) or not wanted(entry.path):
                continue
            if entry.kind == "other":
                left_out[entry.path] = "neither file nor link"
            elif not patch.takes_name(entry.path, link=entry.kind == "link"):
                left_out[entry.path] = "git refuses patches with such a name"
            elif entry.kind == "link":
                if not _same(link_state(entry), self._snapshot.state(entry.path)):
                    files[entry.path] = link_state(entry)
            else:
                if entry.size > room:
                    take(0)
                if entry.size > min(FILE_LIMIT, room):
                    left_out[entry.path] = f"{entry.size} bytes are too many"
                    continue
                room -= entry.size  # until it is known whether it is a change
                take(_AHEAD)
                # Not FILE_LIMIT: what grows meanwhile would take as much memory as all of them under way together.
                limit = min(entry.size + _GROWTH, FILE_LIMIT)
                reading.append((entry, self._session.read_later(entry.path, limit)))
        take(0)
        for path, member in self._snapshot.members.items():
            first = self.baseline.get(path)  # setting up may have removed it, or made a directory of it
            was_there = member.kind != "directory" and first is not None and first.kind != "directory"
            if was_there and path not in seen and wanted(path):
                files[path] = None
        return Changes(files, left_out)

    def update(self, before: Changes, paths: Iterable[str], wanted: Callable[[str], bool]) -> Changes | None:
        """Compare some paths only.

        Args:
            before: what `run` or this returned last
            paths: all that may be different since; of a directory, what is in it
            wanted: as of `run`

        Returns:
            what `run` would return; None: only `run` can tell

        Raises:
            SandboxError: the sandbox failed
        """
        files, left_out = dict(before), dict(before.left_out)
        pruned = frozenset(self._prune)
        room = CHANGES_LIMIT - sum(len(state.data) for state in files.values() if state is not None)
        for path in paths:
            if left_out.pop(path, None) is not None or room < 0:
                return None
            old = files.pop(path, None)
            room += len(old.data) if old is not None else 0
            parts = path.split("/")
            above = ("/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1))
            if not wanted(path) or not pruned.isdisjoint((*parts, *above)):
                continue
            try:
                entry, first = self._session.stat(path), self.baseline.get(path)
            except OSError:  # a directory above it is a link, or closed
                return None
            if entry is None or entry.kind == "directory":
                if len(encode(path)) >= PATH_LIMIT:
                    return None
                member = self._snapshot.members.get(path)
                was_there = member is not None and member.kind != "directory"
                if was_there and first is not None and first.kind != "directory":
                    files[path] = None
            elif not self._is_known(entry):
                # A link may have taken the place of a directory.
                is_plain = entry.kind == "file" and entry.size <= FILE_LIMIT and patch.takes_name(path)
                state = read_state(self._session, entry) if is_plain else None
                if state is None:
                    return None
                if not self._is_same(entry, state):
                    files[path] = state
                    room -= len(state.data)
        return Changes(files, left_out) if room >= 0 else None


def read_state(session: Session, entry: Entry) -> FileState | None:
    """A file or link as it is now.

    Args:
        session: where it is
        entry: what was found there

    Returns:
        its state, None when it cannot be read
    """
    if entry.kind == "link":
        return link_state(entry)
    try:
        return FileState(session.read(entry.path, 0, FILE_LIMIT), entry.mode)
    except OSError:
        return None


def link_state(entry: Entry) -> FileState:
    """The state of a link: where it points."""
    return FileState(encode(entry.target or ""), 0o777, "link")


def write_state(session: Session, path: str, state: FileState | None) -> None:
    """Make a path what it is to be, whatever is there now.

    Args:
        session: where it is
        path: relative to the workspace
        state: None: nothing is to be there

    Raises:
        OSError: it cannot be written or removed
    """
    found = session.stat(path)
    if found is not None and (state is None or state.kind == "link" or found.kind != "file"):
        session.remove(path)
    if state is not None and state.kind == "link":
        session.put(archive_of({path: state}))
    elif state is not None:
        # Not by an archive: its old times could make Python take stale bytecode for new.
        session.write(path, state.data, state.mode)


def patch_of(snapshot: Snapshot, changes: Changes) -> bytes:
    """Changes as a patch for `git apply`.

    Args:
        snapshot: what they are changes of
        changes: what is different

    Raises:
        RequirementError: git is not installed
    """
    if not changes:
        return b""
    return patch.make({path: snapshot.state(path) for path in changes}, changes)


def apply_changes(session: Session, snapshot: Snapshot, changes: Mapping[str, FileState | None]) -> None:
    """Write changes over the pristine repository.

    Args:
        session: a sandbox with the pristine repository in it
        snapshot: that repository
        changes: the new state of each changed path, None for a deleted one

    Raises:
        OSError: something cannot be written
        SandboxLost: the sandbox went away
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, state in sorted(changes.items()):
            member = snapshot.members.get(path)
            if state is None or (member is not None and member.kind == "directory"):
                session.remove(path)
            if state is None:
                continue
            entry = tarfile.TarInfo(path)
            entry.mode = state.mode
            entry.mtime = MTIME + 1
            if state.kind == "link":
                entry.type = tarfile.SYMTYPE
                entry.linkname = state.data.decode("utf-8", "surrogateescape")
                tar.addfile(entry)
            else:
                entry.size = len(state.data)
                tar.addfile(entry, io.BytesIO(state.data))
    if any(state is not None for state in changes.values()):
        session.put(archive.getvalue())


def _same(state: FileState, pristine: FileState | None) -> bool:
    """Whether two states are equal as far as a patch can say."""
    if pristine is None:
        return False
    return (state.kind, state.executable, state.data) == (pristine.kind, pristine.executable, pristine.data)
