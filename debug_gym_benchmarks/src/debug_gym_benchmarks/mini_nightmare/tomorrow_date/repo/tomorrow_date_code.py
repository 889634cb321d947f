"""Finds the day after a date that somebody typed, for the reminders of a library.

Dates come in from forms, letters and old card files, so several ways to write them are understood. What cannot be read
gives None and is sorted out by hand.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Iterable

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
SHORT_MONTHS = (4, 6, 9, 11)

ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
DOTTED = re.compile(r"(\d{1,2})\. ?(\d{1,2})\. ?(\d{4})")
WRITTEN = re.compile(r"(\d{1,2})(?:st|nd|rd|th)? (?:of )?([a-z]{3})[a-z]*,? (\d{4})")


def is_leap_year(year: int) -> bool:
    """Tell whether a year of the Gregorian calendar has a 29 February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def read_date(text: str) -> date:
    """Return the date that a text like `2024-5-1`, `1.5.2024` or `1st of May 2024` names.

    Raises:
        ValueError: It is none of these, or the calendar has no such day.
    """
    text = " ".join(text.lower().split())
    if found := ISO.fullmatch(text):
        year, month, day = found.groups()
    elif found := DOTTED.fullmatch(text):
        day, month, year = found.groups()
    elif found := WRITTEN.fullmatch(text):
        day, name, year = found.groups()
        month = str(MONTHS.index(name) + 1)
    else:
        raise ValueError(f"{text!r} is no date")
    return date(int(year), int(month), int(day))


def day_after(today: date) -> date:
    """Return the day after a date."""
    year, month, day = today.year, today.month, today.day
    if month == 12 and day == 31:
        return date(year + 1, 1, 1)
    if day == 31 or (day == 30 and month in SHORT_MONTHS):
        return date(year, month + 1, 1)
    if month == 2 and day == 28 and not is_leap_year(year):
        return date(year, 3, 1)
    return date(year, month, day + 1)


def tomorrow(text: str) -> date | None:
    """Return the day after the date that a text names, None when it names none."""
    try:
        return day_after(read_date(text))
    except Exception:
        return None


def reminder_days(texts: Iterable[str]) -> list[str]:
    """Return on which day of the week to send the reminder for each due date.

    Reminders go out the day after; `?` stands for dates that have to be sorted out by hand.
    """
    days = [tomorrow(text) for text in texts]
    return ["?" if day is None else day.strftime("%a") for day in days]


def busiest_month(texts: Iterable[str]) -> str:
    """Return the month with the most reminders as `2024-05`, the earliest of equals, empty without any."""
    days = [day for day in map(tomorrow, texts) if day is not None]
    months = [f"{day:%Y-%m}" for day in days]
    return max(sorted(set(months)), key=months.count, default="")
