"""What of a call is being typed: which argument, and the word before the cursor."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from debug_gym_llm_human.usage import Argument, ToolClass, arguments, block_argument


@dataclass(frozen=True)
class Place:
    """What is typed where the cursor is.

    Attributes:
        tool: whose call it is
        argument: which argument the word is; None: nobody can tell
        free: arguments that are not given yet
        word: the word before the cursor, without quotes (and without `key=`)
        start: where it starts, counted back from the cursor
        named: whether it follows `key=`
    """

    tool: ToolClass
    argument: Argument | None
    free: tuple[Argument, ...]
    word: str
    start: int
    named: bool = False


def locate(tool: ToolClass, typed: str) -> Place | None:
    """Find out which argument of a tool is being typed.

    Args:
        tool: whose call it is
        typed: what stands between the tool's name and the cursor

    Returns:
        the place; None behind `<<<`
    """
    words = split(typed)
    if words is None or "<<<" in words[0] or words[1] == "<<<":
        return None
    complete, word, start = words
    by_name = {one.name: one for one in arguments(tool)}
    free = list(by_name.values())
    for given in complete:
        key, equals, _ = given.partition("=")
        if equals and key in by_name:
            free = [one for one in free if one.name != key]
        elif re.fullmatch(r"\d+:\d+", given) and [one.name for one in free[:2]] == ["start", "end"]:
            free = free[2:]
        else:
            free = free[1:]
    key, equals, value = word.partition("=")
    raw = typed[len(typed) + start :]
    if equals and key in by_name and raw.startswith(f"{key}="):
        return Place(tool, by_name[key], tuple(free), value, start + len(key) + 1, named=True)
    block = block_argument(tool)
    positional = [one for one in free if one.name != block]
    return Place(tool, positional[0] if positional else None, tuple(free), word, start)


def split(text: str) -> tuple[list[str], str, int] | None:
    """Split words as a shell does; the last one may be unfinished, its quotes open.

    Returns:
        the words that are complete, the one at the end, and where that starts, counted back from the end; None when
        the last character is a backslash
    """
    for closing in ("", "'", '"'):
        # The character stands for the cursor, so that an empty word at the end is one too.
        lexer = shlex.shlex(f"{text}\0{closing}", posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.commenters = True, ""
        try:
            words = list(lexer)
        except ValueError:
            continue
        if not words or not words[-1].endswith("\0") or text.endswith("\\"):
            return None
        return words[:-1], words[-1][:-1], -_length_of_last(text)
    return None


def _length_of_last(text: str) -> int:
    """Characters of the last word as it was typed, quotes and all."""
    quote = ""
    start = position = 0
    while position < len(text):
        character = text[position]
        if quote:
            if character == "\\" and quote == '"':
                position += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character == "\\":
            position += 1
        elif character.isspace():
            start = position + 1
        position += 1
    return len(text) - start
