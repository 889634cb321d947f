"""The files of the task as tools see them: in the sandbox, under the rules, with the patch of what changed."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from debug_gym_core.errors import ActionError
from debug_gym_core.sandbox.answers import FileLines
from debug_gym_core.sandbox.grep import Found, Query
from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace.changes import FILE_LIMIT, Changes, apply_changes, patch_of
from debug_gym_core.workspace.following import Following, Refreshed
from debug_gym_core.workspace.lines import decode, encode, shown
from debug_gym_core.workspace.listing import WorkspaceEntry, listed
from debug_gym_core.workspace.patching import Patching
from debug_gym_core.workspace.paths import Paths
from debug_gym_core.workspace.program_changes import KNOWN_LIMIT, TEXT_LIMIT, UNKNOWN, Unknown
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import Snapshot


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
        self._following = Following(session, snapshot, rules, on_change or (lambda path, old, new: None))
        self._paths = Paths(session, rules, self._following.files)
        self._ignored: list[str] | None = None  # once it was asked for: of the pristine repository, it stays the same

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
        return self._paths.locate(path)[0]

    def is_readonly(self, path: str) -> bool:
        """Whether a file may be shown but not changed.

        Args:
            path: as `resolve` gives it
        """
        return self._rules.readonly(path)

    def must_be_editable(self, path: str) -> None:
        """Refuse to change what is read-only; who changes a file by this workspace need not ask.

        Args:
            path: as `resolve` gives it

        Raises:
            ActionError: it is
        """
        self._paths.must_be_editable(path)

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

    # Reading

    def read_bytes(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            ActionError: it leads outside, is ignored, is not there, or is no file; or has more bytes than go into a
                patch (64 MiB), which `read_lines` reads in parts
        """
        data = self._read(path, FILE_LIMIT + 1)  # programs may make files that fill the host's memory
        if len(data) > FILE_LIMIT:
            raise ActionError(f"{shown(path)} has more than {FILE_LIMIT} bytes; read_lines reads parts of it")
        return data

    def _read(self, path: str, limit: int) -> bytes:
        name = self._paths.named(path)
        with self._paths.refusals(name):
            return self._session.read(self._paths.real(name), 0, limit)

    def read_existing(self, path: str, limit: int) -> bytes | None:
        """The content of a file that is to be edited; None when there is nothing yet.

        Args:
            path: of the file
            limit: bytes that it may have

        Raises:
            ActionError: it leads outside, is ignored, is no file, or is too large
        """
        real, entry = self._paths.locate(path)
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
        name = self._paths.named(path)
        with self._paths.refusals(name):
            found = self._session.lines(name, start, count, limit)
        return self._paths.checked(name, found.real), found

    def list(self, path: str = ".", depth: int | None = None) -> list[WorkspaceEntry]:
        """What is below a directory, ignored entries left out, directories before what is in them; or a file itself.

        Args:
            path: of the directory, or of a file: then its entry is the only one; with a `/` at its end, of a directory
            depth: how many levels; None: all

        Raises:
            ActionError: it leads outside, is ignored, is not there, or is a file though a `/` is at its end
        """
        real, entry = self._paths.locate(path)
        if entry is None:
            raise ActionError(f"there is no directory {shown(real)}")
        if entry.kind != "directory":
            if path.endswith("/"):
                raise ActionError(f"{shown(real)} is a file, not a directory")
            return list(listed([replace(entry, path=real)], self._rules))
        with self._paths.refusals(real):
            return list(listed(self._session.walk(real, depth), self._rules))

    def grep(self, query: Query, path: str = ".") -> Found:
        """Search the files below a directory, or one file, ignored ones left out.

        Args:
            query: what to look for
            path: where; a file that is named so is searched whatever the query's glob says

        Raises:
            ActionError: the path leads outside, is ignored or not there; the pattern is invalid (`InvalidPattern`)
        """
        real = self.resolve(path)
        with self._paths.refusals(real):
            return self._session.grep(real, query, self._rules.ignore_patterns())

    # Changing

    def write_bytes(self, path: str, data: bytes) -> None:
        """Give a file a content; it keeps its permissions, a new one and its directories are made.

        Raises:
            ActionError: it leads outside, is ignored, read-only, or no file; or the sandbox has no room
            TypeError: it is not given bytes
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"write_bytes takes bytes, not {type(data).__name__}; write_text takes text")
        data = bytes(data)  # what is remembered of it must not change with the caller's
        name = self._paths.named(path)
        with self._paths.refusals(name):
            real = self._paths.real(name)
            self._paths.must_be_editable(real)
            old: bytes | Unknown | None
            try:
                old = self._followed(real, max(TEXT_LIMIT, len(data)))
            except FileNotFoundError:
                old = None
            if old == data:
                return
            self._following.touch((real,))
            self._session.write(real, data)
        self._following.changed(real, old, data)

    def write_text(self, path: str, text: str) -> None:
        """Give a file a content, the reverse of `read_text`.

        Raises:
            ActionError: as `write_bytes`
            TypeError: it is not given text
        """
        if not isinstance(text, str):
            raise TypeError(f"write_text takes text, not {type(text).__name__}; write_bytes takes bytes")
        self.write_bytes(path, encode(text))

    def remove(self, path: str) -> None:
        """Remove a file, a link (not what it points to) or a directory with all that is in it.

        Raises:
            ActionError: it leads outside, is not there, or it or something in it is ignored or read-only
        """
        name = self._paths.named(path)
        if name == ".":
            raise ActionError("the workspace itself cannot be removed")
        directory, base = posixpath.split(name)
        real = posixpath.normpath(posixpath.join(self.resolve(directory or "."), base))
        with self._paths.refusals(name):
            entry = self._session.stat(real)
            if entry is None:
                raise FileNotFoundError
            doomed = [entry, *(self._session.walk(real) if entry.kind == "directory" else ())]
            for one in doomed:
                if self._rules.ignored(one.path, one.kind == "directory"):
                    raise ActionError(f"{shown(one.path)} is ignored in this task: it cannot be removed")
                self._paths.must_be_editable(one.path, one.kind == "directory")
            old: dict[str, bytes | Unknown] = {}
            room = KNOWN_LIMIT
            for one in doomed:
                if one.kind == "file":
                    content = old[one.path] = self._followed(one.path, min(TEXT_LIMIT, room))
                    room -= len(content) if content is not UNKNOWN else 0
            self._following.touch(one.path for one in doomed)
            self._session.remove(real)
        for gone, data in old.items():
            self._following.changed(gone, data, None)

    def _followed(self, real: str, limit: int) -> bytes | Unknown:
        """The content of a file that is about to be changed; no more is read than `limit` bytes."""
        data = self._session.read(real, 0, limit + 1)
        return data if len(data) <= limit else UNKNOWN

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
        return self._following.refresh(first)

    def changes(self) -> Changes:
        """What is different from the pristine repository; ignored files and caches are not looked at."""
        return self._following.changes()

    @property
    def touched(self) -> bool:
        """Whether something was changed, as far as is known, since `settled`."""
        return self._following.touched

    def settled(self, before: Changes | None) -> Changes:
        """What `changes` returns, at the cost of what was touched since this was last asked.

        Args:
            before: what it returned then; None: it is not known any more

        Raises:
            SandboxError: the workspace cannot be walked, or the sandbox failed; the next call tells all the same
        """
        return self._following.settled(before)

    def patch(self) -> bytes:
        """All changes as a patch for `git apply`: edited, new, deleted, renamed and binary files, links, modes.

        Raises:
            RequirementError: git is not installed
        """
        return patch_of(self._snapshot, self.changes())

    def apply(self, patch: bytes, *, editable_only: bool = False) -> Sequence[str]:
        """Apply a patch to the workspace, all of it or nothing.

        Args:
            patch: as `git diff` or `diff -u` writes it; an empty one does nothing
            editable_only: leave what it makes of read-only files, instead of refusing it

        Returns:
            the read-only files that were left

        Raises:
            ActionError: it is no patch, does not fit, or touches what is outside, ignored or read-only
            RequirementError: git is not installed
        """
        if not patch.strip():
            return ()
        patching = Patching(self._session, self._paths, self._rules, patch, editable_only=editable_only)
        self._following.touch(patching.after)
        patching.write()
        self._following.patched(patching.before, patching.after)
        return patching.left

    def restore(self, changes: Changes) -> None:
        """Make a new workspace what a lost one was; nobody is told, since nothing is different.

        Args:
            changes: of the lost one

        Raises:
            OSError: they cannot be written
            SandboxLost: this one is lost as well
        """
        apply_changes(self._session, self._snapshot, changes)
        self._following.restored(changes)
