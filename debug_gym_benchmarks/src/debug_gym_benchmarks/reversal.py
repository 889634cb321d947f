"""The reverse of a patch in git's format, without the files that it changes."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HUNK = re.compile(rb"@@ -(\d+(?:,(\d+))?) \+(\d+(?:,(\d+))?) @@(.*)", re.DOTALL)
_PAIRS = (
    (b"rename from ", b"rename to "),
    (b"old mode ", b"new mode "),
    (b"new file mode ", b"deleted file mode "),
)


def reverse(patch: bytes) -> bytes:
    """The patch that takes another one back.

    Args:
        patch: `git apply`-able

    Raises:
        ValueError: it copies files or changes binary ones, or a hunk is cut
    """
    lines = [line + b"\n" for line in patch.removesuffix(b"\n").split(b"\n")]
    return b"".join(_reversed(lines))


def _reversed(lines: list[bytes]) -> Iterator[bytes]:
    header: list[bytes] = []
    position = 0
    while position < len(lines):
        match = _HUNK.match(lines[position])
        if match is None:
            if lines[position].startswith(b"diff --git "):  # the file before had no hunk
                yield from _header(header)
                header = []
            header.append(lines[position])
            position += 1
            continue
        yield from _header(header)
        header = []
        old, new = (1 if count is None else int(count) for count in (match[2], match[4]))
        end = _end_of_hunk(lines, position + 1, old, new)
        yield b"@@ -" + match[3] + b" +" + match[1] + b" @@" + match[5]
        yield from _hunk(lines[position + 1 : end])
        position = end
    yield from _header(header)


def _end_of_hunk(lines: list[bytes], position: int, old: int, new: int) -> int:
    """Where a hunk ends that has so many lines of the old and the new file."""
    while old > 0 or new > 0:
        if position == len(lines):
            raise ValueError("its last hunk is cut")
        kind = lines[position][:1]
        old -= kind not in (b"+", b"\\")
        new -= kind not in (b"-", b"\\")
        position += 1
    if position < len(lines) and lines[position].startswith(b"\\"):  # a note about the last line
        position += 1
    return position


def _header(lines: list[bytes]) -> Iterator[bytes]:
    """The lines before a hunk: of the file, or notes of the hunk before."""
    for number, line in enumerate(lines):
        if line.startswith((b"copy from ", b"GIT binary patch", b"Binary files ")):
            raise ValueError(f"it has {line.decode(errors='replace').strip()!r}, which cannot be reversed")
        if line.startswith(b"diff --git "):
            yield _swapped_names(line)
        elif line.startswith(b"index "):
            names, space, mode = line.removeprefix(b"index ").rstrip(b"\n").partition(b" ")
            old, _, new = names.partition(b"..")
            yield b"index " + new + b".." + old + space + mode + b"\n"
        elif line.startswith(b"--- ") and number + 1 < len(lines) and lines[number + 1].startswith(b"+++ "):
            yield b"--- " + _named(lines[number + 1][4:], b"b/", b"a/")
        elif line.startswith(b"+++ ") and number and lines[number - 1].startswith(b"--- "):
            yield b"+++ " + _named(lines[number - 1][4:], b"a/", b"b/")
        else:
            yield _paired(lines, line)


def _paired(lines: list[bytes], line: bytes) -> bytes:
    """A line of which there is a counterpart with the other value, or with another word."""
    for first, second in _PAIRS:
        for mine, other in ((first, second), (second, first)):
            if line.startswith(mine):
                partner = next((one for one in lines if one.startswith(other)), None)
                return mine + partner[len(other) :] if partner is not None else other + line[len(mine) :]
    return line


def _swapped_names(line: bytes) -> bytes:
    """`diff --git a/x b/y` as `diff --git a/y b/x`."""
    names = line.removeprefix(b"diff --git ").rstrip(b"\n")
    match = re.fullmatch(rb'("?)a/(.*?)("?) ("?)b/(.*?)("?)', names)
    if match is None or match[2] == match[5]:
        return line
    return (
        b"diff --git " + match[4] + b"a/" + match[5] + match[6] + b" " + match[1] + b"b/" + match[2] + match[3] + b"\n"
    )


def _named(name: bytes, before: bytes, after: bytes) -> bytes:
    """The name of a file with the other side's prefix."""
    for quote in (b"", b'"'):
        if name.startswith(quote + before):
            return quote + after + name[len(quote + before) :]
    return name


def _hunk(lines: list[bytes]) -> Iterator[bytes]:
    """The lines of a hunk: what the patch added goes, before what comes back."""
    gone: list[bytes] = []
    back: list[bytes] = []
    last = gone
    for line in lines:
        kind = line[:1]
        if kind == b"-":
            back.append(b"+" + line[1:])
            last = back
        elif kind == b"+":
            gone.append(b"-" + line[1:])
            last = gone
        elif kind == b"\\":  # a note about the line before it
            last.append(line)
        else:
            yield from (*gone, *back)
            gone, back = [line], []
            last = gone
    yield from (*gone, *back)
