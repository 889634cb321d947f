"""Lines of compiled code: where each begins, and the one that no statement has."""

import dis
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, FrozenSet, Iterator, Set, Tuple

    Span = Tuple[int, ...]

NOWHERE = 0 if sys.version_info >= (3, 11) else 40000 if sys.version_info >= (3, 10) else -1
"""Line of what is compiled into programs: one that no statement has, and to which no version gives a meaning."""

ONE_FRAME = sys.version_info >= (3, 12)
"""Whether comprehensions have no frame of their own."""

_DISPLAYS = ("BUILD_LIST", "BUILD_MAP", "BUILD_SET")
"""Instructions that a comprehension begins with."""


def line_starts(code: "CodeType") -> "Iterator[Tuple[int, int]]":
    """Offsets at which a code object comes to another line, and the line."""
    if hasattr(code, "co_lines"):
        before = None
        for offset, _, line in code.co_lines():
            if line is not None and line != before:
                yield offset, line
            before = line if line is not None else before
        return
    for offset, line in dis.findlinestarts(code):
        if line is not None:
            yield offset, line


def jumps_inside_lines(code: "CodeType") -> "Tuple[FrozenSet[int], FrozenSet[int]]":
    """Where a code object jumps back within a line, from Python 3.12 on.

    From Python 3.13 on, the line event for it comes before the jump.

    Returns:
        offsets where a comprehension, which has no frame of its own there, has only gone on to its next element; and
        those of the jumps with which a loop that is written in one line begins another pass
    """
    if not ONE_FRAME:
        return frozenset(), frozenset()
    lines = {
        offset: line for first, end, line in code.co_lines() for offset in range(first, end, 2) if line is not None
    }
    inside: "Set[int]" = set()
    passes: "Set[int]" = set()
    others = {offset for offset, _ in line_starts(code)}
    instructions = list(dis.get_instructions(code))
    displays = {_span(one) for one in instructions if one.opname in _DISPLAYS}
    for one in instructions:
        if one.opcode not in dis.hasjrel and one.opcode not in dis.hasjabs:
            continue
        if one.argval > one.offset or lines.get(one.argval) != lines.get(one.offset):
            others.add(one.argval)
        elif one.opname == "JUMP_BACKWARD" and not _is_expression(code) and not _is_within(_span(one), displays):
            others.add(one.argval)
            passes.add(one.offset)
        else:
            inside.update((one.argval, one.offset))
    return frozenset(inside - others), frozenset(passes)


def _span(instruction: "Any") -> "Span":
    """Where in the source an instruction comes from; empty: Python was told not to keep it."""
    at = instruction.positions
    return () if at.col_offset is None else (at.lineno, at.col_offset, at.end_lineno, at.end_col_offset)


def _is_within(span: "Span", others: "Set[Span]") -> bool:
    """Whether a span is surely, or perhaps, a part of one of the others; what ends a pass of a loop never is."""
    return not span or any(one and one != span and one[:2] <= span[:2] and span[2:] <= one[2:] for one in others)


def _is_expression(code: "CodeType") -> bool:
    """Whether a code object is of an expression, such as a generator's, and so has no loop that is a statement."""
    return code.co_name[:1] == "<" and code.co_name != "<module>"


def lines_of(code: "CodeType") -> "Iterator[int]":
    """Lines that a code object has instructions for, but for what is compiled in by us."""
    return (line for _, line in line_starts(code) if line != NOWHERE)
