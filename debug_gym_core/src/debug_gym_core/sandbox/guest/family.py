"""The processes of a command: all that descend from it, wherever they went."""

import contextlib
import os
import signal
import sys
import time

from .system import (
    below,
    exit_status,
    is_dying,
    kill_all,
    marked,
    process_count,
    process_parents,
    signal_each,
    start_times,
)

TYPE_CHECKING = False

KILL_PATIENCE = 1.0  # seconds after which a process that SIGKILL cannot end (it waits in the kernel) is given up
KILL_PAUSE = 0.002  # seconds for the killed to die in before it is looked who is left
HOLD = 0.5  # seconds for which a crowd is stopped while one of it is to notice a signal; less if it says something
CROWD = 50  # a command with more processes gets no grace: it may be a bomb, which leaves us hardly any time to run


class Family:
    """A command and what it started.

    Attributes:
        main: the command's own process, 0: it does not run yet
        status: how that ended, None: it has not
        marker: what its processes have in their environment where they do not become ours
        spared: the process of a zygote, which is no part of it
        childless: nobody is left to be waited for
        held: who is stopped for a while, until `hold_until`
    """

    def __init__(self, spared: int = 0) -> None:
        self.main = 0
        self.status = None  # type: int | None
        self.marker = ""
        self.spared = spared
        self.childless = False
        self.held = set()  # type: set[int]
        self.hold_until = 0.0
        self.before = {}  # type: dict[int, bytes]
        self.count_before = 0
        self.signalled = {}  # type: dict[int, set[int]]

    @property
    def running(self) -> bool:
        """Whether the command itself has not ended."""
        return self.status is None

    def descendants(self) -> "set[int]":
        """All of its processes that are alive."""
        parents = process_parents()
        found = below([os.getpid()], parents)
        if self.spared:
            found -= {self.spared} | below([self.spared], parents)
        if self.marker:
            found |= marked(self.marker) - {os.getpid()}
        if self.running and self.main:
            found.add(self.main)  # where there is no /proc
        return found

    def gone(self) -> bool:
        """Whether nothing is left of it."""
        return self.childless and not (self.marker and marked(self.marker))

    def reap(self) -> None:
        """Wait for those that have ended."""
        alone = False
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if process == 0:
                # Whoever dies while we look becomes ours before it is reaped: then we look again.
                self.childless = alone
                if alone or not self.spared or self.running or self.descendants():
                    return
                alone = True
                continue
            alone = False
            if process == self.main:
                self.status = exit_status(status)

    # -- signals

    def signal(self, process: int, number: int) -> int:
        """Signal one of its processes; returns how many (none or one) were there to notice."""
        there = self.running if process == self.main else process in self.descendants()
        found = {process} if there and not is_dying(process) else set()
        if found and number:
            self.hold_crowd(found)
        signal_each(found, number)
        return len(found)

    def checkpoint(self) -> None:
        """Remember who is there."""
        self.before = start_times(self.descendants() - {self.main})
        self.count_before = process_count()
        self.signalled = {}

    def since(self) -> "set[int]":
        """What the command started since the checkpoint."""
        known = {process for process, start in start_times(self.before).items() if self.before[process] == start}
        return self.descendants() - {self.main} - known - below(known, process_parents())

    def signal_since(self, number: int, itself: bool, most: "int | None", again: bool) -> int:
        """Signal what was started since the checkpoint, each process once unless `again`, and the command each time.

        The command is stopped meanwhile, so that it starts nothing that is missed. If it started more than `most`, all
        that are killed, without a chance to go on. Returns how many the others are.
        """
        main = [self.main] if itself and self.running and number not in (0, signal.SIGKILL) else []
        # Of a bomb all at once: it leaves hardly any time to look for each. What ran before shall else notice nothing.
        crowd = self.running and process_count() - self.count_before > CROWD
        if crowd:
            self.stop_group()
        signal_each(main, signal.SIGSTOP)
        since = self.since()
        alive = since if number != signal.SIGKILL and (most is None or len(since) <= most) else set()
        if alive is not since:
            if len(since) > CROWD and self.running and not crowd:
                crowd = True
                self.stop_group()
            self._kill_since()
        if number and number != signal.SIGKILL:
            fresh = alive - (set() if again else self.signalled.get(number, set()))
            self.signalled[number] = alive
            signal_each([*main, *fresh], number)
            signal_each([*alive, *main], signal.SIGCONT)
        if crowd and self.running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.main, signal.SIGCONT)
        return len(since)

    def _kill_since(self) -> None:
        fewest, end = sys.maxsize, 0.0
        while True:
            killed = kill_all(self.since)
            self.reap()  # the dead count against the limit of processes too
            if not killed:
                break
            if len(killed) < fewest:  # the more there are, the longer it takes on a busy machine
                fewest, end = len(killed), time.monotonic() + KILL_PATIENCE
            elif time.monotonic() >= end:
                break
            time.sleep(KILL_PAUSE)

    def hold_crowd(self, processes: "set[int]") -> None:
        """Stop all others but these for a while, if they are many: a bomb leaves them no time to notice a signal."""
        if process_count() <= CROWD:
            return
        others = self.descendants() - processes
        if len(others) > CROWD:
            self.hold_until = time.monotonic() + HOLD
            for _ in range(8):  # who is not stopped yet may fork meanwhile
                signal_each(others - self.held, signal.SIGSTOP)
                self.held |= others
                others = self.descendants() - processes
                if others <= self.held:
                    break

    def let_go(self) -> None:
        """Let those go on that are held."""
        held, self.held = self.held, set()
        if held:
            signal_each(held & self.descendants(), signal.SIGCONT)

    def stop_group(self) -> None:
        """Stop the command and what is still in its process group, at once and however many they are.

        What has the processor all the time would otherwise keep us from looking for its processes.
        """
        if self.running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.main, signal.SIGSTOP)

    def ask_to_end(self) -> bool:
        """Have everybody told to end; False: they are too many to be asked."""
        self.stop_group()
        others = self.descendants() - {self.main}
        if len(others) > CROWD:
            return False
        # The command itself first: it may clean up, and shall not take the death of its children for its own end.
        # Of the others the older ones, for the same reason: children are younger than their parents.
        processes = [*([self.main] if self.running else []), *sorted(others)]
        signal_each(processes, signal.SIGTERM)
        signal_each(processes, signal.SIGCONT)
        return True
