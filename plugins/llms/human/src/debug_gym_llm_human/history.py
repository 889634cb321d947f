"""What was typed, kept between sessions."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit.history import FileHistory

from debug_gym_core.places import state

LARGEST = 1 << 20
"""Bytes of the file beyond which its older half is dropped."""


def history_path() -> Path:
    """Where it is kept: `human_history` in the program's state."""
    return state() / "human_history"


class KeptHistory(FileHistory):
    """A history in a file that only its owner can read; goes on without where none can be had."""

    def __init__(self, path: Path, complain: Callable[[str], None]) -> None:
        """Open the file, and make it when it is not there.

        Args:
            path: the file
            complain: is told once why nothing is kept
        """
        super().__init__(str(path))
        self._path = path
        self._complain: Callable[[str], None] | None = complain
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
            self._shorten()
        except OSError as error:
            self._give_up(error)

    def load_history_strings(self) -> list[str]:
        """What was typed before, the newest first; empty when the file cannot be read."""
        with contextlib.suppress(OSError):
            return list(super().load_history_strings())
        return []

    def store_string(self, string: str) -> None:
        """Keep an entry."""
        if self._complain is not None:
            try:
                super().store_string(string)
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        complain, self._complain = self._complain, None
        if complain is not None:
            complain(f"what you type is not kept for the next session: {self._path}: {error.strerror}")

    def _shorten(self) -> None:
        if self._path.stat().st_size <= LARGEST:
            return
        data = self._path.read_bytes()[-LARGEST // 2 :]
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data[data.find(b"\n#") + 1 :])
            temporary.replace(self._path)
        finally:
            temporary.unlink(missing_ok=True)
