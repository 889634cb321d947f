"""The conversation that an agent keeps, and how it is made shorter without tearing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from debug_gym_core.models.llm import Message
from debug_gym_core.tools.observation import bound

SHORTEST = 1_000
"""Characters that are left at least of a result that is shortened."""

Count = Callable[[Sequence[Message]], int]
"""Tells how many tokens some messages have."""


class History:
    """What was said: an opening that stays, and steps, of which the oldest may be left out.

    A step is an assistant message with all that answers it, up to the next assistant message. It is kept or left out
    as a whole, so that no result of a tool ever stands without its call. Results of the newest are shortened when it
    is too long by itself.

    Attributes:
        left_out: how many steps are gone
    """

    def __init__(self, opening: Iterable[Message] = (), memory_size: int | None = None) -> None:
        """Begin a conversation.

        Args:
            opening: what is never left out: the system message and the user's first
            memory_size: steps that are kept; None: all
        """
        self._opening = list(opening)
        self._memory_size = memory_size
        self._steps: list[list[Message]] = []
        self.left_out = 0
        self._whole: dict[int, str] = {}  # results of the newest step that are shortened, by their place

    def __len__(self) -> int:
        """How many steps are kept."""
        return len(self._steps)

    @property
    def steps(self) -> list[list[Message]]:
        """The steps that are kept, oldest first."""
        return [list(step) for step in self._steps]

    @property
    def messages(self) -> list[Message]:
        """The conversation, with a note on how many steps were left out."""
        return [*self._noted(self.left_out), *(message for step in self._steps for message in step)]

    def append(self, message: Message) -> None:
        """Go on with the conversation; an assistant message begins a step.

        Raises:
            ValueError: a tool's result answers no call of the last assistant message
        """
        if message.role == "assistant":
            self._steps.append([message])
            self._whole.clear()
            if self._memory_size is not None:
                self.keep(max(1, self._memory_size))
            return
        if message.role == "tool":
            calls = self._steps[-1][0].calls if self._steps else ()
            if message.call_id not in [call.id for call in calls]:
                raise ValueError(f"a tool's result answers no call of the last message: {message.call_id!r}")
        if self._steps:
            self._steps[-1].append(message)
        else:
            self._opening.append(message)

    def keep(self, count: int) -> int:
        """Leave out all steps but the newest.

        Args:
            count: how many to keep

        Returns:
            how many were left out
        """
        gone = max(0, len(self._steps) - count)
        del self._steps[:gone]
        self.left_out += gone
        return gone

    def trim(self, limit: int, count: Count, *, share: float = 1.0) -> int:
        """Leave out the oldest steps when the conversation is longer than a limit; the newest stays, if shortened.

        Args:
            limit: tokens
            count: tells how many tokens messages have; more messages never have fewer
            share: of what the limit leaves beside the opening and the newest step, which older steps have at most then;
                less than 1 trims more at once, and so less often

        Returns:
            how many steps were left out
        """
        if not self._steps or count(self.messages) <= limit:
            return 0
        low, high = 1, len(self._steps) - 1
        if low < high and share < 1:
            stays = count(self._without(high))
            fits = stays + (limit - stays) * share
        else:
            fits = limit
        while low < high:  # the fewest steps without which it fits
            middle = (low + high) // 2
            if count(self._without(middle)) <= fits:
                high = middle
            else:
                low = middle + 1
        gone = self.keep(len(self._steps) - low) if len(self._steps) > 1 else 0
        while len(self._steps) == 1 and count(self.messages) > limit and self._shorten():
            pass
        return gone

    def shrink(self) -> bool:
        """Leave out the older half of the steps, or half of the only one's longest result: the model takes less.

        Returns:
            whether anything could be left out
        """
        return self.keep(max(1, len(self._steps) // 2)) > 0 or self._shorten()

    def _shorten(self) -> bool:
        """Leave out the middle of the longest result in the newest step; returns whether there was enough of it."""
        step = self._steps[-1] if self._steps else []
        place = max(range(1, len(step)), key=lambda at: len(step[at].content), default=0)
        limit = len(step[place].content) // 2 if place else 0
        if limit < SHORTEST:
            return False
        whole = self._whole.setdefault(place, step[place].content)
        step[place] = replace(step[place], content=bound(whole, limit))
        return True

    def _without(self, gone: int) -> list[Message]:
        rest = (message for step in self._steps[gone:] for message in step)
        return [*self._noted(self.left_out + gone), *rest]

    def _noted(self, left_out: int) -> list[Message]:
        """The opening; when steps were left out, its last user message says so."""
        if not left_out:
            return list(self._opening)
        note = f"[The {left_out} oldest steps are left out.]" if left_out > 1 else "[The oldest step is left out.]"
        for position in range(len(self._opening) - 1, -1, -1):
            message = self._opening[position]
            if message.role == "user":
                noted = replace(message, content=f"{message.content}\n\n{note}")
                return [*self._opening[:position], noted, *self._opening[position + 1 :]]
        return [*self._opening, Message("user", note)]
