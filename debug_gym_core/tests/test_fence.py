"""What the guest runs can neither end, stop nor trace the guest, where nobody may gain privileges (Landlock)."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable

import pytest

from debug_gym_core.sandbox.guest.system import SCOPES_SIGNALS
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing import is_alive

NO_NEW_PRIVILEGES = """
import ctypes, os, sys
zero = ctypes.c_ulong(0)
assert ctypes.CDLL(None).prctl(38, ctypes.c_ulong(1), zero, zero, zero) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""

TRY = """
import ctypes, errno, json, os, signal, sys
guest, told = int(sys.argv[1]), []
with open("/proc/%d/task/%d/children" % (guest, guest)) as file:
    others = {guest, *map(int, file.read().split())} - {os.getppid()}
for process in others:
    refused = []
    for act in (
        lambda: os.kill(process, 0),
        lambda: os.kill(process, signal.SIGCONT),
        lambda: os.kill(process, signal.SIGSTOP),
        lambda: os.kill(process, signal.SIGKILL),
        lambda: open("/proc/%d/mem" % process, "rb").close(),
        lambda: os.readlink("/proc/%d/exe" % process),
    ):
        try:
            act()
        except OSError as error:
            refused.append(errno.errorcode[error.errno])
    told.append(refused)
print(json.dumps(told))
"""


@pytest.fixture
def fenced(open_session: Callable[..., Session]) -> Session:
    """A session in which nobody may gain privileges, as in containers by default."""
    version = ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), 1)
    if version < SCOPES_SIGNALS:
        pytest.skip("this kernel does not keep programs from signalling others: it needs Linux 6.12 with Landlock")
    return open_session(before=[sys.executable, "-I", "-S", "-c", NO_NEW_PRIVILEGES])


def test_commands_reach_nothing_of_the_guest_but_what_runs_them(fenced: Session) -> None:
    fenced.write("kept", b"content")  # now there is a process for files
    guest = fenced.guest()
    assert not any("commands can stop" in note for note in guest["notes"])
    told = json.loads(fenced.run([fenced.python, "-c", TRY, str(guest["pid"])]).output)
    assert len(told) > 1
    assert all(one == ["EPERM"] * 4 + ["EACCES"] * 2 for one in told), told
    assert fenced.read("kept") == b"content"
    assert fenced.restarts == 0


def test_a_command_s_processes_are_its_own_to_signal(fenced: Session) -> None:
    done = fenced.run("trap 'echo heard; exit 3' USR1; (kill -USR1 $$); sleep 20")
    assert (done.output, done.exit_status) == ("heard\n", 3)
    left = fenced.run("setsid sleep 1000 & echo $!")
    assert not is_alive(int(left.output))
    process = fenced.process("trap 'exit 5' INT; echo on; while :; do sleep 0.01; done", channel=False, follow=True)
    assert process.read_text(10) == b"on\n"
    process.signal(signal.SIGINT)
    assert process.wait(20) == 5


def test_where_privileges_may_be_gained_nothing_changes(session: Session) -> None:
    """As on `local`, where commands are as free as who started them."""
    guest = session.guest()
    assert any("commands can stop and kill the guest" in note for note in guest["notes"])
    assert session.run(f"kill -0 {guest['pid']} {os.getpid()}").exit_status == 0
