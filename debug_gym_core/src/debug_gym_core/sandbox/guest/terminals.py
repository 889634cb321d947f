"""PTYs of commands."""

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def open_terminal(rows: int, columns: int) -> "tuple[int, int]":
    """A PTY without echo and with plain line ends: master, slave."""
    import pty

    master, slave = pty.openpty()
    set_modes(slave)
    set_window(master, rows, columns)
    return master, slave


def set_modes(slave: int) -> None:
    """Put a PTY in the state in which programs find it: no echo, plain line ends, whatever one left behind."""
    import termios

    if not _fresh_modes:  # the first one ever opened here
        flags = termios.tcgetattr(slave)
        flags[1] &= ~termios.ONLCR
        flags[3] &= ~termios.ECHO
        _fresh_modes.extend(flags)
    termios.tcsetattr(slave, termios.TCSANOW, _fresh_modes)


_fresh_modes: "list[Any]" = []


def echo(slave: int, state: "bool | None") -> bool:
    """Whether a PTY echoes; first made so when `state` is not None."""
    import termios

    if slave < 0:
        return False
    flags = termios.tcgetattr(slave)
    if state is not None:
        flags[3] = flags[3] | termios.ECHO if state else flags[3] & ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, flags)
    return bool(flags[3] & termios.ECHO)


def set_window(terminal: int, rows: int, columns: int) -> None:
    """Say how large a PTY is."""
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
