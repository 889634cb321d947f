"""Interactive programs in the sandbox as pexpect objects: `expect`, `sendline` and the rest as on one's own machine."""

from __future__ import annotations

import codecs
import time
from typing import TYPE_CHECKING

import pexpect
from pexpect.spawnbase import SpawnBase

from debug_gym_core.process import Process

if TYPE_CHECKING:
    _Base = SpawnBase[str]
else:
    _Base = SpawnBase


class Spawn(_Base):
    r"""A pexpect spawn object over a PTY in the sandbox.

    Made by `Session.spawn`; see pexpect's documentation for what it can do. The PTY does not echo, and lines end in
    `\n` alone. `timeout` is in seconds, -1 means the object's own.

    Attributes:
        process: the program
        pid: its number in the sandbox
    """

    def __init__(self, process: Process, timeout: float | None = 30) -> None:
        """Talk to a program that was started with `pty` and `follow`."""
        super().__init__(timeout=timeout, encoding="utf-8", codec_errors="backslashreplace")
        self._text = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self.process = process
        self.pid = process.pid
        self.name = f"<program {process.pid} in the sandbox>"
        self.crlf = self.linesep = "\n"
        self.delaybeforesend = None
        self.delayafterread = None
        self.closed = self.terminated = False
        self._pending = ""

    def read_nonblocking(self, size: int = 1, timeout: float | None = -1) -> str:
        """Wait for output, at most `size` characters of it.

        Raises:
            pexpect.TIMEOUT: there was none
            pexpect.EOF: the program has ended and all that it printed was read
            SandboxLost: the guest is gone
        """
        seconds = self.timeout if timeout == -1 else timeout
        end = None if seconds is None else time.monotonic() + seconds
        while not self._pending:
            try:
                data = self.process.read_text(None if end is None else max(0.0, end - time.monotonic()))
            except TimeoutError:
                raise pexpect.TIMEOUT("Timeout exceeded.") from None
            self._pending = self._text.decode(data, final=not data)
            if not data and not self._pending:
                self.flag_eof = True
                raise pexpect.EOF("End Of File (EOF): the program has ended.")
        text, self._pending = self._pending[:size], self._pending[size:]
        self._write_logs(text, self.logfile_read)
        return text

    def send(self, text: str) -> int:
        """Type text; returns its size in bytes."""
        self._write_logs(text, self.logfile_send)
        data = text.encode()
        self.process.write_stdin(data)
        return len(data)

    def _write_logs(self, text: str, other: object) -> None:
        for log in (self.logfile, other):
            if log is not None:
                log.write(text)  # type: ignore[attr-defined]
                log.flush()  # type: ignore[attr-defined]

    def sendline(self, text: str = "") -> int:
        """Type a line."""
        return self.send(text + self.linesep)

    def write(self, text: str) -> None:
        """Type text."""
        self.send(text)

    def sendcontrol(self, char: str) -> int:
        """Press a key with Control: `c` interrupts."""
        return self.send(chr(ord(char.upper()) ^ 64))

    def sendintr(self) -> None:
        """Press Control-C."""
        self.sendcontrol("c")

    def sendeof(self) -> None:
        """Press Control-D: at the beginning of a line, the end of the input."""
        self.sendcontrol("d")

    def setwinsize(self, rows: int, columns: int) -> None:
        """Give the PTY another size."""
        self.process.resize(rows, columns)

    def isalive(self) -> bool:
        """Whether the program runs."""
        status = self.process.returncode
        if status is None:
            return True
        self.exitstatus, self.signalstatus = (status, None) if status >= 0 else (None, -status)
        self.terminated = True
        return False

    def wait(self) -> int:
        """Wait for the end; returns the exit status, or minus the signal's number."""
        status = self.process.wait()
        self.isalive()
        return status

    def kill(self, number: int) -> None:
        """Send the program a signal."""
        self.process.signal(number)

    def terminate(self, force: bool = True) -> bool:
        """End the program and every process that it left."""
        self.process.kill()
        return not self.isalive()

    def close(self, force: bool = True) -> None:
        """End the program and every process that it left."""
        self.process.kill()
        self.isalive()
        self.closed = True
