"""Which paths are meant: git's patterns, and the regular expressions that the guest takes for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pathspec import GitIgnoreSpec

from debug_gym_core.errors import UsageError


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
                self._patterns += _compiled(line)
            except (ValueError, re.error) as error:  # pathspec lets through ranges that end before they begin
                if not lenient:
                    raise UsageError(f"{line!r} is not a pattern as .gitignore has them: {error}") from None
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


def _compiled(line: str) -> list[tuple[re.Pattern[str], bool]]:
    """The regular expressions of a line, one or none, and whether what they match is included."""
    found = []
    for one in GitIgnoreSpec.from_lines([_slashes_out_of_brackets(line)]).patterns:
        if one.include is not None and one.regex is not None:
            # pathspec lets `[!a]` match a slash, git does not; a `]` in front is a character like others.
            regex = _NEGATED.sub(lambda found: r"[^/\]" if found[1] else "[^/", one.regex.pattern)
            found.append((re.compile(_at_first(regex)), one.include))
    return found


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


_STAR, _ABOVE, _BETWEEN = "[^//]*", "(?:.+/)?", "(?:/.+)?/"
"""How pathspec writes `*`, and `**` in front and within, with what `_NEGATED` makes of it."""
_BRACKET = r"\[\^?\]?(?:\\.|[^]\\])*\][+]?"
_TOKEN = re.compile(
    "|".join((*map(re.escape, (_STAR, _ABOVE, _BETWEEN)), r"\\.", _BRACKET, r"[^][\\*+?{}()|^$]")), re.DOTALL
)
_WHOLE = re.compile(r"\^(?P<body>.*?)(?P<end>\(\?:\(\?P<ps_d>/\)\|\$\)|\(\?P<ps_d>/\)|)", re.DOTALL)


def _at_first(regex: str) -> str:
    """The same regular expression, which finds what stands between two stars where it comes first and seeks no further.

    No other place would let more match. Else there are more ways to try than time, for a pattern with many stars and
    a name that it almost matches, and whoever wrote the repository wrote both.
    """
    found = _WHOLE.fullmatch(regex)
    if found is None:
        return regex
    tokens = [one[0] for one in _TOKEN.finditer(found["body"])]
    if "".join(tokens) != found["body"]:  # as no pattern is known to be written
        return regex
    pieces: list[list[str]] = [[]]
    stars = []
    for token in tokens:
        if token in (_ABOVE, _BETWEEN):
            stars.append(token)
            pieces.append([])
        else:
            pieces[-1].append(token)
    written = [_segments(piece) for piece in pieces]
    made = written[0]
    for number, star in enumerate(stars):
        piece = written[number + 1]
        if number == len(stars) - 1:
            made += star + piece
        elif star == _ABOVE:
            made += f"(?:(?!{piece}/)[^//]+/)*{piece}(?=/)"
        else:
            made += f"(?:/(?!{piece}/)[^//]+)*/{piece}(?=/)"
    return f"^{made}{found['end']}"


def _segments(tokens: list[str]) -> str:
    """A part of a pattern without `**`."""
    made, fixed, stars = [], [""], 0
    for token in [*tokens, "/"]:
        if token == _STAR:
            fixed += [""] if fixed[-1] or not stars else []
            stars += 1
        elif token != "/":
            fixed[-1] += token
        else:
            first, *others = fixed
            for text in others[:-1]:
                first += f"(?:(?!{text})[^//])*{text}"
            made.append(first + (_STAR + others[-1] if others else ""))
            fixed, stars = [""], 0
    return "/".join(made)
