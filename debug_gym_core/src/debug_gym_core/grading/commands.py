"""What shells and make say of a command that names what is not there."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence

SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})
MAKES = frozenset({"make", "gmake"})
_VALUED = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
"""Options of shells whose value is the next word."""


def not_found(command: str, status: int | None, output: str) -> str:
    """What a command that `/bin/sh` runs names and does not find, in the words that were printed; empty: nothing.

    Only what the command itself names counts: a script that is there and starts something that is not may be the bug.

    Args:
        command: its text
        status: that it ended with
        output: what it printed
    """
    lines = [line.strip() for line in output.strip().splitlines()]
    while lines and re.match(r"g?make: Leaving directory ", lines[-1]):
        lines.pop()
    last = lines[-1] if lines else ""
    if status in (126, 127) and last.startswith("/bin/sh: "):
        return re.sub(r"^/bin/sh: (line )?(\d+: )?", "", last)
    words = _words(command)
    if status:
        for place, word in enumerate(words):
            if posixpath.basename(word) in SHELLS and (said := _said_by_shell(word, words[place + 1 :], last)):
                return said
    if status == 2 and any(posixpath.basename(word) in MAKES for word in words):
        return _said_by_make(words, last)
    return ""


def scripts(command: str) -> list[str]:
    """The script of the shell that a command without syntax of the shell's starts, if it is one."""
    words = _words(command)
    while words and "=" in words[0]:
        words = words[1:]
    if not words or posixpath.basename(words[0]) not in SHELLS:
        return []
    code, script = _operand(words[1:])
    return [script] if script and not code else []


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _operand(arguments: Sequence[str]) -> tuple[bool, str]:
    """Whether a shell is given code, and the code, or the path of its script; empty: neither."""
    code, words = False, list(arguments)
    while words:
        word = words.pop(0)
        if word in _VALUED:
            del words[:1]
        elif word[:1] not in ("-", "+") or word == "-":
            return code, word
        elif word == "--":
            break
        elif not word.startswith("--"):
            code = code or "c" in word
            if "s" in word:
                return False, ""
    return code, next(iter(words), "")


def _said_by_shell(shell: str, arguments: Sequence[str], last: str) -> str:
    """What a shell said of its script, or of a program that its code names, that is not there."""
    code, operand = _operand(arguments)
    named = [word.strip(";&|()") for word in _words(operand)] if code else [operand]
    match = re.fullmatch(rf"{re.escape(shell)}:(?: line)?(?: ?\d+:)? ?(.*)", last)
    if match is None:
        return ""
    for name in filter(None, named):
        said = (
            rf"{re.escape(name)}: (?:command not found|not found|No such file or directory|Permission denied)"
            rf"|(?:command not found|permission denied|can't open input file): {re.escape(name)}"
            rf"|(?:cannot|[Cc]an't) open '?{re.escape(name)}'?(?:: .*)?"
        )
        if re.fullmatch(said, match[1]):
            return match[1]
    return ""


def _said_by_make(words: Sequence[str], last: str) -> str:
    """What make said of a makefile, a directory or a goal that is not there; of what a goal needs it says more."""
    match = re.fullmatch(r"g?make: \*\*\* (.*)\.  ?Stop\.", last)
    said = match[1] if match else ""
    if said == "No targets specified and no makefile found":
        return said
    one = re.fullmatch(r"No rule to make target .(.*).|(.*): No such file or directory", said)
    return said if one and (one[1] or one[2]) in words else ""
