"""Replacing text in a file, not touching a byte of anything else."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, product, zip_longest

from debug_gym_core.workspace.edits import edits_between
from debug_gym_core.workspace.lines import CRLF, LF, body_of, declared_encoding, encode, end_of, newline_among, split


class Text:
    r"""The content of a file as text in which lines end in `\n` only.

    Attributes:
        text: the characters; bytes that are none in the file's encoding are surrogates
    """

    def __init__(self, data: bytes, python: bool) -> None:
        """Decode.

        Args:
            data: the content
            python: whether the file is Python source, which may declare its encoding; else it is UTF-8
        """
        self._python = python
        declared = declared_encoding(data) if python else "utf-8"
        # What is not as it declares may be UTF-8; else it has some bytes that are no characters.
        for errors, self._encoding in product(("strict", "surrogateescape"), (declared, "utf-8")):
            with suppress(UnicodeError):
                self._whole = data.decode(self._encoding, errors)
                if self._bytes(0, len(self._whole)) == data:
                    break
        self.text = self._whole.replace("\r\n", "\n")

    def starts(self, old: str) -> Iterator[int]:
        """Where a text begins, from the top; the text found before is passed over."""
        start = self.text.find(old)
        while start >= 0:
            yield start
            start = self.text.find(old, start + len(old))

    def overlaps(self, start: int, old: str) -> bool:
        """Whether a text that begins somewhere begins again before it ends."""
        return self.text.find(old, start + 1, start + 2 * len(old) - 1) >= 0

    def replaced(self, starts: Sequence[int], old: str, new: str) -> bytes:
        r"""The content with another text in some places.

        Lines of `new` end as those of the file do where it is put; lines that it has in common with `old` stay as they
        are, to the byte.

        Args:
            starts: where `old` is, from the top
            old: what is replaced; its lines end in `\n`
            new: what takes its place

        Raises:
            ActionError: the file's encoding cannot express `new`
        """
        head = common_beginning(old, new)
        tail = common_beginning(old[head:][::-1], new[head:][::-1])
        middle = new[head : len(new) - tail]
        kept: list[bytes] = []
        texts: list[str] = []
        last = 0
        for start in starts:
            begin, end = self._position(start + head), self._position(start + len(old) - tail)
            kept.append(self._bytes(last, begin))
            texts.append(self._ended(middle, begin, end))
            last = end
        kept.append(self._bytes(last, len(self._whole)))
        encoding = self._encoding
        if self._python:  # the change may be that of the declaration
            encoding = declared_encoding(_woven(kept, [encode(text) for text in texts]))
        return _woven(kept, [encode(text, encoding) for text in texts])

    @cached_property
    def _windows(self) -> list[int]:
        r"""Where in `text` a newline stands for `\r\n`."""
        parts = self._whole.split("\r\n")[:-1]
        return [end - 1 for end in accumulate(len(part) + 1 for part in parts)]

    def _position(self, position: int) -> int:
        """The place in the file's own characters of a place in `text`."""
        return position + bisect_left(self._windows, position)

    def _bytes(self, begin: int, end: int) -> bytes:
        return self._whole[begin:end].encode(self._encoding, "surrogateescape")

    def _ended(self, new: str, begin: int, end: int) -> str:
        """A text with the line ends that it gets in place of a part of the file."""
        if "\n" not in new or not self._windows:
            return new
        old = self._whole[begin:end]
        ends, windows = old.count("\n"), old.count("\r\n")
        if ends and windows in (0, ends):
            return new.replace("\n", "\r\n" if windows else "\n")
        first = self._whole.rfind("\n", 0, begin) + 1
        behind = end if old.endswith("\n") else self._whole.find("\n", end) + 1 or len(self._whole)
        above = self._whole[self._whole.rfind("\n", 0, max(first - 1, 0)) + 1 : first]
        newline = newline_among([encode(above)], split(encode(self._whole[first:behind])), [])
        return _merged(old, new, newline) if ends else new.replace("\n", newline.decode())


def _merged(old: str, new: str, newline: bytes) -> str:
    r"""A text in place of one whose lines end in both ways.

    Args:
        old: the replaced one
        new: the other, whose lines end in `\n`
        newline: how lines end that there were none of before
    """
    before, after = split(encode(old)), split(encode(new))
    merged: list[bytes] = []
    taken = shift = 0
    for edit in edits_between(encode(old).replace(CRLF, LF), encode(new)):
        first = edit.start - 1
        merged += before[taken:first]
        taken = first + edit.old
        lines = after[first + shift : first + shift + edit.new]
        shift += edit.new - edit.old
        ends = [end_of(line) or newline for line in before[first:taken]]
        for line, end in zip_longest(lines, ends[: len(lines)], fillvalue=newline):
            merged.append(body_of(line) + (end if end_of(line) else b""))
    return b"".join((*merged, *before[taken:])).decode("utf-8", "surrogateescape")


def _woven(kept: Sequence[bytes], texts: Sequence[bytes]) -> bytes:
    """What is kept with the texts between."""
    pieces = [piece for pair in zip(kept, texts, strict=False) for piece in pair]
    return b"".join((*pieces, kept[-1]))


def common_beginning(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginnings."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
