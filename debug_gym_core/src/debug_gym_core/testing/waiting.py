"""Waiting for what happens elsewhere, and looking at processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

# Prints the processes with a text in their command line or environment, seen from where it runs. A command cannot read
# the environment of another's where Landlock keeps it from that, but every command line.
FIND = """
import os, sys
wanted = sys.argv[1].encode()
for pid in filter(str.isdigit, os.listdir("/proc")):
    found = False
    for name in ("stat", "cmdline", "environ"):
        try:
            with open("/proc/%s/%s" % (pid, name), "rb") as file:
                text = file.read()
        except OSError:
            continue
        if name != "stat":
            found = found or wanted in text
        elif text.rpartition(b")")[2].split()[0] in b"ZX":
            break
    if found and int(pid) != os.getpid():
        print(pid)
"""


def wait_until(condition: Callable[[], bool], failure: str = "it did not happen in time", seconds: float = 10) -> None:
    """Wait for a condition.

    Args:
        condition: is asked again and again
        failure: what to say when it does not come true
        seconds: how long to wait

    Raises:
        AssertionError: it did not come true in time
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, failure
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process of this machine runs; one that has ended and is not waited for does not.

    Args:
        pid: its number
    """
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def processes_with(text: str) -> list[int]:
    """Processes of this machine, in sandboxes too, that have a text in their environment or command line.

    Args:
        text: a value that nothing else has
    """
    find = subprocess.run([sys.executable, "-c", FIND, text], capture_output=True, text=True, check=True)
    return [int(pid) for pid in find.stdout.split()]
