"""The rewrite tool: replace lines of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core import ActionError, Observation, Tool, hookimpl
from debug_gym_core.lines import diff, replace, shown, split

if TYPE_CHECKING:
    from debug_gym_core.env import RepoEnv

DIFF_LINES = 200
"""Lines of the diff shown at most."""

DIFF_CHARACTERS = 12_000
"""Characters of the diff shown at most."""

LARGEST = 32 << 20
"""Bytes of a file that can be rewritten."""

PYTHON = (".py", ".pyi", ".pyw")


class Rewrite(Tool):
    """Replace lines of a file with new code, create a file, or append to one.

    With `start` and `end` these lines are replaced, both included; with `start` alone that line; with neither the whole
    file, which is created when it does not exist. `start` one past the last line appends. An empty `new_code` deletes
    the lines. Indentation is taken as it is given. Returns the diff.
    """

    name = "rewrite"
    examples = ({"path": "src/app.py", "start": 4, "end": 6, "new_code": "    total = 0\n    count += 1\n"},)

    def use(
        self, env: RepoEnv, path: str, start: int | None = None, end: int | None = None, *, new_code: str
    ) -> Observation:
        """Replace lines of a file.

        Args:
            env: where the tool is used
            path: the file, relative to the repository's root
            start: first line to replace, from 1
            end: last line to replace; without it only line `start`
            new_code: the lines that take their place
        """
        real = env.workspace.resolve(path)
        if env.workspace.is_readonly(real):
            raise ActionError(f"{shown(real)} is read-only in this task: it cannot be changed")
        old = env.workspace.read_existing(real, LARGEST)
        total = len(split(old or b""))
        first, last = _range(shown(real), total, start, end, new=old is None)
        new = replace(old or b"", first, last, new_code, python=real.endswith(PYTHON))
        data = {"path": real, "start": first, "end": last, "created": old is None, "changed": new != old}
        if new == old:
            return Observation(self.name, f"{shown(real)} is unchanged: the new lines equal the old ones", data)
        env.workspace.write_bytes(real, new)
        return Observation(self.name, _report(real, old, new), data)


def _range(name: str, total: int, start: int | None, end: int | None, *, new: bool) -> tuple[int, int]:
    """First and last line to replace; the last is one before the first when lines are inserted.

    Args:
        name: of the file
        total: how many lines it has
        start: as the agent says it
        end: likewise
        new: whether the file does not exist yet

    Raises:
        ActionError: there are no such lines
    """
    has = "does not exist yet" if new else f"has {_count(total)}"
    if start is None:
        if end is not None:
            raise ActionError(f"rewrite: end is {end} but start is missing; {name} {has}")
        return 1, total
    if start < 1 or (end is not None and end < 1):
        raise ActionError(f"rewrite: lines are numbered from 1; {name} {has}")
    if end is not None and end < start:
        raise ActionError(f"rewrite: end {end} is before start {start}; {name} {has}")
    if start == total + 1 and end in (None, start):
        return start, total
    last = start if end is None else end
    if last > total:
        raise ActionError(
            f"rewrite: line {last} is beyond the end: {name} {has}"
            + (f" (start {total + 1} appends)" if not new else " (leave out start and end to create it)")
        )
    return start, last


def _report(path: str, old: bytes | None, new: bytes) -> str:
    """What was done: one line, then the diff within its bounds."""
    what = "created" if old is None else "rewritten"
    lines = [f"{shown(path)} {what}; it has {_count(len(split(new)))}"]
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


def _count(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """Register the tool."""
    return [Rewrite]
