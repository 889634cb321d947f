"""The files of the task as tools see them: in the sandbox, under the rules, with the patch of what changed."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from debug_gym_core import patch as patches
from debug_gym_core.changes import Changes, Comparison, read_state
from debug_gym_core.errors import ActionError
from debug_gym_core.lines import decode, encode, shown
from debug_gym_core.rules import Rules
from debug_gym_core.session import Entry, Lines, Session
from debug_gym_core.snapshot import FileState, Snapshot, archive_of
from debug_gym_core.terminal import ROOT


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
        self._root = session.realpath(".")
        self._comparison = Comparison(session, snapshot)

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

    def _locate(self, path: str) -> tuple[str, Entry | None]:
        """Where a path leads, and what is there."""
        name = self._named(path)
        with self._refusals(name):
            real = self._checked(name, self._session.realpath(name))
            entry = self._session.stat(real)
        if entry is not None and entry.kind == "directory" and real != "." and self._rules.ignored(real, True):
            raise self._is_ignored(name)
        return real, entry

    def _named(self, path: str) -> str:
        """A path relative to the root by its text alone, not ignored."""
        if not path or "\0" in path:
            raise ActionError("the path is empty" if not path else "a path cannot hold a NUL character")
        encode(path)
        full = posixpath.normpath(posixpath.join(ROOT, re.sub(r"/+", "/", path)))
        for root in (ROOT, self._session.root):
            if full == root or full.startswith(f"{root}/"):
                name = full[len(root) + 1 :] or "."
                break
        else:
            raise ActionError(f"{shown(path)} is outside the workspace {ROOT}; that is refused")
        if name != "." and self._rules.ignored(name):
            raise self._is_ignored(name)
        return name

    def _checked(self, name: str, absolute: str) -> str:
        """The path that a name really leads to, relative to the root, if it may be seen."""
        if absolute == self._root:
            return "."
        if not absolute.startswith(self._root.rstrip("/") + "/"):
            raise ActionError(f"{shown(name)} leads out of the workspace through a symbolic link; that is refused")
        real = absolute[len(self._root.rstrip("/")) + 1 :]
        if real != name and self._rules.ignored(real):
            raise self._is_ignored(name)
        return real

    def _is_ignored(self, name: str) -> ActionError:
        return ActionError(f"{shown(name)} is ignored in this task: it can be neither shown nor changed")

    @contextmanager
    def _refusals(self, name: str) -> Iterator[None]:
        """Turn what the sandbox's file system refuses into words for the agent."""
        try:
            yield
        except FileNotFoundError as error:
            raise ActionError(f"there is no file {shown(name)}{self._meant(name)}") from error
        except IsADirectoryError as error:
            raise ActionError(f"{shown(name)} is a directory, not a file") from error
        except (ConnectionError, TimeoutError):
            raise
        except OSError as error:
            raise ActionError(f"{shown(name)}: {error.strerror or error}") from error

    def _meant(self, path: str) -> str:
        """Which pristine files somebody may have meant."""
        known = [p for p, m in self._snapshot.members.items() if m.kind == "file" and not self._rules.ignored(p)]
        same = [p for p in known if posixpath.basename(p) == posixpath.basename(path) and p != path]
        near = same or difflib.get_close_matches(path, known[:5000], n=3)
        return f"; did you mean {' or '.join(map(shown, near[:3]))}?" if near else ""

    # Reading

    def read_bytes(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            ActionError: it leads outside, is ignored, is not there, or is no file
        """
        name = self._named(path)
        with self._refusals(name):
            return self._session.read(self._checked(name, self._session.realpath(name)))

    def read_existing(self, path: str, limit: int) -> bytes | None:
        """The content of a file that is to be edited; None when there is nothing yet.

        Args:
            path: of the file
            limit: bytes that it may have

        Raises:
            ActionError: it leads outside, is ignored, is no file, or is too large
        """
        real, entry = self._locate(path)
        if entry is None:
            return None
        if entry.size > limit and entry.kind == "file":
            raise ActionError(f"{shown(real)} has {entry.size} bytes; more than {limit} cannot be edited")
        return self.read_bytes(real)

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
            the path that it leads to, and what was read

        Raises:
            ActionError: as `read_bytes`
        """
        name = self._named(path)
        with self._refusals(name):
            found = self._session.lines(name, start, count, limit)
        return self._checked(name, found.real), found

    def list(self, path: str = ".", depth: int | None = None) -> list[WorkspaceEntry]:
        """What is below a directory, ignored entries left out, directories before what is in them.

        Args:
            path: of the directory
            depth: how many levels; None: all

        Raises:
            ActionError: it leads outside, is ignored, is not there, or is no directory
        """
        real, entry = self._locate(path)
        if entry is None:
            raise ActionError(f"there is no directory {shown(real)}")
        if entry.kind != "directory":
            raise ActionError(f"{shown(real)} is a file, not a directory")
        with self._refusals(real):
            return list(self._listed(self._session.walk(real, depth)))

    def _listed(self, entries: Iterator[Entry]) -> Iterator[WorkspaceEntry]:
        for entry in entries:
            is_dir = entry.kind == "directory"
            if not self._rules.ignored(entry.path, is_dir):
                readonly = self._rules.readonly(entry.path, is_dir)
                yield WorkspaceEntry(entry.path, entry.kind, readonly, entry.size, entry.target)

    # Changing

    def write_bytes(self, path: str, data: bytes) -> None:
        """Give a file a content; it keeps its permissions, a new one and its directories are made.

        Raises:
            ActionError: it leads outside, is ignored, read-only, or no file; or the sandbox has no room
        """
        name = self._named(path)
        with self._refusals(name):
            real = self._checked(name, self._session.realpath(name))
            self._must_be_editable(real)
            try:
                old = self._session.read(real)
            except FileNotFoundError:
                old = None
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
        name = self._named(path)
        if name == ".":
            raise ActionError("the workspace itself cannot be removed")
        directory, base = posixpath.split(name)
        real = posixpath.normpath(posixpath.join(self.resolve(directory or "."), base))
        with self._refusals(name):
            entry = self._session.stat(real)
            if entry is None:
                raise FileNotFoundError
            doomed = [entry, *(self._session.walk(real) if entry.kind == "directory" else ())]
            for one in doomed:
                if self._rules.ignored(one.path, one.kind == "directory"):
                    raise ActionError(f"{shown(one.path)} is ignored in this task: it cannot be removed")
                self._must_be_editable(one.path, one.kind == "directory")
            old = {one.path: self._session.read(one.path) for one in doomed if one.kind == "file"}
            self._session.remove(real)
        for gone, data in old.items():
            self._on_change(gone, data, None)

    def _must_be_editable(self, real: str, is_dir: bool = False) -> None:
        if self._rules.readonly(real, is_dir):
            raise ActionError(f"{shown(real)} is read-only in this task: it cannot be changed")

    # What changed

    def changes(self) -> Changes:
        """What is different from the pristine repository; ignored files and caches are not looked at."""
        return self._comparison.run(lambda path: not self._rules.ignored(path))

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
        before = {path: self._state(path) for path in patches.touched(patch)}
        after = patches.apply(patch, before)
        for path, new in after.items():
            self._must_be_editable(path)
            if new is not None:
                self._must_have_place(path, gone={path for path, state in after.items() if state is None})
        for path in sorted(after, key=lambda path: after[path] is not None):
            self._set(path, after[path])
        for path, new in after.items():
            old = before[path]
            self._on_change(path, old.data if old else None, new.data if new else None)

    def restore_readonly(self) -> Sequence[str]:
        """Undo whatever happened to read-only files, however it was done.

        Returns:
            the paths that were put back, or removed because they are new and match a read-only pattern
        """
        pristine, rules = self._snapshot.members, self._rules
        changed = self._comparison.run(
            lambda path: rules.readonly(path) and (path in pristine or not rules.ignored(path))
        )
        paths = sorted({*changed, *changed.left_out})
        states = {path: self._snapshot.state(path) for path in paths}
        for path in sorted(paths, key=lambda path: states[path] is not None):
            for above in patches.above_of(path) if states[path] is not None else ():
                with self._refusals(above):
                    entry = self._session.stat(above)
                    if entry is not None and entry.kind != "directory":
                        self._session.remove(above)
            self._set(path, states[path])
        return paths

    def _state(self, path: str) -> FileState | None:
        """What a patch finds at a path; one that leads through links is refused."""
        name = self._named(path)
        directory = posixpath.dirname(name) or "."
        if name != path or self.resolve(directory) != directory:
            raise ActionError(f"the patch touches {shown(path)}, which is not the plain path of a file")
        with self._refusals(name):
            entry = self._session.stat(name)
            if entry is None or entry.kind == "directory":
                return None
            state = read_state(self._session, entry) if entry.kind != "other" else None
        if state is None:
            raise ActionError(f"the patch touches {shown(path)}, which cannot be read")
        return state

    def _must_have_place(self, path: str, gone: set[str]) -> None:
        """Refuse to write a path when something that stays is in its place or in that of a directory above it.

        Args:
            path: what is to be written
            gone: files that are removed before
        """
        with self._refusals(path):
            for above in patches.above_of(path):
                entry = self._session.stat(above)
                if entry is not None and entry.kind != "directory" and above not in gone:
                    raise ActionError(f"the patch writes {shown(path)}, but {shown(above)} is a file")
            entry = self._session.stat(path)
            below = self._session.walk(path) if entry is not None and entry.kind == "directory" else ()
            for one in below:
                if one.kind != "directory" and one.path not in gone and not self._rules.ignored(one.path):
                    raise ActionError(f"the patch writes {shown(path)}, but that is a directory with {shown(one.path)}")

    def _set(self, path: str, state: FileState | None) -> None:
        """Make a path what it is to be, whatever is there now."""
        with self._refusals(path):
            found = self._session.stat(path)
            if found is not None and (state is None or state.kind == "link" or found.kind != "file"):
                self._session.remove(path)
            if state is not None and state.kind == "link":
                self._session.put(archive_of({path: state}))
            elif state is not None:
                # Not by an archive: its old times could make Python take stale bytecode for new.
                self._session.write(path, state.data, state.mode)
