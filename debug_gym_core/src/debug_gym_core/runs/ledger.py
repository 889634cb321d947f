"""What a run may spend: money and tokens, reserved before a call and settled after it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from debug_gym_core.errors import ContextOverflow, EpisodeEnds, UsageError
from debug_gym_core.runs.json_lines import JsonLines, read_lines
from debug_gym_core.usage import NOTHING, Usage

LOOK = 0.1
"""Seconds between two looks whether a wait has been overtaken by the end of the run."""


class OutOfBudget(EpisodeEnds):
    """What an episode may spend is spent, which ends it as a limit does."""


class RunIsSpent(EpisodeEnds):
    """What a run may spend is spent: tells nothing of the episode, which ends without a result."""


class CallTooDear(ContextOverflow):
    """A call would cost more than one may; that of a shorter conversation may not."""


@dataclass(frozen=True)
class Limits:
    """What may be spent; None: no bound.

    Attributes:
        cost: dollars
        tokens: of prompts and answers
    """

    cost: float | None = None
    tokens: int | None = None

    def allow(self, spent: Usage, more: Usage = NOTHING) -> bool:
        """Whether something is left after what was spent and, when it is given, enough for more."""
        used, wanted = spent.prompt + spent.completion, more.prompt + more.completion
        left = self.cost is None or spent.cost < self.cost or not spent.cost  # of a bound of 0, what costs nothing
        money = left and (self.cost is None or spent.cost + more.cost <= self.cost)
        return money and (self.tokens is None or (used < self.tokens and used + wanted <= self.tokens))

    def lets_begin(self, spent: Usage, wanted: Usage) -> bool:
        """Whether a call may be begun, which may cost more than is left: not where nothing may be spent at all.

        Args:
            spent: so far
            wanted: what the call will cost, as far as that is known
        """
        return self.allow(spent) and not (self.cost == 0 and wanted.cost)


@dataclass(frozen=True)
class Reservation:
    """Money and tokens that a call under way may use up.

    Attributes:
        number: tells it from others in the file
        usage: what it may cost at most, as far as that is known
    """

    number: int
    usage: Usage


def exceeds(usage: Usage, estimate: Usage) -> bool:
    """Whether a call has taken more, of money or tokens, than was reserved for it."""
    return usage.cost > estimate.cost or usage.prompt + usage.completion > estimate.prompt + estimate.completion


def read_spending(path: Path) -> dict[int, Usage]:
    """What a run has spent, call by call; a call that did not end counts with what was reserved for it.

    Args:
        path: the spending.jsonl; nothing was spent where it is missing

    Raises:
        UsageError: the file is damaged
    """
    known: dict[int, Usage] = {}
    for line in read_lines(path):
        for key in ("call", "prompt", "completion", "cost"):
            if type(line.get(key)) not in (int, float):
                raise UsageError(f"{path}: {key} of a line is no number: it is no record of what a run has spent")
        known[int(line["call"])] = Usage(line["prompt"], line["completion"], cost=line["cost"])
    return known


class Ledger:
    """The spending of a run, kept in a file, so that a run that is gone on with knows what it has spent.

    A call is let through when what was spent, what is reserved and its own estimate are within the limits; when
    nothing else is under way, as long as anything is left. So the limits are exceeded by less than one call, with what
    is asked again for it because an answer was empty or of no use. Once a call has taken more than was estimated, no
    other is taken to need less than that one did.
    """

    def __init__(self, path: Path | None, limits: Limits) -> None:
        """Read what was spent before.

        A call that was under way when the run was killed counts with what was reserved for it.

        Args:
            path: the file, made when the first call is made; None: nothing is kept
            limits: of the run

        Raises:
            UsageError: the file is damaged
        """
        self.limits = limits
        self._path = path
        self._lines: JsonLines | None = None
        self._changed = threading.Condition()
        known = read_spending(path) if path is not None else {}
        self.spent = sum(known.values(), NOTHING)
        self.reserved: dict[int, Usage] = {}
        self._refused = False
        self._least = NOTHING
        self._learned = bool(known)
        self._numbers = itertools.count(max(known, default=0) + 1)

    def reserve(self, usage: Usage, stop: Callable[[], None] = lambda: None, *, bounded: bool = True) -> Reservation:
        """Wait until a call may be made.

        Args:
            usage: an estimate of what it takes
            stop: is called while it waits; raises when the wait shall end
            bounded: whether it takes no more than that; of a run's calls of which that is not known the first is made
                alone, to learn what they take

        Raises:
            RunIsSpent: that is so
        """
        with self._changed:
            while True:
                if not self.limits.lets_begin(self.spent, usage):
                    self._refused = True
                    raise RunIsSpent("the run has spent what it may")
                under_way = sum(map(self._expected, self.reserved.values()), self.spent)
                known = bounded or self._learned or self.limits == Limits()
                if not self.reserved or (known and self.limits.allow(under_way, self._expected(usage))):
                    break
                self._changed.wait(LOOK)
                stop()
            reservation = Reservation(next(self._numbers), usage)
            if not self._is_free(usage):
                self._write(reservation.number, usage)
            self.reserved[reservation.number] = usage
        return reservation

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """A call has ended.

        Args:
            reservation: made for it
            usage: what it cost; nothing when it failed
        """
        with self._changed:
            del self.reserved[reservation.number]
            self.spent += usage
            self._learned = self._learned or not self._is_free(usage)
            if exceeds(usage, reservation.usage):
                self._least = self._expected(usage)
            if not (self._is_free(usage) and self._is_free(reservation.usage)):
                self._write(reservation.number, usage)
            self._changed.notify_all()

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left, or too little for a call that was to be made."""
        return self._refused or not self.limits.allow(self.spent)

    @property
    def spent_bound(self) -> str | None:
        """The setting that a run needs more of to go on; None: something is left."""
        if not self.is_spent:
            return None
        cost = self.limits.cost
        return "run.max_cost" if cost is not None and self.spent.cost >= cost else "llm.max_run_tokens"

    def close(self) -> None:
        """Close the file; a call that ends later opens it again."""
        with self._changed:
            if self._lines is not None:
                self._lines.close()
                self._lines = None

    def _expected(self, estimate: Usage) -> Usage:
        """What a call is taken to need, after what others have needed."""
        least = self._least
        prompt, completion = max(estimate.prompt, least.prompt), max(estimate.completion, least.completion)
        return Usage(prompt, completion, cost=max(estimate.cost, least.cost))

    @staticmethod
    def _is_free(usage: Usage) -> bool:
        return not (usage.cost or usage.prompt or usage.completion)

    def _write(self, number: int, usage: Usage) -> None:
        if self._path is None:
            return
        if self._lines is None:
            self._lines = JsonLines(self._path)
        line = {"call": number, "prompt": usage.prompt, "completion": usage.completion, "cost": usage.cost}
        self._lines.append(line)
