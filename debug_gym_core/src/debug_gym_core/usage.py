"""What a call of a language model takes: tokens, and dollars."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, as the provider counts them, and what they cost.

    Attributes:
        prompt: tokens of all that the model was given
        completion: tokens of its answer
        cached: how many of `prompt` the provider had kept from an earlier call
        cost: dollars
        written: how many of `prompt` the provider has put into its cache, where it charges more for that
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost: float = 0.0
    written: int = 0

    @property
    def adds_up(self) -> bool:
        """Whether all of it is numbers, finite and not negative."""
        return all(isinstance(one, int | float) and 0 <= one < math.inf for one in dataclasses.astuple(self))

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.cost + other.cost,
            self.written + other.written,
        )


NOTHING = Usage()
