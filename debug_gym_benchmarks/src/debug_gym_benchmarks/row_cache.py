"""What is kept of data sets: those that came from the hub, and the ids of large files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from debug_gym_core.sandbox.kept_setups import directory as kept_setups_directory

INDEXED = 4 << 20
"""Bytes from which on the ids of a json or jsonl file are kept in the cache."""


def cache() -> Path:
    """Where data sets and indexes are kept: `debug-gym/rows` below `$XDG_CACHE_HOME`, or `~/.cache`."""
    return kept_setups_directory().with_name("rows")


def state_of(path: Path) -> tuple[int, int]:
    """What tells whether a file is still the same: when it changed, and its size."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def indexed(path: Path, key: str, read: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """What `read` returns, kept in the cache as long as a large file stays the same.

    Args:
        path: the file
        key: the field with the id
        read: reads the ids, and what else is kept with them
    """
    state = state_of(path)
    if state[1] < INDEXED:
        return read()
    facts = [str(path.resolve()), *state, key]
    place = cache() / f"index-{hashlib.sha256(json.dumps([facts[0], key]).encode()).hexdigest()[:32]}.json"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # none, or one that a crash cut: made again
        kept = json.loads(place.read_bytes())
        if kept["of"] == facts:
            index: Sequence[Any] = kept["index"]
            return index
    result = read()
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time, no more
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as temporary:
            temporary.write_text(json.dumps({"of": facts, "index": result}), encoding="utf-8")
    return result


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file that takes the place of `path` when the block ends without an error."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
