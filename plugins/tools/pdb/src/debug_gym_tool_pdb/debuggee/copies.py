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
import stat
import struct
import sys
import time

from debug_gym_core.debugging.inside.process import (
    INTERRUPT_SIGNAL,
    _dumps,
    _exit,
    _getpid,
    _getsignal,
    _loads,
    _pack,
    _read,
    _signal,
    _unpack,
    _write,
    high_copy,
)

from .channel import _SIG_DFL, _SIG_IGN, STACK_SIGNAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, List, Optional, Tuple

    Json = Dict[str, Any]

MOST = 16
"""Copies that wait at a time: of more, every other of the older half goes."""

ROOM = 1 << 30
"""Bytes that all copies may come to have: in the end, each may have all memory of the program for itself."""

MOST_FILES = 256
PAUSE = 0.0005
_SUBREAPER = 36
_LIVE = struct.Struct("=QQ")
"""In the memory that all share: the process that is live, the newest copy; behind it the copies that there are."""

_NUMBERS = [one for one in range(1, signal.NSIG) if one not in (32, 33)]  # those two are the C library's own
_close = os.close
_current_frames = sys._current_frames
_fstat = os.fstat
_ftruncate = os.ftruncate
_kill = os.kill
_listdir = os.listdir
_lseek = os.lseek
_make_pipe = os.pipe
_waitid = os.waitid
_waitpid = os.waitpid
_mask = signal.pthread_sigmask
_pending = signal.sigpending
_sleep = time.sleep


class Copy:
    """A copy that waits."""

    def __init__(self, number: int, process: int, descriptor: int) -> None:
        """Know it.

        Args:
            number: of the stop where it waits
            process: its number
            descriptor: where it hears what it is asked
        """
        self.number = number
        self.process = process
        self.descriptor = descriptor

    def end(self) -> None:
        """End it."""
        _close(self.descriptor)
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
        live = self._fork()
        if live > 0:
            _stay(self._shared)
        if live < 0:
            return "there is no room for another process"
        _LIVE.pack_into(self._shared, 0, _getpid(), 0)
        self.begun = True
        return ""

    def there(self) -> "List[int]":
        """The numbers of the stops at which a copy waits."""
        for one in [one for one in self._copies if not _send(one.process, 0)]:  # the program may have killed it
            _close(one.descriptor)
            self._copies.remove(one)
        return [one.number for one in self._copies]

    def why_not(self) -> str:
        """Why no copy can be made; empty: one can."""
        threads = len(_current_frames())
        if threads > 1:
            return "the program has {} threads".format(threads)
        try:
            _waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return "the program has child processes"
        except ChildProcessError:
            pass
        if not self._most():
            return "the program uses more than {} MB".format(ROOM // 2 >> 20)
        return ""

    def _most(self) -> int:
        """How many copies there may be of what the program has grown to."""
        with open("/proc/self/statm", "rb") as file:
            used = int(file.read().split()[1]) * mmap.PAGESIZE
        return min(MOST, ROOM // max(used, 1)) if used * 2 <= ROOM else 0

    def keep(self, number: int) -> "Optional[Json]":
        """Have a copy wait at a stop.

        Args:
            number: of the stop

        Returns:
            what it was asked, in a copy that goes on; None in the process itself

        Raises:
            OSError: no copy can be made
        """
        asked: "Optional[Json]" = None
        while True:
            files = _places()
            try:
                reader = self._copy(number)
            except OSError:
                if asked is None:
                    raise
                return asked  # it goes on all the same
            if reader is None:
                return asked
            asked = _wait(reader)
            _put_back(files)
            for waiting in _pending():
                _forget(waiting)
            _mask(signal.SIG_SETMASK, self._unblocked)

    def _copy(self, number: int) -> "Optional[int]":
        """Make a copy; returns where it hears what it is asked, in the copy itself."""
        most = self._most()
        while len(self._copies) >= max(most, 1):
            older = self._copies[1 : len(self._copies) // 2 : 2]  # the first stays, as the way back to the beginning
            for one in older or self._copies[:1]:
                one.end()
                self._copies.remove(one)
        reader, writer = _pipe()
        before = _pending()
        self._unblocked = _mask(signal.SIG_BLOCK, _NUMBERS)
        between = self._fork()
        if between == 0:
            copy = self._fork()
            if copy:  # what is between ends, so that the copy is a child of the first process
                _LIVE.pack_into(self._shared, 0, _LIVE.unpack_from(self._shared)[0], max(copy, 0))
                _exit(0)
            _close(writer)
            return reader
        _close(reader)
        if between > 0:
            with contextlib.suppress(OSError):  # the program ignores SIGCHLD: the kernel has waited
                _waitpid(between, 0)
            if signal.SIGCHLD not in before:
                _forget(signal.SIGCHLD)
        process = _LIVE.unpack_from(self._shared)[1]
        _LIVE.pack_into(self._shared, 0, _getpid(), 0)
        _mask(signal.SIG_SETMASK, self._unblocked)
        if between < 0 or not process:
            _close(writer)
            raise OSError("there is no room for another process")
        self._copies.append(Copy(number, process, writer))
        self._note()
        return None

    def _note(self) -> None:
        """Let the first process know which copies there are."""
        data = b"".join(_pack("=Q", one.process) for one in self._copies) + bytes(8)
        self._shared[_LIVE.size : _LIVE.size + len(data)] = data

    def go(self, number: int, message: "Json") -> None:
        """Have a copy go on in the place of this process, which ends; returns when the copy has ended.

        Args:
            number: of its stop
            message: what it is to know
        """
        copy = next(one for one in self._copies if one.number == number)
        data = _dumps(dict(message, process=_getpid())).encode()
        data = _pack("=Q", len(data)) + data
        piped = _signal(signal.SIGPIPE, _SIG_IGN)
        _LIVE.pack_into(self._shared, 0, copy.process, 0)
        try:
            while data:
                data = data[_write(copy.descriptor, data) :]
        except OSError:
            _LIVE.pack_into(self._shared, 0, _getpid(), 0)
            if piped is not None:
                _signal(signal.SIGPIPE, piped)
            return
        for one in self._copies:
            if one.number > number:
                one.end()
        for process in _descendants(_getpid()):  # of a future that there is not any more
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
    """Wait in a copy until it is asked to go on, and the process that asks is gone; ends when nobody can any more."""
    (size,) = _unpack("=Q", _take(reader, 8))
    message: "Json" = _loads(_take(reader, size).decode())
    _close(reader)
    while _send(message["process"], 0):
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
    ends = _make_pipe()
    high = [high_copy(one, 3 * MOST) for one in ends]
    for one in ends:
        _close(one)
    return high[0], high[1]


def _send(process: int, number: int) -> bool:
    """Signal a process; returns whether it was there: it may have ended."""
    try:
        _kill(process, number)
    except OSError:
        return False
    return True


def _forget(number: int) -> None:
    """Let a signal be gone that waits because it is blocked."""
    handler = _getsignal(number)
    if handler is not None:  # None: not Python's own
        _signal(number, _SIG_IGN)
        _signal(number, handler)


def _places() -> "Dict[int, Tuple[int, int, int, int]]":
    """Where the program is in its files: device, number and place, and the size of one that only it can see."""
    found = {}
    for name in _listdir("/proc/self/fd")[:MOST_FILES]:
        try:
            status = _fstat(int(name))
            if stat.S_ISREG(status.st_mode):
                size = -1 if status.st_nlink else status.st_size
                found[int(name)] = (status.st_dev, status.st_ino, _lseek(int(name), 0, os.SEEK_CUR), size)
        except OSError:  # what it was listed by, or is no file to read
            pass
    return found


def _put_back(places: "Dict[int, Tuple[int, int, int, int]]") -> None:
    """Be again where the program was in its files, which its copies share; what was written to them stays."""
    for descriptor, (device, number, place, size) in places.items():
        try:
            status = _fstat(descriptor)
            if (status.st_dev, status.st_ino) == (device, number):
                _lseek(descriptor, place, os.SEEK_SET)
                if size >= 0 and status.st_size > size:
                    _ftruncate(descriptor, size)
        except OSError:
            pass


def _descendants(process: int) -> "List[int]":
    """The processes that descend from one."""
    found = [process]
    for one in found:
        directory = "/proc/{}/task".format(one)
        try:
            for task in _listdir(directory):
                with open("{}/{}/children".format(directory, task)) as file:
                    found += map(int, file.read().split())
        except OSError:  # it has ended
            continue
    return found[1:]
