r"""Files as lines, without losing a byte.

Lines end at `\n` (so at `\r\n` too) and nowhere else: a form feed, a lone `\r`, `\x1c` or U+2028 is part of a line, as
for git. Lines are bytes and keep their ends, so what an edit does not touch stays as it was, whatever its encoding.
They are shown as an editor does, in the encoding that a Python file declares.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

from debug_gym_core.errors import ActionError
from debug_gym_core.sandbox.guest.declared import codec_of, declaration, line_codec_of, text_of

CRLF = b"\r\n"
LF = b"\n"

# Control characters but the tab, line separators that are no line ends here, characters that reorder text, surrogates.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


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


def decode(data: bytes, encoding: str = "utf-8") -> str:
    """Content as text, each line by itself; bytes that are no characters become surrogates.

    Args:
        data: of UTF-8, `encode` gives the same bytes back
        encoding: in which it is text, as `shown_encoding` says
    """
    return text_of(data, encoding)


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


@dataclass(frozen=True)
class Wide:
    """An encoding whose characters have two or four bytes, so that its lines are none of ours.

    Attributes:
        name: what people call it
        mark: the byte order mark at a file's beginning, by which the file is known to be in it
        codec: what Python calls it, without a mark
    """

    name: str
    mark: bytes
    codec: str

    def to_utf_8(self, data: bytes) -> bytes:
        """The content of a file in it as UTF-8 without a mark; what is no text is replaced."""
        return data.removeprefix(self.mark).decode(self.codec, "replace").encode()

    def from_utf_8(self, data: bytes) -> bytes:
        """The reverse of `to_utf_8`.

        Raises:
            ActionError: this is no UTF-8
        """
        return self.mark + encode(decode(data).removeprefix("\ufeff"), self.codec)


_WIDE = (  # those first whose mark begins as another one's
    Wide("UTF-32", codecs.BOM_UTF32_LE, "utf-32-le"),
    Wide("UTF-32", codecs.BOM_UTF32_BE, "utf-32-be"),
    Wide("UTF-16", codecs.BOM_UTF16_LE, "utf-16-le"),
    Wide("UTF-16", codecs.BOM_UTF16_BE, "utf-16-be"),
)


def wide_of(data: bytes) -> Wide | None:
    """The encoding of two or four bytes a character that a file's mark tells, if it is one.

    Args:
        data: the content, or its beginning
    """
    return next((wide for wide in _WIDE if data.startswith(wide.mark)), None)


def declared_encoding(data: bytes) -> str:
    """The encoding that a Python file declares for itself (PEP 263), else UTF-8.

    Args:
        data: content of the file
    """
    return codec_of(declaration(data))


def shown_encoding(data: bytes) -> str:
    """The encoding in which lines of a Python file are shown: what it declares, if each can be read by itself.

    Args:
        data: content of the file
    """
    return line_codec_of(declaration(data))


def show(line: bytes, encoding: str = "utf-8") -> tuple[str, bool]:
    r"""A line, or other short content, as a person can read it.

    Args:
        line: bytes without a line end
        encoding: in which it is text, as `shown_encoding` says

    Returns:
        the text, in which bytes that are none in the encoding and characters that cannot be seen are escaped (`\xe9`,
        `\x0c`, `\u2028`), and whether it had such bytes
    """
    try:
        return escaped(line.decode(encoding)), False
    except UnicodeDecodeError:
        return escaped(decode(line, encoding)), True


def escaped(text: str) -> str:
    r"""Text of a line as a person can read it.

    Args:
        text: characters that cannot be seen, and surrogates that stand for bytes, are escaped (`\x0c`, `\xe9`)
    """
    return _UNSHOWABLE.sub(_escape, text)


def beginning(line: bytes, size: int, encoding: str = "utf-8") -> bytes:
    """The first bytes of a line, without a character at their end that has more of them.

    Args:
        line: may be cut itself
        size: how many bytes at most
        encoding: in which it is text, as `shown_encoding` says
    """
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    decoder.decode(line[:size])
    return line[: min(size, len(line)) - len(decoder.getstate()[0])]


def shown(path: str) -> str:
    """A path for a message: whatever is in it, on one line, not too long."""
    text = show(path.encode("utf-8", "surrogateescape"))[0]
    return text if len(text) <= 200 else f"{text[:97]}...{text[-100:]}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
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
