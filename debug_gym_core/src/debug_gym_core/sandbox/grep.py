"""Searching the files of a task: what to look for, what was found. The search itself runs in the guest."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from debug_gym_core.errors import ActionError, UsageError
from debug_gym_core.sandbox.answers import FoundFile
from debug_gym_core.sandbox.patterns import Patterns
from debug_gym_core.sandbox.terminal import ROOT

LONGEST_PATTERN = 10_000
"""Characters of a pattern or glob; to understand a longer one could take all time and memory."""

_ALTERNATIVES = 100


class InvalidPattern(ActionError):
    """A pattern that is no regular expression for the sandbox's Python.

    Attributes:
        position: index of the character at which that shows; None: not known
    """

    def __init__(self, reason: str, position: int | None) -> None:
        super().__init__(reason)
        self.position = position


@dataclass(frozen=True)
class Query:
    r"""What to look for in files: lines, which end at `\n` or `\r\n` only, in which a pattern is found.

    Attributes:
        pattern: the regular expression of the sandbox's Python, or plain text
        glob: which files are searched; None: all
        regex: whether the pattern is a regular expression
        case_sensitive: whether upper and lower case differ
        context: lines shown before and behind each match
        lines: matching lines that are returned at most
        characters: of text, returned at most
        width: characters of one line at most, around the match
        timeout: seconds after which the search is stopped
    """

    pattern: str
    glob: Glob | None = None
    regex: bool = True
    case_sensitive: bool = True
    context: int = 0
    lines: int = 100
    characters: int = 16_000
    width: int = 300
    timeout: float = 20.0


@dataclass(frozen=True)
class Glob:
    """Which files are searched, by their paths.

    Attributes:
        expressions: regular expressions, one of which must be found in the path
        exclude: whether the files are searched in which none is found
    """

    expressions: tuple[str, ...]
    exclude: bool = False

    @classmethod
    def parse(cls, text: str) -> Glob:
        """Understand a glob.

        Args:
            text: as a line of `.gitignore`: one without a slash is about names in any directory, `**` about any number
                of directories, that of a directory about all in it; `{a,b}` is one or the other, and `!` at the
                beginning leaves out what the rest says

        Raises:
            ActionError: it is none
        """
        if len(text) > LONGEST_PATTERN:
            raise ActionError(f"the glob has {len(text)} characters; more than {LONGEST_PATTERN} cannot be searched")
        exclude = text.startswith("!")
        expressions = []
        for one in _without_braces(text.removeprefix("!")):
            name = re.sub(rf"^(?:{re.escape(ROOT)}(?=/)|\./+)", "", one)
            try:
                expressions += [regex for regex, _ in Patterns([re.sub("^([#!])", r"\\\1", name)], lenient=False)]
            except UsageError:
                expressions.clear()
            if not expressions:
                raise ActionError(f"{one!r:.200} is not a glob such as *.py, src/**/*.py or *.{{py,toml}}")
        return cls(tuple(expressions), exclude)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        files: files with matching lines, those of a directory before those below it, names sorted; the first thousand
        searched: how many files were searched
        matching_files: how many of them match
        matching_lines: how many lines match in those that are not binary
        unreadable: how many files and directories could not be read
        cut_lines: how many lines were too long to be searched whole
        stopped: what ended the search before its end: its time was over, or the memory that it may take
        at: the file in which it was then, if that is known
    """

    files: list[FoundFile] = field(default_factory=list)
    searched: int = 0
    matching_files: int = 0
    matching_lines: int = 0
    unreadable: int = 0
    cut_lines: int = 0
    stopped: Literal["time", "memory"] | None = None
    at: str = ""


def request_of(query: Query, ignored: dict[str, Any]) -> dict[str, Any]:
    """The fields of the guest's `grep` request, but for the path.

    Args:
        query: what to look for
        ignored: what `Rules.ignore_patterns` says
    """
    glob = query.glob or Glob(("",))
    return {
        "pattern": query.pattern,
        "regex": query.regex,
        "case_sensitive": query.case_sensitive,
        "context": query.context,
        "lines": query.lines,
        "characters": query.characters,
        "width": query.width,
        "timeout": query.timeout,
        "globs": glob.expressions,
        "exclude": glob.exclude,
        "ignored": ignored,
    }


def _without_braces(text: str) -> list[str]:
    """All that a glob with `{a,b}` stands for; braces without a comma are plain characters."""
    texts = [text]
    while True:
        for index, one in enumerate(texts):
            match = re.search(r"\{([^{}]*,[^{}]*)\}", one)
            if match:
                choices = match[1].split(",")
                texts[index : index + 1] = [one[: match.start()] + choice + one[match.end() :] for choice in choices]
                break
        else:
            return texts
        if len(texts) > _ALTERNATIVES:
            raise ActionError(f"the glob stands for more than {_ALTERNATIVES} globs; that is too many")
