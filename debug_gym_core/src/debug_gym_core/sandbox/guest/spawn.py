"""Starting programs."""

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NICE = 10  # of commands, so that whoever takes all processors cannot keep us from ending it


def spawn(
    argv: "list[bytes]",
    environment: "dict[bytes, bytes]",
    cwd: bytes,
    streams: "tuple[int, int]",
    passed: "Iterable[int]",
    terminal: bool,
) -> int:
    """Start a program in a session of its own; returns its process id, raises OSError that names what is wrong."""
    import subprocess

    def take_terminal() -> None:
        import fcntl
        import termios

        fcntl.ioctl(1, termios.TIOCSCTTY, 0)

    for descriptor in passed:
        os.set_inheritable(descriptor, True)
    # Without preexec_fn, subprocess starts the program by vfork, at a third of the price of a fork.
    process = subprocess.Popen(
        argv,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[1],
        cwd=cwd,
        env=environment,
        close_fds=False,
        start_new_session=True,
        preexec_fn=take_terminal if terminal else None,
    )
    process.returncode = 0  # the keeper waits for it itself
    settle(process.pid)
    return process.pid


def settle(process: int) -> None:
    """Put a new program in its place."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, NICE)
    prefer_as_victim(process, 500)  # when memory runs out, the kernel shall end the command and not us


def prefer_as_victim(process: int, score: int) -> None:
    """Say how soon the kernel shall end a process when memory runs out (-1000 to 1000)."""
    with contextlib.suppress(OSError), open("/proc/%d/oom_score_adj" % process, "wb", 0) as file:
        file.write(b"%d" % score)
