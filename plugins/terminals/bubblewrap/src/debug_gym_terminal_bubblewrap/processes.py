"""What /proc of the host says about the processes of a sandbox."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(pid: int) -> Iterator[int]:
    """A process and all that descend from it; in a PID namespace whose first it is, that is everybody."""
    yield pid
    ahead = [pid]
    seen = {pid}
    while ahead:
        tasks = Path(f"/proc/{ahead.pop()}/task")
        try:
            children = [child for task in tasks.iterdir() for child in (task / "children").read_text().split()]
        except OSError:
            continue
        for child in map(int, children):
            if child not in seen:
                seen.add(child)
                ahead.append(child)
                yield child


def threads(pid: int) -> int:
    """How many threads a process has."""
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return 0


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use, shared ones in full."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def proportional(pid: int) -> int:
    """Bytes of memory that a process has in use, shared ones in part; slower than `resident`."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return resident(pid)
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss:", "SwapPss:")))


def memory_files(pid: int) -> dict[int, int]:
    """Bytes in files without a name in any directory (memfd) that a process holds open, by inode."""
    sizes = {}
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if str(descriptor.readlink()).startswith("/memfd:"):
                status = descriptor.stat()
                sizes[status.st_ino] = status.st_blocks * 512
    except OSError:
        return sizes
    return sizes
