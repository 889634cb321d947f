from pathlib import Path

from grader_code import (
    announcement,
    averages_of,
    course_average,
    course_bests,
    load_gradebook,
    overall_average,
    top_performers,
)

GRADEBOOK = load_gradebook(Path(__file__).with_name("gradebook.json"))


def test_course_average_is_weighted():
    averages = [
        course_average({"homework": [80, 90], "exam": 95}),
        course_average({"homework": [], "exam": 95}),
        course_average({"homework": [80, 90], "exam": None}),
        course_average(None),
    ]
    assert averages == [91.0, 57.0, None, None]


def test_overall_average_is_over_the_results_there_are():
    averages = [overall_average(GRADEBOOK, student) for student in ("s101", "s102", "s999")]
    assert averages == [71.88, 80.18, 0.0]


def test_best_of_each_course():
    bests = course_bests(GRADEBOOK)
    assert bests == {
        "algebra": "s109",
        "biology": "s114",
        "chemistry": "s106",
        "drawing": "s106",
        "history": "s112",
        "physics": "s117",
    }


def test_a_full_record_in_a_small_term():
    gradebook = {
        "algebra": {"ann": {"homework": [85], "exam": 85}, "bob": {"homework": [99], "exam": 99}},
        "biology": {"ann": {"homework": [90], "exam": 90}, "bob": {"homework": [85], "exam": 84}},
    }
    averages = averages_of(gradebook, "bob")
    assert averages == {"algebra": 99.0, "biology": 84.4}
    top = top_performers(gradebook)
    assert top == ["ann"]


def test_top_performers_of_the_term():
    top = top_performers(GRADEBOOK)
    assert top == ["s106", "s103", "s112", "s117"]


def test_prizes():
    text = announcement(GRADEBOOK, prize_money=900)
    assert text == "4 prizes of 225 each, first to s106."


def test_no_prizes_where_nobody_reaches_the_bar():
    gradebook = {"algebra": {"ann": {"homework": [60], "exam": 70}}}
    text = announcement(gradebook, prize_money=900)
    assert text == "No prizes this term."
