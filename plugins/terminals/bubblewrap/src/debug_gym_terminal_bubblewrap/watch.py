"""Bounds kept by looking, where the kernel does not keep them for us."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from debug_gym_terminal_bubblewrap import processes

_INTERVAL = 0.1
_PATIENCE = 20
"""How often in a row a sandbox may have too many processes before it is ended as a whole."""


@dataclass
class _Watched:
    """A sandbox: bounds that are None are not watched."""

    namespace: int
    memory: int | None
    pids: int | None
    tell: Callable[[str], None]
    crowded: int = 0
    killed: int = 0


class Watch:
    """One thread that looks after all sandboxes of this process, and is there only while there are some."""

    def __init__(self) -> None:
        self._watched: dict[int, _Watched] = {}
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, pid: int, namespace: int, memory: int | None, pids: int | None, tell: Callable[[str], None]) -> None:
        """Watch a sandbox.

        When its processes use more memory together than they may, the largest are killed until they do not, as the
        kernel would; when they are too many, all but the first are, and in the end that too.

        Args:
            pid: of its first process, on the host
            namespace: inode of its PID namespace
            memory: bytes; None: not watched
            pids: processes and threads; None: not watched
            tell: called with a line when something was killed
        """
        with self._change:
            self._watched[pid] = _Watched(namespace, memory, pids, tell)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="debug-gym-watch", daemon=True)
                self._thread.start()

    def killed(self, pid: int) -> int:
        """How many processes of a sandbox were killed for its bound on memory.

        Args:
            pid: of its first process
        """
        with self._change:
            bounds = self._watched.get(pid)
        return bounds.killed if bounds is not None else 0

    def remove(self, pid: int) -> None:
        """Watch a sandbox no longer."""
        with self._change:
            self._watched.pop(pid, None)
            self._change.notify_all()

    def _work(self) -> None:
        while True:
            with self._change:
                if not self._watched:
                    self._thread = None
                    return
                watched = dict(self._watched)
            for pid, bounds in watched.items():
                _look(pid, bounds)
            with self._change:
                self._change.wait_for(lambda: not self._watched, _INTERVAL)


def _look(first: int, bounds: _Watched) -> None:
    """Look at one sandbox, and end what must be ended.

    The words come before the deed: who notices that something is gone looks up at once why.
    """
    pids = list(processes.descendants(first))
    if bounds.pids is not None and sum(map(processes.threads, pids)) > bounds.pids:
        bounds.crowded += 1
        bounds.tell(f"processes were killed: there were more than {bounds.pids} processes and threads")
        for pid in pids if bounds.crowded > _PATIENCE else pids[1:]:
            _kill(pid, bounds.namespace)
        return
    bounds.crowded = 0
    if bounds.memory is None:
        return
    files: dict[int, int] = {}
    holding: dict[int, int] = {}
    for pid in pids:
        new = {inode: size for inode, size in processes.memory_files(pid).items() if inode not in files}
        files.update(new)
        holding[pid] = sum(new.values())
    if sum(processes.resident(pid) + holding[pid] for pid in pids) <= bounds.memory:
        return
    sizes = {pid: processes.proportional(pid) + holding[pid] for pid in pids}
    over = sum(sizes.values()) - bounds.memory
    largest = []
    for pid in sorted(sizes, key=lambda pid: (pid != first, sizes[pid]), reverse=True):
        if over <= 0:
            break
        largest.append(pid)
        over -= sizes[pid]
    if not largest:
        return
    bounds.killed += len(largest)
    bounds.tell(f"out of memory: processes killed: {len(largest)}, the largest of those that used more than the bound")
    for pid in largest:
        _kill(pid, bounds.namespace)


def _kill(pid: int, namespace: int) -> None:
    """Kill a process, unless another that is not in the sandbox has got its number since."""
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if Path(f"/proc/{pid}/ns/pid").stat().st_ino == namespace:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


watch = Watch()


def _forget() -> None:
    """After a fork the thread is not there, and the sandboxes are another's."""
    global watch
    watch = Watch()


os.register_at_fork(after_in_child=_forget)
