"""A bound on the number of files: bubblewrap gives its file systems in memory a size only.

Each file costs the kernel memory, empty ones too. The bound is set from outside, in the sandbox's namespaces, once they
are complete. Root joins them by a thread; an ordinary user only by a process, which is started before, to be ready by
then (setns(2), tmpfs(5)).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Mapping

_TIMEOUT = 20.0
_CLONE_FS, _CLONE_NEWNS = 0x200, 0x00020000
_NOSUID, _NODEV, _REMOUNT = 2, 4, 32

# Arguments: descriptor of the mount namespace, then pairs of a path and options. Begins when its input ends.
_SETTER = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
def check(status):
    if status < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
namespace = int(sys.argv[1])
while os.read(0, 4096):
    pass
user = libc.ioctl(namespace, ctypes.c_ulong(0xB701))  # NS_GET_USERNS
check(user)
check(libc.setns(user, 0x10000000))  # CLONE_NEWUSER
check(libc.setns(namespace, {_CLONE_NEWNS}))
for path, options in zip(sys.argv[2::2], sys.argv[3::2]):
    check(libc.mount(b"none", os.fsencode(path), None, {_REMOUNT | _NOSUID | _NODEV}, options.encode()))
"""


class InodeBound:
    """Bounds on the numbers of files of one sandbox, to be set once it is complete."""

    def __init__(self, child: int, numbers: Mapping[str, int], *, privileged: bool) -> None:
        """Get ready.

        Args:
            child: the sandbox's first process, on the host
            numbers: how many files there may be, by the place of a file system in memory
            privileged: whether this process has the right to join namespaces

        Raises:
            OSError: the process is gone, or no other can be started
        """
        self._options = {path: f"nr_inodes={number}" for path, number in numbers.items()}
        self._using = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._namespace: int | None = os.open(f"/proc/{child}/ns/mnt", os.O_RDONLY)
        if not privileged:
            pairs = [word for pair in self._options.items() for word in pair]
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _SETTER, str(self._namespace), *pairs],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=(self._namespace,),
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            finally:
                self._release()

    def set(self) -> str:
        """Set the bounds; returns why they could not be, empty when they were."""
        with self._using:
            if self._process is not None:
                return _outcome(self._process)
            if self._namespace is None:
                return "the sandbox was closed"
            failures: list[str] = []
            thread = threading.Thread(target=self._join, args=(self._namespace, failures), name="debug-gym-inodes")
            thread.start()
            thread.join()
            self._release()
            return "".join(failures)

    def _join(self, namespace: int, failures: list[str]) -> None:
        """Set the bounds from a thread, which joins the mount namespace for the rest of its life."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
        done = libc.unshare(_CLONE_FS) == 0 and libc.setns(namespace, _CLONE_NEWNS) == 0
        flags = _REMOUNT | _NOSUID | _NODEV
        for path, options in self._options.items():
            done = done and libc.mount(b"none", os.fsencode(path), None, flags, options.encode()) == 0
        if not done:
            failures.append(os.strerror(ctypes.get_errno()))

    def close(self) -> None:
        """Forget the sandbox, whether anything was set or not; from any thread."""
        if self._process is not None:
            self._process.kill()
        with self._using:
            self._release()
            if self._process is not None and self._process.returncode is None:
                self._process.communicate()

    def _release(self) -> None:
        if self._namespace is not None:
            os.close(self._namespace)
            self._namespace = None


def _outcome(process: subprocess.Popen[bytes]) -> str:
    """Have the process begin, and wait for it; returns why it failed, empty when it did not."""
    try:
        _, said = process.communicate(timeout=_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"no answer after {_TIMEOUT:.0f} s"
    if process.returncode == 0:
        return ""
    return (said.decode("utf-8", "replace").strip().splitlines() or ["it was killed"])[-1]
