"""What a measurement is worth, whatever it reported of the tests that count."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.tasks.results import MISSING, PASSING, Measurement, TestResult, broken, is_resolved, score

ids = st.sampled_from(
    ["a.py", "a.py::t", "a.py::t[1]", "a.py::t[2]", "a.py::t2", "a.py::T::t", "a.T.t", "a.T.t2", "a.T", "a", "b/a.py"]
)
reports = st.dictionaries(ids, st.sampled_from(["passed", "failed", "skipped", "xpassed"]))


def measured(reported: dict[str, str]) -> Measurement:
    tests = tuple(TestResult(name, outcome) for name, outcome in reported.items())  # type: ignore[arg-type]
    return Measurement(tests, 0, "")


def passes(test: str, reported: dict[str, str]) -> bool:
    """A test that is reported, or something in it is, and all of that passed."""
    module = test.removesuffix(".py").replace("/", ".") + "."
    ways = (test + "::", test + "[", test + ".", *([module] if test.endswith(".py") else []))
    inside = [reported[test]] if test in reported else [reported[one] for one in reported if one.startswith(ways)]
    return bool(inside) and all(outcome in PASSING for outcome in inside)


@given(reports, st.lists(ids, unique=True), st.lists(ids, unique=True))
def test_what_an_id_names_counts_as_one(reported: dict[str, str], tests: Sequence[str], before: Sequence[str]) -> None:
    measurement = measured(reported)
    lost = tuple(one for one in before if not passes(one, reported))
    counted = sum(passes(one, reported) for one in tests)
    reached, outcomes = score(measurement, tests, len(tests), before)
    if tests:
        assert reached == (0 if lost else counted)
        assert is_resolved(measurement, tests, len(tests), before) == (counted == len(tests) and not lost)
    assert broken(measurement, before) == lost
    for one in (*tests, *before):
        assert (outcomes[one] in PASSING) == passes(one, reported)
    assert set(outcomes) == {*reported, *tests, *before}


def test_of_what_an_id_names_nothing_was_reported() -> None:
    assert score(measured({"a.py::t2": "passed"}), ["a.py::t"], 1) == (0, {"a.py::t2": "passed", "a.py::t": MISSING})
