"""What SIGTERM and SIGHUP do to a command that has something to end in order."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

from debug_gym_core.cli import drop_lost_terminal
from debug_gym_core.postponed import Terminated


@contextlib.contextmanager
def ended_by_signals(before: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Have SIGTERM and SIGHUP end this block as Ctrl-C does, by `Terminated`.

    Args:
        before: is called first
    """

    def terminate(number: int, frame: object) -> None:
        before()
        if number == signal.SIGHUP:
            drop_lost_terminal()
        raise Terminated(number)

    with contextlib.ExitStack() as at_end:
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                at_end.callback(signal.signal, number, signal.signal(number, terminate))
        yield
