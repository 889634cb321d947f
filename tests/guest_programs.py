"""Programs for the guest to run, and what is seen of them from outside."""

from __future__ import annotations

import contextlib
import textwrap
from pathlib import Path

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing import wait_until

ECHO = """
import os, struct, sys
channel = int(sys.argv[1])

def read(size):
    data = b""
    while len(data) < size:
        piece = os.read(channel, size - len(data))
        if not piece:
            sys.exit()
        data += piece
    return data

def receive():
    return read(struct.unpack(">I", read(4))[0])

def send(message):
    data = struct.pack(">I", len(message)) + message
    while data:
        data = data[os.write(channel, data):]
"""


def program(code: str) -> list[str]:
    return ["python3", "-c", ECHO + textwrap.dedent(code), "{channel}"]


def pids(session: Session, *names: str) -> list[int]:
    """The process ids that commands wrote to files."""
    wait_until(lambda: all(session.stat(name) is not None and session.read(name).endswith(b"\n") for name in names))
    return [int(session.read(name)) for name in names]


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == pid and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


# -- the end of commands

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def note(name):
    with open(name + ".new", "w") as file:
        file.write("%d\\n" % os.getpid())
    os.rename(name + ".new", name)
note("first")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        note("second")
        print("grandchild", flush=True)
        while True:
            time.sleep(1)
    os._exit(0)
"""
