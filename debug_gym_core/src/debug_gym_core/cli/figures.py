"""Scores, tokens, money and time in few characters."""

from __future__ import annotations

LEAST = 0.0001
"""Dollars that are shown."""


def score_text(score: int | None, max_score: int | None) -> str:
    """`3/4`, or a dash when nothing was measured."""
    return "-" if score is None or max_score is None else f"{score}/{max_score}"


def count_text(count: int) -> str:
    """A number of tokens in few characters."""
    if not count:
        return "-"
    for limit, unit in ((10**6, "M"), (10**3, "k")):
        if count >= limit:
            return f"{count / limit:.1f}{unit}"
    return str(count)


def money_text(dollars: float) -> str:
    """Dollars, with more digits when they are few."""
    if not dollars:
        return "-"
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"


def about_spending(spent: float, shown: float) -> str:
    """What to say of a run that has spent more than is shown of its results; empty: it has not.

    Args:
        spent: dollars, by all calls of the run
        shown: dollars, of the results
    """
    if spent <= shown + LEAST:
        return ""
    return f"the run has spent {money_text(spent)}: also on what has no result or was played again"


def clock(seconds: float) -> str:
    """`1:05`, `2:03:04`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def duration(seconds: float) -> str:
    """`3.2 s`, `1:05`."""
    return f"{seconds:.1f} s" if seconds < 60 else clock(seconds)


def plural(count: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
