"""What was typed, as lines that pdb can carry out."""

from __future__ import annotations

import re
import shlex

from debug_gym_core import ActionError

MOST_STEPS = 50
"""How often `n 5` and `s 5` repeat at most."""

_PROMPT = re.compile(r"\s*(?:\(i?[Pp]db\)|i?pdb>|debug-gym>|>>>|>)(?:[ \t]+|\Z)")
_PYTHON_PROMPT = re.compile(r"\s*(?:>>>|\.\.\.)(?:[ \t]|\Z)")
_TOOL_NAME = re.compile(r"\s*pdb[ \t]+(?!(?:in|is|and|or|if|not)\b)(?=[a-z])")
_FENCE = re.compile(r"\s*```\w*\s*")
_COUNTED = re.compile(r"\s*(n|next|s|step)[ \t]+(\d+)\s*(?:#.*)?")
_RESTART = re.compile(r"\s*(?:(?:run|restart|rerun)(?:\s+((?![^\s\w]{0,3}=)[^\s#;][^#;]*))?|start)\s*")
_LISTS = re.compile(r"\s*(?:b|break)\s*")
_HELP = re.compile(r"\s*(?:h|help|\?)\s*(?:pdb)?\s*(?:\(\s*\))?\s*")
_GOES_BACK = re.compile(r"\s*(?:back|rewind)\s*(?:\d+|\(\s*\d*\s*\))?\s*")


def lines_of(command: str) -> list[str]:
    """The lines of a command, without what belongs to the page it was copied from.

    Args:
        command: what was typed: it may have a prompt before each line, or stand in a fenced block

    Raises:
        ActionError: there is no command in it, or it cannot be one
    """
    if "\0" in command:
        raise ActionError("pdb: the command holds a NUL character, which neither pdb nor Python takes")
    lines = _without_ends(re.split(r"\r?\n", command))
    if lines and _FENCE.fullmatch(lines[0]):
        lines = _without_ends(lines[1:-1] if len(lines) > 1 and lines[-1].strip() == "```" else lines[1:])
    elif len(lines) == 1 and (match := re.fullmatch(r"\s*(`{1,3})([^`]+)\1\s*", lines[0])):
        lines = _without_ends([match[2]])
    if lines and _PROMPT.match(lines[0]):
        prompt = _PYTHON_PROMPT if lines[0].lstrip().startswith(">>>") else _PROMPT
        lines = _without_ends([prompt.sub("", line, count=1) for line in lines])
    if lines:
        lines[0] = _TOOL_NAME.sub("", lines[0], count=1)
    if not lines:
        raise ActionError("pdb: the command is empty; an example: b app.py:12")
    return lines


def counted(line: str) -> tuple[str, int]:
    """A step and how often it is to be done, for `n 5`; any other line is done once."""
    match = _COUNTED.fullmatch(line)
    return (match[1][0], max(1, int(match[2][:6]))) if match else (line, 1)


def lists_breakpoints(line: str) -> bool:
    """Whether a line asks for the breakpoints that there are."""
    return _LISTS.fullmatch(line) is not None


def restart(line: str) -> tuple[list[str] | None, ...]:
    """The arguments that a line starts the program with, None for the same ones; in a tuple; empty: it does not.

    Nor does it where only pdb can say what it means.
    """
    match = _RESTART.fullmatch(line)
    try:
        return () if match is None else (shlex.split(match[1]) if match[1] else None,)
    except ValueError:
        return ()


def asks_for_help(line: str) -> bool:
    """Whether a line asks for the list of all commands."""
    return _HELP.fullmatch(line) is not None


def goes_back(line: str) -> bool:
    """Whether a line asks for a stop that the program was at before."""
    return _GOES_BACK.fullmatch(line) is not None


def _without_ends(lines: list[str]) -> list[str]:
    """Lines without empty ones before and after."""
    kept = [place for place, line in enumerate(lines) if line.strip()]
    return lines[kept[0] : kept[-1] + 1] if kept else []
