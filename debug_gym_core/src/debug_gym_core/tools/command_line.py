"""The text form of tools that carry out a command: what follows the tool's name is that command, quotes and all.

Two things are taken off it, as with every tool: arguments that are named at its beginning, or behind a command in
quotes, and quotes around the whole, or `<<<` and `>>>`.

    pdb p x['a b']
    bash timeout=5 make test
    pdb command="b app.py:4" entrypoint="python app.py"
    bash "echo hi"
    bash 'make test' timeout=5
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection
from typing import Any

from debug_gym_core.tools import blocks

COMMAND = "command"
"""The name of the one argument that such a tool requires."""

LONGEST = 100_000
"""Characters in which words are told apart, which takes time that grows with the square of a word's length."""

_WORD = r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+"""
_NAMED = re.compile(rf"(?P<name>[A-Za-z_]\w*)=(?!=|{blocks.BEGIN})(?P<value>{_WORD})(?=\s|\Z)\s*", re.DOTALL)
_COMMAND = re.compile(rf"{COMMAND}=(?=[^\s=])")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)


def read(rest: str, names: Collection[str], value: Callable[[str, str], Any]) -> dict[str, Any]:
    """Tell what is named at the beginning from the command.

    Args:
        rest: what stands behind the tool's name
        names: of the tool's arguments
        value: makes a value of an argument's name and word; None where the word cannot be one, as in `timeout=$t make`

    Returns:
        the arguments; without `command` where there is none
    """
    if len(rest) > LONGEST:
        return {COMMAND: rest}
    named, left = _named(rest, names, value)
    if COMMAND in named and not left:
        return named
    if COMMAND in named:  # without quotes: it goes on to the end
        named, left = _named(rest, [name for name in names if name != COMMAND], value)
        left = _COMMAND.sub("", left, count=1)
    quoted = _QUOTED.match(left)
    if quoted and re.search(r"\s", quoted[0]) and left[quoted.end() : quoted.end() + 1].isspace():
        others = [name for name in names if name != COMMAND and name not in named]
        more, behind = _named(left[quoted.end() :].lstrip(), others, value)
        if more and not behind:  # a program's name with a blank in it, which is given `timeout=5`, there is hardly any
            named, left = {**named, **more}, quoted[0]
    block = blocks.WHOLE.fullmatch(left.removeprefix(f"{COMMAND}="))
    if block:
        named[COMMAND] = block["body"]
    elif left:
        named[COMMAND] = shlex.split(left)[0] if len(left) > 2 and _QUOTED.fullmatch(left) else left
    return named


def _named(rest: str, names: Collection[str], value: Callable[[str, str], Any]) -> tuple[dict[str, Any], str]:
    """Arguments by their names as far as they go, and what comes behind them."""
    found: dict[str, Any] = {}
    while (match := _NAMED.match(rest)) is not None and match["name"] in names and match["name"] not in found:
        given = value(match["name"], shlex.split(match["value"])[0])
        if given is None:
            break
        found[match["name"]] = given
        rest = rest[match.end() :]
    return found, rest
