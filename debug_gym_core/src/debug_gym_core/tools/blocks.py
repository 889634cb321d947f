"""Blocks of the text form of an action: text that is taken literally, between `<<<` and `>>>`.

A block of lines begins below a line that ends with `<<<`, which may stand alone on the line below the action's, and
ends above a line that is `>>>`, blanks behind it aside. A block may also stand on one line.
"""

from __future__ import annotations

import re

BEGIN, END = "<<<", ">>>"

EXAMPLE = f"example:\nrewrite src/app.py 4:6 {BEGIN}\n    total += 1\n{END}"

_BODY = rf"[ \t]*\r?\n(?P<body>.*?)^{END}[ \t]*[\r\n]*\Z"

LINES = re.compile(_BODY, re.DOTALL | re.MULTILINE)
"""A block of lines, with which a text ends, from behind `<<<` on."""

ACTION = re.compile(rf"\A(?P<head>[^\n]*){BEGIN}{_BODY}", re.DOTALL | re.MULTILINE)
"""An action with a block of lines."""

OPENED = re.compile(rf"[^\n]*{BEGIN}[ \t]*(\r?\n|\Z)")
"""The first line of an action whose block of lines begins below it."""

LAST = re.compile(rf"^{END}[ \t]*\r?$", re.MULTILINE)
"""The line that ends a block of lines."""

# What is repeated is atomic by itself: Python before 3.11.5 repeats nothing possessively that may go back (gh-106052).
BEFORE = re.compile(rf"""(?>[^'"\\<]++|<(?!<<)|\\.|'[^']*'|"(?>[^"\\]|\\.)*+")*+{BEGIN}""", re.DOTALL)
"""What stands before a block, in which quotes hide what is none; it never goes back, so that time grows with length."""

WHOLE = re.compile(
    rf"{BEGIN}(?:[ \t]*\r?\n)?(?!(?>(?!{END}).)*+{END}(?>(?!{BEGIN}).)*+{BEGIN})(?P<body>.*){END}", re.DOTALL
)
"""A text that is a block as a whole, and not several; in it anything else may stand."""


def begins(line: str) -> bool:
    """Whether a block of lines begins below a line."""
    return line.rstrip().endswith(BEGIN)


def is_begin(line: str) -> bool:
    """Whether a line is nothing but the beginning of a block, which belongs to the action on the line above."""
    return line.strip() == BEGIN


def ends(line: str) -> bool:
    """Whether a block of lines ends above a line."""
    return line.rstrip() == END
