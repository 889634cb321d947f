"""What is done when a sandbox is lost: another one with the same files takes its place."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from debug_gym_core.errors import GradingError, RequirementError, SandboxError, SandboxLost
from debug_gym_core.sandbox.session import Session
from debug_gym_core.workspace.changes import Changes
from debug_gym_core.workspace.files import Workspace

Made = TypeVar("Made")

PAUSES = (0.0, 2.0, 8.0)
"""Seconds before each further attempt to get a sandbox: an engine that is started again is back by then."""

REPLACEMENTS = 3
"""Sandboxes of one episode that are replaced; one that loses more has no infrastructure to speak of."""

FORGIVEN_AFTER = 20
"""Steps that work until one that was replaced does not count any more: an episode may be long."""

TRUSTED_AFTER = 5
"""Steps that work until a sandbox that lost its guest may lose another one and stay."""

log = logging.getLogger("debug_gym")


class Kept:
    """The agent's changes as the host knows them since the last step, whatever becomes of the sandbox."""

    def __init__(self) -> None:
        """Know an unchanged workspace."""
        self.changes: Changes | None = Changes({})

    def update(self, workspace: Workspace) -> None:
        """Read what changed since the last call; costs nothing when nothing did.

        Raises:
            SandboxLost: the sandbox is gone; what was known before is still known
            SandboxError: the files cannot be read; until they can, nothing is known
        """
        if not workspace.touched:
            return
        try:
            self.changes = workspace.settled(self.changes)
        except SandboxLost:
            raise
        except SandboxError:
            self.changes = None
            raise


def with_files(open_session: Callable[[], Session], attach: Callable[[Session], Workspace], changes: Changes) -> None:
    """Start another sandbox and make its files what those of a lost one were.

    Args:
        open_session: starts one with the pristine repository in it
        attach: takes it into use
        changes: of the agent

    Raises:
        SandboxError: it did not start, or was lost as well
        RequirementError: something that it needs is missing now
    """
    session = open_session()
    try:
        attach(session).restore(changes)
    except OSError as error:
        session.close()
        raise SandboxError(f"the files cannot be written: {error}") from error
    except BaseException:
        session.close()
        raise


def insist(what: Callable[[], Made], wait: Callable[[float], bool]) -> Made:
    """Do what needs a sandbox of its own, again when that is lost or cannot be had.

    Args:
        what: starts a sandbox and does something in it
        wait: waits for so many seconds; False when there is nothing to wait for any more

    Raises:
        SandboxError: the last failure; a GradingError at once
        RequirementError: likewise
    """
    for pause in PAUSES:
        try:
            return what()
        except GradingError:
            raise
        except (SandboxError, RequirementError) as error:
            if not wait(pause):
                raise
            log.warning("a sandbox failed; another one is tried: %s", error)
    return what()
