"""Sandboxes for one task: how a fresh one with the pristine repository in it is made."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core import interpreter as interpreters
from debug_gym_core.entrypoint import Entrypoint
from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.session import Session
from debug_gym_core.terminal import SandboxSpec, Terminal

if TYPE_CHECKING:
    from debug_gym_core.snapshot import Snapshot
    from debug_gym_core.task import Task

SETUP_TIMEOUT = 1800.0


class SandboxFactory:
    """Makes sandboxes that are all alike: the same task, terminal, interpreter and seed.

    Attributes:
        notes: what the terminal could not do on this machine, from the last sandbox made
    """

    def __init__(
        self,
        terminal: type[Terminal],
        settings: dict[str, Any],
        task: Task,
        snapshot: Snapshot,
        *,
        python: str | None = None,
        run: str = "interactive",
    ) -> None:
        """Find the interpreter; start nothing.

        Args:
            terminal: the backend
            settings: its settings
            task: what is worked on
            snapshot: the pristine repository
            python: `env.python`; None finds the repository's own
            run: id of the run, for labels

        Raises:
            RequirementError: the interpreter lacks what the task needs
            UsageError: `python` or a setting is wrong
        """
        self.terminal = terminal
        self.settings = settings
        self.task = task
        self.snapshot = snapshot
        self.run = run
        self.notes: tuple[str, ...] = ()
        self.python = python or task.python
        self.requires = _requirements(task)
        self._live: weakref.WeakSet[Session] = weakref.WeakSet()
        self._closed = False
        self._lock = threading.Lock()
        self.interpreter = None
        if not terminal.runs_images:
            self.interpreter = interpreters.find(task.repository, self.python)
            interpreters.require(self.interpreter, self.requires)

    @contextlib.contextmanager
    def fresh(self, seed: int | None = None) -> Iterator[Session]:
        """A sandbox that ends with the `with` block."""
        session = self.open(seed)
        try:
            yield session
        finally:
            session.close()

    def open(self, seed: int | None = None) -> Session:
        """Start a sandbox and put the pristine repository in it.

        Args:
            seed: value of PYTHONHASHSEED; None is 0

        Raises:
            RequirementError: something is missing, here or in the image
            SandboxError: the sandbox did not start
        """
        terminal = self.terminal(**self.settings)
        spec = SandboxSpec(
            run=self.run,
            interpreter=self.interpreter,
            python=self.python,
            source=self.task.repository,
            hidden=_own_packages(),
            environment={"PYTHONHASHSEED": str((seed or 0) % 2**32)},
        )
        session = Session.start(terminal, spec)
        try:
            with self._lock:
                self._live.add(session)
                if self._closed:
                    raise SandboxLost("the environment was closed while its sandbox was made")
            session.put(self.snapshot.archive())
            for command in terminal.settings.setup:
                result = session.run(command, timeout=SETUP_TIMEOUT)
                if result.exit_status != 0:
                    raise RequirementError(
                        f"terminal.setup: {command!r} ended with status {result.exit_status}: {result.output[-500:]}"
                    )
            if terminal.runs_images:
                self._require_in_image(session, terminal)
        except BaseException:
            session.close()
            raise
        self.notes = tuple(terminal.notes())
        return session

    def close(self) -> None:
        """End all sandboxes that are still there; who waits for something in one gets SandboxLost."""
        with self._lock:
            self._closed = True
            live = list(self._live)
        for session in live:
            session.close()

    def _require_in_image(self, session: Session, terminal: Terminal) -> None:
        """Name what the image's Python lacks."""
        if not self.requires:
            return
        code = (
            "import sys\ntry: from importlib.metadata import version\n"
            "except ImportError: from importlib_metadata import version\n"
            "for name in sys.argv[1:]:\n try: version(name)\n except Exception: print(name)\n"
        )
        result = session.run([session.python, "-c", code, *self.requires], timeout=60)
        if result.exit_status != 0:
            raise SandboxError(f"the image's Python {session.python} does not work: {result.output[-500:]}")
        missing = result.output.split()
        if missing:
            image = terminal.settings.image or self.task.image
            raise RequirementError(
                f"{session.python} of image {image} has no {', '.join(missing)}; use an image that has, name another"
                f" Python of it (-p env.python=...), or install it there: -p 'terminal.setup=[pip install"
                f" {' '.join(missing)}]' with network"
            )


def _requirements(task: Task) -> tuple[str, ...]:
    """Distributions that the interpreter must have."""
    entrypoint = Entrypoint.parse(task.entrypoint)
    needs = ["pytest"] if entrypoint.module == "pytest" else []
    return tuple(dict.fromkeys([*needs, *task.requires]))


def _own_packages() -> tuple[Path, ...]:
    """Where our own packages and other plugins lie: they hold gold patches, and are nobody's business in a sandbox."""
    from debug_gym_core.plugins import package_directories

    return package_directories()
