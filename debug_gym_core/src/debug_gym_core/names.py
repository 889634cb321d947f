"""Names for people: the nearest one to what was mistyped, a few of many, those of signals."""

from __future__ import annotations

import difflib
import re
import signal
from collections.abc import Iterable, Sequence


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest what somebody may have meant.

    Args:
        name: what was typed
        known: the names that exist

    Returns:
        `; did you mean 'x'?` when a known name is near, else `; known: a, b, c` (or nothing when there are none)
    """
    names = sorted(known)
    meant = closest(name, names)
    if meant is not None:
        return f"; did you mean {meant!r}?"
    return f"; known: {', '.join(names)}" if names else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that somebody may have meant; None: no name is near.

    Args:
        name: what was typed
        known: the names that exist
    """
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1)), None)


def some(names: Sequence[str], most: int = 10) -> str:
    """A few names, and how many more there are: `a, b and 3 more`.

    Args:
        names: all of them
        most: how many are named
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def begins_with(text: str, *names: str) -> bool:
    """Whether a text begins with one of the names, and not with a word that begins so."""
    return any(re.match(rf"{re.escape(name)}(?![\w.-])", text) for name in names)


def signal_name(number: int) -> str:
    """Name of a signal, such as SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def killed_by(number: int) -> str:
    """How it is told that something was killed by a signal; of one that lack of memory sends, that it may be that."""
    return f"was killed by {signal_name(number)}{' (out of memory?)' if number == signal.SIGKILL else ''}"
