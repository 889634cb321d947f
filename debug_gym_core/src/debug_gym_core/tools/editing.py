"""What tools that edit files have in common: which files they may change, how they tell what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from debug_gym_core.workspace.lines import diff, shown, split

if TYPE_CHECKING:
    from debug_gym_core.workspace.files import Workspace

DIFF_LINES = 200
"""Lines of the diff shown at most."""

DIFF_CHARACTERS = 12_000
"""Characters of the diff shown at most."""

LARGEST = 32 << 20
"""Bytes of a file that can be edited."""


def read_editable(workspace: Workspace, path: str) -> tuple[str, bytes | None]:
    """The content of a file that is to be changed.

    Args:
        workspace: where it is
        path: as the agent says it

    Returns:
        the path without links, and the content; None: there is no such file yet

    Raises:
        ActionError: it leads outside, is ignored, read-only, no file, or too large
    """
    real = workspace.resolve(path)
    workspace.must_be_editable(real)
    return real, workspace.read_existing(real, LARGEST)


def is_python(path: str) -> bool:
    """Whether a file is Python source, which may declare its encoding."""
    return path.endswith((".py", ".pyi", ".pyw"))


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
    for line in diff(shown(path), old, new):
        if len(line) > 1000:
            line = f"{line[:1000]} [... cut]"
        room -= len(line) + 1
        if room < 0 or len(lines) > DIFF_LINES:
            left_out += 1
        else:
            lines.append(line)
    if left_out:
        lines.append(f"[{left_out} more lines of the diff; view {shown(path)} shows the file]")
    return "\n".join(lines)


def count_lines(data: bytes) -> str:
    """How many lines a file has, in words."""
    number = len(split(data))
    return "1 line" if number == 1 else f"{number} lines"
