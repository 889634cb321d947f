"""Applies a patch to the files of a live workspace: all of it, or nothing."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core.errors import ActionError
from debug_gym_core.sandbox.terminal import above_of
from debug_gym_core.workspace import patch as patches
from debug_gym_core.workspace.changes import FILE_LIMIT, read_state, write_state
from debug_gym_core.workspace.lines import shown

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.workspace.paths import Paths
    from debug_gym_core.workspace.rules import Rules
    from debug_gym_core.workspace.snapshot import FileState


class Patching:
    """One patch, about to be applied to a live workspace.

    Attributes:
        before: what the patch found at each path that it names
        after: what it makes of it
        left: the read-only files of which it makes nothing
    """

    def __init__(
        self, session: Session, paths: Paths, rules: Rules, patch: bytes, *, editable_only: bool = False
    ) -> None:
        """Find out what a patch does; nothing is written yet.

        Args:
            session: where the files are
            paths: of the workspace
            rules: what is ignored
            patch: as `git diff` or `diff -u` writes it
            editable_only: leave read-only files as they are

        Raises:
            ActionError: it is no patch, does not fit, or touches what is outside, ignored or read-only
            RequirementError: git is not installed
        """
        self._session = session
        self._paths = paths
        self._rules = rules
        touched = patches.touched(patch)
        self.before = {path: self._state(path, touched) for path in touched}
        self.after = patches.apply(patch, self.before)
        self.left = [path for path in self.after if editable_only and rules.readonly(path)]
        for path in self.left:
            del self.before[path], self.after[path]
        gone = {path for path, state in self.after.items() if state is None}
        for path, new in self.after.items():
            paths.must_be_editable(path)
            if new is not None:
                self._must_have_place(path, gone)

    def write(self) -> None:
        """Make the files what the patch makes of them, or leave them what they were.

        Raises:
            ActionError: the sandbox refuses it, for want of room say
        """
        written = []
        try:
            for path in sorted(self.after, key=lambda path: self.after[path] is not None):
                written.append(path)
                with self._paths.refusals(path):
                    write_state(self._session, path, self.after[path])
        except ActionError:
            for path in reversed(written):
                # One that cannot be made what it was is no reason to leave the others.
                with contextlib.suppress(ActionError), self._paths.refusals(path):
                    write_state(self._session, path, self.before[path])
            raise

    def _state(self, path: str, touched: Sequence[str]) -> FileState | None:
        """What a patch finds at a path; one that leads through links is refused, but for links that it replaces.

        Args:
            path: as the patch names it
            touched: all that it names
        """
        name = self._paths.named(path)
        directory = posixpath.dirname(name) or "."
        if name == path and any(above in touched and self._is_link(above) for above in above_of(path)):
            return None
        if name != path or self._paths.locate(directory)[0] != directory:
            raise ActionError(f"the patch touches {shown(path)}, which is not the plain path of a file")
        with self._paths.refusals(name):
            entry = self._session.stat(name)
            if entry is None or entry.kind == "directory":
                return None
            readable = entry.kind == "link" or (entry.kind == "file" and entry.size <= FILE_LIMIT)
            state = read_state(self._session, entry) if readable else None
        if state is None:
            raise ActionError(f"the patch touches {shown(path)}, which cannot be read")
        return state

    def _is_link(self, path: str) -> bool:
        with self._paths.refusals(path):
            entry = self._session.stat(path)
        return entry is not None and entry.kind == "link"

    def _must_have_place(self, path: str, gone: set[str]) -> None:
        """Refuse to write a path when something that stays is in its place or in that of a directory above it.

        Args:
            path: what is to be written
            gone: files that are removed before
        """
        with self._paths.refusals(path):
            for above in above_of(path):
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
