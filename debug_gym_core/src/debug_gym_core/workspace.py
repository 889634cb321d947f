"""The files of the task as tools see them: in the sandbox, under the rules, with the patch of what changed."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from debug_gym_core import patch as patches
from debug_gym_core.errors import ActionError
from debug_gym_core.lines import decode, encode, show
from debug_gym_core.rules import Rules
from debug_gym_core.session import Entry, Lines, Session, Stat
from debug_gym_core.snapshot import FileState, Snapshot, archive_of
from debug_gym_core.terminal import ROOT

FILE_LIMIT = 64 << 20
"""Bytes of one changed file that go into a patch."""

CHANGES_LIMIT = 256 << 20
"""Bytes of all changed files together that go into a patch."""


@dataclass(frozen=True)
class WorkspaceEntry:
    """One entry of a listing.

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


class Workspace:
    """The files of one live task.

    Paths are given relative to the root or as `/testbed/...`. Whatever leads out of the workspace (`..`, another
    absolute path, a symbolic link) and whatever is ignored is refused with an ActionError, and so is a change of what
    is read-only; links that stay inside are followed.
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        rules: Rules,
        on_change: Callable[[str, bytes | None, bytes | None], None] | None = None,
    ) -> None:
        """Take the files as they are now as unchanged.

        Args:
            session: a sandbox in which the snapshot was unpacked and set up, and no agent did anything yet
            snapshot: the pristine repository
            rules: what is ignored and read-only
            on_change: called after a file was changed through the workspace, with its path, its old and its new
                content (None: there is no file)
        """
        self._session = session
        self._snapshot = snapshot
        self._rules = rules
        self._on_change = on_change or (lambda path, old, new: None)
        self._stamps = {entry.path: _stamp(entry) for entry in session.walk()}

    # Where a path leads

    def resolve(self, path: str) -> str:
        """Find out where a path leads.

        Args:
            path: need not exist

        Returns:
            the path without links, relative to the root; `.` for the root itself

        Raises:
            ActionError: it leads outside, or to something that is ignored
        """
        return self._locate(path)[0]

    def is_readonly(self, path: str) -> bool:
        """Whether a file may be shown but not changed.

        Args:
            path: as `resolve` gives it
        """
        return self._rules.readonly(path)

    def _locate(self, path: str) -> tuple[str, Stat]:
        """Where a path leads, and what is there."""
        name = self._normalised(path)
        with _refusals(name):
            stat = self._session.stat(name)
        return self._checked(name, stat), stat

    def _checked(self, name: str, stat: Stat) -> str:
        """The real path of what was found, if it may be seen."""
        if not stat.inside or stat.real is None:
            raise ActionError(f"{_shown(name)} leads out of the workspace through a symbolic link; that is refused")
        is_dir = stat.kind == "directory"
        if self._rules.ignored(name.removeprefix("."), is_dir) or (
            stat.real != name and self._rules.ignored(stat.real.removeprefix("."), is_dir)
        ):
            raise ActionError(f"{_shown(name)} is ignored here (.debugignore): it can be neither shown nor changed")
        return stat.real

    def _normalised(self, path: str) -> str:
        """A path relative to the root by its text alone."""
        if not path or "\0" in path:
            raise ActionError("the path is empty" if not path else "a path cannot hold a NUL character")
        encode(path)
        full = posixpath.normpath(posixpath.join(ROOT, re.sub(r"/+", "/", path)))
        for root in (ROOT, self._session.root):
            if full == root or full.startswith(f"{root}/"):
                return full[len(root) + 1 :] or "."
        raise ActionError(f"{_shown(path)} is outside the workspace {ROOT}; that is refused")

    def _missing(self, path: str) -> ActionError:
        """There is no such file; say which ones are meant perhaps."""
        known = [p for p, m in self._snapshot.members.items() if m.kind == "file" and not self._rules.ignored(p)]
        same = [p for p in known if posixpath.basename(p) == posixpath.basename(path)]
        near = same or difflib.get_close_matches(path, known[:5000], n=3)
        hint = f"; did you mean {' or '.join(map(_shown, near[:3]))}?" if near else ""
        return ActionError(f"there is no file {_shown(path)}{hint}")

    # Reading

    def read_bytes(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            ActionError: it leads outside, is ignored, is not there, or is no file
        """
        real, stat = self._file(path)
        with _refusals(real):
            return self._session.read(real)

    def read_text(self, path: str) -> str:
        """The content of a file as text: UTF-8, other bytes as surrogates, line ends and BOM as they are.

        Raises:
            ActionError: as `read_bytes`
        """
        return decode(self.read_bytes(path))

    def read_lines(self, path: str, start: int, count: int, limit: int) -> tuple[str, Lines]:
        r"""Some lines of a file, however large it is; lines end at `\n` only.

        Args:
            path: of the file
            start: first line, from 1
            count: how many lines
            limit: bytes to read at most

        Returns:
            the real path, and what was read

        Raises:
            ActionError: as `read_bytes`
        """
        name = self._normalised(path)
        with _refusals(name):
            found = self._session.lines(name, start, count, limit)
        real = self._checked(name, found.stat)
        self._must_be_file(real, found.stat)
        return real, found

    def _file(self, path: str) -> tuple[str, Stat]:
        real, stat = self._locate(path)
        self._must_be_file(real, stat)
        return real, stat

    def _must_be_file(self, real: str, stat: Stat) -> None:
        if stat.kind == "missing":
            raise self._missing(real)
        if stat.kind == "directory":
            raise ActionError(f"{_shown(real)} is a directory, not a file")
        if stat.kind != "file":
            raise ActionError(f"{_shown(real)} is neither file nor directory")

    def list(self, path: str = ".", depth: int | None = None) -> list[WorkspaceEntry]:
        """What is below a directory, ignored entries left out, directories before what is in them.

        Args:
            path: of the directory
            depth: how many levels; None: all

        Raises:
            ActionError: it leads outside, is ignored, is not there, or is no directory
        """
        real, stat = self._locate(path)
        if stat.kind == "missing":
            raise ActionError(f"there is no directory {_shown(real)}")
        if stat.kind != "directory":
            raise ActionError(f"{_shown(real)} is a file, not a directory")
        with _refusals(real):
            found = [
                WorkspaceEntry(
                    entry.path,
                    entry.kind,
                    self._rules.readonly(entry.path, entry.kind == "directory"),
                    entry.size,
                    entry.target,
                )
                for entry in self._session.walk(real, depth)
                if not self._rules.ignored(entry.path, entry.kind == "directory")
            ]
        return sorted(found, key=lambda entry: entry.path.split("/"))

    # Changing

    def write_bytes(self, path: str, data: bytes) -> None:
        """Give a file a content; it keeps its permissions, a new one and its directories are made.

        Raises:
            ActionError: it leads outside, is ignored, read-only, or no file; or the sandbox has no room
        """
        real, stat = self._locate(path)
        self._must_be_editable(real)
        if stat.kind not in ("file", "missing"):
            self._must_be_file(real, stat)
        with _refusals(real):
            old = self._session.read(real) if stat.kind == "file" else None
            if old == data:
                return
            self._session.write(real, data)
        self._on_change(real, old, data)

    def write_text(self, path: str, text: str) -> None:
        """Give a file a content, the reverse of `read_text`.

        Raises:
            ActionError: as `write_bytes`
        """
        self.write_bytes(path, encode(text))

    def remove(self, path: str) -> None:
        """Remove a file, a link (not what it points to) or a directory with all that is in it.

        Raises:
            ActionError: it leads outside, is not there, or it or something in it is ignored or read-only
        """
        name = self._normalised(path)
        if name == ".":
            raise ActionError("the workspace itself cannot be removed")
        directory, base = posixpath.split(name)
        parent, _ = self._locate(directory or ".")
        real = posixpath.normpath(posixpath.join(parent, base))
        with _refusals(real):
            entry = self._entry(real)
            if entry is None:
                raise self._missing(real)
            doomed = [entry, *(self._session.walk(real) if entry.kind == "directory" else ())]
        for one in doomed:
            if self._rules.ignored(one.path, one.kind == "directory"):
                raise ActionError(f"{_shown(one.path)} is ignored here (.debugignore): it cannot be removed")
            self._must_be_editable(one.path, one.kind == "directory")
        with _refusals(real):
            old = {one.path: self._session.read(one.path) for one in doomed if one.kind == "file"}
            self._session.remove(real)
        for gone, data in old.items():
            self._on_change(gone, data, None)

    def _must_be_editable(self, real: str, is_dir: bool = False) -> None:
        if self._rules.readonly(real, is_dir):
            raise ActionError(f"{_shown(real)} is read-only here (.debugreadonly): it cannot be changed")

    def _entry(self, real: str) -> Entry | None:
        """What lies at a path whose directory is real, links not followed."""
        for entry in self._session.walk(posixpath.dirname(real) or ".", 1):
            if entry.path == real:
                return entry
        return None

    # What changed

    def changes(self) -> Changes:
        """What is different from the pristine repository; ignored files and caches are not looked at.

        A file counts as changed when its content, its kind or its owner's permission to execute it is different; only
        files whose size, time or permissions moved since the start are read.
        """
        return self._difference(lambda path: not self._rules.ignored(path))

    def patch(self) -> bytes:
        """All changes as a patch for `git apply`: edited, new, deleted, renamed and binary files, links, modes.

        Raises:
            RequirementError: git is not installed
        """
        after = self.changes()
        if not after:
            return b""
        return patches.make({path: self._snapshot.state(path) for path in after}, after)

    def apply(self, patch: bytes) -> None:
        """Apply a patch to the workspace, all of it or nothing.

        Args:
            patch: as `git diff` or `diff -u` writes it; an empty one does nothing

        Raises:
            ActionError: it is no patch, does not fit, or touches what is outside, ignored or read-only
            RequirementError: git is not installed
        """
        if not patch.strip():
            return
        paths = patches.touched(patch)
        before = {path: self._state(path) for path in paths}
        after = patches.apply(patch, before)
        for path in after:
            self._must_be_editable(path)
        for path in sorted(after, key=lambda path: after[path] is not None):
            self._set(path, after[path])
        for path, state in after.items():
            old, new = before[path], state
            self._on_change(path, old.data if old else None, new.data if new else None)

    def restore_readonly(self) -> list[str]:
        """Undo whatever happened to read-only files, however it was done.

        Returns:
            the paths that were put back, or removed because they are new and match a read-only pattern
        """
        mine = self._snapshot.members
        changed = self._difference(
            lambda path: self._rules.readonly(path) and (path in mine or not self._rules.ignored(path))
        )
        paths = sorted({*changed, *changed.left_out})
        for path in paths:
            self._set(path, self._snapshot.state(path))
        return paths

    def _difference(self, wanted: Callable[[str], bool]) -> Changes:
        """Compare with the pristine repository.

        Args:
            wanted: whether a path whose stamp moved is to be looked at
        """
        files: dict[str, FileState | None] = {}
        left_out: dict[str, str] = {}
        seen = set()
        room = CHANGES_LIMIT
        for entry in self._session.walk():
            if entry.kind == "directory":
                continue
            seen.add(entry.path)
            if self._stamps.get(entry.path) == _stamp(entry) or not wanted(entry.path):
                continue
            pristine = self._snapshot.state(entry.path)
            if entry.kind == "other":
                left_out[entry.path] = "neither file nor link"
            elif entry.size > min(FILE_LIMIT, room):
                left_out[entry.path] = f"{entry.size} bytes are too many"
            else:
                state = self._read_state(entry)
                if state is None:
                    left_out[entry.path] = "cannot be read"
                elif not _same(state, pristine):
                    files[entry.path] = state
                    room -= len(state.data)
        for path, member in self._snapshot.members.items():
            if member.kind != "directory" and path not in seen and path in self._stamps and wanted(path):
                files[path] = None
        return Changes(files, left_out)

    def _read_state(self, entry: Entry) -> FileState | None:
        """A file or link as it is now; None when it cannot be read."""
        if entry.kind == "link":
            return FileState(encode(entry.target or ""), 0o777, "link")
        try:
            return FileState(self._session.read(entry.path, 0, FILE_LIMIT), entry.mode)
        except OSError:
            return None

    def _state(self, path: str) -> FileState | None:
        """What a patch finds at a path; refuses one that leads through links."""
        name = self._normalised(path)
        directory = posixpath.dirname(name) or "."
        parent, stat = self._locate(directory)
        if name != path or parent != directory or self._rules.ignored(name):
            reason = "ignored" if self._rules.ignored(name) else "no plain path"
            raise ActionError(f"the patch touches {_shown(path)}, which is {reason} here")
        if stat.kind != "directory":
            return None
        with _refusals(name):
            entry = self._entry(name)
            if entry is None or entry.kind == "directory":
                return None
            state = self._read_state(entry) if entry.kind != "other" else None
        if state is None:
            raise ActionError(f"the patch touches {_shown(path)}, which cannot be read")
        return state

    def _set(self, path: str, state: FileState | None) -> None:
        """Make a path what it is to be, whatever is there now."""
        with _refusals(path):
            if state is not None and state.kind == "file" and self._session.stat(path).real == path:
                self._session.write(path, state.data, state.mode)
                return
            self._session.remove(path)
            if state is not None:
                self._session.put(archive_of({path: state}))


def _stamp(entry: Entry) -> tuple[object, ...]:
    """What moves when an entry is changed."""
    return (entry.kind, entry.size, entry.mode, entry.mtime_ns, entry.ctime_ns, entry.target)


def _same(state: FileState, pristine: FileState | None) -> bool:
    """Whether two states are equal as far as a patch can say."""
    return pristine is not None and (state.kind, state.executable, state.data) == (
        pristine.kind,
        pristine.executable,
        pristine.data,
    )


def _shown(path: str) -> str:
    """A path for a message: whatever is in it, on one line, not too long."""
    text = show(path.encode("utf-8", "surrogatepass"))[0]
    return text if len(text) <= 200 else f"{text[:97]}...{text[-100:]}"


@contextmanager
def _refusals(path: str) -> Iterator[None]:
    """Turn what the sandbox's file system refuses into words for the agent."""
    try:
        yield
    except OSError as error:
        if isinstance(error, (ConnectionError, TimeoutError)):
            raise
        raise ActionError(f"{_shown(path)}: {error.strerror or error}") from error
