"""What happens to the files of a live workspace, whoever does it: followed, told, compared with the pristine ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from debug_gym_core.workspace.changes import Comparison
from debug_gym_core.workspace.program_changes import UNKNOWN, FileChange, ProgramChanges
from debug_gym_core.workspace.restoring import ReadOnlyFiles

if TYPE_CHECKING:
    from debug_gym_core.sandbox.answers import Entry
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.workspace.changes import Changes
    from debug_gym_core.workspace.program_changes import Unknown
    from debug_gym_core.workspace.rules import Rules
    from debug_gym_core.workspace.snapshot import FileState, Snapshot

RESTORES = 3
"""How often read-only files are put back after one step, should a program that runs change them again."""

ONE_BY_ONE = 200
"""Files that are asked for one by one; where more were touched, a look at all of them is quicker."""


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


class Following:
    """Follows the files of one live workspace, from when it was new."""

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        rules: Rules,
        tell: Callable[[str, bytes | Unknown | None, bytes | None], None],
    ) -> None:
        """Take the files as they are now as unchanged.

        Args:
            session: where they are; no agent did anything there yet
            snapshot: the pristine repository
            rules: what is ignored and read-only
            tell: is told of what tools change: path, old and new content
        """
        self._session = session
        self._snapshot = snapshot
        self._rules = rules
        self._tell = tell
        self._readonly = ReadOnlyFiles(session, snapshot, rules)
        self._comparison = Comparison(session, snapshot, closely=self._readonly.files)
        self._readonly.remember(self._comparison.baseline)
        self._programs = ProgramChanges(session, snapshot, rules, self._comparison.baseline)
        self._commands_seen = session.commands
        self._was_busy = session.busy
        self._touched: set[str] = set()  # since `settled`
        self._moved: dict[str, Entry | None] = {}  # with `_restored` what a refresh that failed has found
        self._restored: set[str] = set()

    def files(self) -> list[str]:
        """The files that there are as far as is known, without a look at them: see `ProgramChanges.files`."""
        return self._programs.files()

    # What tools do

    def touch(self, paths: Iterable[str]) -> None:
        """A tool is about to change what is at some paths."""
        self._touched.update(paths)

    def changed(self, path: str, old: bytes | Unknown | None, new: bytes | None) -> None:
        """A tool changed a file: that is told, and first what a program did since the last look at the file.

        Args:
            path: of the file
            old: its content before; None: there was no file
            new: its content now; None: there is none
        """
        known = self._programs.before(path)
        if known is not UNKNOWN and old is not UNKNOWN and known != old:
            self._tell(path, known, old)
        self._programs.written(path, new)
        self._tell(path, old, new)

    def patched(self, before: Mapping[str, FileState | None], after: Mapping[str, FileState | None]) -> None:
        """A tool applied a patch.

        Args:
            before: what was at each path
            after: what is there now
        """
        for path, new in after.items():
            self.changed(path, _content(before[path]), _content(new))

    def restored(self, changes: Changes) -> None:
        """The files were made what they were in another sandbox: nobody is told."""
        for path, state in changes.items():
            self._programs.written(path, _content(state))

    # What programs do

    def refresh(self, first: Collection[str] = ()) -> Refreshed:
        """See `Workspace.refresh`."""
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

    # What is different

    def changes(self) -> Changes:
        """See `Workspace.changes`."""
        return self._comparison.run(self._is_wanted)

    def _is_wanted(self, path: str) -> bool:
        return not self._rules.ignored(path)

    @property
    def touched(self) -> bool:
        """Whether something was changed, as far as is known, since `settled`."""
        return bool(self._touched)

    def settled(self, before: Changes | None) -> Changes:
        """See `Workspace.settled`."""
        found = None
        if before is not None and len(self._touched) <= ONE_BY_ONE:
            found = self._comparison.update(before, sorted(self._touched), self._is_wanted)
        if found is None:
            found = self.changes()
        self._touched.clear()
        return found


def _content(state: FileState | None) -> bytes | None:
    """The content of a file; None of what is none."""
    return state.data if state is not None and state.kind == "file" else None
