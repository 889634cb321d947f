"""The files of the task as tools see them: in the sandbox, under the rules, with the patch of what changed."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from debug_gym_core.errors import ActionError
from debug_gym_core.sandbox.file_requests import Entry, FileLines
from debug_gym_core.sandbox.grep import Found, Query
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import ROOT
from debug_gym_core.workspace import patch as patches
from debug_gym_core.workspace.changes import (
    FILE_LIMIT,
    Changes,
    Comparison,
    apply_changes,
    patch_of,
    read_state,
    write_state,
)
from debug_gym_core.workspace.lines import decode, encode, shown
from debug_gym_core.workspace.program_changes import (
    KNOWN_LIMIT,
    TEXT_LIMIT,
    UNKNOWN,
    FileChange,
    ProgramChanges,
    Unknown,
)
from debug_gym_core.workspace.readonly import ReadOnlyFiles
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import FileState, Snapshot

RESTORES = 3
"""How often read-only files are put back after one step, should a program that runs change them again."""

ONE_BY_ONE = 200
"""Files that are asked for one by one; where more were touched, a look at all of them is quicker."""

LONGEST = 4096
"""Characters that a path may have; no file system takes more."""


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


@dataclass(frozen=True)
class Refreshed:
    """What programs did to the files.

    Attributes:
        changes: text files that are different now, ignored ones left out
        restored: read-only files that were put back, or removed because they are new and match a read-only pattern
        failed: read-only files that could not be put back, and why
    """

    changes: tuple[FileChange, ...] = ()
    restored: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


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
        on_change: Callable[[str, bytes | Unknown | None, bytes | None], None] | None = None,
    ) -> None:
        """Take the files as they are now as unchanged.

        Args:
            session: a sandbox in which the snapshot was unpacked and set up, and no agent did anything yet
            snapshot: the pristine repository
            rules: what is ignored and read-only
            on_change: called after a file was changed through the workspace, with its path, its old and its new
                content (None: there is no file; UNKNOWN: it was too large to be followed)
        """
        self._session = session
        self._snapshot = snapshot
        self._rules = rules
        self._tell = on_change or (lambda path, old, new: None)
        self._root = session.realpath(".")
        self._readonly = ReadOnlyFiles(session, snapshot, rules)
        self._comparison = Comparison(session, snapshot, closely=self._readonly.files)
        self._readonly.remember(self._comparison.baseline)
        self._programs = ProgramChanges(session, snapshot, rules, self._comparison.baseline)
        self._commands_seen = session.commands
        self._was_busy = session.busy
        self._touched: set[str] = set()  # since `settled`
        self._ignored: list[str] | None = None  # once it was asked for: of the pristine repository, it stays the same
        self._moved: dict[str, Entry | None] = {}  # with `_restored` what a refresh that failed has found
        self._restored: set[str] = set()

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

    def is_ignored(self, path: str) -> bool:
        """Whether no tool may show anything of a file.

        Args:
            path: relative to the root, normalised; need not exist
        """
        return self._rules.ignored(path)

    def ignored_files(self, suffix: str = "") -> list[str]:
        """Files of the pristine repository that are ignored.

        Args:
            suffix: how their names end
        """
        if self._ignored is None:
            members = self._snapshot.members.items()
            self._ignored = [path for path, member in members if member.kind == "file" and self._rules.ignored(path)]
        return [path for path in self._ignored if path.endswith(suffix)]

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
        if len(path) > LONGEST:
            raise ActionError(f"the path {shown(path[:60])}... is too long: it has {len(path)} characters")
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
        return self._read(path, None)

    def _read(self, path: str, limit: int | None) -> bytes:
        name = self._named(path)
        with self._refusals(name):
            return self._session.read(self._checked(name, self._session.realpath(name)), 0, limit)

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
        return self._read(real, limit)  # it may have grown

    def read_text(self, path: str) -> str:
        """The content of a file as text: UTF-8, other bytes as surrogates, line ends and BOM as they are.

        Raises:
            ActionError: as `read_bytes`
        """
        return decode(self.read_bytes(path))

    def read_lines(self, path: str, start: int, count: int, limit: int) -> tuple[str, FileLines]:
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
        """What is below a directory, ignored entries left out, directories before what is in them; or a file itself.

        Args:
            path: of the directory, or of a file: then its entry is the only one; with a `/` at its end, of a directory
            depth: how many levels; None: all

        Raises:
            ActionError: it leads outside, is ignored, is not there, or is a file though a `/` is at its end
        """
        real, entry = self._locate(path)
        if entry is None:
            raise ActionError(f"there is no directory {shown(real)}")
        if entry.kind != "directory":
            if path.endswith("/"):
                raise ActionError(f"{shown(real)} is a file, not a directory")
            return list(self._listed([replace(entry, path=real)]))
        with self._refusals(real):
            return list(self._listed(self._session.walk(real, depth)))

    def _listed(self, entries: Iterable[Entry]) -> Iterator[WorkspaceEntry]:
        for entry in entries:
            is_dir = entry.kind == "directory"
            if not self._rules.ignored(entry.path, is_dir):
                readonly = self._rules.readonly(entry.path, is_dir)
                yield WorkspaceEntry(entry.path, entry.kind, readonly, entry.size, entry.target)

    def grep(self, query: Query, path: str = ".") -> Found:
        """Search the files below a directory, or one file, ignored ones left out.

        Args:
            query: what to look for
            path: where; a file that is named so is searched whatever the query's glob says

        Raises:
            ActionError: the path leads outside, is ignored or not there; the pattern is invalid (`InvalidPattern`)
        """
        real = self.resolve(path)
        with self._refusals(real):
            return self._session.grep(real, query, self._rules.ignore_patterns())

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
            old: bytes | Unknown | None
            try:
                old = self._followed(real, max(TEXT_LIMIT, len(data)))
            except FileNotFoundError:
                old = None
            if old == data:
                return
            self._touched.add(real)
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
            old: dict[str, bytes | Unknown] = {}
            room = KNOWN_LIMIT
            for one in doomed:
                if one.kind == "file":
                    content = old[one.path] = self._followed(one.path, min(TEXT_LIMIT, room))
                    room -= len(content) if content is not UNKNOWN else 0
            self._touched |= {one.path for one in doomed}
            self._session.remove(real)
        for gone, data in old.items():
            self._on_change(gone, data, None)

    def _must_be_editable(self, real: str, is_dir: bool = False) -> None:
        if self._rules.readonly(real, is_dir):
            raise ActionError(f"{shown(real)} is read-only in this task: it cannot be changed")

    def _followed(self, real: str, limit: int) -> bytes | Unknown:
        """The content of a file that is about to be changed; no more is read than `limit` bytes."""
        data = self._session.read(real, 0, limit + 1)
        return data if len(data) <= limit else UNKNOWN

    def _on_change(self, path: str, old: bytes | Unknown | None, new: bytes | None) -> None:
        """Tell of a change by a tool, and first of one that a program made since the last look at the file."""
        known = self._programs.before(path)
        if known is not UNKNOWN and old is not UNKNOWN and known != old:
            self._tell(path, known, old)
        self._programs.written(path, new)
        self._tell(path, old, new)

    # What changed

    def refresh(self, first: Collection[str] = ()) -> Refreshed:
        """Find what programs did to the files since the last call; read-only ones are put back.

        Costs nothing when no command ran since, and little when nothing was touched.

        Args:
            first: files that matter most, should too many have been changed

        Raises:
            SandboxLost: the sandbox, or the guest in it, is gone
            SandboxError: the workspace cannot be walked, or a file not be read; in both cases the next call tells what
                this one has found
        """
        commands, busy = self._session.commands, self._session.busy
        if commands == self._commands_seen and not self._was_busy:
            return Refreshed()
        moved, restored = self._moved, self._restored
        moved |= self._comparison.moved()
        self._touched |= moved.keys()
        failed: dict[str, str] = {}
        for _ in range(RESTORES):
            broken = self._readonly.broken(moved)
            if not broken:
                break
            restored |= set(broken)
            failed = self._readonly.put_back(broken)
            moved |= self._comparison.moved(everything=True)
            self._touched |= moved.keys()
        changes = self._programs.find(moved, first)
        self._commands_seen, self._was_busy, self._moved = commands, busy, {}
        self._restored = set()
        named = sorted(path for path in restored if path not in failed and not self._is_above(path, restored))
        return Refreshed(tuple(changes), tuple(named), failed)

    def _is_above(self, path: str, others: Collection[str]) -> bool:
        """Whether a path is a directory of the repository with one of the others in it."""
        member = self._snapshot.members.get(path)
        is_dir = member is not None and member.kind == "directory"
        return is_dir and any(other.startswith(f"{path}/") for other in others)

    def changes(self) -> Changes:
        """What is different from the pristine repository; ignored files and caches are not looked at."""
        return self._comparison.run(self._is_wanted)

    def _is_wanted(self, path: str) -> bool:
        return not self._rules.ignored(path)

    @property
    def touched(self) -> bool:
        """Whether something was changed, as far as is known, since `settled`."""
        return bool(self._touched)

    def settled(self, before: Changes | None) -> Changes:
        """What `changes` returns, at the cost of what was touched since this was last asked.

        Args:
            before: what it returned then; None: it is not known any more

        Raises:
            SandboxError: the workspace cannot be walked, or the sandbox failed; the next call tells all the same
        """
        found = None
        if before is not None and len(self._touched) <= ONE_BY_ONE:
            found = self._comparison.update(before, sorted(self._touched), self._is_wanted)
        if found is None:
            found = self.changes()
        self._touched.clear()
        return found

    def patch(self) -> bytes:
        """All changes as a patch for `git apply`: edited, new, deleted, renamed and binary files, links, modes.

        Raises:
            RequirementError: git is not installed
        """
        return patch_of(self._snapshot, self.changes())

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
        touched = patches.touched(patch)
        before = {path: self._state(path, touched) for path in touched}
        after = patches.apply(patch, before)
        for path, new in after.items():
            self._must_be_editable(path)
            if new is not None:
                self._must_have_place(path, gone={path for path, state in after.items() if state is None})
        self._touched |= after.keys()
        for path in sorted(after, key=lambda path: after[path] is not None):
            self._set(path, after[path])
        for path, new in after.items():
            old = before[path]
            self._on_change(path, _content(old), _content(new))

    def restore(self, changes: Changes) -> None:
        """Make a new workspace what a lost one was; nobody is told, since nothing is different.

        Args:
            changes: of the lost one

        Raises:
            OSError: they cannot be written
            SandboxLost: this one is lost as well
        """
        apply_changes(self._session, self._snapshot, changes)
        for path, state in changes.items():
            self._programs.written(path, _content(state))

    def _state(self, path: str, touched: Sequence[str]) -> FileState | None:
        """What a patch finds at a path; one that leads through links is refused, but for links that it replaces.

        Args:
            path: as the patch names it
            touched: all that it names
        """
        name = self._named(path)
        directory = posixpath.dirname(name) or "."
        if name == path and any(above in touched and self._is_link(above) for above in patches.above_of(path)):
            return None
        if name != path or self.resolve(directory) != directory:
            raise ActionError(f"the patch touches {shown(path)}, which is not the plain path of a file")
        with self._refusals(name):
            entry = self._session.stat(name)
            if entry is None or entry.kind == "directory":
                return None
            readable = entry.kind == "link" or (entry.kind == "file" and entry.size <= FILE_LIMIT)
            state = read_state(self._session, entry) if readable else None
        if state is None:
            raise ActionError(f"the patch touches {shown(path)}, which cannot be read")
        return state

    def _is_link(self, path: str) -> bool:
        with self._refusals(path):
            entry = self._session.stat(path)
        return entry is not None and entry.kind == "link"

    def _must_have_place(self, path: str, gone: set[str]) -> None:
        """Refuse to write a path when something that stays is in its place or in that of a directory above it.

        Args:
            path: what is to be written
            gone: files that are removed before
        """
        with self._refusals(path):
            for above in patches.above_of(path):
                entry = self._session.stat(above)
                if entry is not None and entry.kind != "directory":
                    if above not in gone:
                        raise ActionError(f"the patch writes {shown(path)}, but {shown(above)} is a file")
                    return
            entry = self._session.stat(path)
            below = self._session.walk(path) if entry is not None and entry.kind == "directory" else ()
            for one in below:
                if one.kind != "directory" and one.path not in gone and not self._rules.ignored(one.path):
                    raise ActionError(f"the patch writes {shown(path)}, but that is a directory with {shown(one.path)}")

    def _set(self, path: str, state: FileState | None) -> None:
        """Make a path what it is to be, whatever is there now."""
        with self._refusals(path):
            write_state(self._session, path, state)


def _content(state: FileState | None) -> bytes | None:
    """The content of a file; None of what is none."""
    return state.data if state is not None and state.kind == "file" else None
