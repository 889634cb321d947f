"""What a program has outside of its memory: whether a copy of it could go on with that, and what is put back."""

import contextlib
import os
import re
import resource
import signal
import stat
import sys
import time

from debug_gym_core.debugging.inside.process import _current_frames, _getpid, _getsignal, _setitimer, _signal

from .channel import _SIG_IGN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Set, Tuple

ROOM = 1 << 30
"""Bytes that all copies may come to have: in the end, each may have all memory of the program for itself."""

CONTENTS = 4 << 20
"""Bytes in files without a name that are kept with a copy."""

FEWEST_FILES = 128
"""How many descriptors a program must be allowed to have, so that ours are out of its way."""

RESTARTING = ("numpy",)
"""Modules whose native threads start again by themselves after a fork."""

ENDING = 20
"""Milliseconds in which a thread ends that Python has joined."""

_TIMERS = (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_LOCK = re.compile(rb"^lock:", re.MULTILINE)
_fstat = os.fstat
_ftruncate = os.ftruncate
_getitimer = signal.getitimer
_getrlimit = resource.getrlimit
_kill = os.kill
_listdir = os.listdir
_lseek = os.lseek
_pending = signal.sigpending
_pread = os.pread
_pwrite = os.pwrite
_readlink = os.readlink
_sleep = time.sleep
_waitid = os.waitid


class Unsuited(Exception):
    """No copy of the program could go on; says why."""


class Outside:
    """What this process has outside of its memory, as it was when it was made."""

    def __init__(self) -> None:
        """Find out what there is before the program begins: ours, and its standard streams."""
        self._own = {identity for _, identity in _descriptors()}
        self._mappings: "Optional[int]" = None

    def disregard(self, descriptor: int) -> None:
        """A descriptor is ours."""
        self._own.add(_identity(_fstat(descriptor)))

    def check(self) -> None:
        """Make sure that a copy of the process could go on.

        Raises:
            Unsuited: it could not, as it has not all that the program has, or the program would have it no more alone
            OSError: it cannot be looked at
        """
        threads = len(_current_frames())
        if threads > 1:
            raise Unsuited("the program has {} threads".format(threads))
        if _has_native_threads():
            raise Unsuited("the program has a thread that is not Python's")
        try:
            _waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            raise Unsuited("the program has child processes")
        except ChildProcessError:
            pass
        if not most_copies(1):
            raise Unsuited("the program uses more than {} MB".format(ROOM // 2 >> 20))
        if _getrlimit(resource.RLIMIT_NOFILE)[0] < FEWEST_FILES:
            raise Unsuited("the program may not open {} files".format(FEWEST_FILES))
        self._check_descriptors()
        with open("/proc/self/maps", "rb") as file:
            mappings = file.read().count(b" rw-s ")
        if self._mappings is None:
            self._mappings = mappings
        if mappings > self._mappings:
            raise Unsuited("the program has memory that processes share")

    def state(self) -> "State":
        """What is to be put back where a copy goes on.

        Raises:
            Unsuited: it is too much
            OSError: it cannot be looked at
        """
        return State([one for one in _descriptors() if one[1] not in self._own])

    def _check_descriptors(self) -> None:
        """A copy would keep open what the program closes: who is at the other end would not hear of it."""
        loops = _of_event_loops()
        for descriptor, identity in _descriptors():
            if identity in self._own or descriptor in loops:
                continue
            mode = identity[2]
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                raise Unsuited("the program has a pipe or a socket open")
            if stat.S_ISREG(mode):
                with open("/proc/self/fdinfo/{}".format(descriptor), "rb") as file:
                    if _LOCK.search(file.read()):
                        raise Unsuited("the program holds a lock on a file")
            elif not (stat.S_ISDIR(mode) or stat.S_ISCHR(mode)):
                raise Unsuited("the program has {} open".format(_readlink("/proc/self/fd/{}".format(descriptor))))


def most_copies(limit: int) -> int:
    """How many copies, `limit` at most, there may be of the memory that the program has for itself."""
    with open("/proc/self/statm", "rb") as file:
        _, resident, shared = map(int, file.read().split()[:3])
    used = (resident - shared) * resource.getpagesize()
    return min(limit, ROOM // max(used, 1)) if used * 2 <= ROOM else 0


def _has_native_threads() -> bool:
    """Whether there are threads that Python does not know and that a fork would leave behind."""
    if any(name in sys.modules for name in RESTARTING):
        return False
    for _ in range(ENDING):
        if len(_listdir("/proc/self/task")) == 1:
            return False
        _sleep(0.001)
    return True


class State:
    """What is put back of it where a copy goes on, since a fork has it in common with its parent or has it not."""

    def __init__(self, descriptors: "List[Tuple[int, Tuple[int, int, int]]]") -> None:
        """Remember it; see `Outside.state`."""
        self._files: "Dict[int, Tuple[Tuple[int, int, int], int, Optional[bytes]]]" = {}
        room = CONTENTS
        for descriptor, identity in descriptors:
            mode = identity[2]
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                continue
            contents = None
            try:
                status = _fstat(descriptor)
                place = _lseek(descriptor, 0, os.SEEK_CUR)
                if stat.S_ISREG(mode) and not status.st_nlink:
                    if status.st_size > room:
                        raise Unsuited("its temporary files have more than {} MB".format(CONTENTS >> 20))
                    contents = _pread(descriptor, status.st_size, 0)
                    room -= len(contents)
            except OSError:  # it is no file to read
                continue
            self._files[descriptor] = (identity, place, contents)
        self._timers = [(which, _getitimer(which)) for which in _TIMERS]
        self._pending = _pending()

    def put_back(self) -> None:
        """Have the process as it was; what was written to files with a name stays."""
        for descriptor, (identity, place, contents) in self._files.items():
            try:
                if _identity(_fstat(descriptor)) != identity:
                    continue
                if contents is not None and _pread(descriptor, len(contents) + 1, 0) != contents:
                    _ftruncate(descriptor, 0)
                    _pwrite(descriptor, contents, 0)
                _lseek(descriptor, place, os.SEEK_SET)
            except OSError:  # it may only be read, and so was not written to
                pass
        for which, timer in self._timers:
            _setitimer(which, *timer)
        for number in _pending():
            forget(number)
        for number in self._pending:
            _kill(_getpid(), number)


def forget(number: int) -> None:
    """Let a signal be gone that waits because it is blocked."""
    handler = _getsignal(number)
    if handler is not None:  # None: not Python's own
        _signal(number, _SIG_IGN)
        _signal(number, handler)


def _identity(status: "os.stat_result") -> "Tuple[int, int, int]":
    return status.st_dev, status.st_ino, status.st_mode


def _descriptors() -> "List[Tuple[int, Tuple[int, int, int]]]":
    """The open descriptors, and what each is."""
    found = []
    for name in _listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # of the one that they were listed by
            found.append((int(name), _identity(_fstat(int(name)))))
    return found


def _of_event_loops() -> "Set[int]":
    """The descriptors by which asyncio's loops wait for themselves, where they wait for nothing else."""
    found: "Set[int]" = set()
    for loop in event_loops():
        try:
            if len(loop._selector.get_map()) <= 1:
                found.update((loop._selector.fileno(), loop._ssock.fileno(), loop._csock.fileno()))
        except Exception:  # it is closed, or of another kind
            pass
    return found


def event_loops() -> "List[Any]":
    """The loops of events that asyncio knows: the one that runs the program first, if any does."""
    events = sys.modules.get("asyncio.events")
    found = []
    try:
        if events is not None:
            found.append(events._get_running_loop())
            policy = events._event_loop_policy
            found.append(getattr(getattr(policy, "_local", None), "_loop", None))
    except Exception:  # it is something of the program's own
        pass
    return [loop for loop in found if loop is not None]
