r"""Files as lines, without losing a byte.

Lines end at `\n` (so at `\r\n` too) and nowhere else: a form feed, a lone `\r`, `\x1c` or U+2028 is part of a line, as
for git. Lines are bytes and keep their ends, so what an edit does not touch stays as it was, whatever its encoding.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from debug_gym_core.errors import ActionError

CRLF = b"\r\n"
LF = b"\n"

_DECLARATION = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?\r?\n?$")
# Control characters but the tab, line separators that are no line ends here, and characters that reorder text.
_UNSHOWABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]")


def split(data: bytes) -> list[bytes]:
    r"""Split content into lines.

    Args:
        data: content of a file

    Returns:
        the lines with their ends, `b"".join` of which is `data`; a last line without an end counts, an empty one does
        not
    """
    parts = data.split(LF)
    lines = [part + LF for part in parts[:-1]]
    if parts[-1]:
        lines.append(parts[-1])
    return lines


def end_of(line: bytes) -> bytes:
    r"""The end of a line: `\r\n`, `\n` or nothing."""
    if line.endswith(CRLF):
        return CRLF
    return LF if line.endswith(LF) else b""


def body_of(line: bytes) -> bytes:
    """A line without its end."""
    return line[: len(line) - len(end_of(line))]


def decode(data: bytes) -> str:
    """Content as text: UTF-8, bytes that are not become surrogates, so that `encode` gives the same bytes back."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str, encoding: str = "utf-8") -> bytes:
    """Text as content, the reverse of `decode`.

    Args:
        text: may hold the surrogates that `decode` makes
        encoding: what the file declares; a text that it cannot express is refused

    Raises:
        ActionError: the text holds a character that the file cannot
    """
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise ActionError(
            f"the text cannot be written as {encoding}: character {error.start + 1} is U+{ord(character):04X}"
        ) from None


def declared_encoding(data: bytes) -> str:
    """The encoding that a Python file declares for itself (PEP 263), else UTF-8.

    Args:
        data: content of the file
    """
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8"
    first, _, rest = data.partition(LF)
    second = rest.partition(LF)[0]
    match = _DECLARATION.match(first) or (_DECLARATION.match(second) if _BLANK.match(first) else None)
    if match is None:
        return "utf-8"
    try:
        codec = codecs.lookup(match.group(1).decode("ascii"))
        # Only encodings in which ASCII is ASCII can be mixed into a file line by line.
        return codec.name if "a\n".encode(codec.name, "surrogateescape") == b"a\n" else "utf-8"
    except (LookupError, UnicodeError, ValueError, TypeError):
        return "utf-8"


def show(line: bytes) -> tuple[str, bool]:
    r"""A line, or other short content, as a person can read it.

    Args:
        line: bytes without a line end

    Returns:
        the text, in which bytes that are not UTF-8 and characters that cannot be seen are escaped (`\xe9`, `\x0c`,
        `\u2028`), and whether it had bytes that are not UTF-8
    """
    try:
        text, undecodable = line.decode("utf-8"), False
    except UnicodeDecodeError:
        text, undecodable = line.decode("utf-8", "backslashreplace"), True
    return _UNSHOWABLE.sub(_escape, text), undecodable


def shown(path: str) -> str:
    """A path for a message: whatever is in it, on one line, not too long."""
    text = show(path.encode("utf-8", "surrogateescape"))[0]
    return text if len(text) <= 200 else f"{text[:97]}...{text[-100:]}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def replace(data: bytes, start: int, end: int, code: str, *, python: bool = True) -> bytes:
    r"""Replace whole lines; every other byte stays.

    New lines end as the lines around them do (CRLF or LF). The last new line gets an end when a line follows, or when
    the old last line had one. A BOM stays at the beginning.

    Args:
        data: content of the file
        start: first line to replace, from 1
        end: last line to replace; `start - 1` replaces none and inserts before `start`
        code: the new lines; empty deletes
        python: whether the file is Python source, which may declare its encoding; else UTF-8 is written

    Returns:
        the new content

    Raises:
        ActionError: the text cannot be written in the file's encoding
    """
    lines = split(data)
    before, old, after = lines[: start - 1], lines[start - 1 : end], lines[end:]
    newline = newline_among(before, old, after)
    encoding = declared_encoding(b"".join((*before, encode(code), *after))) if python else "utf-8"
    new = split(encode(code, encoding))
    if lines:
        new = [body_of(line) + (newline if end_of(line) else b"") for line in new]
    if new and not end_of(new[-1]) and (after or (lines and end_of(lines[-1]))):
        new[-1] += newline
    if before and new and not end_of(before[-1]):
        before[-1] += newline
    head, middle, tail = (b"".join(part) for part in (before, new, after))
    bom = codecs.BOM_UTF8
    if not before and old and data.startswith(bom) and not (middle + tail).startswith(bom):
        middle = bom + middle
    return head + middle + tail


def newline_among(before: Sequence[bytes], old: Sequence[bytes], after: Sequence[bytes]) -> bytes:
    """How new lines end: as most of the replaced ones, else as the nearest line.

    Args:
        before: lines before the replaced ones, the nearest last
        old: the lines that are replaced, whole or in part
        after: lines behind them
    """
    ends = [end_of(line) for line in old if end_of(line)]
    if ends:
        return max((CRLF, LF), key=ends.count)
    for line in (*reversed(before), *after):
        if end_of(line):
            return end_of(line)
    return LF
