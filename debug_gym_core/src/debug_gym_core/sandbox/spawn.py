"""Interactive programs in the sandbox as pexpect objects: `expect`, `sendline` and the rest as on one's own machine."""

from __future__ import annotations

import codecs
import signal
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pexpect
from pexpect.spawnbase import SpawnBase

from debug_gym_core.sandbox.process import Process

if TYPE_CHECKING:
    _Base = SpawnBase[str]
else:
    _Base = SpawnBase


class Spawn(_Base):
    r"""A pexpect spawn object over a PTY in the sandbox.

    Made by `Session.spawn`; see pexpect's documentation for what it can do. What differs: the PTY does not echo until
    `setecho(True)`, lines end in `\n` alone, no delay is made before sending, bytes that are no UTF-8 are read as
    escapes (`\xff`), `close` and `terminate` end every process that the program left, and there is no file descriptor.
    `timeout` is in seconds, -1 means the object's own. A guest that dies raises `SandboxLost` instead of `pexpect.EOF`.

    Attributes:
        process: the program
        pid: its number in the sandbox
        command: what was started
        exitstatus: the exit status once `isalive`, `wait` or `close` saw the end; None when a signal ended it
        signalstatus: the number of the signal that ended it, or None
    """

    def __init__(
        self,
        process: Process,
        timeout: float | None = 30,
        command: str | Sequence[str] = "",
    ) -> None:
        """Talk to a program that was started with `pty` and `follow`."""
        super().__init__(timeout=timeout, encoding="utf-8", codec_errors="backslashreplace", maxread=1 << 16)
        self._text = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self.process = process
        self.pid = process.pid
        self.command = command if isinstance(command, str) else " ".join(command)
        self.name = f"<{self.command[:60] or 'program'} (process {process.pid} in the sandbox)>"
        self.crlf = self.linesep = "\n"
        self.delaybeforesend: float | None = None
        self.delayafterread = None
        self.closed = self.terminated = False
        self._pending = ""
        self._size = (24, 80)

    def __str__(self) -> str:
        """What pexpect adds to its TIMEOUT and EOF errors: the program and the end of what it printed."""
        state = "runs" if self.process.returncode is None else f"ended with {self.process.returncode}"
        return f"{self.name} {state}\nbuffer (last 100 characters): {self.buffer[-100:]!r}"

    # -- reading

    def read_nonblocking(self, size: int = 1, timeout: float | None = -1) -> str:
        """Wait for output, at most `size` characters of it.

        Raises:
            pexpect.TIMEOUT: there was none
            pexpect.EOF: the program has ended and all that it printed was read
            ValueError: the object was closed
            SandboxLost: the guest is gone
        """
        self._check_open()
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
                self.isalive()
                raise pexpect.EOF("End Of File (EOF): the program has ended.")
        text, self._pending = self._pending[:size], self._pending[size:]
        self._write_logs(text, self.logfile_read)
        return text

    def read_incomplete(self) -> str:
        """The bytes of a character whose rest has not come, as escapes; for who knows that it will not come."""
        return self._text.decode(b"", final=True)

    def eof(self) -> bool:
        """Whether pexpect.EOF was raised."""
        return bool(self.flag_eof)

    # -- writing

    def send(self, text: str) -> int:
        """Type text; returns its size in bytes. A line has at most 4095 bytes until the program asks for raw input.

        Raises:
            ValueError: the object was closed
            SandboxLost: the guest is gone
        """
        self._check_open()
        if self.delaybeforesend is not None:
            time.sleep(self.delaybeforesend)
        self._write_logs(text, self.logfile_send)
        data = text.encode("utf-8", "surrogateescape")
        self.process.write_stdin(data)
        return len(data)

    def sendline(self, text: str = "") -> int:
        """Type a line."""
        return self.send(text + self.linesep)

    def write(self, text: str) -> None:
        """Type text."""
        self.send(text)

    def writelines(self, sequence: Iterable[str]) -> None:
        """Type several texts; no line ends are added."""
        for text in sequence:
            self.send(text)

    def sendcontrol(self, char: str) -> int:
        """Press a key with Control: `c` interrupts."""
        return self.send("\x7f" if char == "?" else chr(ord(char.upper()) ^ 64))

    def sendintr(self) -> None:
        """Press Control-C."""
        self.sendcontrol("c")

    def sendeof(self) -> None:
        """Press Control-D: at the beginning of a line, the end of the input."""
        self.sendcontrol("d")

    # -- the PTY

    def isatty(self) -> bool:
        """Whether the program talks to a terminal: it does."""
        return not self.closed

    def fileno(self) -> NoReturn:
        """There is none.

        Raises:
            OSError: always, as for every file object without a descriptor
        """
        raise OSError("a program in the sandbox has no file descriptor here; use expect or read_nonblocking")

    def setwinsize(self, rows: int, cols: int) -> None:
        """Give the PTY another size; the program is told by SIGWINCH."""
        self.process.resize(rows, cols)
        self._size = (rows, cols)

    def getwinsize(self) -> tuple[int, int]:
        """The PTY's size as it was set last: rows, columns."""
        return self._size

    def getecho(self) -> bool:
        """Whether the PTY echoes what is typed."""
        return self.process.echo()

    def setecho(self, state: bool) -> None:
        """Let the PTY echo what is typed, or not."""
        self.process.echo(state)

    def waitnoecho(self, timeout: float | None = -1) -> bool:
        """Wait until the PTY does not echo (a program asks for a password); returns whether it came to that."""
        seconds = self.timeout if timeout == -1 else timeout
        end = None if seconds is None else time.monotonic() + seconds
        while self.getecho():
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(0.05)
        return True

    # -- the end

    def isalive(self) -> bool:
        """Whether the program runs."""
        status = self.process.returncode
        if status is None:
            return not self.process.is_lost
        self.exitstatus, self.signalstatus = (status, None) if status >= 0 else (None, -status)
        self.status = status << 8 if status >= 0 else -status
        self.terminated = True
        return False

    def wait(self) -> int | None:
        """Wait for the end without reading; returns the exit status, None when a signal ended the program.

        A program that has much left to print ends only when it is read: use `expect(pexpect.EOF)` then.

        Raises:
            SandboxError: the guest, or its process for this program, is gone
        """
        self.process.wait()
        self.isalive()
        return self.exitstatus

    def kill(self, sig: int) -> None:
        """Send the program a signal."""
        self.process.signal(sig)

    def terminate(self, force: bool = False) -> bool:
        """End the program and every process that it left; returns whether it has ended.

        Args:
            force: without it the program has half a second to end by itself, on SIGHUP or else SIGINT
        """
        if not force:
            for number in (signal.SIGHUP, signal.SIGINT):
                self.process.signal(number)
                self.process.signal(signal.SIGCONT)
                if self.process.ended(0.25):
                    break
        self.process.kill()
        return not self.isalive()

    def close(self, force: bool = True) -> None:
        """End the program and every process that it left; may be called twice.

        Args:
            force: as for `terminate`
        """
        if not self.closed:
            self.terminate(force)
            self.closed = True

    # -- logs

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    def _write_logs(self, text: str, other: Any) -> None:
        for log in (self.logfile, other):
            if log is not None:
                log.write(text)
                log.flush()
