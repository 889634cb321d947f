"""Processor time of commands and of all that comes of them.

What waits for a process is told its time (getrusage), but nobody waits for what the kernel kills with a sandbox: most
of an episode would be missing. A control group counts that too; where none can be made, the whole machine is counted.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_CPUACCT = (Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup/cpu,cpuacct"))


class ProcessorTime:
    """Runs commands and knows how much processor time they took.

    Attributes:
        alone: whether others' processes are not counted
    """

    def __init__(self, group: Path | None) -> None:
        self._group = group
        self.alone = group is not None

    def now(self) -> float:
        """Seconds that were used so far, of any processor."""
        if self._group is not None:
            return int((self._group / "cpuacct.usage").read_text()) / 1e9
        # user nice system idle iowait irq softirq steal
        fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]))
        return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")

    def of(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, said: str = ""
    ) -> float:
        """Seconds that a command takes; it may fail, as tests do.

        Args:
            command: the command
            cwd: its directory
            env: its variables
            said: what it reads
        """
        before = self.now()
        self.run(command, cwd=cwd, env=env, said=said)
        return self.now() - before

    def run(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, said: str = ""
    ) -> int:
        """Run a command to its end; returns its exit status."""
        joining = [] if self._group is None else ["sh", "-c", f'echo $$ > {self._group}/cgroup.procs; exec "$@"', "sh"]
        return subprocess.run(
            [*joining, *command], cwd=cwd, env=env, input=said, text=True, capture_output=True
        ).returncode


@contextmanager
def processor_time() -> Iterator[ProcessorTime]:
    """A control group of our own, where one can be made."""
    group = next((place / f"debug-gym-perf-{os.getpid()}" for place in _CPUACCT if os.access(place, os.W_OK)), None)
    if group is None:
        yield ProcessorTime(None)
        return
    group.mkdir()
    try:
        yield ProcessorTime(group)
    finally:
        group.rmdir()
