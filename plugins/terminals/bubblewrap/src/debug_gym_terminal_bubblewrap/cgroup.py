"""Control groups: one group a sandbox, where this machine lets us make one.

Version 1 and 2, below the group that this process is in, so that its own bounds hold as well. What a killed run leaves
is removed by the next one: a group's name tells which process made it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from debug_gym_core.sandbox.ownership import gone, owner
from debug_gym_terminal_bubblewrap import processes

_PREFIX = "debug-gym."
_LEAF = "debug-gym-runner"
_PERIOD = 100_000
_serial = itertools.count()


@dataclass(frozen=True)
class Limits:
    """Bounds on all processes of a sandbox together.

    Attributes:
        memory: bytes
        pids: processes and threads
        cpus: processors' worth of time; None: no bound
    """

    memory: int
    pids: int
    cpus: float | None

    @property
    def controllers(self) -> tuple[str, ...]:
        """The kernel's names of what bounds them."""
        return ("memory", "pids") if self.cpus is None else ("memory", "pids", "cpu")


@dataclass(frozen=True)
class _Place:
    """Where groups for a controller can be made."""

    directory: Path
    version: int


def places(controllers: Iterable[str]) -> dict[str, _Place]:
    """Where this process may make groups, by controller; those that it may not are left out."""
    found = {}
    for controller in controllers:
        place = _own(controller)
        if place is not None and _enabled(place, controller):
            found[controller] = place
    return found


def _own(controller: str) -> _Place | None:
    """The directory of the group that this process is in, in the hierarchy that has a controller, if it is writable."""
    groups: dict[str, str] = {}
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            groups[name] = path.removesuffix(f"/{_LEAF}") or "/"  # into which an earlier look moved us
    for line in _text(Path("/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ")[:3]
        root, mounted = (os.fsdecode(_unescape(field)) for field in before.split(" ")[3:5])
        if kind == "cgroup" and controller in options.split(","):
            place = _Place(_below(Path(mounted), root, groups.get(controller, "/")), 1)
        elif kind == "cgroup2":
            place = _Place(_below(Path(mounted), root, groups.get("", "/")), 2)
            if controller not in _text(place.directory / "cgroup.controllers").split():
                continue
        else:
            continue
        return place if os.access(place.directory, os.W_OK | os.X_OK) else None
    return None


def _below(mounted: Path, root: str, path: str) -> Path:
    """The directory of a group whose hierarchy is mounted from `root` on; the mount itself when it lies elsewhere."""
    group = Path(path)
    return mounted / group.relative_to(root) if group.is_relative_to(root) else mounted


def _unescape(field: str) -> bytes:
    """Undo the octal escapes of /proc."""
    return field.encode("ascii", "surrogateescape").decode("unicode_escape").encode("latin-1")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""


def _enabled(place: _Place, controller: str) -> bool:
    """Whether groups below a place have a controller; in version 2 it is switched on if that is possible.

    There, a group whose children are to have controllers may hold no process itself: when nobody but this process and
    its descendants are in it, they move into a group of their own below it.
    """
    if place.version == 1:
        return True
    switch = place.directory / "cgroup.subtree_control"
    if controller in _text(switch).split():
        return True
    if _write(switch, f"+{controller}"):
        return True
    members = {int(pid) for pid in _text(place.directory / "cgroup.procs").split()}
    if not members <= set(processes.descendants(os.getpid())):
        return False
    leaf = place.directory / _LEAF
    with contextlib.suppress(OSError):
        leaf.mkdir(exist_ok=True)
    moved = all([_write(leaf / "cgroup.procs", str(pid)) for pid in sorted(members)])
    return moved and _write(switch, f"+{controller}")


def _write(path: Path, text: str) -> bool:
    try:
        path.write_text(text)
    except OSError:
        return False
    return True


class Cgroup:
    """The groups of one sandbox, one a hierarchy.

    Attributes:
        bounded: controllers whose bounds hold
    """

    def __init__(self, limits: Limits) -> None:
        """Make the groups that can be made and set their bounds; what cannot be is not in `bounded`."""
        name = f"{_PREFIX}{owner().replace('/', '~')}.{next(_serial)}"
        self.bounded: set[str] = set()
        self._limits = limits
        self._directories: dict[str, tuple[Path, int]] = {}
        self._born_in: set[Path] = set()
        for controller, place in places(limits.controllers).items():
            directory = place.directory / name
            try:
                directory.mkdir(exist_ok=True)
            except OSError:
                continue
            self._directories[controller] = (directory, place.version)
            if _bound(directory, place.version, controller, limits):
                self.bounded.add(controller)

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Be in the groups with the calling thread, so that what it starts meanwhile is born in them.

        For a process that is moved there later the kernel waits until no processor forks, which takes 5 ms a group; a
        thread that moves itself need not wait. Only version 1 lets a thread go alone; `add` does the rest.
        """
        with contextlib.ExitStack() as stack:
            for directory, version in dict(self._directories.values()).items():
                if version != 1:
                    continue
                try:
                    outside = os.open(directory.parent / "tasks", os.O_WRONLY | os.O_CLOEXEC)
                except OSError:
                    continue
                stack.callback(os.close, outside)
                if _write(directory / "tasks", "0"):
                    stack.callback(os.write, outside, b"0")
                    self._born_in.add(directory)
                    if "pids" in self.bounded and (directory / "pids.max").exists():
                        _write(directory / "pids.max", str(self._limits.pids + 1))  # bwrap itself is in it too
            yield

    def add(self, pid: int) -> None:
        """Put a process into the groups that it was not born in; what it starts later is in them too.

        Raises:
            OSError: it could not be
        """
        for directory in self._unique():
            if directory not in self._born_in:
                (directory / "cgroup.procs").write_text(str(pid))

    def out_of_memory(self) -> int:
        """How many processes the kernel has killed for the bound on memory."""
        if "memory" not in self._directories:
            return 0
        directory, version = self._directories["memory"]
        for line in _text(directory / ("memory.oom_control" if version == 1 else "memory.events")).splitlines():
            key, _, value = line.partition(" ")
            if key == "oom_kill":
                return int(value)
        return 0

    def remove(self) -> None:
        """Remove the groups; their processes must have ended."""
        for directory in self._unique():
            _remove(directory)

    def _unique(self) -> list[Path]:
        return list(dict.fromkeys(directory for directory, _ in self._directories.values()))


def _bound(directory: Path, version: int, controller: str, limits: Limits) -> bool:
    """Write a controller's bound."""
    if controller == "pids":
        return _write(directory / "pids.max", str(limits.pids))
    if controller == "cpu":
        quota = max(int((limits.cpus or 0) * _PERIOD), 1000)
        if version == 2:
            return _write(directory / "cpu.max", f"{quota} {_PERIOD}")
        return _write(directory / "cpu.cfs_period_us", str(_PERIOD)) and _write(
            directory / "cpu.cfs_quota_us", str(quota)
        )
    if version == 2:
        if not _write(directory / "memory.max", str(limits.memory)):
            return False
        _write(directory / "memory.swap.max", "0")  # not there without swap
        return True
    if not _write(directory / "memory.limit_in_bytes", str(limits.memory)):
        return False
    _write(directory / "memory.memsw.limit_in_bytes", str(limits.memory))
    return True


def _remove(directory: Path) -> bool:
    """Remove a group, whose last process may just be ending."""
    for _ in range(100):
        try:
            directory.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            time.sleep(0.005)
        else:
            return True
    return False


def leftovers() -> list[Path]:
    """Groups of ours whose maker is gone."""
    found = []
    for place in filter(None, map(_own, ("memory", "pids", "cpu"))):
        for directory in place.directory.glob(f"{_PREFIX}*"):
            maker = directory.name.removeprefix(_PREFIX).rpartition(".")[0]
            # Those of another PID namespace, as in a container that sees these groups too, are nobody's to judge here.
            if gone(maker.replace("~", "/")):
                found.append(directory)
    return list(dict.fromkeys(found))


def clean() -> list[str]:
    """Remove groups whose maker is gone, end what is still in them; returns their names."""
    removed = []
    for directory in leftovers():
        for pid in _text(directory / "cgroup.procs").split():
            with contextlib.suppress(OSError):
                os.kill(int(pid), 9)
        if _remove(directory):
            removed.append(str(directory))
    return removed
