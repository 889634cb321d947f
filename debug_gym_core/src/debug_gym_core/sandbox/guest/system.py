"""The system's processes, as /proc and libc tell of them, how they are ended, and how we are kept from being ended."""

import collections
import contextlib
import os
import signal

from .frames import to_bytes

try:
    import ctypes
except ImportError:  # a Python built without libffi: orphans are then found by a marker in their environment
    ctypes = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

MARKER = "DEBUG_GYM_COMMAND"

PF_EXITING, PF_SIGNALED = 0x4, 0x400  # the kernel's flags of a process (include/linux/sched.h)


def _load_libc() -> "Any":
    if ctypes is None:
        return None
    try:
        return ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):
        return None


LIBC = _load_libc()
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_GET_NO_NEW_PRIVS = 39

# Landlock (include/uapi/linux/landlock.h); system calls that are this new have one number on all processors.
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_SCOPE_SIGNAL = 2
SCOPES_SIGNALS = 6  # the version that does first, of Linux 6.12


def prctl(option: int, value: int) -> bool:
    """Call prctl; False when it cannot be called or refuses."""
    if LIBC is None:
        return False
    try:
        zero = ctypes.c_ulong(0)
        return int(LIBC.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero)) == 0
    except AttributeError:
        return False


def can_be_fenced() -> bool:
    """Whether the kernel can keep programs from signalling those outside of a fence, here.

    It could wherever we are root too; but where programs may gain privileges, nobody asked for more protection.
    """
    if LIBC is None:
        return False
    zero = ctypes.c_ulong(0)
    if LIBC.prctl(ctypes.c_int(PR_GET_NO_NEW_PRIVS), zero, zero, zero, zero) != 1:
        return False
    version = LIBC.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION)
    return bool(version >= SCOPES_SIGNALS)


def fence() -> bool:
    """Keep this process, and all that it starts, from signalling and tracing any other; False: that cannot be."""
    if not can_be_fenced():
        return False
    rules = (ctypes.c_uint64 * 3)(0, 0, LANDLOCK_SCOPE_SIGNAL)  # of files, of the network, scopes
    descriptor = LIBC.syscall(LANDLOCK_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    if descriptor < 0:
        return False
    try:
        return int(LIBC.syscall(LANDLOCK_RESTRICT_SELF, descriptor, 0)) == 0
    finally:
        os.close(descriptor)


def shortcomings() -> "list[str]":
    """What cannot be done here, a line each."""
    found = []
    if LIBC is None:
        found.append("no ctypes in this Python: orphans are found by their environment")
    if not os.path.exists("/proc/self/stat"):
        found.append("no /proc: only a command's process group can be ended")
    if os.getpid() != 1 and not can_be_fenced():
        found.append("commands can stop and kill the guest (Linux 6.12 and no new privileges keep them from it)")
    return found


def memory_file(data: bytes) -> int:
    """A descriptor of a file that is in no directory, holds `data` and stands at its beginning."""
    descriptor = -1
    try:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("blob")
        elif LIBC is not None:
            descriptor = LIBC.memfd_create(b"blob", 1)
    except (OSError, AttributeError):
        pass
    if descriptor < 0:
        import tempfile

        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.set_inheritable(descriptor, False)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def told_of(process: "int | str", name: str) -> bytes:
    """A file of /proc on a process. Without `open`, which takes as long again: all are looked at often.

    Raises:
        OSError: there is no such process any more, or it must not be read
    """
    descriptor = os.open("/proc/%s/%s" % (process, name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(descriptor, 4096)]
        while len(parts[-1]) == 4096:
            parts.append(os.read(descriptor, 4096))
        return b"".join(parts)
    finally:
        os.close(descriptor)


def process_parents() -> "dict[int, int]":
    """The parent of every process that is not yet dead."""
    parents = {}  # type: dict[int, int]
    try:
        names = os.listdir("/proc")
    except OSError:
        return parents
    for name in names:
        if name.isdigit():
            try:
                fields = told_of(name, "stat")
            except OSError:
                continue
            # The name, in parentheses, may hold anything; behind it come state and parent.
            state, parent = fields[fields.rindex(b")") + 2 :].split(None, 2)[:2]
            if state not in (b"Z", b"X"):
                parents[int(name)] = int(parent)
    return parents


def process_count() -> int:
    """How many processes can be seen; much quicker than looking at each."""
    try:
        return sum(name.isdigit() for name in os.listdir("/proc"))
    except OSError:
        return 0


def is_dying(process: int) -> bool:
    """Whether a process carries out nothing any more: it was killed or is about to end, though still to be seen."""
    try:
        status, fields = told_of(process, "status"), told_of(process, "stat")
    except OSError:
        return os.path.isdir("/proc/self")
    lines = [line.split() for line in status.splitlines() if line.startswith((b"SigPnd:", b"ShdPnd:"))]
    killed = any(int(line[1], 16) >> (signal.SIGKILL - 1) & 1 for line in lines)
    flags = int(fields[fields.rindex(b")") + 2 :].split(None, 7)[6])
    return killed or bool(flags & (PF_EXITING | PF_SIGNALED))


def below(roots: "Iterable[int]", parents: "dict[int, int]") -> "set[int]":
    """All descendants of some processes, without these."""
    children = collections.defaultdict(list)  # type: collections.defaultdict[int, list[int]]
    for process, parent in parents.items():
        children[parent].append(process)
    found = set()  # type: set[int]
    todo = list(roots)
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def marked(marker: str) -> "set[int]":
    """The processes whose environment at their start held a command's marker."""
    wanted = b"\0" + to_bytes(MARKER + "=" + marker) + b"\0"
    found = set()
    for process in process_parents():
        try:
            if wanted in b"\0" + told_of(process, "environ") + b"\0":
                found.add(process)
        except OSError:
            continue
    return found


def start_times(processes: "Iterable[int]") -> "dict[int, bytes]":
    """When processes were started; their numbers alone may be used again."""
    found = {}
    for process in processes:
        with contextlib.suppress(OSError):
            fields = told_of(process, "stat")
            found[process] = fields[fields.rindex(b")") + 2 :].split(None, 20)[19]
    return found


def signal_each(processes: "Iterable[int]", number: int) -> None:
    """Send a signal to processes that may be gone or not ours."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def kill_all(find: "Callable[[], set[int]]") -> "set[int]":
    """Kill the processes that `find` returns; they are stopped first, so that they cannot fork faster than we look."""
    stopped = set()  # type: set[int]
    for _ in range(8):
        fresh = find() - stopped
        if not fresh:
            break
        signal_each(fresh, signal.SIGSTOP)
        stopped |= fresh
    signal_each(stopped, signal.SIGKILL)
    return stopped


def exit_status(status: int) -> int:
    """The exit status, or minus the signal's number, of what waitpid returned."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def run_forked(main: "Callable[[], None]") -> "NoReturn":
    """Run the rest of a forked process; never returns, whatever happens."""
    status = 70
    try:
        main()
        status = 0
    except BaseException:
        import traceback

        with contextlib.suppress(OSError):
            os.write(2, traceback.format_exc()[-2000:].encode("utf-8", "backslashreplace"))
    finally:
        os._exit(status)
