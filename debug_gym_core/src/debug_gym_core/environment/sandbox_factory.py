"""Sandboxes for one task: how a fresh one with the pristine repository in it is made."""

from __future__ import annotations

import contextlib
import dataclasses
import posixpath
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.components.component import construct
from debug_gym_core.environment.setting_up import Build, Prepared, run_all
from debug_gym_core.errors import RequirementError, SandboxLost
from debug_gym_core.sandbox import images, own_bytecode, pythons, requirements, virtual_environment
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Protected, SandboxSpec, Terminal
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import MTIME

if TYPE_CHECKING:
    from debug_gym_core.tasks.task import Task
    from debug_gym_core.workspace.snapshot import Snapshot


HISTORY_TIMEOUT = 300.0
"""Seconds that git may take to keep all files of a repository."""

_HISTORY = "git init -q . && git add -A && git -c commit.gpgsign=false commit -q --no-verify --allow-empty -m pristine"


class SandboxFactory:
    """Makes sandboxes that are all alike: the same task, terminal, interpreter and seed.

    Attributes:
        rules: which files are ignored and which are read-only
        protected: what the terminal is asked to keep from being changed
        notes: virtual environments that were passed over; how the settings weaken the sandbox; what the terminal could
            not do on this machine, from the last sandbox made
    """

    def __init__(
        self,
        terminal: type[Terminal],
        settings: dict[str, Any],
        task: Task,
        snapshot: Snapshot,
        *,
        graded: Snapshot | None = None,
        python: str | None = None,
        run: str = "interactive",
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Find the interpreter; start nothing.

        Args:
            terminal: the backend
            settings: its settings
            task: what is worked on
            snapshot: the pristine repository
            graded: the pristine repository as it is graded; None: it is the same
            python: `env.python`; None finds the repository's own
            run: id of the run, for labels
            tell: is told in a line what takes long

        Raises:
            RequirementError: the interpreter lacks what the task needs, or has what it must not have
            UsageError: `python`, a setting or a pattern is wrong
        """
        self.terminal = terminal
        self.settings = settings
        self.task = task
        self.snapshot = snapshot
        self.graded = graded or snapshot
        self.run = run
        self.rules = Rules.of(snapshot, ignore=task.ignore, readonly=task.readonly)
        self.protected = _protected(snapshot, self.rules)
        self.notes: tuple[str, ...] = ()
        self._passed_over: tuple[str, ...] = ()
        self.python = python or task.python
        self.requires = _requirements(task)
        self._complete: set[str] = set()  # images that have what is required
        self._live: weakref.WeakSet[Session] = weakref.WeakSet()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._tell = tell
        self._setup: tuple[str, ...] = tuple(settings.get("setup") or ())
        self._prepared: Prepared | None = None
        self._preparing = threading.Lock()
        self.interpreter = None
        if not terminal.runs_images and task.repository is not None:
            self.interpreter = pythons.find(task.repository, self.python)
            if self.python is None:
                self._passed_over = tuple(
                    f"{text}: {self.interpreter.executable} is used instead (env.python names another)"
                    for text in pythons.passed_over(task.repository)
                )
            requirements.refuse(self.interpreter, task.conflicts)
            if not self._setup:  # else it may bring what is required
                requirements.require(self.interpreter, self.requires)
            own_bytecode.make(self.interpreter, () if self._setup else self.requires)

    @contextlib.contextmanager
    def fresh(self, seed: int | None = None) -> Iterator[Session]:
        """A sandbox for grading, that ends with the `with` block."""
        session = self.open(seed, graded=True)
        try:
            yield session
        finally:
            session.close()

    def open(self, seed: int | None = None, *, graded: bool = False) -> Session:
        """Start a sandbox and put the pristine repository in it.

        Args:
            seed: value of PYTHONHASHSEED; None is 0
            graded: whether it is for grading: it gets the repository as it is graded

        Raises:
            RequirementError: something is missing, here or in the image
            SandboxError: the sandbox did not start
        """
        prepared = self._prepare() if self._setup and self.terminal.keeps_setup else None
        terminal = construct(self.terminal, **self.settings)
        fields: dict[str, Any] = {"protects": bool(self.protected), "masked": () if graded else self.task.masked}
        if prepared is not None:
            fields |= {"image": prepared.kept.image or None, "interpreter": prepared.interpreter}
        session = self._start(terminal, seed, fields, self.graded if graded else self.snapshot)
        try:
            if prepared is not None:
                prepared.put(session)
            elif self._setup:
                run_all(session, self._setup)
                if terminal.interpreter is not None:
                    installed = virtual_environment.with_packages(terminal.interpreter)
                    session.spec = dataclasses.replace(session.spec, interpreter=installed)
            self._require(session, terminal)
            if self.task.git and not graded:
                make_history(session)
            if self.protected:
                terminal.protect(self.protected)
        except BaseException:
            session.close()
            raise
        lacks = session.guest()["notes"] if terminal.isolates else ()
        self.notes = (*self._passed_over, *terminal.settings.weakened(), *terminal.notes(), *map(str, lacks))
        return session

    def wait(self, seconds: float) -> bool:
        """Wait; returns False at once when there will be no further sandbox."""
        return not self._closed.wait(seconds)

    def _start(self, terminal: Terminal, seed: int | None, fields: Mapping[str, Any], snapshot: Snapshot) -> Session:
        """Start a sandbox with the pristine repository in it, which ends when this is closed.

        Args:
            terminal: not yet started
            seed: as for `open`
            fields: of its `SandboxSpec`, over those that are the same for all
            snapshot: the repository
        """
        common = {
            "run": self.run,
            "interpreter": self.interpreter,
            "python": self.python,
            "source": self.task.repository,
            "hidden": _own_packages(),
            "environment": {**self.task.environment, "PYTHONHASHSEED": str((seed or 0) % 2**32)},
        }
        session = Session.start(terminal, SandboxSpec(**{**common, **fields}))
        try:
            with self._lock:
                self._live.add(session)
                if self._closed.is_set():
                    raise SandboxLost("the environment was closed while its sandbox was made")
            session.put(snapshot.archive())
        except BaseException:
            session.close()
            raise
        return session

    def _prepare(self) -> Prepared:
        """What setting up made, for all sandboxes of this task; made now if it is not kept yet."""

        @contextlib.contextmanager
        def start(terminal: Terminal, fields: Mapping[str, Any]) -> Iterator[Session]:
            session = self._start(terminal, None, fields, self.snapshot)
            try:
                yield session
            finally:
                session.close()

        with self._preparing:
            if self._prepared is None:
                build = Build(
                    lambda: construct(self.terminal, **self.settings),
                    start,
                    self.snapshot,
                    interpreter=self.interpreter,
                    python=self.python,
                    about=self.task.id,
                    tell=self._tell,
                    given_up=self._closed.is_set,
                )
                prepared = build.prepare()
                with self._lock:
                    self._prepared = prepared
                    if self._closed.is_set():
                        prepared.use.end()
            return self._prepared

    def close(self) -> None:
        """End all sandboxes that are still there; who waits for something in one gets SandboxLost.

        Raises:
            SandboxError: one could not be ended; the others were
        """
        with self._lock:
            self._closed.set()
            live = list(self._live)
            if self._prepared is not None:
                self._prepared.use.end()
        with contextlib.ExitStack() as stack:
            for session in live:
                stack.callback(session.close)

    def _require(self, session: Session, terminal: Terminal) -> None:
        """Insist on what the task needs, where setting up may have brought it or an image has to have it."""
        if terminal.runs_images:
            self._require_in_image(session, terminal)
        elif self._setup and self.interpreter is not None and session.spec.interpreter is not None:
            # What is missing is missing in the interpreter below: nobody installs into what was kept.
            packages = session.spec.interpreter.packages
            requirements.require(dataclasses.replace(self.interpreter, packages=packages), self.requires)

    def _require_in_image(self, session: Session, terminal: Terminal) -> None:
        """Name what the image's Python lacks."""
        if terminal.image_id in self._complete:
            return
        missing = images.missing(session, self.requires)
        if missing:
            image = terminal.settings.image or self.task.image
            raise RequirementError(
                f"{session.python} of image {image} has no {', '.join(missing)}; {images.remedy(missing)}"
            )
        if terminal.image_id is not None:
            self._complete.add(terminal.image_id)


def make_history(session: Session) -> None:
    """Make the files of a sandbox a git repository of one commit, the same one whenever the files are the same.

    Args:
        session: a sandbox whose image has git

    Raises:
        RequirementError: git is missing there, or refused
        SandboxLost: the sandbox went away
    """
    who = {"NAME": "debug-gym", "EMAIL": "debug-gym@localhost", "DATE": f"{MTIME} +0000"}
    environment = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    result = session.run(["/bin/sh", "-c", _HISTORY], timeout=HISTORY_TIMEOUT, env=environment)
    if result.exit_status != 0:
        raise RequirementError(f"the task needs git in its sandbox: {result.output.strip()[-300:]}")


def _protected(snapshot: Snapshot, rules: Rules) -> Protected:
    """The read-only entries of a pristine repository, whole directories where they are."""
    found: dict[str, list[str]] = {"directory": [], "file": [], "link": []}
    for path, member in snapshot.members.items():
        above = posixpath.dirname(path)
        if rules.readonly(path, member.kind == "directory") and not (above and rules.readonly(above, True)):
            found[member.kind].append(path)
    return Protected(*(tuple(found[kind]) for kind in ("directory", "file", "link")))


def _requirements(task: Task) -> tuple[str, ...]:
    """Distributions that the interpreter must have."""
    entrypoint = Entrypoint.parse(task.entrypoint)
    needs = ["pytest"] if entrypoint.module == "pytest" else []
    return tuple(dict.fromkeys([*needs, *task.requires]))


def _own_packages() -> tuple[Path, ...]:
    """Where our own packages and other plugins lie: they hold gold patches, and are nobody's business in a sandbox."""
    from debug_gym_core.components.entry_points import package_directories

    return package_directories()
