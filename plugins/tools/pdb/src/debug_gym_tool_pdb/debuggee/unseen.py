"""What is compiled into programs has no line, so that nothing that a program traces itself with comes to it.

Up to Python 3.9 there is no such thing; there it has the line `NOWHERE`.
"""

import sys
import types

from .code_lines import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Dict, FrozenSet, List

HOOK = "__debug_gym_reached__"
"""Name of our function among the builtins."""

_WITHOUT, _PLAIN, _WHOLE = 15, 13, 14
"""Kinds of entries in the table of Python 3.11: without a line, without columns, with everything."""

_CAN = sys.version_info >= (3, 10)
_OFFSETS: "Dict[CodeType, FrozenSet[int]]" = {}
"""Where our part of code objects lies."""


def is_inserted(frame: "FrameType") -> bool:
    """Whether a frame is in what we have compiled in."""
    line = frame.f_lineno
    return line == NOWHERE if not _CAN else line is None and lies_in_ours(frame.f_code, frame.f_lasti)


def lies_in_ours(code: "CodeType", offset: int) -> bool:
    """Whether what has no line there is ours."""
    if HOOK not in code.co_names:
        return False
    known = _OFFSETS.get(code)
    return known is None or offset in known  # the former: a copy of the program's


def without_lines(code: "CodeType") -> "CodeType":
    """The same code, in which what we have compiled in has no line."""
    if not _CAN:
        return code
    inside = tuple(without_lines(one) if type(one) is types.CodeType else one for one in code.co_consts)
    if HOOK in code.co_names:
        table = _table if sys.version_info >= (3, 11) else _old_table
        ours = {at for first, end, line in code.co_lines() if line == NOWHERE for at in range(first, end, 2)}
        code = code.replace(co_consts=inside, co_linetable=table(code))
        _OFFSETS[code] = frozenset(ours)
    elif any(one is not other for one, other in zip(inside, code.co_consts)):  # noqa: B905 (Python 3.6)
        code = code.replace(co_consts=inside)
    return code


def _old_table(code: "CodeType") -> bytes:
    """Of Python 3.10: pairs of a size and how many lines further on it is; -128 for none."""
    table = bytearray()
    before = code.co_firstlineno
    for start, end, line in code.co_lines():
        size, delta = end - start, -128
        if line is not None and line != NOWHERE:
            delta, before = line - before, line
            while abs(delta) > 127:
                part = 127 if delta > 0 else -127
                table += bytes((0, part & 255))
                delta -= part
        while size > 254:
            table += bytes((254, delta & 255))
            size, delta = size - 254, -128 if delta == -128 else 0
        if size:
            table += bytes((size, delta & 255))
    return bytes(table)


def _table(code: "CodeType") -> bytes:
    """Of Python 3.11 and newer: entries of up to eight units of code."""
    table = bytearray()
    before = code.co_firstlineno
    positions: "List[Any]" = list(code.co_positions())
    place = 0
    while place < len(positions):
        line, end, column, end_column = positions[place]
        size = 1
        while size < 8 and positions[place + size : place + size + 1] == [positions[place]]:
            size += 1
        ours = line == NOWHERE and place  # that of a module, too, begins with it
        place += size
        if line is None or ours:
            table.append(_head(_WITHOUT, size))
            continue
        delta, before = line - before, line
        numbers = [-delta << 1 | 1 if delta < 0 else delta << 1]
        whole = None not in (end, column, end_column)
        table.append(_head(_WHOLE if whole else _PLAIN, size))
        if whole:
            numbers += end - line, column + 1, end_column + 1
        for number in numbers:
            while number >= 64:
                table.append(64 | number & 63)
                number >>= 6
            table.append(number)
    return bytes(table)


def _head(kind: int, size: int) -> int:
    return 128 | kind << 3 | size - 1
