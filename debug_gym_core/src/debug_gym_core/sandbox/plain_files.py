"""Files of a repository as the host reads them: of whatever else lies under a name, nothing, and never without end."""

from __future__ import annotations

import os
import stat

SMALL = 1 << 20
"""Bytes of what tools write by themselves, such as pip's and uv's records; those are far below."""


def read(path: str | bytes | os.PathLike[str], most: int = SMALL) -> bytes | None:
    """The beginning of a file.

    Opening a pipe would wait for whoever writes into it, and a device can be read for ever.

    Args:
        path: what may be a file, or a link to one
        most: bytes that are read

    Returns:
        the content; None: there is no file, or it cannot be read
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):  # a name with a NUL
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        blocks = []
        while most > 0 and (block := os.read(descriptor, min(most, 1 << 20))):
            blocks.append(block)
            most -= len(block)
        return b"".join(blocks)
    except OSError:
        return None
    finally:
        os.close(descriptor)
