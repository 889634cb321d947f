"""Lines of compiled code: where each begins, and the one that no statement has."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import FrozenSet, Iterator, Set, Tuple

NOWHERE = 0 if sys.version_info >= (3, 11) else 40000 if sys.version_info >= (3, 10) else -1
"""Line of what is compiled into programs: one that no statement has, and to which no version gives a meaning."""

ONE_FRAME = sys.version_info >= (3, 12)
"""Whether comprehensions have no frame of their own."""


def line_starts(code: "CodeType") -> "Iterator[Tuple[int, int]]":
    """Offsets at which a code object comes to another line, and the line."""
    if hasattr(code, "co_lines"):
        before = None
        for offset, _, line in code.co_lines():
            if line is not None and line != before:
                yield offset, line
            before = line if line is not None else before
        return
    import dis

    for offset, line in dis.findlinestarts(code):
        if line is not None:
            yield offset, line


def jumps_inside_lines(code: "CodeType") -> "FrozenSet[int]":
    """Offsets at which a code object has only jumped back within a line, as in comprehensions from Python 3.12 on.

    From Python 3.13 on, such a line event comes before the jump.
    """
    if not ONE_FRAME:
        return frozenset()
    import dis

    lines = {
        offset: line for first, end, line in code.co_lines() for offset in range(first, end, 2) if line is not None
    }
    inside: "Set[int]" = set()
    others = {offset for offset, _ in line_starts(code)}
    for one in dis.get_instructions(code):
        if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
            same = one.argval < one.offset and lines.get(one.argval) == lines.get(one.offset)
            (inside if same else others).add(one.argval)
            if same:
                inside.add(one.offset)
    return frozenset(inside - others)


def lines_of(code: "CodeType") -> "Iterator[int]":
    """Lines that a code object has instructions for, but for what is compiled in by us."""
    return (line for _, line in line_starts(code) if line != NOWHERE)
