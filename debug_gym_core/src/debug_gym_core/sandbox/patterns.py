"""Which paths are meant: git's patterns, and the regular expressions that the guest takes for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from debug_gym_core.errors import UsageError

if TYPE_CHECKING:
    pass


class Patterns:
    """The lines of one file with `.gitignore`'s syntax."""

    def __init__(self, lines: Iterable[str], *, lenient: bool = True) -> None:
        """Compile the patterns.

        Args:
            lines: one pattern each, blank lines and comments too
            lenient: pass over a line that is no pattern, as git does

        Raises:
            UsageError: a line is no pattern, and `lenient` is false
        """
        self._patterns: list[tuple[re.Pattern[str], bool]] = []
        for line in lines:
            try:
                compiled = GitIgnoreSpec.from_lines([_slashes_out_of_brackets(line)]).patterns
            except ValueError as error:
                if not lenient:
                    raise UsageError(f"{line!r} is not a pattern as .gitignore has them: {error}") from None
                continue
            # pathspec lets `[!a]` match a slash, git does not; a `]` in front is a character like others.
            self._patterns += [
                (
                    re.compile(_NEGATED.sub(lambda found: r"[^/\]" if found[1] else "[^/", one.regex.pattern)),
                    one.include,
                )
                for one in compiled
                if one.include is not None and one.regex is not None
            ]
        self._patterns.reverse()

    def __bool__(self) -> bool:
        """Whether there is any pattern."""
        return bool(self._patterns)

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        """Regular expressions and what each says of what it matches, the first that matches decides; see `match`."""
        return ((pattern.pattern, include) for pattern, include in self._patterns)

    def match(self, path: str, is_dir: bool) -> bool | None:
        """What the patterns say of one entry, whatever they say of the directories above it.

        Args:
            path: relative to the directory of the patterns' file
            is_dir: whether it is a directory (a link to one is not)

        Returns:
            True when the last pattern that matches includes the entry, False when that one begins with `!`, None when
            none matches
        """
        # `.` and `$` of a regular expression treat a line end in a name differently from other characters.
        name = path.replace("\n", "\r") + ("/" if is_dir else "")
        for pattern, include in self._patterns:
            found = pattern.search(name)
            # pathspec marks with a named group the slash where a pattern matched a directory: the entry or one above.
            mark = found and found.lastgroup
            if found and (mark is None or found.end(mark) == len(name)):
                return include
        return None


_NOTHING = "\0"  # stands for brackets that match no character


_NEGATED = re.compile(r"\[\^(\]?)")
_BRACKETS = re.compile(r"\\.|\[([!^]?)(\]?(?:\\.|\[:\w+:\]|[^]\\])*)\]")


def _slashes_out_of_brackets(line: str) -> str:
    """The same pattern without slashes in brackets, where pathspec would part it.

    To git they are slashes of the pattern, which is anchored then, but match none of a path.
    """

    def mended(found: re.Match[str]) -> str:
        negated, inside = found.groups()
        if inside is None or "/" not in inside:
            return found[0]
        # A range ends before the slash or begins after it.
        kept = inside.replace("-/", "-.").replace("/-", "0-").replace("/", "")
        return f"[{negated}{kept}]" if kept else "?" if negated else _NOTHING

    pattern = _BRACKETS.sub(mended, line)
    if pattern == line:
        return line
    if _NOTHING in pattern:
        return ""
    taken_back = "!" if pattern.startswith("!") else ""
    return f"{taken_back}/{pattern.removeprefix(taken_back).removeprefix('/')}"
