"""Files that are written whole: a reader sees the old one or the new one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place at the end, so that a reader sees the old or the new file.

    Raises:
        OSError: the system refused; it names `path` where it was the temporary one, which nobody knows
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)  # of a process of that number that was killed
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        error.filename = str(path) if error.filename == str(temporary) else error.filename
        raise
