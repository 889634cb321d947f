"""What happens to the files of an environment, told to its tools; and which steps are rewrites by it."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.names import some
from debug_gym_core.tools.observation import Observation
from debug_gym_core.workspace.lines import shown
from debug_gym_core.workspace.program_changes import Unknown, edits_of

if TYPE_CHECKING:
    from debug_gym_core.environment.live_sandbox import LiveSandbox
    from debug_gym_core.tools.environment import Environment
    from debug_gym_core.tools.queue import EventQueue

CHANGES_TOLD = 50
"""Files that a program changed of which the tools are told after one step, those with breakpoints first."""

log = logging.getLogger("debug_gym")


class FileEvents:
    """Makes events of what tools and programs do to the files.

    Attributes:
        tests_ran: whether the tests ran in the current step, which is no rewrite by what they write
    """

    def __init__(self, env: Environment, events: EventQueue) -> None:
        """Know of nothing yet.

        Args:
            env: whose files they are; its `rewritten` is set
            events: where the events wait
        """
        self._env = env
        self._events = events
        self.tests_ran = False

    def changed(self, path: str, before: bytes | Unknown | None, after: bytes | None) -> None:
        """A tool changed a file.

        Args:
            path: of the file
            before: its old content; None: there was no file
            after: its new content; None: there is none any more
        """
        edits = edits_of(before, after)
        if edits or before is None or after is None:
            self._env.rewritten = True
            self._events.emit("on_file_changed", path=path, edits=edits)

    def look(self, sandbox: LiveSandbox) -> list[Observation]:
        """Look what programs did to the files: events tell of it.

        Returns:
            what could not be let be

        Raises:
            SandboxLost: the sandbox, or the guest in it, is gone
        """
        try:
            found = sandbox.refresh({one.file for one in self._env.breakpoints})
        except SandboxLost:
            raise
        except SandboxError as error:  # what was not seen may be seen next time
            return [self.unseen(error)]
        if found is None:
            return []
        for change in found.changes[:CHANGES_TOLD]:
            self._env.rewritten = self._env.rewritten or (change.own and not self.tests_ran)
            self._events.emit("on_file_changed", path=change.path, edits=change.edits)
        said = []
        if found.restored:
            said.append(_list("Read-only files were changed and are put back", found.restored, "restored"))
        if found.failed:
            self._env.rewritten = True
            said.append(_list("Read-only files were changed and cannot be put back", found.failed, "failed"))
        return said

    def unseen(self, error: SandboxError) -> Observation:
        """Nobody knows what a step did to the files: that is said, and is not for nothing."""
        log.debug("changes not seen", exc_info=error)
        self._env.rewritten = True
        why = " ".join(str(error).split())[:300]
        text = f"The files could not be compared, so that this step counts as a rewrite: {why}"
        return Observation("env", text, error=True)


def _list(what: str, paths: Collection[str], key: str) -> Observation:
    """An observation that names paths, the first ones at least."""
    named = sorted(paths)
    return Observation("env", f"{what}: {some(list(map(shown, named)))}", {key: named})
