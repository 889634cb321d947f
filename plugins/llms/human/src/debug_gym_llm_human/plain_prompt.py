"""Lines from standard input, where there is no terminal or one that can do nothing but print."""

from __future__ import annotations

import contextlib
import io
import os
import select
import shutil
import sys
import termios
import weakref
from collections.abc import Iterator

from debug_gym_core.tools import blocks
from debug_gym_llm_human.completion import Completion
from debug_gym_llm_human.layout import Fragments, as_text, printable

INTERRUPT = b"\x03"
"""What the key Ctrl-C sends."""

KEYS = (
    ("Ctrl-C", "drop the line or the text; on an empty line, twice: stop the run"),
    ("Ctrl-D", "end the episode"),
)


class PlainPrompt:
    """Reads lines and writes text, nothing else; what is read is repeated where nobody sees it being typed."""

    def __init__(self) -> None:
        self.interrupted = False
        self._line = 0
        self._start = 0
        try:
            self._descriptor = sys.stdin.fileno()
        except (AttributeError, OSError, ValueError):  # replaced by something in memory, or closed
            self._descriptor = -1
        self._typed = self._descriptor >= 0 and os.isatty(self._descriptor)
        self._wake_read, self._wake_write = pipe = os.pipe()
        weakref.finalize(self, _close, *pipe)

    @property
    def width(self) -> int:
        """Columns of the terminal; where there is none, lines are not wrapped."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10**6

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """What can be pressed, where somebody types."""
        return KEYS if self._typed else ()

    def begin(self, completion: Completion) -> None:
        """There is no completion here."""

    def show(self, fragments: Fragments) -> None:
        """Write the text without its styles."""
        text = as_text(fragments)
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()

    def read(self, mode: str) -> str:
        """The next line, or a block to its end; see `Prompt.read`."""
        prompt = f"debug-gym {mode}> " if mode else "debug-gym> "
        with self._ctrl_c_as_key():
            while True:
                try:
                    return self._read_text(prompt)
                except _Dropped:
                    continue

    def _read_text(self, prompt: str) -> str:
        text = self._read_line(prompt)
        while not self._typed and text.lstrip().startswith("#"):  # a comment, as in a file of `scripted`
            text = self._read_line(prompt)
        self._start = self._line
        if not blocks.begins(text):
            return text
        lines = [text]
        while not blocks.ends(lines[-1]) or len(lines) == 1:
            try:
                lines.append(self._read_line("... ".rjust(len(prompt)), again=True))
            except EOFError:
                self.show([("", f"\nline {self._start}: the text after <<< has no end (>>> on a line of its own)\n")])
                raise
        return "\n".join([*lines[:-1], blocks.END])

    def where(self) -> str:
        """The line's number, where it was not typed here."""
        return "" if self._typed else f"line {self._start}: "

    def interrupt(self) -> None:
        """Let `read` end at once."""
        self.interrupted = True
        os.write(self._wake_write, b"x")

    @contextlib.contextmanager
    def _ctrl_c_as_key(self) -> Iterator[None]:
        """Let Ctrl-C end the line that is typed, in place of a signal, which could not tell whether a tool runs."""
        try:
            before = termios.tcgetattr(self._descriptor) if self._typed else None
        except termios.error:
            before = None  # hung up
        if before is None:
            yield
            return
        characters = list(before[6])
        characters[termios.VINTR], characters[termios.VEOL] = b"\0", INTERRUPT
        termios.tcsetattr(self._descriptor, termios.TCSANOW, [*before[:6], characters])
        try:
            yield
        finally:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, before)

    def _read_line(self, prompt: str, *, again: bool = False) -> str:
        self.show([("", prompt)])
        data = self._next_line()
        if self._typed and data is not None and data.endswith(INTERRUPT):
            self.show([("", "\n")])
            raise _Dropped if again or data != INTERRUPT else KeyboardInterrupt
        if data is None:
            self.show([("", "\n")])
            raise EOFError
        self._line += 1
        text = data.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
        if not self._typed:
            self.show([("", f"{printable(text)}\n")])
        return text

    def _next_line(self) -> bytes | None:
        """The next line with its end; None when there is no more."""
        if self._descriptor < 0:
            stream = sys.stdin if sys.stdin is not None and not sys.stdin.closed else io.StringIO()
            return stream.readline().encode("utf-8", "surrogateescape") or None
        line = bytearray()
        while not line.endswith((b"\n", INTERRUPT) if self._typed else b"\n"):
            ready, _, _ = select.select([self._descriptor, self._wake_read], [], [])
            if self._wake_read in ready:
                raise KeyboardInterrupt
            # No more than the line: what follows belongs to the next episode, or to whoever reads after us.
            data = os.read(self._descriptor, 1)
            if not data:
                break
            line += data
        return bytes(line) or None


class _Dropped(Exception):
    """Ctrl-C was pressed with something typed."""


def _close(*descriptors: int) -> None:
    for one in descriptors:
        os.close(one)
