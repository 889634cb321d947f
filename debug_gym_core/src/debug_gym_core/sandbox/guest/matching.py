"""Which paths and lines a search is about."""

import contextlib
import os
import stat

from .declared import shifts, text_of
from .tree import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PathPatterns:
    """Patterns of paths as `.gitignore` has them: regular expressions with a verdict, the first that matches decides.

    They come from `debug_gym_core.sandbox.patterns.Patterns`, whose `match` this does.
    """

    def __init__(self, patterns: "list[tuple[str, bool]]") -> None:
        import re

        self.patterns = [(re.compile(pattern), verdict) for pattern, verdict in patterns]
        self.any = any_of([pattern for pattern, _ in patterns])  # most paths match none

    def match(self, name: str) -> "bool | None":
        """The verdict on a path, which ends in a slash when it is a directory's; None: no pattern matches."""
        if self.any.search(name) is not None:
            for pattern, verdict in self.patterns:
                found = pattern.search(name)
                if found is not None and (found.lastgroup is None or found.end(found.lastgroup) == len(name)):
                    return verdict
        return None


def any_of(patterns: "list[str]") -> "Any":
    """One regular expression for several; without the groups' names, of which no two can be the same."""
    import re

    return re.compile("|".join(re.sub(r"\(\?P<\w+>", "(?:", pattern) for pattern in patterns) if patterns else "(?!)")


def required(pattern: str) -> str:
    """A text that is in whatever a regular expression matches, as long as can be told easily; may be empty."""
    import re

    if re.search(r"\(\?[a-zA-OQ-Z#-]", pattern):  # flags, which may change what characters mean, and comments
        return ""
    runs, run, depth = [], [], 0  # type: list[str], list[str], int
    for match in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", pattern, re.DOTALL):
        token = match.group()
        if token == "|" and depth == 0:
            return ""
        if token[0] == "\\" and token[1:] in tuple("xuUN0123456789"):  # what follows is part of the escape
            return ""
        depth += (token == "(") - (token == ")")
        escaped = len(token) == 2 and token[0] == "\\" and not token[1].isalnum()
        if depth == 0 and (escaped or (len(token) == 1 and token not in "\\.^$*+?{}()")):
            run.append(token[-1])
            continue
        if token[0] in "*?{" and run:  # the character before may not be there at all
            run.pop()
        runs.append("".join(run))
        run = []
    return max([*runs, "".join(run)], key=len)


ESCAPED = {0xDC00 + byte: byte for byte in range(0x80, 0x100)}


def decoded(data: bytes, first: bool, codec: str) -> "tuple[list[str], list[str]]":
    """Lines without their ends: as text in which bytes that are no characters are surrogates, and as text to search.

    In the latter, such bytes count as the Latin-1 characters that they most likely are. The codec is one of
    `declared.line_codec_of`.
    """
    valid = not shifts(data, codec)
    try:
        text = data.decode(codec) if valid else text_of(data, codec)
    except UnicodeDecodeError:
        text = text_of(data, codec)
        valid = False
    if first and text.startswith("\ufeff"):
        text = text[1:]
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines, lines if valid else [line.translate(ESCAPED) for line in lines]


def ignored(path: str, is_dir: bool, rules: "list[tuple[int, PathPatterns]]") -> bool:
    """Whether a path is left out by the rules, of which each looks at it from a place of its own on."""
    name = path.replace("\n", "\r") + ("/" if is_dir else "")
    for begin, patterns in rules:
        verdict = patterns.match(name[begin:])
        if verdict is not None:
            return verdict
    return False


def kinds(directory: int) -> "list[tuple[bytes, bool, bool]]":
    """The entries of an open directory by name, whether each is a directory and whether it is a file."""
    if os.scandir in os.supports_fd:  # since Python 3.7
        with os.scandir(directory) as scan:
            return sorted(
                (os.fsencode(entry.name), entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                for entry in scan
            )
    kinds = []
    for name in names_in(directory):
        with contextlib.suppress(OSError):  # gone since
            mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            kinds.append((name, stat.S_ISDIR(mode), stat.S_ISREG(mode)))
    return sorted(kinds)
