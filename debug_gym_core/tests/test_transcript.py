"""What log.txt says of an episode."""

from __future__ import annotations

from debug_gym_core.runs.trajectory import Event
from debug_gym_core.runs.transcript import as_text
from debug_gym_core.tasks.results import Grade


def test_the_grade_of_many_tests_is_a_short_line() -> None:
    tests = {f"tests/test_part.py::test_number[{number}]": "passed" for number in range(5_000)}
    text = as_text(Event.grade(Grade(False, 4_999, 5_000, tests, "clean", reason="r" * 9_000)))
    assert len(text) < 5_000 and "\n" not in text
    assert "score=4999" in text and "tests={5000 of them}" in text
    few = as_text(Event.grade(Grade(True, 1, 1, {"a.py::b": "passed"}, "clean")))
    assert "tests={'a.py::b': 'passed'}" in few
