"""Named counters in a storage that several threads share.

The storage itself knows nothing of threads; whoever uses it holds the lock that goes with it. Before a counter changes,
an approver is asked, which may be a slow service and may refuse.
"""

from __future__ import annotations

from threading import Lock
from typing import Callable, Iterable

Approver = Callable[[str, int], None]


class QuotaExceededError(Exception):
    """The approver refuses a new value."""


def approve_all(name: str, value: int) -> None:
    """Approve any value of any counter."""


class MemoryStorage:
    """Counts in a dictionary; a counter that was never written is 0."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"MemoryStorage({self._counts})"

    def load(self, name: str) -> int:
        """Return the count that is stored for `name`."""
        return self._counts.get(name, 0)

    def save(self, name: str, value: int) -> None:
        """Store a count for `name`."""
        self._counts[name] = value

    def names(self) -> list[str]:
        """Return the names of all counters written so far, sorted."""
        return sorted(self._counts)


class Counter:
    """Counts events by name, from any number of threads."""

    def __init__(self, storage: MemoryStorage, lock: Lock, approve: Approver = approve_all) -> None:
        """Count in `storage`, which is touched only while `lock` is held.

        Args:
            storage: Where the counts are.
            lock: The lock that belongs to `storage`; not reentrant.
            approve: Called with a counter's name and the value it is about to take; raises to refuse.
        """
        self._storage = storage
        self._lock = lock
        self._approve = approve

    def __repr__(self) -> str:
        return f"Counter({self._storage!r})"

    def increment(self, name: str, by: int = 1) -> None:
        """Add `by` to a counter.

        Raises:
            ValueError: `by` is not positive.
            QuotaExceededError: The approver refuses; the counter stays as it was.
        """
        if by < 1:
            raise ValueError(f"cannot increment {name} by {by}")
        with self._lock:
            current = self._storage.load(name)
        wanted = current + by
        self._approve(name, wanted)
        with self._lock:
            # The approval is for this very step; do not write over a count that it was not given for.
            if self._storage.load(name) == current:
                self._storage.save(name, wanted)

    def increment_all(self, names: Iterable[str]) -> None:
        """Add one to each of `names`, in order, as often as it is listed."""
        for name in names:
            self.increment(name)

    def value(self, name: str) -> int:
        """Return a counter's value."""
        with self._lock:
            return self._storage.load(name)

    def snapshot(self) -> dict[str, int]:
        """Return all counters at one moment."""
        with self._lock:
            return {name: self._storage.load(name) for name in self._storage.names()}
