"""A sandbox of Linux namespaces, made by bubblewrap: no daemon, no image, no rights needed."""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.sandbox import seccomp
from debug_gym_core.sandbox.interpreter import Interpreter, probe
from debug_gym_core.sandbox.terminal import Protected, SandboxSpec, Stream, Terminal, parse_size
from debug_gym_terminal_bubblewrap import cgroup, isolation
from debug_gym_terminal_bubblewrap.mounts import Mounts, mounts
from debug_gym_terminal_bubblewrap.sandbox import Sandbox, counts_processes

_LOG_LINES = 50
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",
    "USER": "sandbox",
    "LOGNAME": "sandbox",
}


class BubblewrapTerminal(Terminal):
    """Linux namespaces by bubblewrap: no daemon, no image.

    The sandbox sees the system's /usr, the interpreter with its packages, the workspace and a /tmp, all but the last
    two read-only; no network, no capability, none of the host's processes, files, sockets and variables.

    The guest is the first process of the sandbox: nothing in there can kill it, and the sandbox ends with it. So there
    is one `open` for a `start`.
    """

    name = "bubblewrap"
    isolates: ClassVar[bool] = True
    keeps_setup: ClassVar[bool] = True

    def __init__(self, **settings: Any) -> None:
        """Check the settings; see `TerminalSettings`."""
        super().__init__(**settings)
        self._limits = cgroup.Limits(parse_size(self.settings.memory), self.settings.pids, self.settings.cpus)
        self._mode = isolation.Mode.USER_NAMESPACE
        self._mounts: Mounts | None = None
        self._environment: dict[str, str] = {}
        self._sandbox: Sandbox | None = None
        self._lines: deque[str] = deque(maxlen=_LOG_LINES)
        self._unprotected: list[str] = []

    @classmethod
    def unavailable(cls) -> str | None:
        """Why bubblewrap cannot work here, found out by trying."""
        return isolation.unavailable()

    @classmethod
    def clean(cls) -> Sequence[str]:
        """Remove the control groups of runs that were killed; all else ends with the run."""
        return [f"control group {name}" for name in cgroup.clean()]

    @classmethod
    def about(cls) -> Sequence[str]:
        """Its version, and how the sandbox's user is made."""
        mode = isolation.mode()
        return [isolation.version(), *([f"isolates by {mode.value}"] if mode else [])]

    @classmethod
    def limits(cls) -> Sequence[str]:
        """Bounds that no control group can keep here."""
        bounded = cgroup.places(("memory", "pids", "cpu"))
        lacking = [name for name in ("memory", "pids", "cpu") if name not in bounded]
        said = [f"no control group can be made here for {', '.join(lacking)}: watched instead"] if lacking else []
        return [*said, *([] if seccomp.supported() else [f"no seccomp filter for {platform.machine()}"])]

    def start(self, spec: SandboxSpec) -> None:
        """Decide what the sandbox sees; `open` makes it, with the guest in it."""
        mode = isolation.mode()
        if mode is None:
            raise RequirementError(self.unavailable() or "bubblewrap does not work here")
        if spec.interpreter is None:
            system = Path("/usr/bin/python3")
            if not system.exists():
                raise RequirementError("no Python was named and there is no /usr/bin/python3; name one with env.python")
            spec = dataclasses.replace(spec, interpreter=probe(system))
        assert spec.interpreter is not None
        _clean()
        self.python = str(spec.interpreter.executable)
        self._environment = {**_ENVIRONMENT, **spec.environment}
        self._mounts = mounts(spec, self.settings.workspace_bytes, self.settings.network == "host")
        self._mode = mode
        if mode is isolation.Mode.CHANGE_USER and not _for_everybody(spec.interpreter, self._mounts.exposed):
            self._mode = isolation.Mode.USER_NAMESPACE
        if spec.writable is not None and self._mode is isolation.Mode.CHANGE_USER:
            _give_away(spec.writable)
        self._sandbox = None
        self._lines.clear()

    def open(self, argv: Sequence[str]) -> Stream:
        """Make the sandbox, with the guest's command as its first process."""
        if self._mounts is None or self._sandbox is not None:
            raise SandboxLost("the bubblewrap sandbox is gone" + self._last_words())
        try:
            self._sandbox = Sandbox(
                argv,
                mode=self._mode,
                network=self.settings.network == "host",
                python=self.python,
                mounts=self._mounts,
                environment=self._environment,
                limits=self._limits,
                file_size=self.settings.file_bytes,
                tell=self._lines.append,
            )
        except SandboxError as error:
            raise SandboxError(f"{error}{self._last_words()}") from error
        return self._sandbox.stream

    def protect(self, paths: Protected) -> None:
        """Mount read-only files over themselves, from outside."""
        if self._sandbox is None:
            raise SandboxLost("the bubblewrap sandbox is gone" + self._last_words())
        self._unprotected = self._sandbox.protect(paths)

    def alive(self) -> bool:
        """Whether the guest, and with it the sandbox, is there; or has not been started yet."""
        return self._mounts is not None and (self._sandbox is None or self._sandbox.runs())

    def stop(self) -> None:
        """Kill the first process, and by that all; nothing is left on the host."""
        self._mounts = None
        if self._sandbox is not None:
            self._sandbox.stream.close()

    def out_of_memory(self) -> int:
        """How many processes the kernel has killed for the bound on memory, or who watches it in its place."""
        if self._sandbox is None:
            return 0
        return self._sandbox.out_of_memory() + self._sandbox.watched_out_of_memory()

    def log(self) -> str:
        """What bubblewrap and the guest wrote to standard error, and whether memory ran out."""
        killed = self._sandbox.out_of_memory() if self._sandbox is not None else 0
        last = [f"out of memory ({self.settings.memory}): processes killed: {killed}"] if killed else []
        return "\n".join([*self._lines, *last])

    def notes(self) -> Sequence[str]:
        """What the sandbox does not see, and bounds that are kept by watching only, or not at all."""
        bounded = cgroup.places(self._limits.controllers)
        said = [*(self._mounts.notes if self._mounts is not None else []), *self._unprotected]
        if "memory" not in bounded:
            said.append("memory: no control group can be made here; the sum of the processes is watched")
        if "pids" not in bounded and not counts_processes():
            said.append("pids: no control group can be made here; the number of processes is watched")
        if self.settings.cpus is not None and "cpu" not in bounded:
            said.append("cpus: no control group can be made here; not bounded")
        if self._sandbox is not None and self._sandbox.unbounded:
            said.append(f"workspace_size: the number of files is not bounded ({self._sandbox.unbounded})")
        if self._mode is isolation.Mode.USER_NAMESPACE and os.geteuid() == 0:
            said.append(
                "user: no other user than root can run this interpreter here; the sandbox's is root to the kernel"
            )
        if not seccomp.supported():
            said.append(f"seccomp: there is no filter for {platform.machine()}")
        return said

    def _last_words(self) -> str:
        return f": {self._lines[-1]}" if self._lines else ""


def _for_everybody(interpreter: Interpreter, exposed: Sequence[Path]) -> bool:
    """Whether a user that is not its owner may run an interpreter, wherever it lies."""
    places = [place for place in exposed if not place.is_symlink()]
    return all(place.stat().st_mode & 0o5 == (0o5 if place.is_dir() else 0o4) for place in places) and bool(
        interpreter.executable.stat().st_mode & 0o1
    )


def _give_away(directory: Path) -> None:
    """Make a directory, which nobody else writes to yet, the sandbox's user's."""
    for path in (directory, *directory.rglob("*")):
        os.chown(path, isolation.USER, isolation.USER, follow_symlinks=False)


@functools.cache
def _clean() -> None:
    """Remove what killed runs left, once a process."""
    cgroup.clean()
