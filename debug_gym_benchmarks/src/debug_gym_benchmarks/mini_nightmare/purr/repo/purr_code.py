"""A cat through the day: hour by hour it gets hungrier, and lets its people know.

Used by the pet sitters' planner to see whether a feeding plan keeps a cat content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterable

HUNGER_PER_HOUR = 3
PECKISH = 10
STARVING = 20

BEGGING_EFFORT = 1
RAID_GAIN = 14
RAID_EFFORT = 4
NAP_GAIN = 2
MAX_ENERGY = 12


@dataclass
class Cat:
    """One cat.

    Attributes:
        name: What it is called.
        hunger: 0 is full; above `PECKISH` it begs, above `STARVING` it helps itself.
        energy: 0 to `MAX_ENERGY`; below 0 never.
        trust: How far it trusts its people; falls when they let it starve.
        purring: Hours in which it purred.
        diary: What it did, one word an hour.
    """

    name: str
    hunger: int = 0
    energy: int = 8
    trust: int = 5
    purring: int = 0
    diary: list[str] = field(default_factory=list)

    def live_one_hour(self) -> None:
        """Get hungrier, then do what a cat in this state does."""
        self.hunger += HUNGER_PER_HOUR
        if self.hunger > PECKISH:
            self._beg()
        elif self.hunger > STARVING:
            self._raid()
        elif self.energy < MAX_ENERGY // 2:
            self._nap()
        else:
            self._purr()

    def eat(self, portion: int) -> None:
        """Eat as much of a portion as hunger asks for; a meal that fills a hungry cat earns trust."""
        was_hungry = self.hunger > PECKISH
        self.hunger = max(0, self.hunger - portion)
        if was_hungry and self.hunger <= PECKISH:
            self.trust += 1

    def summary(self) -> str:
        """Return the state as one line."""
        return (
            f"{self.name}: hunger {self.hunger}, energy {self.energy}, trust {self.trust}, "
            f"purred {self.purring} of {len(self.diary)} hours"
        )

    def _beg(self) -> None:
        self._spend(BEGGING_EFFORT)
        self.diary.append("begs")

    def _raid(self) -> None:
        self._spend(RAID_EFFORT)
        self.hunger -= RAID_GAIN
        self.trust -= 2
        self.diary.append("raids")

    def _nap(self) -> None:
        self.energy = min(MAX_ENERGY, self.energy + NAP_GAIN)
        self.diary.append("naps")

    def _purr(self) -> None:
        if self.trust > 0:
            self.purring += 1
        self.diary.append("rests")

    def _spend(self, effort: int) -> None:
        self.energy = max(0, self.energy - effort)


def follow_plan(cat: Cat, plan: Iterable[tuple[int, int]]) -> str:
    """Let a cat live through a feeding plan.

    Args:
        cat: The cat; it is changed.
        plan: Pairs of hours to wait and the portion served then.

    Returns:
        The cat's state in the end, as one line.
    """
    for hours, portion in plan:
        for _ in range(hours):
            cat.live_one_hour()
        cat.eat(portion)
    return cat.summary()


def is_kept_well(cat: Cat) -> bool:
    """Tell whether a cat trusts its people and spends no more energy than it gets back."""
    return cat.trust >= 5 and cat.energy >= MAX_ENERGY // 3
