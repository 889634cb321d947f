"""The edit tool: exact replacement of text in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from debug_gym_core import ActionError, Observation, Tool, hookimpl
from debug_gym_core.tools.editing import is_python, must_fit, read_editable, report
from debug_gym_core.workspace.lines import encode, shown
from debug_gym_tool_edit.nearest import nearest
from debug_gym_tool_edit.replacement import Text

if TYPE_CHECKING:
    from debug_gym_core import Environment

PLACES = 10
"""Places named at most."""

TELLING = 8
"""Characters that new must have at least to tell that it is there already."""

TOLD = 1000
"""Lines told at most in the observation's data."""


class Edit(Tool):
    """Replace a text of a file by another one, exactly.

    `old` must be in the file as it is written, blanks and indentation included, and exactly once: take in as many lines
    around it as make it unique. To replace several equal ones, say with `count` how many there are. Line ends are the
    file's. An empty `new` deletes. Returns the diff; when `old` is not there, the lines that are most like it.
    """

    name = "edit"
    examples = (
        {"path": "src/app.py", "old": "    total = 0\n    count = 1\n", "new": "    total = 0\n    count = 0\n"},
        {"path": "src/app.py", "old": "totl", "new": "total", "count": 3},
    )
    ends_like: ClassVar[Mapping[str, str]] = MappingProxyType({"new": "old", "old": "new"})

    def use(self, env: Environment, path: str, old: str, new: str, count: int = 1) -> Observation:
        """Replace text.

        Args:
            env: where the tool is used
            path: the file, relative to the repository's root
            old: the text to replace, exactly as it is in the file, without line numbers
            new: the text that takes its place
            count: how many times old is in the file; all are replaced, and if it is there more or less often, none is
        """
        if count < 1:
            raise ActionError(f"edit: count is {count}; it says how many times old is in the file, so 1 or more")
        if not old:
            raise ActionError(
                "edit: old is empty; to insert, give a line beside the place as old, and again in new; "
                "rewrite creates a file, or replaces all of it"
            )
        growth = count * (len(encode(new)) - len(encode(old)))
        real, content = read_editable(env.workspace, path)
        if content is None:
            content = env.workspace.read_bytes(real)  # is refused, with the names of files that may be meant
        text = Text(content, is_python(real))
        old, new = (one.replace("\r\n", "\n") for one in (old, new))
        starts = _places(text, old, new, count, shown(real))
        must_fit(self.name, real, len(content) + growth)
        changed = text.replaced(starts, old, new)
        data = {"path": real, "lines": list(islice(_lines(text.text, starts), TOLD)), "changed": changed != content}
        if changed == content:
            return Observation(self.name, f"{shown(real)} is unchanged: new equals old", data)
        env.workspace.write_bytes(real, changed)
        what = "edited" if count == 1 else f"edited in {count} places"
        return Observation(self.name, report(real, content, changed, what), data)


def _places(text: Text, old: str, new: str, count: int, name: str) -> list[int]:
    """Where the text is that is to be replaced.

    Args:
        text: the file's
        old: what is to be replaced
        new: what by
        count: how many times it must be there
        name: of the file

    Raises:
        ActionError: it is not there, not as often as it must be, or twice in one place
    """
    found = text.text.count(old)
    if not found:
        raise ActionError("\n".join(_absent(text.text, old, new, name)))
    if found != count:
        lines = [str(line) for line in islice(_lines(text.text, text.starts(old)), PLACES)]
        where = ("at line " if found == 1 else "at lines ") + ", ".join(lines) + (", ..." if found > PLACES else "")
        advice = (
            f"to replace all of them say count={found}; to replace one, take in lines around it until old is there once"
            if found > 1
            else "count says how many times old must be there; say count=1, or leave it out"
        )
        times = "once" if found == 1 else f"{found} times"
        raise ActionError(f"edit: old is in {name} {times}, {where}, not {count}; nothing was changed\n{advice}")
    starts = list(text.starts(old))
    for line, start in zip(_lines(text.text, starts), starts, strict=True):
        if text.overlaps(start, old):
            raise ActionError(
                f"edit: old overlaps with itself in {name} at line {line}, so it is not clear what to replace; "
                "nothing was changed\ntake in more of the text around it"
            )
    return starts


def _lines(text: str, starts: Iterable[int]) -> Iterator[int]:
    """The numbers of the lines in which some places are."""
    line, last = 1, 0
    for start in starts:
        line += text.count("\n", last, start)
        last = start
        yield line


def _absent(text: str, old: str, new: str, name: str) -> Iterator[str]:
    """What to say of a text that is not in a file."""
    yield f"edit: old is not in {name}; nothing was changed"
    if not text:
        yield "the file is empty; rewrite fills it"
        return
    known = _known_mistake(text, old)
    if known:
        yield known
        return
    done = len(new.strip()) >= TELLING and text.count(new) == 1
    if done:
        yield f"new is there already, at line {next(_lines(text, [text.find(new)]))}: was this edit made before?"
    near = nearest(text, old)
    if near is None:
        if not done:
            yield f"there is nothing like it; view {name} shows what there is"
        return
    lines = f"{near.start}-{near.end}" if near.end > near.start else str(near.start)
    differs = "differs only in whitespace" if near.blank else "differs"
    yield f"the nearest match is {name}:{lines}, which {differs} (- the file, + old):"
    yield from near.rows
    yield from (f"[{remark}]" for remark in near.remarks)


def _known_mistake(text: str, old: str) -> str | None:
    """What is wrong with a text that would be in the file but for one thing."""
    lines = old.split("\n")
    for what, pattern in (("view", r"[B ]? *\d+(?:  |$)"), ("grep", r"\d+[:-]")):
        if all(re.match(pattern, line) for line in lines if line.strip()):
            plain = "\n".join(re.sub(f"^{pattern}", "", line) for line in lines)
            if plain.strip() and plain in text:
                return f"its lines begin with the line numbers that {what} shows; leave them out of old, and of new"
    if "\\n" in old and old.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"') in text:
        return r"it has a backslash and an n where the file has line ends; write real line ends in old, and in new"
    if old.endswith("\n") and text.endswith(old[:-1]):
        return "it ends with a line end, but the file ends without one; leave it out of old"
    return None


@hookimpl
def debug_gym_register_tools() -> Sequence[type[Tool]]:
    """Register the tool."""
    return [Edit]
