"""A limit in time for what a debugger calls of the program's: what it ends, and what it never does."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from debug_gym_core.debugging.inside.limits import OutOfTime, TimeLimit


@pytest.fixture(autouse=True)
def timer() -> Iterator[list[int]]:
    """The program's own: an alarm that rings in an hour, and how often it was heard."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    signal.setitimer(signal.ITIMER_REAL, 3600)
    yield heard
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def work(seconds: float) -> str:
    """Use the processor for a while."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return "done"


def endless() -> None:
    while True:
        pass


def stubborn() -> None:
    while True:
        try:
            endless()
        except BaseException as error:
            kept.append(error)
            if len(kept) == 3:
                raise


kept: list[BaseException] = []


def test_a_call_that_takes_too_long_is_ended_whatever_it_catches() -> None:
    kept.clear()
    with TimeLimit(0.05) as limit:
        with pytest.raises(OutOfTime):
            limit.call(stubborn)
        assert limit.expired and len(kept) == 3
    assert not limit.active


def test_nothing_but_a_call_is_ended() -> None:
    with TimeLimit(0.02) as limit:
        for _ in range(2):
            work(0.1)
            try:
                raise KeyError
            except KeyError:
                work(0.1)
            finally:
                work(0.1)
        assert not limit.expired and limit.active


def test_a_limit_ends_its_own_calls_only() -> None:
    """One within another: what the inner one has called has ended, what the outer one calls goes on."""

    def inner() -> str:
        with TimeLimit(0.02) as limit:
            assert limit.call(work, 0.0) == "done"
            return work(0.2)

    with TimeLimit(60) as limit:
        assert limit.call(inner) == "done"


def test_calls_have_the_time_between_them_and_may_be_given_more() -> None:
    with TimeLimit(0.4) as limit:
        for _ in range(10):
            assert limit.call(work, 0.03) == "done"
            limit.extend()
        assert not limit.expired
        with pytest.raises(OutOfTime):
            for _ in range(100):
                limit.call(work, 0.03)


def test_the_timer_of_the_program_goes_on(timer: list[int]) -> None:
    limit = TimeLimit(0.02)
    assert limit.start() and limit.start()
    work(0.1)
    limit.stop()
    limit.stop()
    assert 3500 < signal.getitimer(signal.ITIMER_REAL)[0] < 3600
    signal.raise_signal(signal.SIGALRM)
    assert timer == [signal.SIGALRM]


def test_what_was_due_meanwhile_rings_after_it(timer: list[int]) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    with TimeLimit(60):
        work(0.1)
        assert timer == []
    work(0.01)
    assert timer == [signal.SIGALRM]


def test_another_thread_has_no_limit() -> None:
    found = []
    with TimeLimit(60) as limit:
        thread = threading.Thread(target=lambda: found.append((limit.start(), TimeLimit(60).start())))
        thread.start()
        thread.join()
    assert found == [(False, False)]
