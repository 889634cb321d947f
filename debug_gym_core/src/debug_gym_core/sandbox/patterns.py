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
            except ValueError as error:
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
    plain, sets = _without_sets(line)
    found = []
    for one in GitIgnoreSpec.from_lines([plain]).patterns:
        if one.include is not None and one.regex is not None:
            found.append((re.compile(_at_first(one.regex.pattern).translate(sets)), one.include))
    return found


_CLASSES = {
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "blank": "\t\t  ",
    "cntrl": "\0\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "xdigit": "09AFaf",
}
"""Ranges of the characters that a class has, first and last in turn."""

_ONE = r"(?:\\.|[^]\\])"
# Never tried in another way: of a line of dashes there would be more ways than time.
_BODY = rf"(?>\](?:-{_ONE})?)?+(?>{_ONE}-{_ONE}|\[:[^]]*:\]|{_ONE})*+"
_SET = re.compile(
    rf"\\.|\[(?P<negated>[!^]?)(?P<body>{_BODY})\]|(?P<open>\[)|(?P<tab>\t)|(?<![^/!])(?P<stars>\*{{3,}})", re.DOTALL
)
_MEMBER = re.compile(r"\[:(?P<name>[^]]*):\]|\\?(?P<first>.)(?:-\\?(?P<last>.))?", re.DOTALL)


def _without_sets(line: str) -> tuple[str, dict[int, str]]:
    """The same pattern with a private character for each set in brackets, and the regular expressions for those.

    pathspec reads sets in another way than git, to which no set matches a slash, and one that is written in a set makes
    the pattern an anchored one. A tab, which pathspec strips at the end and git does not, is one of them too; to git
    more than two stars are two.

    Raises:
        ValueError: the pattern matches nothing: a bracket is left open, a class is unknown, or a set has no characters
    """
    free = (number for number in range(0xE000, 0xF900) if chr(number) not in line)
    sets: dict[int, str] = {}
    slashes = False

    def replaced(found: re.Match[str]) -> str:
        nonlocal slashes
        body = found["body"]
        if found["open"]:
            raise ValueError("a bracket is left open")
        if found["stars"]:
            return "**"
        if body is None and not found["tab"]:
            return found[0]
        slashes = slashes or "/" in (body or "")
        number = next(free)
        sets[number] = r"\t" if body is None else _set(body, bool(found["negated"]))
        return chr(number)

    if line.startswith("#"):
        return line, {}
    plain = _SET.sub(replaced, line)
    if slashes:
        taken_back = "!" if plain.startswith("!") else ""
        plain = f"{taken_back}/{plain.removeprefix(taken_back).removeprefix('/')}"
    return plain, sets


def _set(body: str, negated: bool) -> str:
    """The regular expression for a set.

    Args:
        body: what stands in the brackets
        negated: whether all else is meant

    Raises:
        ValueError: it has an unknown class, or no characters
    """
    ranges: list[tuple[int, int]] = []
    for member in _MEMBER.finditer(body):
        if member["name"] is not None:
            if member["name"] not in _CLASSES:
                raise ValueError(f"there is no class [:{member['name']}:]")
            ends = iter(map(ord, _CLASSES[member["name"]]))
            ranges += zip(ends, ends, strict=True)
        else:
            first = ord(member["first"])
            ranges.append((first, first))  # to git also where a range ends before it begins
            if member["last"]:
                ranges.append((first, ord(member["last"])))
    slash = ord("/")
    parted = [half for low, high in ranges for half in ((low, min(high, slash - 1)), (max(low, slash + 1), high))]
    if negated:
        parted.append((slash, slash))
    texts = [f"\\U{low:08x}-\\U{high:08x}" for low, high in parted if low <= high]
    if not texts:
        raise ValueError(f"[{body}] matches no character")
    return f"[{'^' * negated}{''.join(texts)}]"


_STAR, _ABOVE, _BETWEEN = "[^/]*", "(?:.+/)?", "(?:/.+)?/"
"""How pathspec writes `*`, and `**` in front and within."""
_ANY = r"\[\^/\]\+?"
_TOKEN = re.compile(
    "|".join((*map(re.escape, (_STAR, _ABOVE, _BETWEEN)), r"\\.", _ANY, r"[^][\\*+?{}()|^$]")), re.DOTALL
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
            made += f"(?:(?!{piece}/)[^/]+/)*{piece}(?=/)"
        else:
            made += f"(?:/(?!{piece}/)[^/]+)*/{piece}(?=/)"
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
                first += f"(?:(?!{text})[^/])*{text}"
            made.append(first + (_STAR + others[-1] if others else ""))
            fixed, stars = [""], 0
    return "/".join(made)
