"""The view tool: numbered lines of a file."""

from __future__ import annotations

import codecs
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from debug_gym_core import ActionError, Observation, Tool, ToolCall, hookimpl
from debug_gym_core.tools.action import as_text
from debug_gym_core.workspace.lines import CRLF, LF, beginning, body_of, end_of, show, shown, split, wide_of

if TYPE_CHECKING:
    from debug_gym_core import Environment
    from debug_gym_core.sandbox.answers import FileLines

PAGE = 400
"""Lines shown at most."""

CHARACTERS = 18_000
"""Characters shown at most."""

LINE = 1_000
"""Characters shown of one line at most."""

BYTES = 256 * 1024
"""Bytes read at most; lines behind them are on the next page."""


class View(Tool):
    """Show the lines of a file with their numbers; `B` marks lines with a breakpoint.

    A long file is shown in pages; the observation names the call that shows the next one.
    """

    name = "view"
    examples = ({"path": "src/app.py", "start": 1, "end": 40},)

    def use(
        self, env: Environment, path: str, start: int | None = None, end: int | None = None, line_numbers: bool = True
    ) -> Observation:
        """Show lines of a file.

        Args:
            env: where the tool is used
            path: the file, relative to the repository's root
            start: first line to show, from 1
            end: last line to show
            line_numbers: whether lines are numbered and breakpoints marked
        """
        first = 1 if start is None else start
        if first < 1:
            raise ActionError(f"view: start is {first}, but lines are numbered from 1")
        if end is not None and end < first:
            raise ActionError(f"view: end is {end}, before start {first}")
        wanted = PAGE if end is None else min(end - first + 1, PAGE)
        real, found = env.workspace.read_lines(path, first, wanted, BYTES)
        if first > max(found.total, 1):
            raise ActionError(f"view: {shown(real)} has {_count(found.total)}; line {first} is behind its end")
        marks = env.breakpoints.lines(real)
        page = _page(found, first, marks, len(str(found.total)) if line_numbers else 0)
        last = page.last
        header = f"{shown(real)}, " + (f"lines {first}-{last} of {found.total}" if found.total else "0 lines")
        readonly = env.workspace.is_readonly(real)
        header += " (read-only)" if readonly else " (editable)"
        text = [header + "".join(f"; {note}" for note in page.notes), *page.lines]
        if last < min(found.total, found.total if end is None else end):
            following = _call(real, last + 1, end, line_numbers=line_numbers)
            text.append(f"[{found.total - last} more lines; next: {following}]")
        data = {
            "path": real,
            "start": first,
            "end": last,
            "total": found.total,
            "readonly": readonly,
            "breakpoints": sorted(line for line in marks if first <= line <= last),
        }
        return Observation(self.name, "\n".join(text), data)


@dataclass(frozen=True)
class _Page:
    """Lines as they are shown, the number of the last one, and what is special about them."""

    lines: list[str]
    last: int
    notes: list[str]


def _page(found: FileLines, first: int, marks: frozenset[int], width: int) -> _Page:
    """Lay out what was read, as much of it as there is room for.

    Args:
        found: the lines
        first: number of the first one
        marks: numbers of lines with a breakpoint
        width: of the numbers; 0: no numbers
    """
    lines = split(found.data)
    missing = found.length - len(found.data)
    if missing and len(lines) > 1 and not end_of(lines[-1]):
        lines.pop()  # cut; it comes whole with the next page
        missing = 0
    texts: list[str] = []
    special: dict[str, bool] = {}
    ends: set[bytes] = set()
    encoding, name = found.encoding, "UTF-8"
    if encoding != "utf-8":
        name = found.declared
        special[f"{name} (declared)"] = True
    room = CHARACTERS
    for number, line in enumerate(lines, first):
        if number == 1 and line.startswith(codecs.BOM_UTF8):
            line = line.removeprefix(codecs.BOM_UTF8)
            special["UTF-8 with BOM"] = True
        elif number == 1 and (wide := wide_of(line)) is not None:
            special[f"{wide.name}, of which no part can be replaced, only the whole"] = True
        text, undecodable = _text(body_of(line), missing, encoding)
        if width:
            mark = "B" if number in marks else " "
            text = f"{mark} {number:>{width}}  {text}" if text else f"{mark} {number:>{width}}"
        room -= len(text) + 1
        if room < 0 and texts:
            break
        texts.append(text)
        if undecodable:
            special[rf"not valid {name}: undecodable bytes are shown as \xNN"] = True
        ends.add(end_of(line))
    if CRLF in ends:
        special["mixed line ends, CRLF and LF" if LF in ends else "CRLF line ends"] = True
    if b"" in ends and not missing:
        special["no newline at the end"] = True
    return _Page(texts, first + len(texts) - 1, list(special))


def _text(line: bytes, missing: int, encoding: str) -> tuple[str, bool]:
    """One line, cut where it is too long, and whether it has bytes that are no text.

    Args:
        line: without its end
        missing: bytes that were not read, of it among others
        encoding: in which it is text
    """
    cut = len(line) > 4 * LINE
    text, undecodable = show(beginning(line, 4 * LINE, encoding) if cut else line, encoding)
    if len(text) > LINE or cut:
        text = f"{text[:LINE]} [... {'more than ' if missing else ''}{len(line)} bytes in this line]"
    return text, undecodable


def _count(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"


def _call(path: str, start: int, end: int | None, *, line_numbers: bool) -> str:
    """The call that shows more of a file; as JSON where its name cannot be written as it is."""
    arguments: dict[str, Any] = {"path": path, "start": start}
    if end is not None:
        arguments["end"] = end
    if not line_numbers:
        arguments["line_numbers"] = False
    call = ToolCall(View.name, arguments)
    return as_text(call, {View.name: View}) if path == shown(path) else json.dumps(call.as_json())


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """Register the tool."""
    return [View]
