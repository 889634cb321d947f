"""Files of JSON objects, one a line.

Lines are appended with one write each, so a process that is killed loses at most the line it was writing; readers leave
out a torn last line, and a writer that goes on removes it first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from debug_gym_core import strict_json
from debug_gym_core.errors import UsageError
from debug_gym_core.redaction import redacted
from debug_gym_core.runs.replacing import replaced


class JsonLines:
    """A file of JSON objects, one a line, to append to."""

    def __init__(self, path: Path) -> None:
        """Open the file for appending, and remove a last line that was torn.

        Args:
            path: the file; made when it is not there
        """
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        _remove_torn_line(self._descriptor)

    @classmethod
    def anew(cls, path: Path, data: Iterable[Mapping[str, Any]]) -> JsonLines:
        """Put a file with these lines in the place of any that is there, and go on with it.

        Raises:
            OSError: it could not be written; the old one is as it was
        """
        lines = None
        try:
            with replaced(path) as temporary:
                lines = cls(temporary)
                for one in data:
                    lines.append(one)
        except BaseException:
            if lines is not None:
                lines.close()
            raise
        lines._path = path
        return lines

    def append(self, data: Mapping[str, Any]) -> None:
        """Write one line, at once and whole.

        Raises:
            OSError: it could not be written; nothing of it is left
        """
        line = _as_json(redacted(data)).encode("utf-8", "backslashreplace") + b"\n"
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:  # as on a full disk: the next line must not be glued to the beginning of this one
            written = len(line) - len(rest)
            if written:
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
            raise

    @property
    def gone(self) -> bool:
        """Whether its path leads to it no more: it, or a directory above it, was removed or moved; closed it is not."""
        if self._descriptor < 0:
            return False
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except (FileNotFoundError, NotADirectoryError):
            return True

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def read_lines(path: Path, *, missing_ok: bool = True) -> Iterator[dict[str, Any]]:
    """Read a file of JSON objects, one a line, leaving out a torn last one.

    Raises:
        UsageError: the file cannot be read, or a line that is not the last is no JSON object
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if missing_ok:
            return
        raise UsageError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    for position, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            value = json.loads(line)
        except ValueError as error:
            raise UsageError(
                f"{path}:{position}: not JSON: {line[:40].decode('utf-8', 'backslashreplace')!r}"
            ) from error
        if not isinstance(value, dict):
            raise UsageError(f"{path}:{position}: not a JSON object")
        yield value


def _as_json(data: Mapping[str, Any]) -> str:
    try:
        return json.dumps(data, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:  # a plugin's data may have any number
        return json.dumps(strict_json.finite(data), ensure_ascii=False, default=str, allow_nan=False)


def _remove_torn_line(descriptor: int) -> None:
    """Cut a file off after its last line end."""
    end = size = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - 65536)
        chunk = os.pread(descriptor, end - start, start)
        newline = chunk.rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end != size:
        os.ftruncate(descriptor, end)
