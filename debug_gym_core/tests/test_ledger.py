"""The budget of a run: reserved before a call, settled after it, kept in a file."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from debug_gym_core.errors import UsageError
from debug_gym_core.runs.ledger import Ledger, Limits, RunIsSpent
from debug_gym_core.usage import Usage

CALL = Usage(100, 20, cost=0.1)


def test_calls_are_let_through_until_nothing_is_left(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.jsonl", Limits(cost=0.25))
    for _ in range(3):
        ledger.settle(ledger.reserve(CALL), CALL)
    assert ledger.is_spent and ledger.spent.cost == pytest.approx(0.3)
    with pytest.raises(RunIsSpent):
        ledger.reserve(CALL)


def test_tokens_are_a_bound_too() -> None:
    ledger = Ledger(None, Limits(tokens=200))
    ledger.settle(ledger.reserve(CALL), CALL)
    assert not ledger.is_spent
    ledger.settle(ledger.reserve(CALL), CALL)
    with pytest.raises(RunIsSpent):
        ledger.reserve(CALL)


def test_what_is_spent_to_the_last_token_or_cent_is_spent() -> None:
    limits = Limits(cost=1.0, tokens=200)
    assert limits.allow(Usage(90, 10, cost=0.5), Usage(80, 20, cost=0.5)), "all of what is left may be used"
    assert not limits.allow(Usage(90, 10, cost=0.5), Usage(80, 21)) and not limits.allow(Usage(), Usage(cost=1.01))
    for spent in (Usage(180, 20), Usage(cost=1.0)):
        assert not limits.allow(spent)


def test_where_nothing_may_be_spent_what_costs_nothing_is_asked() -> None:
    ledger = Ledger(None, Limits(cost=0.0))
    ledger.settle(ledger.reserve(Usage(100, 10)), Usage(90, 10))
    assert not ledger.is_spent
    with pytest.raises(RunIsSpent):
        ledger.reserve(CALL)


def test_a_call_that_failed_costs_nothing() -> None:
    ledger = Ledger(None, Limits(cost=0.1))
    for _ in range(5):
        ledger.settle(ledger.reserve(CALL), Usage())
    assert ledger.spent == Usage()


def test_what_does_not_fit_beside_others_waits_for_them() -> None:
    ledger = Ledger(None, Limits(cost=0.15))
    first = ledger.reserve(CALL)
    through = threading.Event()

    def second() -> None:
        ledger.settle(ledger.reserve(CALL), CALL)
        through.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert not through.wait(0.4)
    ledger.settle(first, Usage(10, 1, cost=0.01))
    assert through.wait(20)
    thread.join()


@pytest.mark.parametrize(
    ("limits", "low"),
    [(Limits(cost=1.0), Usage(100, 20, cost=0.001)), (Limits(tokens=1200), Usage(1, 1, cost=0.1))],
)
def test_estimates_that_are_too_low_are_raised_by_what_calls_took(limits: Limits, low: Usage) -> None:
    """Also those of calls that are under way: ten fit, and one more than is estimated does not."""
    ledger = Ledger(None, limits)
    under_way = [ledger.reserve(low) for _ in range(10)]
    ledger.settle(under_way[0], CALL)

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        ledger.reserve(low, stop)
    ledger.settle(under_way[1], Usage())
    ledger.reserve(low, stop)


def test_a_call_that_took_what_was_estimated_raises_no_other() -> None:
    ledger = Ledger(None, Limits(cost=0.3))
    ledger.settle(ledger.reserve(CALL), CALL)
    for _ in range(3):
        ledger.reserve(Usage(50, 10, cost=0.05))


def test_the_first_of_calls_of_which_nobody_knows_what_they_take_is_made_alone() -> None:
    ledger = Ledger(None, Limits(cost=1.0))
    first = ledger.reserve(Usage(cost=0.01), bounded=False)
    began = threading.Event()

    def another() -> None:
        ledger.reserve(Usage(cost=0.01), bounded=False)
        began.set()

    threading.Thread(target=another, daemon=True).start()
    assert not began.wait(0.3)
    other = ledger.reserve(Usage(cost=0.01))  # one of which it is known
    ledger.settle(first, Usage(1000, 60_000, cost=0.6))
    assert not began.wait(0.3)  # what the first took is what each is taken to need
    ledger.settle(other, Usage(cost=0.01))
    assert began.wait(60)
    unlimited = Ledger(None, Limits())
    for _ in range(3):
        unlimited.reserve(Usage(cost=0.01), bounded=False)


def test_a_wait_ends_with_the_run() -> None:
    ledger = Ledger(None, Limits(cost=0.15))
    ledger.reserve(CALL)

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        ledger.reserve(CALL, stop)


def test_many_at_once_exceed_the_limit_by_less_than_one_call() -> None:
    price = 0.013
    for estimate in (price, price / 4):  # also when the estimate is far too low for the last call
        ledger = Ledger(None, Limits(cost=1.0))
        calls = []

        def work(ledger: Ledger = ledger, calls: list[int] = calls, estimate: float = estimate) -> None:
            try:
                while True:
                    one = ledger.reserve(Usage(1, cost=max(estimate, price)))
                    time.sleep(random.uniform(0, 0.004))
                    ledger.settle(one, Usage(1, cost=price))
                    calls.append(1)
            except RunIsSpent:
                pass

        threads = [threading.Thread(target=work) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert 1.0 <= ledger.spent.cost < 1.0 + price
        assert len(calls) == round(ledger.spent.cost / price)


def test_a_run_that_goes_on_knows_what_it_has_spent(tmp_path: Path) -> None:
    path = tmp_path / "spending.jsonl"
    first = Ledger(path, Limits())
    first.settle(first.reserve(CALL), Usage(90, 10, cost=0.05))
    first.reserve(CALL)  # killed while it was under way: it may have been charged
    again = Ledger(path, Limits(cost=0.16))
    assert (again.spent.prompt, again.spent.completion) == (190, 30)
    assert again.spent.cost == pytest.approx(0.15)
    again.settle(again.reserve(CALL), CALL)
    assert Ledger(path, Limits()).spent.cost == pytest.approx(0.25)
    for ledger in (first, again):
        ledger.close()


def test_what_is_free_leaves_no_file(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.jsonl", Limits())
    ledger.settle(ledger.reserve(Usage()), Usage())
    assert not (tmp_path / "spending.jsonl").exists()


def test_a_torn_line_is_left_out_and_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "spending.jsonl"
    line = '{"call": 1, "prompt": 1, "completion": 1, "cost": 0.5}\n'
    path.write_text(line + line[:20])
    assert Ledger(path, Limits()).spent.cost == 0.5
    path.write_text("nonsense\n" + line)
    with pytest.raises(UsageError, match=r"spending.jsonl:1: not JSON"):
        Ledger(path, Limits())
    for wrong in ('{"call": 2}', '{"call": 2, "prompt": "1", "completion": 1, "cost": 1}'):
        path.write_text(f"{line}{wrong}\n")
        with pytest.raises(UsageError, match=r"spending.jsonl: prompt of a line is no number"):
            Ledger(path, Limits())
