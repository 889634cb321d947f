"""Spaces for text and for actions.

Gymnasium's `Text` leaves out newlines and most of Unicode, so these are our own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from debug_gym_core.tools.action import ToolCall


class TextSpace(gymnasium.Space[str]):
    """Every string."""

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short random text, with newlines and letters beyond ASCII."""
        letters = "abc xyz\n\t0123456789äλ中🙂"
        size = int(self.np_random.integers(0, 40))
        return "".join(letters[int(i)] for i in self.np_random.integers(0, len(letters), size=size))

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string."""
        return isinstance(x, str)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no fixed number of numbers."""
        return False

    def __repr__(self) -> str:
        return "TextSpace()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextSpace)

    __hash__ = None  # type: ignore[assignment]


class ActionSpace(gymnasium.Space[Any]):
    """Tool calls, in any form that `step` takes: a ToolCall, its JSON form, or text.

    A wrong call is an action too: the environment answers it with what was wrong.
    """

    def __init__(
        self, samples: Sequence[tuple[str, Mapping[str, Any]]] = (), seed: int | np.random.Generator | None = None
    ) -> None:
        """Keep what to sample from.

        Args:
            samples: calls that make sense: tool and arguments
            seed: for sampling
        """
        super().__init__(shape=None, dtype=None, seed=seed)
        self._samples = tuple((name, dict(arguments)) for name, arguments in samples)

    def sample(self, mask: Any = None, probability: Any = None) -> ToolCall:
        """One of the sensible calls."""
        if not self._samples:
            return ToolCall("noop")
        name, arguments = self._samples[int(self.np_random.integers(len(self._samples)))]
        return ToolCall(name, dict(arguments))

    def contains(self, x: Any) -> bool:
        """Whether `x` has a form that `step` understands; its names may still be wrong."""
        return isinstance(x, ToolCall | str | Mapping)

    @property
    def is_np_flattenable(self) -> bool:
        """Calls have no fixed number of numbers."""
        return False

    def to_jsonable(self, sample_n: Iterable[Any]) -> list[Any]:
        """Actions as JSON types."""
        return [action.as_json() if isinstance(action, ToolCall) else action for action in sample_n]

    def from_jsonable(self, sample_n: list[Any]) -> list[Any]:
        """The inverse of `to_jsonable`."""
        return [
            ToolCall(action["name"], action.get("arguments", {})) if isinstance(action, dict) else action
            for action in sample_n
        ]

    def __repr__(self) -> str:
        return f"ActionSpace({json.dumps(sorted({name for name, _ in self._samples}))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActionSpace) and self._samples == other._samples

    __hash__ = None  # type: ignore[assignment]
