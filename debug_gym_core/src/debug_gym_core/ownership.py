"""Who owns what a sandbox leaves outside of this process, so that a later run can tell what nobody owns any more."""

from __future__ import annotations

import functools
import os
from pathlib import Path


def started(pid: int) -> str | None:
    """When a process started, in the kernel's own unit: with its number that names it for good; None: it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
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
        None when it cannot be known from here: another machine, another boot, another container
    """
    place, _, process = name.rpartition("/")[0].rpartition("/")
    start = name.rpartition("/")[2]
    if place != _place() or not process.isdigit():
        return None
    return started(int(process)) != start


@functools.cache
def _place() -> str:
    """The machine since its start, and the PID namespace: process numbers mean the same where this is the same."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return "unknown"
