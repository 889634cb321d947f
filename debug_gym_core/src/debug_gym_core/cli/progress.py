"""How far long work is, on standard error: a line that changes on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time

from debug_gym_core.cli import printable

TERMINAL_PAUSE = 1.0
"""Seconds between two changes of the line on a terminal."""

PLAIN_PAUSE = 15.0
"""Seconds between two lines in a pipe or a log file."""

_CLEAR = "\r\x1b[K"


class ProgressLines:
    """Writes the lines; a `debug_gym_core.progress.Listener`."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._last: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._next: dict[str, float] = {}

    def __call__(self, what: str, line: str | None) -> None:
        """Take a line; write it when it is time."""
        with self._mutex:
            now = time.monotonic()
            if line is not None:
                self._last[what] = line
                if now < self._next.get(what, 0.0):
                    return
            elif what not in self._last:  # over before there was anything to say
                return
            terminal = sys.stderr.isatty()
            self._next[what] = now + (TERMINAL_PAUSE if terminal else PLAIN_PAUSE)
            text = printable(self._last.get(what, ""))
            if terminal:
                self._write(_CLEAR + text + ("\n" if line is None else ""))
            elif self._written.get(what) != text:
                self._write(f"{text}\n")
            self._written[what] = text
            if line is None:
                for known in (self._last, self._written, self._next):
                    known.pop(what, None)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # that nobody reads it must not end what it is about
            sys.stderr.write(text)
            sys.stderr.flush()
