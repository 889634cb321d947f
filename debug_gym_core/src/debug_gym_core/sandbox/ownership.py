"""Who owns what a sandbox leaves outside of this process, so that a later run can tell what nobody owns any more."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PATCHES = "debug-gym-patch-"
"""How the temporary directories begin in which patches are made; see `debug_gym_core.workspace.patch`."""

LEASELESS = 5.0
"""Seconds after which a directory that still has no lease, of a process that is not there, is nobody's."""


def started(pid: int) -> str | None:
    """When a process started, in the kernel's own unit: with its number that names it for good; None: it has ended.

    Raises:
        OSError: it cannot be known, as when this process may open no more files
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def owner() -> str:
    """This process, named so that no other ever has the name: where it can be seen from, its number, its start."""
    return f"{_place()}/{os.getpid()}/{started(os.getpid())}"


def gone(name: str) -> bool | None:
    """Whether an owner has ended.

    Args:
        name: what `owner` said in some process

    Returns:
        None when it cannot be known from here: another machine, another boot, another container, no /proc to read
    """
    place, _, process = name.rpartition("/")[0].rpartition("/")
    start = name.rpartition("/")[2]
    if place != _place() or not process.isdigit():
        return None
    try:
        return started(int(process)) != start
    except OSError:
        return None


@functools.cache
def _place() -> str:
    """The machine since its start, and the PID namespace: process numbers mean the same where this is the same."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return "unknown"


def write_lease(directory: Path, run: str) -> None:
    """Say whose a directory is, for `reap`.

    Args:
        directory: in the temporary directory, just made
        run: id of the run that it belongs to
    """
    lease = {"app": "debug-gym", "run": run, "owner": owner()}
    (directory / "lease.json").write_text(json.dumps(lease), encoding="utf-8")


def reap(prefix: str) -> list[Path]:
    """Remove this user's temporary directories whose owner is gone, with the processes in them; returns which.

    Args:
        prefix: what their names begin with, before the number of the process that made them
    """
    removed = []
    for directory in sorted(Path(tempfile.gettempdir()).glob(f"{prefix}*")):
        try:
            about = directory.lstat()
            ended = _is_over(directory, prefix, about)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if ended and stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
            end_processes_of(directory)
            remove_tree(directory)
            removed.append(directory)
    return removed


def _is_over(directory: Path, prefix: str, about: os.stat_result) -> bool | None:
    """Whether the process that made a directory has ended; it may have been killed before it wrote the lease."""
    try:
        lease = json.loads((directory / "lease.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        maker = directory.name.removeprefix(prefix).partition("-")[0]
        return maker.isdigit() and started(int(maker)) is None and time.time() - about.st_mtime > LEASELESS
    return gone(str(lease["owner"]))


def end_processes_of(directory: Path) -> None:
    """Kill the processes that run in a sandbox's directory or have its variables; for when its guest was killed."""
    needle = os.fsencode(directory) + b"/"
    for _ in range(20):
        found = False
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X"):
                    continue
                cwd = os.fsencode((entry / "cwd").readlink()) + b"/"
                variables = (entry / "environ").read_bytes().split(b"\0")
                if cwd.startswith(needle) or b"HOME=" + needle + b"home" in variables:
                    os.kill(int(entry.name), signal.SIGKILL)
                    found = True
        if not found:
            return


def remove_tree(directory: Path) -> None:
    """Remove a directory, whatever modes its entries have."""
    with contextlib.suppress(OSError):
        shutil.rmtree(directory)
        return
    for path, names, _ in os.walk(directory):
        for child in (Path(path, name) for name in names):
            if not child.is_symlink():
                child.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)


def wait_for_end(process: subprocess.Popen[Any], seconds: float) -> bool:
    """Wait for the end of a child, without the pauses, up to 50 ms long, between two looks of `Popen.wait`.

    Args:
        process: a child of this process
        seconds: at most

    Returns:
        whether it has ended
    """
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):  # another thread has just seen its end
            descriptor = os.pidfd_open(process.pid)
            try:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                poll.poll(seconds * 1000)
            finally:
                os.close(descriptor)
    return process.poll() is not None
