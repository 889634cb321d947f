"""End of term: averages, ranking and the list of top performers.

A gradebook maps each course of the term to its students, and each student there to a record:

    {"homework": [88, 93, ...], "exam": 91}

The exam is null as long as it has not been sat.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

Gradebook = dict  # course -> student -> record

EXAM_SHARE = 0.6
TOP_BAR = 85.0


def load_gradebook(path: str | Path) -> Gradebook:
    """Read a gradebook from a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def students_of(gradebook: Gradebook) -> list[str]:
    """Return everybody who takes at least one course, sorted."""
    return sorted({student for roster in gradebook.values() for student in roster})


def course_average(record: dict[str, Any] | None) -> float | None:
    """Return the weighted average of one record, or None where there is no result.

    The exam counts 60 percent. Homework that was not handed in at all counts as 0.
    """
    if record is None or record["exam"] is None:
        return None
    homework = mean(record["homework"]) if record["homework"] else 0.0
    return round(EXAM_SHARE * record["exam"] + (1 - EXAM_SHARE) * homework, 1)


def averages_of(gradebook: Gradebook, student: str) -> dict[str, float]:
    """Return a student's averages by course."""
    averages = {}
    for course, roster in gradebook.items():
        average = course_average(roster.get(student))
        if average is not None:
            averages[course] = average
    return averages


def overall_average(gradebook: Gradebook, student: str) -> float:
    """Return the mean of a student's averages, 0.0 for somebody without any."""
    averages = averages_of(gradebook, student)
    return round(mean(averages.values()), 2) if averages else 0.0


def is_top_performer(gradebook: Gradebook, student: str, bar: float = TOP_BAR) -> bool:
    """Tell whether a student reached `bar` in every course that the term offers.

    Having no result in a course is not having reached the bar there.
    """
    averages = averages_of(gradebook, student)
    return bool(averages) and min(averages.values()) >= bar


def top_performers(gradebook: Gradebook, bar: float = TOP_BAR) -> list[str]:
    """Return the top performers, the best overall average first, equal ones by id."""
    chosen = [student for student in students_of(gradebook) if is_top_performer(gradebook, student, bar)]
    return sorted(chosen, key=lambda student: (-overall_average(gradebook, student), student))


def course_bests(gradebook: Gradebook) -> dict[str, str]:
    """Return for each course the student with the highest average there."""
    bests = {}
    for course in gradebook:
        results = [(averages_of(gradebook, student).get(course, 0.0), student) for student in students_of(gradebook)]
        bests[course] = max(results)[1]
    return bests


def announcement(gradebook: Gradebook, prize_money: int) -> str:
    """Return the sentence for the notice board; the prize money is shared by all top performers."""
    winners = top_performers(gradebook)
    if not winners:
        return "No prizes this term."
    return f"{len(winners)} prizes of {prize_money // len(winners)} each, first to {winners[0]}."
