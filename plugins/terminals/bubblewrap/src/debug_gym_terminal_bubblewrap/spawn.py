"""Starting processes that must not outlive this one, from any thread.

bubblewrap asks the kernel to be killed with its parent. The kernel's parent is a thread, not a process: a sandbox that
a worker thread started would end with that thread. One thread that lives as long as the process starts them all.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

_Within = Callable[[], contextlib.AbstractContextManager[object]]
_Job = tuple["Future[subprocess.Popen[bytes]]", Sequence[str], _Within, dict[str, object]]
_jobs: queue.SimpleQueue[_Job] | None = None
_lock = threading.Lock()


def spawn(
    argv: Sequence[str],
    *,
    stdin: int,
    stdout: int,
    stderr: int,
    pass_fds: Sequence[int],
    within: _Within = contextlib.nullcontext,
) -> subprocess.Popen[bytes]:
    """Start a process, with an empty environment, whose parent is a thread that ends only with this process.

    Args:
        argv: the command
        stdin: descriptor of its standard input
        stdout: descriptor of its standard output
        stderr: descriptor of its standard error
        pass_fds: other descriptors that it inherits
        within: makes what the thread is in while it starts the process

    Returns:
        the process

    Raises:
        OSError: it could not be started
    """
    global _jobs
    with _lock:
        if _jobs is None:
            _jobs = queue.SimpleQueue()
            threading.Thread(target=_work, args=(_jobs,), name="debug-gym-spawn", daemon=True).start()
        jobs = _jobs
    future: Future[subprocess.Popen[bytes]] = Future()
    jobs.put((future, argv, within, {"stdin": stdin, "stdout": stdout, "stderr": stderr, "pass_fds": pass_fds}))
    return future.result()


def _work(jobs: queue.SimpleQueue[_Job]) -> None:
    while True:
        future, argv, within, streams = jobs.get()
        try:
            # A session of its own: what a person types (Ctrl-C) reaches the runner, which decides about the sandbox.
            with within():
                process = subprocess.Popen(argv, env={}, close_fds=True, start_new_session=True, **streams)  # type: ignore[call-overload]
            future.set_result(process)
        except BaseException as error:
            future.set_exception(error)
        del future


def _forget() -> None:
    """After a fork the thread is not there."""
    global _jobs, _lock
    _jobs, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
