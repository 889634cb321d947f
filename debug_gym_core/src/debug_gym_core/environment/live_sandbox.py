"""The sandbox that an episode happens in: opened, followed, and replaced when it is lost."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from debug_gym_core.environment.image_repositories import repository_of, tests_of_image
from debug_gym_core.environment.recovery import FORGIVEN_AFTER, REPLACEMENTS, TRUSTED_AFTER, Kept, insist, with_files
from debug_gym_core.environment.sandbox_factory import SandboxFactory
from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost, UsageError
from debug_gym_core.workspace.changes import Changes, patch_of
from debug_gym_core.workspace.files import Workspace
from debug_gym_core.workspace.pristine import Pristine

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.workspace.following import Refreshed
    from debug_gym_core.workspace.program_changes import Unknown

log = logging.getLogger("debug_gym")


class LiveSandbox:
    """The live sandbox of one environment with the files in it, another one after each reset.

    Attributes:
        backend: what it is made by
        seed: of the episode; sets PYTHONHASHSEED
        failure: why it is gone for good, else None
        kept: the agent's changes as the host knows them
        distrusted: steps that have yet to work until a sandbox whose guest was lost is as good as any
    """

    def __init__(
        self,
        task: Task,
        backend: type[Terminal],
        settings: dict[str, Any],
        *,
        python: str | None,
        run: str,
        tell: Callable[[str], None],
        opened: Callable[[Session], None],
        changed: Callable[[str, bytes | Unknown | None, bytes | None], None],
        free: Callable[[], None],
    ) -> None:
        """Start nothing yet.

        Args:
            task: what is worked on
            backend: what makes sandboxes
            settings: its settings
            python: `env.python`
            run: id of the run, for labels
            tell: is told in a line what takes long
            opened: is told of each sandbox that is taken into use
            changed: is told what tools do to files, see `Workspace`
            free: has the tools give back what they hold of a sandbox that ends
        """
        self.backend = backend
        self.seed = 0
        self._task, self._settings, self._python, self._run = task, settings, python, run
        self._tell, self._opened, self._changed, self._free = tell, opened, changed, free
        self._pristine: Pristine | None = None
        self._factory: SandboxFactory | None = None
        self._session: Session | None = None
        self._workspace: Workspace | None = None
        self._forget()

    def _forget(self) -> None:
        """Know nothing of an earlier episode."""
        self.failure: SandboxError | None = None
        self.kept = Kept()
        self.distrusted = 0
        self._replaced = 0
        self._worked = 0

    @property
    def live(self) -> bool:
        """Whether there is one, be it a lost one."""
        return self._session is not None

    @property
    def session(self) -> Session:
        """The sandbox.

        Raises:
            UsageError: there is none yet
        """
        if self._session is None:
            raise _not_live()
        return self._session

    @property
    def workspace(self) -> Workspace:
        """The files in it.

        Raises:
            UsageError: there is none yet
        """
        if self._workspace is None:
            raise _not_live()
        return self._workspace

    @property
    def factory(self) -> SandboxFactory:
        """What makes further ones of the same task.

        Raises:
            UsageError: there was none yet
        """
        if self._factory is None:
            raise _not_live()
        return self._factory

    @property
    def notes(self) -> tuple[str, ...]:
        """What it could not do on this machine."""
        return self._factory.notes if self._factory is not None else ()

    @property
    def commands(self) -> int:
        """How many commands were started in it."""
        return self._session.commands if self._session is not None else 0

    def open(self) -> Session:
        """Start one with the pristine repository, which is copied the first time; an earlier one was ended.

        Raises:
            RequirementError: something is missing on this machine
            TaskError: a patch of the task does not fit its repository
            SandboxError: it did not start
        """
        self._forget()
        if self._pristine is None:
            source = repository_of(self._task, self.backend, self._settings, self._tell)
            tests = tests_of_image(self._task, self.backend, self._settings, self._tell)
            self._pristine = Pristine.take(self._task, source, tests)
        if self._factory is None:
            self._factory = SandboxFactory(
                self.backend,
                self._settings,
                self._task,
                self._pristine.agent,
                graded=self._pristine.graded,
                python=self._python,
                run=self._run,
                tell=self._tell,
            )
        session = self._factory.open(self.seed)
        self._attach(session)
        return session

    def _attach(self, session: Session) -> Workspace:
        """Take a new sandbox into use."""
        factory = self.factory
        self._session = session
        self._opened(session)
        self._workspace = Workspace(session, factory.snapshot, factory.rules, self._changed)
        return self._workspace

    def refresh(self, first: Collection[str]) -> Refreshed | None:
        """Find what programs did to the files, see `Workspace.refresh`; None: there are none to look at.

        Raises:
            SandboxLost: it, or the guest in it, is gone
            SandboxError: the files cannot be compared
        """
        if self._workspace is None or self.failure is not None:
            return None
        return self._workspace.refresh(first)

    def keep_files(self) -> None:
        """Have the host know the files as they are, should it be lost.

        Raises:
            SandboxLost: it is
        """
        if self._workspace is None:
            return
        try:
            self.kept.update(self._workspace)
        except SandboxLost:
            raise
        except SandboxError as error:
            log.debug("changes not known", exc_info=error)

    def changes(self) -> Changes:
        """What the agent changed: as it is, or as it was after the last step when the sandbox is lost.

        Raises:
            UsageError: there is none yet
            SandboxError: it is lost, or cannot be compared, and nothing is known of it
        """
        if self._workspace is None and self.failure is not None and self.kept.changes is not None:
            return self.kept.changes
        kept = None if self.workspace.touched else self.kept.changes
        try:
            return self.workspace.changes()
        except SandboxError as error:
            if self._reconnects():
                return self.workspace.changes()
            if kept is None:
                raise
            log.warning("the sandbox was lost after the last step, whose files are known: %s", error)
            return kept

    def patch(self) -> bytes:
        """The same as a diff for `git apply`."""
        changes = self.changes()
        return patch_of(self.factory.snapshot, changes)

    def replace(self, error: SandboxLost, changes: Changes | None) -> bool:
        """Put another sandbox, with the files as they were before a step, in the place of one that is gone.

        One that stands keeps its files, and only its guest is started again; not twice within a few steps, since it may
        be one whose memory is full of files: its guest, or only what the guest runs, is ended again and again.

        Args:
            error: by which it was lost
            changes: of the agent, before the step; None: not known

        Returns:
            whether there is another one
        """
        factory = self._factory
        if self.failure is not None or factory is None or self._session is None or changes is None:
            return False
        if not self.distrusted and self._session.terminal.alive() and self._reconnects():
            return False
        if self._replaced >= REPLACEMENTS:
            return False
        self._replaced += 1
        self._worked = 0
        log.warning("the sandbox was lost, another one takes its place: %s", error)
        self.end_quietly()
        try:
            insist(lambda: with_files(lambda: factory.open(self.seed), self._attach, changes), factory.wait)
        except (SandboxError, RequirementError) as again:
            log.warning("there is no other sandbox: %s", again)
            self._session = self._workspace = None
            self.failure = SandboxLost(f"{error}; there is no other: {again}")
            return False
        self.kept.changes = changes
        self.distrusted = 0
        return True

    def stands(self, error: SandboxLost) -> bool:
        """Whether one that is not replaced can be gone on with, by another guest; else it has failed.

        Args:
            error: by which it was lost
        """
        if self.failure is None and self._session is not None and self._reconnects():
            self.distrusted = TRUSTED_AFTER
            return True
        self.failure = self.failure or error
        return False

    def worked(self) -> None:
        """A step has."""
        self.distrusted = max(0, self.distrusted - 1)
        self._worked += 1
        if self._worked == FORGIVEN_AFTER:
            self._replaced, self._worked = max(0, self._replaced - 1), 0

    def _reconnects(self) -> bool:
        """Whether the guest answers, or another one can be started over the same files."""
        try:
            self.session.guest()
        except SandboxError as error:
            log.debug("no new guest", exc_info=error)
            return False
        return True

    def end(self) -> None:
        """End it, if there is one."""
        session, self._session, self._workspace = self._session, None, None
        self._free()
        if session is not None:
            session.close()

    def end_quietly(self) -> None:
        """End what may be left of one that was lost, or that nobody can use."""
        try:
            self.end()
        except SandboxError as error:  # its engine does not answer; its lease ends
            log.warning("a sandbox was not removed: %s", error)

    def close(self) -> None:
        """End it and remove everything of it; may be called twice."""
        try:
            with contextlib.ExitStack() as stack:  # what fails keeps nothing else from being closed
                if self._pristine is not None:
                    stack.callback(self._pristine.close)
                if self._factory is not None:
                    stack.callback(self._factory.close)
                self.end()
        finally:
            self._pristine = self._factory = None


def _not_live() -> UsageError:
    return UsageError("the environment is not live; call reset() first")
