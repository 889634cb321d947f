"""What commands print on a PTY, as text of bounded size."""

from __future__ import annotations

import re

from debug_gym_core.tools.observation import at_line_ends

KEPT = 1 << 16
"""Characters that are kept of what one command prints, before escape sequences are taken out."""

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, the cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # strings: titles, links, queries
    r"|\x1b[ -/]*[0-~]"  # the rest: character sets, keypad modes
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Printed:
    """Head and tail of a text that comes in pieces."""

    def __init__(self) -> None:
        self._head = ""
        self._tail = ""
        self._cut = 0

    def add(self, text: str) -> None:
        """Take the next piece."""
        room = KEPT // 2 - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail += text
        excess = len(self._tail) - KEPT // 2
        if excess > KEPT // 2:  # not each time: that would copy the tail for every piece
            self._tail = self._tail[excess:]
            self._cut += excess

    def show(self, limit: int) -> tuple[str, int]:
        """The text as a person would have seen it: no escape sequences, lines as they were when they ended.

        Args:
            limit: characters

        Returns:
            the text, its middle left out where it was too long; how many characters were left out
        """
        tail, cut = self._tail, self._cut
        if self._cut and len(tail) > KEPT // 2:
            cut += len(tail) - KEPT // 2
            tail = tail[len(tail) - KEPT // 2 :]
        if not cut:
            head, tail = plain(self._head + tail), ""
            if len(head) <= limit:
                return head, 0
            head, tail = head[: limit // 2], head[limit // 2 :]
        else:
            head, tail = plain(self._head), plain(tail)
        excess = max(0, len(head) - limit // 2)
        head = head[: limit // 2]
        if len(tail) > limit - limit // 2:
            excess += len(tail) - (limit - limit // 2)
            tail = tail[len(tail) - (limit - limit // 2) :]
        head, tail, more = at_line_ends(head, tail)
        cut += excess + more
        return f"{head}[... {cut} characters left out; redirect it to a file to see them in parts ...]\n{tail}", cut


def plain(text: str) -> str:
    r"""Take escape sequences out of a text, apply carriage returns and backspaces, show other controls as `\x00`.

    Args:
        text: what was printed
    """
    text = _ESCAPES.sub("", text)
    if "\r" in text or "\b" in text:
        text = "\n".join(_overwritten(line) for line in text.split("\n"))
    return _CONTROLS.sub(lambda found: "" if found[0] == "\a" else f"\\x{ord(found[0]):02x}", text)


def _overwritten(line: str) -> str:
    """What is left of a line when its beginning was printed over."""
    shown = ""
    for part in line.split("\r"):
        if "\b" in part:
            part = _erased(part)
        shown = part + shown[len(part) :] if part else shown
    return shown


def _erased(part: str) -> str:
    kept: list[str] = []
    for character in part:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)
