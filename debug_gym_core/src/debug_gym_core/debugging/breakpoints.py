"""Breakpoints: where a program stops, kept on the host over restarts and edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from debug_gym_core.workspace.edits import Edit, line_after


@dataclass(frozen=True)
class Breakpoint:
    """A place where the program stops.

    Attributes:
        number: what pdb's commands call it
        file: relative to the workspace's root with `/`; absolute when it lies outside
        line: from 1
        condition: expression that must be true for a stop
        temporary: whether it goes away with the first stop
        ignore: how often each run passes it without a stop, at first
        enabled: whether it stops at all
        commands: what pdb does at each stop, as its `commands` takes it, without the closing `end`
        function: name of the function it was set by, which stops at that function's first line only
    """

    number: int
    file: str
    line: int
    condition: str | None = None
    temporary: bool = False
    ignore: int = 0
    enabled: bool = True
    commands: tuple[str, ...] = ()
    function: str | None = None

    def __str__(self) -> str:
        """One line, as in `2 at app.py:12, if x > 3, temporary`."""
        parts = [f"{self.number} at {self.file}:{self.line}"]
        if self.condition:
            parts.append(f"if {self.condition}")
        if self.temporary:
            parts.append("temporary")
        if self.ignore:
            parts.append(f"ignored the first {self.ignore} times")
        if not self.enabled:
            parts.append("disabled")
        if self.commands:
            parts.append("with commands")
        return ", ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON types."""
        return {**asdict(self), "commands": list(self.commands)}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Breakpoint:
        """The reverse of `as_json`."""
        return cls(**{**fields, "commands": tuple(fields.get("commands", ()))})


@dataclass(frozen=True)
class Moves:
    """What an edit did to breakpoints.

    Attributes:
        moved: pairs of the breakpoint before and after, where the line changed
        dropped: breakpoints whose line was replaced or removed
    """

    moved: tuple[tuple[Breakpoint, Breakpoint], ...] = ()
    dropped: tuple[Breakpoint, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return bool(self.moved or self.dropped)


class Breakpoints:
    """The breakpoints of one environment, in the order of their numbers; a number is never used twice."""

    def __init__(self, breakpoints: Iterable[Breakpoint] = ()) -> None:
        """Start with some breakpoints.

        Args:
            breakpoints: numbers must differ
        """
        self._by_number: dict[int, Breakpoint] = {}
        self._next = 1
        self.replace(breakpoints)

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(list(self._by_number.values()))

    def __len__(self) -> int:
        return len(self._by_number)

    def __contains__(self, number: object) -> bool:
        return number in self._by_number

    def __getitem__(self, number: int) -> Breakpoint:
        return self._by_number[number]

    @property
    def next_number(self) -> int:
        """The number of the next new breakpoint."""
        return self._next

    def add(self, file: str, line: int, **fields: Any) -> Breakpoint:
        """Set a breakpoint.

        Args:
            file: relative to the workspace's root
            line: from 1
            fields: the other attributes of `Breakpoint`, but for its number

        Returns:
            the new breakpoint
        """
        breakpoint_ = Breakpoint(self._next, file, line, **fields)
        self._by_number[self._next] = breakpoint_
        self._next += 1
        return breakpoint_

    def remove(self, number: int) -> Breakpoint:
        """Remove a breakpoint.

        Raises:
            KeyError: there is none of that number
        """
        return self._by_number.pop(number)

    def clear(self) -> None:
        """Remove all; numbers go on."""
        self._by_number.clear()

    def replace(self, breakpoints: Iterable[Breakpoint], next_number: int = 1) -> None:
        """Take over the state of a debugger.

        Args:
            breakpoints: all that there are
            next_number: the number that the debugger gives next; those of `breakpoints` and before count too
        """
        self._by_number = {one.number: one for one in sorted(breakpoints, key=lambda one: one.number)}
        self._next = max([self._next, next_number, *(number + 1 for number in self._by_number)])

    def lines(self, file: str) -> frozenset[int]:
        """Lines of a file with a breakpoint, disabled ones too."""
        return frozenset(one.line for one in self if one.file == file)

    def as_json(self) -> list[dict[str, Any]]:
        """All as JSON types."""
        return [one.as_json() for one in self]

    def moved(self, path: str, edits: Sequence[Edit]) -> Moves:
        """Let the breakpoints of a file follow an edit of it.

        Args:
            path: the file that was edited
            edits: the replaced ranges in the old numbering, from the top, not overlapping

        Returns:
            which breakpoints are at another line now, and which are gone because their line was replaced or removed
        """
        moved: list[tuple[Breakpoint, Breakpoint]] = []
        dropped: list[Breakpoint] = []
        for before in self:
            if before.file != path:
                continue
            line = line_after(before.line, edits)
            if line is None:
                dropped.append(self.remove(before.number))
            elif line != before.line:
                after = replace(before, line=line)
                self._by_number[before.number] = after
                moved.append((before, after))
        return Moves(tuple(moved), tuple(dropped))
