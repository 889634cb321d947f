"""What a session holds, ended also when the session is dropped without `close`."""

from __future__ import annotations

import _thread
import logging
import os
import signal
import threading
from typing import TYPE_CHECKING

from debug_gym_core.sandbox.supervision import supervisor

if TYPE_CHECKING:
    from debug_gym_core.sandbox.connection import Connection
    from debug_gym_core.sandbox.terminal import Terminal

log = logging.getLogger("debug_gym")


class Held:
    """A started terminal and the guest in it. Knows nothing of the session, which could not be dropped otherwise.

    Attributes:
        terminal: the backend
        connection: the live guest; None: there is none
        supervised: whether the supervisor counts it
    """

    def __init__(self, terminal: Terminal) -> None:
        """Hold a terminal.

        Args:
            terminal: the backend
        """
        self.terminal = terminal
        self.connection: Connection | None = None
        self.supervised = False
        self._owner = os.getpid()
        self._mutex = threading.Lock()
        self._killed = 0

    def memory_note(self, status: int) -> str:
        """What is told below the output of a command: that it was killed for want of memory; empty: it was not.

        Args:
            status: that it ended with; of a shell, of what it ran last
        """
        if status not in (-signal.SIGKILL, 128 + signal.SIGKILL):
            return ""
        before, self._killed = self._killed, self.terminal.out_of_memory()
        if self._killed == before:
            return ""
        return f"\n[killed: out of memory, of which the sandbox has {self.terminal.settings.memory}]\n"

    def end(self) -> None:
        """End the guest and stop the terminal; may be called twice."""
        with self._mutex:
            connection, self.connection = self.connection, None
            supervised, self.supervised = self.supervised, False
        try:
            if connection is not None:
                connection.close()
        finally:
            try:
                self.terminal.stop()
            finally:
                if supervised:
                    supervisor.end()

    def drop(self) -> None:
        """End it all, as nobody can reach the session any more. Not from a fork of its owner."""
        if os.getpid() == self._owner:
            # The garbage collector calls this wherever it happens to run, while any lock may be held: nothing is waited
            # for here, not even for the start of a thread, as `threading` would.
            _thread.start_new_thread(self._end_quietly, ())

    def _end_quietly(self) -> None:
        try:
            self.end()
        except Exception:
            log.warning("a sandbox that was dropped could not be ended", exc_info=True)
