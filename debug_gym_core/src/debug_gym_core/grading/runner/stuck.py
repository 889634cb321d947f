"""Tells where a run is that takes too long, when the host asks: by a signal, to which nothing of a test's listens.

Python itself writes the stack to what was the error output at the start, in one long call of C code too. What is still
in buffers follows over the channel, where Python code can run.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .channel import Send

SIGNAL = 45
"""A signal of those that have no meaning, on every C library."""

PRINTED = 8000
"""Characters of what was printed that are sent, the last ones."""


def watch(send: "Send", captured: "Callable[[], str]") -> None:
    """Answer the host's signal.

    Args:
        send: reports to the host
        captured: what the test that is running has printed, as far as its runner keeps it
    """
    owner, getpid = os.getpid(), os.getpid
    streams = (sys.stdout, sys.stderr)

    def tell(signum: int, frame: "Any") -> None:
        if getpid() != owner:
            return
        printed = ""
        try:
            for stream in streams:
                stream.flush()
            printed = captured()[-PRINTED:]
        except BaseException:  # The signal may come in the middle of a write, or the test has closed its output.
            pass
        send("stuck", printed=printed)

    try:
        import faulthandler
        import fcntl
        import signal

        errors = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 100)
        signal.signal(SIGNAL, tell)
        faulthandler.register(SIGNAL, errors, all_threads=True, chain=True)
    except (ImportError, AttributeError, OSError, ValueError):
        pass  # Then the run ends without having told.
