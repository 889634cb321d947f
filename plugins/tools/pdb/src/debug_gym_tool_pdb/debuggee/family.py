"""The program's processes: which of them talks to the host, and what they know of each other's breakpoints."""

import contextlib
import errno
import fcntl
import functools
import mmap
import os
import struct
import threading
import time

from debug_gym_core.debugging.inside.process import _dumps, _get_ident, _getpid, _loads

from .channel import Pattern, _tables_of_modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, Set, Tuple

    Json = Dict[str, Any]

SHARED_SIZE = 256 * 1024
PAUSE = 0.01
PATIENCE = 20
"""How often someone who waits looks, after pauses in seconds, before the turn is not kept any more for who steps."""

_HEAD = struct.Struct("=QI")
_KEPT = struct.Struct("=QQ")
_PYTHON = Pattern(r"(python|pypy)[0-9.]*\Z")
_SERVICES = (
    ("from multiprocessing.spawn import", "spawn"),
    ("from multiprocessing.forkserver import", "forkserver"),
    ("from multiprocessing.resource_tracker import", None),
    ("from multiprocessing.semaphore_tracker import", None),
)
_lockf = fcntl.lockf
_sleep = time.sleep


class Turn:
    """Lets one thread of one process at a time talk to the host.

    Between processes it is a record lock on the channel: the kernel takes it back from a process that dies, and a
    forked child does not have it.

    Attributes:
        shared: whether the system has such locks on sockets; else only the first process may talk
    """

    def __init__(self, descriptor: int) -> None:
        """Take turns on a channel."""
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self.shared = True
        try:
            _lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _lockf(descriptor, fcntl.LOCK_UN)
        except OSError:
            self.shared = False

    def take(self, wait: bool = True) -> bool:
        """Wait until nobody else talks; when not told to wait, only try. Returns whether it is the caller's turn."""
        patience = PATIENCE
        while self._lock.acquire(wait):
            taken = False
            try:
                taken = self._take_from_processes(wait)
                if taken and not (wait and patience and self._is_kept()):
                    return True
            except BaseException:
                self._lock.release()
                raise
            self._release(taken)
            if not wait:
                break
            patience -= taken
            _sleep(PAUSE)
        return False

    def _take_from_processes(self, wait: bool) -> bool:
        if self.shared:
            try:
                _lockf(self._descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                # Of a channel that the program closed: there is nobody to talk to. Locks of the program's own can make
                # it look like a deadlock.
                return error.errno == errno.EBADF
        return True

    def give(self, keep: bool = False) -> None:
        """End the turn.

        Args:
            keep: let others have it only after a while, or some steps, since the caller will be back after a step
        """
        _KEPT.pack_into(self._memory, 0, _getpid() if keep else 0, _get_ident())
        self._release(True)

    def _is_kept(self) -> bool:
        process, thread = _KEPT.unpack_from(self._memory)
        return bool(process and (process, thread) != (_getpid(), _get_ident()))

    def _release(self, taken: bool) -> None:
        if self.shared and taken:
            with contextlib.suppress(OSError):  # the program closed the channel
                _lockf(self._descriptor, fcntl.LOCK_UN)
        self._lock.release()

    def take_over(self) -> None:
        """Have the turn that a process had which has ended; the caller is a copy of it."""
        self._take_from_processes(True)

    def forked(self) -> None:
        """Begin anew in a child: whoever had the turn is not here."""
        self._lock = threading.Lock()


class Blackboard:
    """The breakpoints as the process that talked last left them, in memory that forked children share."""

    def __init__(self) -> None:
        """Start empty."""
        self._memory = mmap.mmap(-1, SHARED_SIZE)
        self.version = 0

    def write(self, state: "Json") -> None:
        """Leave a state for the other processes; only in one's turn."""
        data = _dumps(state).encode()
        if _HEAD.size + len(data) > SHARED_SIZE:
            return
        version = _HEAD.unpack_from(self._memory)[0] | 1  # odd: being written
        _HEAD.pack_into(self._memory, 0, version, len(data))
        self._memory[_HEAD.size : _HEAD.size + len(data)] = data
        self.version = version + 1
        _HEAD.pack_into(self._memory, 0, self.version, len(data))

    def news(self) -> "Optional[Json]":
        """What another process left since this one looked or wrote last; None: nothing, or it is being written."""
        version, size = _HEAD.unpack_from(self._memory)
        if version == self.version or version & 1:
            return None
        data = self._memory[_HEAD.size : _HEAD.size + size]
        if _HEAD.unpack_from(self._memory)[0] != version:
            return None
        self.version = version
        state: "Json" = _loads(data.decode())
        return state


def merge(base: "Json", mine: "Json", theirs: "Json") -> "Tuple[Json, Set[int]]":
    """Breakpoints that changed in two processes since both were the same.

    Args:
        base: what both had
        mine: what this process made of it: it used up ignore counts and temporary breakpoints
        theirs: what the others made of it, with all that the user said there

    Returns:
        theirs with the changes of mine, and the numbers that are gone from theirs
    """
    before = {one["number"]: one for one in base["list"]}
    here = {one["number"]: one for one in mine["list"]}
    found = []
    for one in theirs["list"]:
        number = one["number"]
        if number in here:
            was = before.get(number, one)
            found.append(dict(one, **{k: v for k, v in here[number].items() if v != was.get(k)}))
        elif number not in before:
            found.append(one)
    gone = set(before) - {one["number"] for one in theirs["list"]}
    return {"list": found, "next": max(mine["next"], theirs["next"])}, gone


def watch_forks(before: "Callable[[], None]", in_child: "Callable[[], None]") -> None:
    """Call functions at each fork: one before it, one in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_child=in_child)
        return
    for name in ("fork", "forkpty"):  # Python 3.6 tells of none
        setattr(os, name, _told(getattr(os, name), before, in_child))


def _told(fork: "Any", before: "Callable[[], None]", in_child: "Callable[[], None]") -> "Any":
    @functools.wraps(fork)
    def told() -> "Any":
        before()
        result = fork()
        in_child()
        return result

    return told


def watch_interpreters(started: "Callable[[str], None]") -> None:
    """Call `started` with how, whenever the program starts a Python interpreter that is no fork of it.

    All that subprocess and multiprocessing start goes through these functions.
    """
    for name in ("posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            setattr(os, name, _watched(getattr(os, name), 1, started))
    try:
        import _posixsubprocess
    except ImportError:
        return
    launch = _posixsubprocess.fork_exec
    _posixsubprocess.fork_exec = _watched(launch, 0, started)
    for table in _tables_of_modules():
        if getattr(table.get("subprocess"), "_fork_exec", None) is launch:
            table["subprocess"]._fork_exec = _posixsubprocess.fork_exec


def watch_replacement(before: "Callable[[], bool]", failed: "Callable[[], None]") -> None:
    """Call functions when the program is to have another one in its place: before, and where that has failed.

    All functions of `os` that do so go through these two. Whether `failed` is called, `before` says.
    """
    for name in ("execv", "execve"):
        setattr(os, name, _announced(getattr(os, name), before, failed))


def _announced(replace: "Any", before: "Callable[[], bool]", failed: "Callable[[], None]") -> "Any":
    @functools.wraps(replace)
    def announced(*args: "Any", **options: "Any") -> "Any":
        announces = before()
        try:
            return replace(*args, **options)
        finally:
            if announces:
                failed()

    return announced


def _watched(launch: "Any", place: int, started: "Callable[[str], None]") -> "Any":
    """A function that starts a program, whose arguments are the one at `place`."""

    @functools.wraps(launch)
    def watched(*args: "Any", **options: "Any") -> "Any":
        how = _how_started(args[place]) if len(args) > place else None
        if how is not None:
            started(how)
        return launch(*args, **options)

    return watched


def _how_started(args: "Any") -> "Optional[str]":
    """How a command line starts Python: `spawn`, `forkserver` or `python`; None: not at all, or only as a service."""
    try:
        words = [os.fsdecode(one) for one in args]
    except TypeError:
        return None
    if not words or not _PYTHON.match(os.path.basename(words[0])):
        return None
    for code, how in _SERVICES:
        if any(word.startswith(code) for word in words):
            return how
    return "python"
