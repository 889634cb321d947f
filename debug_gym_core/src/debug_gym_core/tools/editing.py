"""What tools that edit files have in common: which files they may change, how they tell what they did."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from debug_gym_core.errors import ActionError
from debug_gym_core.sandbox.guest.declared import is_python
from debug_gym_core.workspace.edits import diff
from debug_gym_core.workspace.lines import declared_encoding, decode, shown, split, wide_of

if TYPE_CHECKING:
    from debug_gym_core.workspace.files import Workspace

__all__ = [
    "DIFF_CHARACTERS",
    "DIFF_LINES",
    "LARGEST",
    "count_lines",
    "is_mixed",
    "is_python",
    "must_fit",
    "read_editable",
    "report",
]

DIFF_LINES = 200
"""Lines of the diff shown at most."""

DIFF_CHARACTERS = 12_000
"""Characters of the diff shown at most."""

LARGEST = 32 << 20
"""Bytes of a file that can be edited."""

_ASCII = bytes(range(128))


def read_editable(workspace: Workspace, path: str, *, whole: bool = False) -> tuple[str, bytes | None]:
    """The content of a file that is to be changed.

    Args:
        workspace: where it is
        path: as the agent says it
        whole: whether all of it is replaced

    Returns:
        the path without links, and the content; None: there is no such file yet

    Raises:
        ActionError: it leads outside, is ignored, read-only, no file, too large, or UTF-16 and only a part is replaced
    """
    real = workspace.resolve(path)
    workspace.must_be_editable(real)
    content = workspace.read_existing(real, LARGEST)
    if content is not None and not whole:
        wide = wide_of(content)
        if wide is not None:
            raise ActionError(
                f"{shown(real)} is {wide.name}, of which no part can be replaced; replace the whole file, or change it "
                "by a program that reads and writes this encoding"
            )
    return real, content


def must_fit(tool: str, path: str, size: int) -> None:
    """Refuse to make a file too large.

    Args:
        tool: who would make it
        path: the file, relative to the root
        size: bytes that it would have

    Raises:
        ActionError: they are too many
    """
    if size > LARGEST:
        raise ActionError(f"{tool}: {shown(path)} would have {size} bytes; {LARGEST} is the most")


def report(path: str, old: bytes | None, new: bytes, what: str) -> str:
    """Tell of a change: one line, then the diff within its bounds.

    Args:
        path: the file, relative to the root
        old: its content before; None: it is new
        new: its content now
        what: what was done to it
    """
    lines = [f"{shown(path)} {what}; it has {count_lines(new)}"]
    room = DIFF_CHARACTERS
    left_out = 0
    for line in diff(shown(path), old, new, python=is_python(path)):
        if len(line) > 1000:
            line = f"{line[:1000]} [... cut]"
        room -= len(line) + 1
        if room < 0 or len(lines) > DIFF_LINES:
            left_out += 1
        else:
            lines.append(line)
    if old and is_mixed(path, old, new):
        lines.append("[note: the file is not valid UTF-8, and what was written is]")
    if old and is_python(path) and (encodings := redeclared(old, new)) is not None:
        was, now = encodings
        lines.append(f"[note: by its declaration the file is {now} now; lines that stayed as they were are {was}]")
    if left_out:
        lines.append(f"[{left_out} more lines of the diff; view {shown(path)} shows the file]")
    return "\n".join(lines)


def is_mixed(path: str, old: bytes, new: bytes) -> bool:
    """Whether a change has put UTF-8 beside bytes that are none, in a file that does not declare its encoding."""
    try:
        old.decode()
        return False
    except UnicodeDecodeError:
        if is_python(path) and declared_encoding(old) != "utf-8":
            return False
    try:
        new.decode()
        return False
    except UnicodeDecodeError:
        return len(new.translate(None, _ASCII)) > len(old.translate(None, _ASCII))


def redeclared(old: bytes, new: bytes) -> tuple[str, str] | None:
    """The encodings that Python source declared and declares now, where lines that stayed are other text in that."""
    was, now = declared_encoding(old), declared_encoding(new)
    stayed = {*split(old)} & {*split(new)} if was != now else ()
    for line in stayed:
        with contextlib.suppress(UnicodeDecodeError):  # it was none before either
            if line.decode(was) != decode(line, now):
                return was, now
    return None


def count_lines(data: bytes) -> str:
    """How many lines a file has, in words."""
    number = len(split(data))
    return "1 line" if number == 1 else f"{number} lines"
