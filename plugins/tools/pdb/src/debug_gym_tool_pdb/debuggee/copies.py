"""Copies of the program that wait where it was stopped, to go on from there when they are asked to.

A copy is made by the C library's fork, of which Python hears nothing: no function that the program has registered runs
in it, and its random numbers and loops of events are what they were. That needs a program of one thread.

The program must not notice either. So the first process of a session is none of its: it has the others as its
children (a copy's own parent ends at once), passes the host's signals on to the one that is live, and ends as it does.
"""

import contextlib
import mmap
import os
import resource
import signal
import struct
import sys
import time

from debug_gym_core.debugging.inside.process import (
    INTERRUPT_SIGNAL,
    STACK_SIGNAL,
    _dumps,
    _exit,
    _getpid,
    _loads,
    _pack,
    _read,
    _signal,
    _unpack,
    _write,
    high_copy,
)

from .channel import _SIG_DFL, _SIG_IGN
from .outside import Outside, Unsuited, forget, most_copies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, List, Optional, Set, Tuple

    Json = Dict[str, Any]

MOST = 16
"""Copies that wait at a time: of more, every other of the older half goes."""

PAUSE = 0.0005
_SUBREAPER = 36
_LIVE = struct.Struct("=QQ")
"""In the memory that all share: the process that is live, the newest copy; behind it the copies that there are."""

_NUMBERS = [one for one in range(1, signal.NSIG) if one not in (32, 33)]  # those two are the C library's own
_close = os.close
_kill = os.kill
_listdir = os.listdir
_make_pipe = os.pipe
_mask = signal.pthread_sigmask
_pending = signal.sigpending
_sigtimedwait = signal.sigtimedwait
_sleep = time.sleep
_waitpid = os.waitpid


class Lost(Exception):
    """A copy that was asked to go on cannot, and what asked it has ended; says why."""


class Copy:
    """A copy that waits."""

    def __init__(self, number: int, process: int, descriptor: int, others: "Set[int]") -> None:
        """Know it.

        Args:
            number: of the stop where it waits
            process: its number
            descriptor: where it hears what it is asked
            others: processes that the program had started by then and that go on without it
        """
        self.number = number
        self.process = process
        self.descriptor = descriptor
        self.others = others

    def end(self) -> None:
        """End it."""
        _close(self.descriptor)  # which it sees, should it be another user's by now
        _send(self.process, signal.SIGKILL)


class Copies:
    """The copies of a program.

    Attributes:
        begun: whether copies can be made
    """

    def __init__(self) -> None:
        """Have none yet."""
        self.begun = False
        self._copies: "List[Copy]" = []

    def begin(self) -> str:
        """Make the calling process the one that the others are children of; it goes on in a child.

        Returns:
            why that cannot be; empty: it is done
        """
        try:
            import ctypes

            library = ctypes.PyDLL(None, use_errno=True)
            self._fork = _forking(library)
            refused = library.prctl(_SUBREAPER, 1, 0, 0, 0)
        except (ImportError, OSError, AttributeError) as error:
            return "this Python has no ctypes ({})".format(error)
        if refused:
            return "the system does not let a process keep those that descend from it"
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)
        self._first = _getpid()
        live = self._fork()
        if live > 0:
            _stay(self._shared)
        if live < 0:
            return "there is no room for another process"
        _LIVE.pack_into(self._shared, 0, _getpid(), 0)
        self._outside = Outside()
        self.begun = True
        return ""

    def there(self) -> "List[int]":
        """The numbers of the stops at which a copy waits."""
        for one in [one for one in self._copies if not _send(one.process, 0)]:  # the program may have killed it
            _close(one.descriptor)
            self._copies.remove(one)
        return [one.number for one in self._copies]

    def keep(self, number: int) -> "Tuple[Optional[Json], str]":
        """Have a copy wait at a stop.

        Args:
            number: of the stop

        Returns:
            what it was asked, in a copy that goes on, else None; and why no copy waits, empty: one does

        Raises:
            Lost: in a copy that was asked to go on and cannot
        """
        asked: "Optional[Json]" = None
        while True:
            try:
                self._outside.check()
                state = self._outside.state()
                reader = self._copy(number)
            except Unsuited as error:
                return asked, str(error)
            except Exception as error:  # of the system, or of what the program has put in its way
                return asked, "it cannot be copied ({})".format(error)
            if reader is None:
                return asked, ""
            try:
                asked = _wait(reader)
                state.put_back()
            except Exception as error:
                raise Lost("{} {}".format(type(error).__name__, error).strip()) from None
            _mask(signal.SIG_SETMASK, self._unblocked)

    def _copy(self, number: int) -> "Optional[int]":
        """Make a copy; returns where it hears what it is asked, in the copy itself."""
        most = most_copies(MOST)
        while len(self._copies) >= max(most, 1):
            older = self._copies[1 : len(self._copies) // 2 : 2]  # the first stays, as the way back to the beginning
            for one in older or self._copies[1:2] or self._copies[:1]:
                one.end()
                self._copies.remove(one)
        others = set(_children(self._first))
        reader, writer = _pipe()
        before = _pending()
        self._unblocked = _mask(signal.SIG_BLOCK, _NUMBERS)
        between = self._fork()
        if between == 0:
            try:
                copy = self._fork()
                if copy:  # what is between ends, so that the copy is a child of the first process
                    _LIVE.pack_into(self._shared, 0, _LIVE.unpack_from(self._shared)[0], max(copy, 0))
                    _exit(0)
                _close(writer)
            except BaseException:
                _exit(1)
            return reader
        _close(reader)
        if between > 0:
            with contextlib.suppress(OSError):  # the program ignores SIGCHLD: the kernel has waited
                _waitpid(between, 0)
            if signal.SIGCHLD not in before:
                forget(signal.SIGCHLD)
        process = _LIVE.unpack_from(self._shared)[1]
        _LIVE.pack_into(self._shared, 0, _getpid(), 0)
        _mask(signal.SIG_SETMASK, self._unblocked)
        if between < 0 or not process:
            _close(writer)
            raise OSError("there is no room for another process")
        self._outside.disregard(writer)
        self._copies.append(Copy(number, process, writer, others))
        data = b"".join(_pack("=Q", one.process) for one in self._copies) + bytes(8)
        self._shared[_LIVE.size : _LIVE.size + len(data)] = data
        return None

    def go(self, number: int, message: "Json") -> None:
        """Have a copy go on in the place of this process, which ends; returns when the copy has ended.

        Args:
            number: of its stop
            message: what it is to know
        """
        copy = next(one for one in self._copies if one.number == number)
        # Of a future that there is not any more: newer copies, what the program has started, whoever has that now.
        known = copy.others.union(one.process for one in self._copies if one.number <= number)
        orphans = set(_children(self._first)) - known - {_getpid()}
        ends = list(dict.fromkeys([*_descendants(_getpid()), *orphans, *(d for o in orphans for d in _descendants(o))]))
        data = _dumps(dict(message, gone=[_getpid(), *ends])).encode()
        data = _pack("=Q", len(data)) + data
        mask = _mask(signal.SIG_BLOCK, [signal.SIGPIPE])
        _LIVE.pack_into(self._shared, 0, copy.process, 0)
        try:
            while data:
                data = data[_write(copy.descriptor, data) :]
        except OSError:
            _LIVE.pack_into(self._shared, 0, _getpid(), 0)
            if signal.SIGPIPE not in mask:
                _sigtimedwait([signal.SIGPIPE], 0)
            _mask(signal.SIG_SETMASK, mask)
            return
        for process in ends:
            _send(process, signal.SIGKILL)
        _exit(0)


def _forking(library: "Any") -> "Callable[[], int]":
    """The C library's fork, after which Python still hears signals; up to 3.7 only the process does that it knows."""
    fork: "Callable[[], int]" = library.fork
    if sys.version_info >= (3, 8):
        return fork
    listen = getattr(library, "_PySignal_AfterFork", None) or library.PyOS_AfterFork

    def fork_and_listen() -> int:
        process = fork()
        if process == 0:
            listen()
        return process

    return fork_and_listen


def _stay(shared: "mmap.mmap") -> None:
    """Wait for the live process to end, and end as it did; called in the first process, which has nothing to lose."""

    def pass_on(signum: int, frame: "Optional[FrameType]") -> None:
        live = _LIVE.unpack_from(shared)[0]
        if live:
            _send(live, signum)

    for number in _NUMBERS:
        if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
            _signal(number, pass_on if number in (INTERRUPT_SIGNAL, STACK_SIGNAL) else _SIG_IGN)
    _signal(signal.SIGCHLD, _SIG_DFL)
    for name in _listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the one that was listed by
            _close(int(name))
    while True:
        process, status = _waitpid(-1, 0)
        if process == _LIVE.unpack_from(shared)[0]:
            break
    place = _LIVE.size
    while _unpack("=Q", shared[place : place + 8])[0]:
        _send(_unpack("=Q", shared[place : place + 8])[0], signal.SIGKILL)
        place += 8
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # there is one of the live process
        if os.WTERMSIG(status) != signal.SIGKILL:
            _signal(os.WTERMSIG(status), _SIG_DFL)
        _kill(_getpid(), os.WTERMSIG(status))
    _exit(os.WEXITSTATUS(status))


def _wait(reader: int) -> "Json":
    """Wait in a copy until it is asked to go on, and those have ended that are to; end when nobody can ask it."""
    (size,) = _unpack("=Q", _take(reader, 8))
    message: "Json" = _loads(_take(reader, size).decode())
    _close(reader)
    for process in message["gone"]:
        while _send(process, 0):
            _sleep(PAUSE)
    return message


def _take(reader: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = _read(reader, size - len(data))
        if not chunk:
            _exit(0)
        data += chunk
    return data


def _pipe() -> "Tuple[int, int]":
    """A pipe out of the way of the program's own descriptors."""
    low = _make_pipe()
    high: "List[int]" = []
    try:
        for one in low:
            high.append(high_copy(one, 3 * MOST))
    except BaseException:
        for one in high:
            _close(one)
        raise
    finally:
        for one in low:
            _close(one)
    return high[0], high[1]


def _send(process: int, number: int) -> bool:
    """Signal a process, that of another user in vain; returns whether it is there: it may have ended."""
    try:
        _kill(process, number)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _children(process: int) -> "List[int]":
    """The processes whose parent is one."""
    found: "List[int]" = []
    directory = "/proc/{}/task".format(process)
    with contextlib.suppress(OSError):  # it has ended
        for task in _listdir(directory):
            with open("{}/{}/children".format(directory, task), "rb") as file:
                found += map(int, file.read().split())
    return found


def _descendants(process: int) -> "List[int]":
    """The processes that descend from one."""
    found = _children(process)
    for one in found:
        found += _children(one)
    return found
