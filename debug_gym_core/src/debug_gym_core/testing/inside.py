"""Running Python in a sandbox: what the escape probes attempt, with the system calls that it takes."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from debug_gym_core.sandbox.session import Session

REFUSED = frozenset(("EPERM", "EACCES", "ENOSYS"))
"""What a refused system call says."""

_NO_CTYPES = "no ctypes"

# The numbers of system calls on x86_64 and aarch64; -1: the call does not exist there.
_NUMBERS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, -1),
    "iopl": (172, -1),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setscheduler": (144, 119),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}

# Also for Python 3.6. `call` returns what the system call does, or the name of its error.
_PRELUDE = """
import errno, json, os, platform, sys
try:
    import ctypes
except ImportError:
    print(json.dumps("no ctypes"))
    sys.exit()
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = json.loads(%r)
def call(name, *arguments):
    number = NUMBERS[name][platform.machine() != "x86_64"]
    if number < 0:
        return "ENOSYS"
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    given += [ctypes.c_long(0)] * (6 - len(given))
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *given)
    return errno.errorcode[ctypes.get_errno()] if result == -1 else result
def processes():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())
"""


def python(session: Session, code: str, timeout: float = 60, **values: Any) -> Any:
    """Run code in a sandbox, in its Python.

    Args:
        session: the sandbox
        code: prints JSON in its last line
        timeout: seconds
        values: variables of the code

    Returns:
        what the code printed
    """
    return said(session, _with(values) + textwrap.dedent(code), timeout)


def calls(session: Session, code: str, timeout: float = 60, **values: Any) -> Any:
    """As `python`, with `call(NAME, *ARGUMENTS)` for system calls and `processes()`; skips where there is no ctypes."""
    answer = python(session, prelude() + textwrap.dedent(code), timeout, **values)
    if answer == _NO_CTYPES:
        pytest.skip(f"{session.python} of the sandbox has no ctypes, so that it cannot make system calls")
    return answer


def prelude() -> str:
    """The code that `calls` puts before its own."""
    return _PRELUDE % json.dumps(_NUMBERS)


def said(session: Session, code: str, timeout: float) -> Any:
    """The JSON in the last line that code prints."""
    result = session.run([session.python, "-c", code], timeout=timeout)
    assert result.exit_status == 0 and not result.timed_out, result.output
    return json.loads(result.output.strip().splitlines()[-1])


def _with(values: dict[str, Any]) -> str:
    return "".join(f"{name} = {value!r}\n" for name, value in values.items())
