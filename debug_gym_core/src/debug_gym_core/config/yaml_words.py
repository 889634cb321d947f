"""What is wrong with a YAML text, in words for who wrote it; nothing of the text is repeated: it may be a key."""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml


class Problem(NamedTuple):
    """What a YAML text cannot be read for.

    Attributes:
        line: from 0; None: unknown
        column: from 0
        what: in words
        remedy: what to do about it; empty: `what` says it
    """

    line: int | None
    column: int
    what: str
    remedy: str


_QUOTED = "put a text that begins with {} in quotes"
_WORDS: tuple[tuple[str, str, str], ...] = (
    ("constructor for the tag|undefined tag handle", "a tag (!...) has no meaning here", _QUOTED.format("!")),
    ("another document", "a second document begins here; there may be only one", "take out the line ---"),
    ("<document start>", "what is before this is whole already, and nothing can follow", "take one of both out"),
    ("undefined alias|scanning an alias", "* names an anchor, and there is none of this name", _QUOTED.format("*")),
    ("duplicate anchor", "two anchors (&...) have one name", _QUOTED.format("&")),
    ("scanning an anchor", "an anchor (&...) needs a name", _QUOTED.format("&")),
    (r"character '\\t'", "no tab can stand here", "write blanks"),
    ("cannot start any token", "no text begins with this character", "put the text in quotes"),
    ("end of stream", "a text in quotes has no end", "end it with the quote that it begins with"),
    ("escape", "no text in double quotes has this escape (\\...)", "put the text in single quotes"),
    ("flow sequence", "a list in [ ] has no end, or lacks a comma", "write [one, other], texts with [ ] , : in quotes"),
    ("flow mapping", "a mapping in { } has no end, or lacks a comma", "write {key: value, other: value}"),
    ("mapping values", "no value can begin with this colon", "put a text with one in quotes; indent keys alike"),
    ("expected ':'", "a key has no colon behind it", "write key: value"),
    ("<block end>, but found '<scalar>'", "the value before this has ended", "put a text of both in quotes"),
    ("expected <block end>", "this is indented unlike what it belongs to", "indent items, and keys, alike"),
)
"""What the library says, what that is in other words, and what to do about it."""


_LATE = re.compile(r"end of stream|<stream end>|expected ':'")
"""Where the library says this, it has read on behind what is wrong; the beginning of that is in its context."""


def problem_of(error: yaml.YAMLError) -> Problem:
    """What an error of the library's says; where nobody has thought of it, in the library's own words.

    Args:
        error: what reading raised
    """
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem(None, 0, getattr(error, "reason", None) or "not YAML", "")
    said = ", ".join(filter(None, (error.problem, error.context)))
    what, remedy = next(
        ((what, remedy) for words, what, remedy in _WORDS if re.search(words, said)), (_without_names(said), "")
    )
    mark = error.problem_mark or error.context_mark
    if error.context_mark and _LATE.search(said):
        mark = error.context_mark
    return Problem(mark.line if mark else None, mark.column if mark else 0, what, remedy)


def _without_names(problem: str) -> str:
    """Words of the YAML library's without the name of an anchor or a tag, which a key in no quotes may seem to be."""
    return re.sub(r"""\b(alias|anchor|tag|handle) (['"]).*?\2""", r"\1", problem)
