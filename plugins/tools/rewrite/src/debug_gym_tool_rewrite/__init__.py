"""The rewrite tool: replace lines of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core import ActionError, Observation, Tool, hookimpl
from debug_gym_core.tools.editing import count_lines, is_python, must_fit, read_editable, report
from debug_gym_core.workspace.lines import replace, shown, split, wide_of

if TYPE_CHECKING:
    from debug_gym_core import Environment


class Rewrite(Tool):
    """Replace lines of a file with new code, create a file, or append to one.

    With `start` and `end` these lines are replaced, both included; with `start` alone that line; with neither the whole
    file, which is created when it does not exist. `start` one past the last line appends. An empty `new_code` deletes
    the lines. Indentation is taken as it is given. Returns the diff.
    """

    name = "rewrite"
    examples = ({"path": "src/app.py", "start": 4, "end": 6, "new_code": "    total = 0\n    count += 1\n"},)

    def use(
        self, env: Environment, path: str, start: int | None = None, end: int | None = None, *, new_code: str
    ) -> Observation:
        """Replace lines of a file.

        Args:
            env: where the tool is used
            path: the file, relative to the repository's root
            start: first line to replace, from 1
            end: last line to replace; without it only line `start`
            new_code: the lines that take their place
        """
        real, old = read_editable(env.workspace, path, whole=start is None and end is None)
        wide = wide_of(old or b"")
        before = wide.to_utf_8(old or b"") if wide else old
        first, last = _range(shown(real), before, start, end)
        after = replace(before or b"", first, last, new_code, python=is_python(real) and not wide)
        new = wide.from_utf_8(after) if wide else after
        data = {"path": real, "start": first, "end": last, "created": old is None, "changed": new != old}
        if new == old:
            return Observation(self.name, f"{shown(real)} is unchanged: the new lines equal the old ones", data)
        must_fit(self.name, real, len(new))
        env.workspace.write_bytes(real, new)
        said = report(real, before, after, "created" if old is None else "rewritten")
        if wide:
            said += f"\n[note: the file is {wide.name} with its byte order mark, as it was]"
        return Observation(self.name, said, data)


def _range(name: str, content: bytes | None, start: int | None, end: int | None) -> tuple[int, int]:
    """First and last line to replace; the last is one before the first when lines are inserted.

    Args:
        name: of the file
        content: of the file; None: it does not exist yet
        start: as the agent says it
        end: likewise

    Raises:
        ActionError: there are no such lines
    """
    new, total = content is None, len(split(content or b""))
    has = f"has {count_lines(content)}" if content is not None else "does not exist yet"
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


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """Register the tool."""
    return [Rewrite]
