import threading

import pytest

from counter_code import Counter, MemoryStorage, QuotaExceededError

PATIENCE = 300  # Seconds until a thread that hangs is given up; nothing waits this long unless it is stuck.


class Relay:
    """Approves everything, and uses each approval to let one more thread have its turn.

    A thread that asks for approval while it holds the lock cannot be overtaken: the next thread is started and has to
    wait for the lock. A thread that asks without holding the lock is overtaken: the next one runs to its end first.
    """

    def __init__(self, lock):
        self.lock = lock
        self.waiting = []
        self.started = []

    def __call__(self, name, value):
        if not self.waiting:
            return
        lock_is_free = self.lock.acquire(blocking=False)
        if lock_is_free:
            self.lock.release()
        worker = self.start_next()
        if lock_is_free:
            worker.join(PATIENCE)

    def start_next(self):
        worker = self.waiting.pop(0)
        self.started.append(worker)
        worker.start()
        return worker

    def finish(self):
        for worker in self.started:  # grows while we wait
            worker.join(PATIENCE)
        while self.waiting:
            self.start_next().join(PATIENCE)
        assert not any(worker.is_alive() for worker in self.started)


def count_in_parallel(names):
    """Increment the first name here and each other one in a thread of its own; return all counts, by name."""
    lock = threading.Lock()
    relay = Relay(lock)
    counter = Counter(MemoryStorage(), lock, approve=relay)
    relay.waiting = [threading.Thread(target=counter.increment, args=(name,), daemon=True) for name in names[1:]]
    counter.increment(names[0])
    relay.finish()
    return sorted(counter.snapshot().items())


def test_counts_by_name():
    counter = Counter(MemoryStorage(), threading.Lock())
    counter.increment_all(["visit", "click", "visit"])
    counter.increment("click", by=5)
    counts = counter.snapshot()
    assert counts == {"click": 6, "visit": 2}


def test_only_positive_steps():
    counter = Counter(MemoryStorage(), threading.Lock())
    with pytest.raises(ValueError, match=r"^cannot increment visit by 0$"):
        counter.increment("visit", by=0)
    counts = counter.snapshot()
    assert counts == {}


def test_a_refused_increment_changes_nothing():
    def at_most_two(name, value):
        if value > 2:
            raise QuotaExceededError(f"{name} would be {value}")

    counter = Counter(MemoryStorage(), threading.Lock(), approve=at_most_two)
    counter.increment_all(["visit", "visit"])
    with pytest.raises(QuotaExceededError, match=r"^visit would be 3$"):
        counter.increment("visit")
    value = counter.value("visit")
    assert value == 2


def test_threads_with_counters_of_their_own():
    counts = count_in_parallel(["north", "south", "west"])
    assert counts == [("north", 1), ("south", 1), ("west", 1)]


def test_two_threads_share_a_counter():
    counts = count_in_parallel(["visit", "visit"])
    assert counts == [("visit", 2)]


def test_five_threads_share_two_counters():
    counts = count_in_parallel(["visit", "click", "visit", "click", "visit"])
    assert counts == [("click", 2), ("visit", 3)]
