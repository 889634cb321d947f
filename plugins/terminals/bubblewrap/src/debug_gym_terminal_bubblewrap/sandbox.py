"""One running sandbox: bubblewrap started, its bounds set, its end."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import resource
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox import seccomp
from debug_gym_core.sandbox.ownership import wait_for_end
from debug_gym_core.sandbox.terminal import ROOT, Protected
from debug_gym_terminal_bubblewrap import cgroup, readonly_mounts
from debug_gym_terminal_bubblewrap.inodes import InodeBound
from debug_gym_terminal_bubblewrap.isolation import Mode, dropped, options
from debug_gym_terminal_bubblewrap.mounts import Mounts
from debug_gym_terminal_bubblewrap.spawn import spawn
from debug_gym_terminal_bubblewrap.stream import PipeStream
from debug_gym_terminal_bubblewrap.watch import watch

_START_TIMEOUT = 20.0
_END_TIMEOUT = 5.0
_OPEN_FILES = 4096
_COUNTS_BY_NAMESPACE = (5, 14)
"""Since this Linux, RLIMIT_NPROC counts the processes of a user namespace, not those of a user everywhere."""


def counts_processes() -> bool:
    """Whether a resource limit can bound the number of a sandbox's processes: not if root's, not on an old Linux."""
    release = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    return os.getuid() != 0 and release >= _COUNTS_BY_NAMESPACE


class Sandbox:
    """A sandbox with a command as its first process.

    Attributes:
        stream: the command's standard input and output
        unbounded: why the number of its files is not bounded; empty when it is, or the command has said nothing yet
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        mode: Mode,
        network: bool,
        python: str,
        mounts: Mounts,
        environment: Mapping[str, str],
        limits: cgroup.Limits,
        file_size: int,
        tell: Callable[[str], None],
    ) -> None:
        """Start it.

        Args:
            argv: the command
            mode: how its user is made
            network: whether it has the host's network
            python: an interpreter in it
            mounts: what it sees
            environment: its variables
            limits: bounds on all its processes
            file_size: bytes that one file may have
            tell: called with every line of standard error, from another thread

        Raises:
            SandboxError: it did not start
        """
        self._limits = limits
        self._tell = tell
        self._told = threading.Event()
        self._child: int | None = None
        self._first: int | None = None
        self._inodes: InodeBound | None = None
        self.unbounded = ""
        try:
            self._cgroup = cgroup.Cgroup(limits)
        except OSError as error:
            raise SandboxError(f"bubblewrap did not start: {error}") from error
        with contextlib.ExitStack() as mine, contextlib.ExitStack() as theirs:
            mine.callback(self._cgroup.remove)
            files = _Files(mine, theirs)
            try:
                to_guest, stdin = files.pipe(to_sandbox=True)
                from_guest, stdout = files.pipe()
                log, stderr = files.pipe()
                info, info_end = files.pipe()
                release, release_end = files.pipe(to_sandbox=True)
                files.passed += [info_end, release_end]
                shared_memory = "memory" in self._cgroup.bounded
                arguments = _arguments(files, mode, environment, mounts, network=network, shared_memory=shared_memory)
                arguments += ["--info-fd", str(info_end), "--block-fd", str(release_end)]
                options_file = files.memory("arguments", b"".join(os.fsencode(one) + b"\0" for one in arguments))
                within = dropped(argv, python, quick=not mounts.in_workspace) if mode is Mode.CHANGE_USER else argv
                command = ["bwrap", "--args", options_file, "--", *within]
                ends: dict[str, Any] = {"stdin": stdin, "stdout": stdout, "stderr": stderr, "pass_fds": files.passed}
                self._process = spawn(command, within=self._cgroup.joined, **ends)
                mine.callback(self._end)
                self.stream = PipeStream(to_guest, from_guest, self._process.pid, self._begin, self._end)
            except OSError as error:
                raise SandboxError(f"bubblewrap did not start: {error}") from error
            theirs.close()
            mine.pop_all()
        try:
            lines = os.fdopen(log, "rb", buffering=0)
            threading.Thread(target=self._listen, args=(lines,), name="debug-gym-bubblewrap-log", daemon=True).start()
            child = self._admit(info, file_size)
            self._inodes = InodeBound(child, mounts.inodes, privileged=mode is Mode.CHANGE_USER)
        except (OSError, ValueError) as error:
            self.stream.close()
            self._told.wait(1)
            raise SandboxError(f"bubblewrap did not start: {error}") from error
        except BaseException:
            self.stream.close()
            raise
        finally:
            os.close(info)
            with contextlib.suppress(OSError):
                os.write(release, b"1")
            os.close(release)

    def _admit(self, info: int, file_size: int) -> int:
        """Set the bounds of the first process, before it runs anything; returns its number."""
        self._child = child = int(_read_json(info)["child-pid"])
        self._first = os.pidfd_open(child)
        self._cgroup.add(child)
        for limit, value in (
            (resource.RLIMIT_CORE, 1),  # what a pipe to a program of the host's asks for too; 0 would be no bound to it
            (resource.RLIMIT_FSIZE, file_size),
            (resource.RLIMIT_NOFILE, _OPEN_FILES),
        ):
            _bound(child, limit, value)
        memory = None if "memory" in self._cgroup.bounded else self._limits.memory
        pids = None if "pids" in self._cgroup.bounded else self._limits.pids
        if pids is not None and counts_processes():
            _bound(child, resource.RLIMIT_NPROC, pids)
            pids = None
        if memory is not None or pids is not None:
            namespace = Path(f"/proc/{child}/ns/pid").stat().st_ino
            watch.add(child, namespace, memory, pids, self._tell)
        return child

    def _begin(self) -> None:
        """Bound the number of files, now that all is mounted."""
        if self._inodes is not None:
            self.unbounded = self._inodes.set()

    def protect(self, paths: Protected) -> list[str]:
        """Make paths of the workspace read-only; returns what could not be, a line each.

        Raises:
            SandboxLost: the sandbox is gone
        """
        try:
            namespace = os.open(f"/proc/{self._child}/ns/mnt", os.O_RDONLY)
        except OSError as error:
            if self.runs():
                return [f"read-only: changes are undone after each step ({error.strerror})"]
            raise SandboxLost("the bubblewrap sandbox is gone") from error
        try:
            if self._first is None or not _is_alive(self._first):  # another process may have its number by now
                raise SandboxLost("the bubblewrap sandbox is gone")
            return readonly_mounts.protect(namespace, paths)
        finally:
            os.close(namespace)

    def runs(self) -> bool:
        """Whether its first process, and so the sandbox, is there."""
        return self._process.poll() is None

    def out_of_memory(self) -> int:
        """How many processes the kernel killed for the bound on memory."""
        return self._cgroup.out_of_memory()

    def watched_out_of_memory(self) -> int:
        """How many were killed where no control group bounds it."""
        return watch.killed(self._child) if self._child is not None else 0

    def _listen(self, log: BinaryIO) -> None:
        """Pass on what is written to standard error, until the end."""
        with log:
            rest = b""
            while data := log.read(65536):
                *lines, rest = (rest + data).split(b"\n")
                for line in [*lines[-50:], *([rest[:4096]] if len(rest) > 4096 else [])]:
                    self._tell(line.decode("utf-8", "backslashreplace"))
                rest = b"" if len(rest) > 4096 else rest
            if rest:
                self._tell(rest.decode("utf-8", "backslashreplace"))
        self._told.set()

    def _end(self) -> None:
        """Kill the first process, by which the kernel kills all others, and wait until they are gone."""
        if self._child is not None:
            watch.remove(self._child)
        if self._inodes is not None:
            self._inodes.close()
        if self._first is None:
            self._process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            os.close(self._first)
            self._first = None
        if not wait_for_end(self._process, _END_TIMEOUT):
            self._process.kill()
            self._process.wait()
        self._cgroup.remove()


class _Files:
    """Pipes to a sandbox, and files in memory that bubblewrap reads.

    Attributes:
        passed: descriptors that bubblewrap gets by their numbers
    """

    def __init__(self, mine: contextlib.ExitStack, theirs: contextlib.ExitStack) -> None:
        """Open none yet.

        Args:
            mine: closes our ends
            theirs: closes the others, which the sandbox has once it is started
        """
        self._mine, self._theirs = mine, theirs
        self.passed: list[int] = []

    def pipe(self, *, to_sandbox: bool = False) -> tuple[int, int]:
        """A pipe: our end and the sandbox's."""
        reading, writing = os.pipe()
        ours, its = (writing, reading) if to_sandbox else (reading, writing)
        self._mine.callback(os.close, ours)
        self._theirs.callback(os.close, its)
        return ours, its

    def memory(self, name: str, data: bytes) -> str:
        """A file in memory, by the number of its descriptor."""
        descriptor = os.memfd_create(name)
        self._theirs.callback(os.close, descriptor)
        self.passed.append(descriptor)
        while data:
            data = data[os.write(descriptor, data) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        return str(descriptor)


def _arguments(
    files: _Files, mode: Mode, environment: Mapping[str, str], mounts: Mounts, *, network: bool, shared_memory: bool
) -> list[str]:
    """The arguments of bubblewrap: what the sandbox has, sees and may do.

    Args:
        files: hold what is given to it as content
        mode: how its user is made
        environment: its variables
        mounts: what it sees
        network: whether it has the host's network
        shared_memory: whether System V's may be had, as all memory is bounded
    """
    arguments = [*options(mode, network), "--as-pid-1"]
    for name, value in environment.items():
        arguments += ["--setenv", name, value]
    numbers = [files.memory("file", content) for content in mounts.contents]
    arguments += [
        numbers[int(argument[1:-1])] if re.fullmatch(r"\{\d+\}", argument) else argument
        for argument in mounts.arguments
    ]
    if seccomp.supported():
        also = () if shared_memory else ("shmget",)
        arguments += ["--seccomp", files.memory("seccomp", seccomp.program(also=also))]
    return [*arguments, "--chdir", ROOT]


def _bound(process: int, limit: int, value: int) -> None:
    """Set a limit of a process, unless it has a lower one, which only root may raise."""
    hard = resource.prlimit(process, limit)[1]
    if hard == resource.RLIM_INFINITY or hard >= value or os.geteuid() == 0:
        resource.prlimit(process, limit, (value, value))
    else:
        resource.prlimit(process, limit, (hard, hard))


def _is_alive(process: int) -> bool:
    """Whether a process, given by its descriptor, has not ended."""
    return not select.select([process], [], [], 0)[0]


def _read_json(descriptor: int) -> dict[str, Any]:
    """Read the facts that bubblewrap tells once the first process is there.

    Raises:
        TimeoutError: it told nothing in time
        ValueError: it ended without
    """
    deadline = time.monotonic() + _START_TIMEOUT
    data = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            raise TimeoutError(f"it was not ready after {_START_TIMEOUT:.0f} s")
        part = os.read(descriptor, 4096)
        data += part
        if not part or data.rstrip().endswith(b"}"):
            break
    facts: dict[str, Any] = json.loads(data)
    return facts
