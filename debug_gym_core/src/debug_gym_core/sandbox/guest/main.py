"""Where the guest begins."""

import contextlib
import os
import signal

from .loop import ignore_signal
from .supervisor import Supervisor
from .system import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, prctl

IGNORED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGTTOU,
    signal.SIGTTIN,
    signal.SIGTSTP,
)
"""What would end or stop us and is not meant for us; by a handler that does nothing, since SIG_IGN is inherited."""


def main() -> None:
    """Run the guest on standard input and output."""
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in range(1, signal.NSIG):  # what a parent of ours ignored, programs would inherit
        if number != signal.SIGPIPE and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in IGNORED:
        signal.signal(number, ignore_signal)
    try:
        inherited = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        inherited = list(range(3, 64))
    for descriptor in inherited:
        if descriptor > 2:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    os.umask(0o022)
    Supervisor().run()
