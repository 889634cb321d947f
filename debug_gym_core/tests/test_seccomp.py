"""The filter of system calls, run by a small interpreter of classic BPF; what the kernel does is in test_escape."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.sandbox import seccomp

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
EPERM = ERRNO | errno.EPERM


def decide(machine: str, number: int, arguments: tuple[int, ...] = (), audit: int | None = None) -> int:
    """What the filter answers to a call."""
    packed = [argument & 2**64 - 1 for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("<IIQ6Q", number, AUDIT[machine] if audit is None else audit, 0, *packed)
    program = list(struct.iter_unpack("<HBBI", seccomp.program(machine)))
    place, accumulator = 0, 0
    while True:
        code, then, otherwise, value = program[place]
        place += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif code == 0x06:
            return value
        else:
            true = {
                0x15: accumulator == value,
                0x25: accumulator > value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[code]
            place += then if true else otherwise


@pytest.mark.parametrize(("machine", "read", "ptrace", "mount"), [("x86_64", 0, 101, 165), ("aarch64", 63, 117, 40)])
def test_table_of_each_processor(machine: str, read: int, ptrace: int, mount: int) -> None:
    assert decide(machine, read) == ALLOW
    assert decide(machine, ptrace) == EPERM
    assert decide(machine, mount) == EPERM
    assert decide(machine, 425) == EPERM  # io_uring_setup
    assert decide(machine, 435) == ERRNO | errno.ENOSYS  # clone3
    assert decide(machine, seccomp.NEWEST + 1) == ERRNO | errno.ENOSYS


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_other_architectures_kill(machine: str) -> None:
    others = {"x86_64": [0x40000003, AUDIT["aarch64"]], "aarch64": [0x40000028, AUDIT["x86_64"]]}[machine]
    assert [decide(machine, 1, audit=other) for other in others] == [KILL, KILL]


def test_x32_kills() -> None:
    assert decide("x86_64", 0x40000000 | 101) == KILL


@pytest.mark.parametrize(("machine", "clone"), [("x86_64", 56), ("aarch64", 220)])
def test_clone_makes_processes_but_no_namespaces(machine: str, clone: int) -> None:
    assert decide(machine, clone, (17,)) == ALLOW
    assert decide(machine, clone, (0x3D0F00,)) == ALLOW  # a thread
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert decide(machine, clone, (flag | 17,)) == EPERM


@pytest.mark.parametrize(("machine", "ioctl"), [("x86_64", 16), ("aarch64", 29)])
@given(high=st.integers(0, 2**32 - 1))
def test_terminal_input_cannot_be_forged_by_high_bits(machine: str, ioctl: int, high: int) -> None:
    for request in (0x5412, 0x541C):
        assert decide(machine, ioctl, (0, high << 32 | request)) == EPERM
    assert decide(machine, ioctl, (0, 0x5413)) == ALLOW


@pytest.mark.parametrize(("machine", "socket"), [("x86_64", 41), ("aarch64", 198)])
def test_families_of_sockets(machine: str, socket: int) -> None:
    allowed = [family for family in range(64) if decide(machine, socket, (family,)) == ALLOW]
    assert allowed == [1, 2, 10, 16]
    assert [protocol for protocol in range(32) if decide(machine, socket, (16, 3, protocol)) == ALLOW] == [0]


@pytest.mark.parametrize(("machine", "prlimit"), [("x86_64", 302), ("aarch64", 261)])
@pytest.mark.parametrize("limits", [1, 1 << 40])
def test_resource_limits_of_others_can_be_read_only(machine: str, prlimit: int, limits: int) -> None:
    assert decide(machine, prlimit, (0, 7, limits, 0)) == ALLOW
    assert decide(machine, prlimit, (1, 7, 0, limits)) == ALLOW
    assert decide(machine, prlimit, (1, 7, limits, 0)) == EPERM


def test_no_program_for_an_unknown_processor() -> None:
    assert not seccomp.supported("s390x")
    with pytest.raises(KeyError):
        seccomp.program("s390x")
