"""Read-only files: what of them is not as it must be, and how it is put back, whatever a program did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox.answers import Entry
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import above_of
from debug_gym_core.workspace.changes import write_state
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import FileState, Snapshot, archive_of


class ReadOnlyFiles:
    """The read-only entries of one live workspace, and the directories above them.

    Content, kind and permissions are those of the beginning; what is new and matches a read-only pattern goes. Caches
    (ignored, not in the pristine repository) may lie anywhere.
    """

    def __init__(self, session: Session, snapshot: Snapshot, rules: Rules) -> None:
        """Find them.

        Args:
            session: where the workspace is
            snapshot: the pristine repository
            rules: what is read-only
        """
        self._session = session
        self._snapshot = snapshot
        self._rules = rules
        self.paths = frozenset(
            path for path, member in snapshot.members.items() if rules.readonly(path, member.kind == "directory")
        )
        self._above = frozenset(above for path in self.paths for above in above_of(path)) - self.paths
        self._modes: dict[str, int] = {}

    @property
    def files(self) -> list[str]:
        """The files among them."""
        members = self._snapshot.members
        return [path for path in members if path in self.paths and members[path].kind == "file"]

    def remember(self, baseline: Mapping[str, Entry]) -> None:
        """Take the permissions as they are before anything of an agent's ran for those that must be."""
        self._modes = {path: baseline[path].mode for path in (*self.paths, *self._above) if path in baseline}

    def broken(self, moved: Mapping[str, Entry | None]) -> list[str]:
        """Which paths are not as they must be.

        Args:
            moved: what was touched, with what is there now

        Raises:
            SandboxError: the sandbox failed
        """
        return [path for path, entry in moved.items() if not self._right(path, entry)]

    def _right(self, path: str, entry: Entry | None) -> bool:
        if path in self._above:
            return entry is None or entry.kind != "directory" or entry.mode == self._modes.get(path, entry.mode)
        if path not in self.paths:
            is_dir = entry is not None and entry.kind == "directory"
            return entry is None or self._rules.ignored(path, is_dir) or not self._rules.readonly(path, is_dir)
        member = self._snapshot.members[path]
        if entry is None or entry.kind != member.kind:
            return False
        if member.kind == "link":
            return entry.target == member.target
        if entry.mode != self._modes.get(path, member.mode):
            return False
        if member.kind == "directory":
            return True
        try:
            return entry.size == member.size and self._same(path, member.size)
        except OSError:
            return False

    def _same(self, path: str, size: int) -> bool:
        # A program may make the file grow meanwhile: no more is read than shows it.
        return self._session.read(path, 0, size + 1) == self._snapshot.read(path)

    def put_back(self, paths: Iterable[str]) -> dict[str, str]:
        """Make paths what they must be.

        Args:
            paths: as `broken` gives them

        Returns:
            which could not be, and why

        Raises:
            SandboxLost: the sandbox is gone
        """
        members = self._snapshot.members
        failed: dict[str, str] = {}

        def order(path: str) -> tuple[int, list[str]]:
            """First what must go, then directories, outermost first, then what is in them."""
            if path not in members:
                return 0, path.split("/")
            return (1 if members[path].kind == "directory" else 2), path.split("/")

        removed = ""
        for path in sorted(paths, key=order):
            if removed and path not in members and path.startswith(f"{removed}/"):
                continue  # went with it
            try:
                self._put_back(path)
                removed = path if path not in members else ""
            except (ConnectionError, TimeoutError, SandboxLost):
                raise
            except (OSError, SandboxError) as error:  # this one's: the others are put back all the same
                failed[path] = getattr(error, "strerror", None) or str(error)
        return failed

    def _put_back(self, path: str) -> None:
        member = self._snapshot.members.get(path)
        for above in above_of(path) if member is not None else ():
            found = self._session.stat(above)
            if found is not None and found.kind != "directory":
                self._session.remove(above)
        entry = self._session.stat(path)
        if self._right(path, entry):
            return
        if member is None:
            self._session.remove(path)
            return
        mode = self._modes.get(path, member.mode)
        if member.kind == "directory":
            if entry is not None and entry.kind != "directory":
                self._session.remove(path)
            self._session.put(archive_of({}, {path: mode}))
        else:
            write_state(self._session, path, FileState(self._snapshot.read(path), mode, member.kind))
