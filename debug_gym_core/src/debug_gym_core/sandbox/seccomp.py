"""The filter of system calls: a classic BPF program, assembled here, that sandbox backends load.

Format: `struct sock_filter` and `struct seccomp_data` of linux/filter.h and linux/seccomp.h. Everything is allowed but
what reaches into the kernel or into other processes; those calls fail with EPERM, so that programs can cope. Calls
newer than the table fail with ENOSYS, as on an older kernel. Another architecture's calls (32 bit, x32) kill.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass

_LOAD, _EQUAL, _GREATER, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000

NEWEST = 466
"""The newest call that the table knows (removexattrat, Linux 6.13)."""

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET; clone3 cannot be looked into and does not exist here.
_CLONE_NEW = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE = 0

# The numbers on x86_64 and aarch64 (None: the call does not exist there).
_DENIED: dict[str, tuple[int, int | None]] = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # the kernel itself
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "create_module": (174, None),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "query_module": (178, None),
    "get_kernel_syms": (177, None),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "lookup_dcookie": (212, 18),
    "syslog": (103, 116),
    "nfsservctl": (180, 42),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "modify_ldt": (154, None),
    "fanotify_init": (300, 262),
    # keys
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # the machine
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "iopl": (172, None),
    "ioperm": (173, None),
    "vhangup": (153, 58),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
}

_ON_REQUEST: dict[str, tuple[int, int | None]] = {"shmget": (29, 194)}


@dataclass(frozen=True)
class _Machine:
    """What differs between processors: AUDIT_ARCH_*, which column of the table, and four calls with arguments."""

    audit: int
    column: int
    clone: int
    ioctl: int
    socket: int
    prlimit: int


_MACHINES = {
    "x86_64": _Machine(audit=0xC000003E, column=0, clone=56, ioctl=16, socket=41, prlimit=302),
    "aarch64": _Machine(audit=0xC00000B7, column=1, clone=220, ioctl=29, socket=198, prlimit=261),
}
_CLONE3 = 435


def supported(machine: str | None = None) -> bool:
    """Whether there is a filter for a processor (`platform.machine()` when None)."""
    return (machine or platform.machine()) in _MACHINES


def program(machine: str | None = None, also: Iterable[str] = ()) -> bytes:
    """Assemble the filter.

    Args:
        machine: `x86_64` or `aarch64`; None: this machine's
        also: further calls to deny: `shmget`

    Returns:
        an array of `struct sock_filter`

    Raises:
        KeyError: there is no table for the machine
    """
    target = _MACHINES[machine or platform.machine()]
    rows = {**_DENIED, **{name: _ON_REQUEST[name] for name in also}}
    denied = [number for row in rows.values() if (number := row[target.column]) is not None]
    # Their low halves: both processors are little-endian.
    first_argument, second_argument, third_argument = _ARGUMENTS, _ARGUMENTS + 8, _ARGUMENTS + 16
    lines: list[_Line] = [
        _Line(_LOAD, _ARCHITECTURE),
        _Line(_EQUAL, target.audit, otherwise="kill"),
        _Line(_LOAD, _NUMBER),
    ]
    if target.column == 0:
        lines.append(_Line(_AT_LEAST, _X32, then="kill"))
    lines += [
        _Line(_GREATER, NEWEST, then="absent"),
        _Line(_EQUAL, _CLONE3, then="absent"),
        _Line(_EQUAL, target.clone, then="clone"),
        _Line(_EQUAL, target.ioctl, then="ioctl"),
        _Line(_EQUAL, target.socket, then="socket"),
        _Line(_EQUAL, target.prlimit, then="prlimit"),
        *(_Line(_EQUAL, number, then="deny") for number in sorted(denied)),
        _Line(_RETURN, _ALLOW),
        _Line(_LOAD, first_argument, label="clone"),
        _Line(_ANY_BIT, _CLONE_NEW, then="deny", otherwise="allow"),
        _Line(_LOAD, second_argument, label="ioctl"),
        _Line(_EQUAL, _TIOCSTI, then="deny"),
        _Line(_EQUAL, _TIOCLINUX, then="deny", otherwise="allow"),
        _Line(_LOAD, first_argument, label="socket"),
        _Line(_EQUAL, _AF_UNIX, then="allow"),
        _Line(_EQUAL, _AF_INET, then="allow"),
        _Line(_EQUAL, _AF_INET6, then="allow"),
        _Line(_EQUAL, _AF_NETLINK, otherwise="no family"),
        _Line(_LOAD, third_argument),
        _Line(_EQUAL, _NETLINK_ROUTE, then="allow"),
        _Line(_RETURN, _ERRNO | errno.EAFNOSUPPORT, label="no family"),
        # Of others, which the guest may be, resource limits can be read and not set. The pointer has two halves.
        _Line(_LOAD, first_argument, label="prlimit"),
        _Line(_EQUAL, 0, then="allow"),
        _Line(_LOAD, third_argument),
        _Line(_EQUAL, 0, otherwise="deny"),
        _Line(_LOAD, third_argument + 4),
        _Line(_EQUAL, 0, then="allow", otherwise="deny"),
        _Line(_RETURN, _ALLOW, label="allow"),
        _Line(_RETURN, _ERRNO | errno.EPERM, label="deny"),
        _Line(_RETURN, _ERRNO | errno.ENOSYS, label="absent"),
        _Line(_RETURN, _KILL, label="kill"),
    ]
    return _assemble(lines)


@dataclass(frozen=True)
class _Line:
    """One instruction; jumps name a label, or go on to the next line."""

    code: int
    value: int
    then: str | None = None
    otherwise: str | None = None
    label: str | None = None


def _assemble(lines: list[_Line]) -> bytes:
    """Turn labels into distances."""
    places = {line.label: number for number, line in enumerate(lines) if line.label is not None}

    def distance(number: int, label: str | None) -> int:
        return 0 if label is None else places[label] - number - 1

    return b"".join(
        struct.pack("<HBBI", line.code, distance(number, line.then), distance(number, line.otherwise), line.value)
        for number, line in enumerate(lines)
    )
