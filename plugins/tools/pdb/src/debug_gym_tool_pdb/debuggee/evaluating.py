"""Evaluates what is typed where the program is stopped, and conditions: as if it stood there."""

import dis
import types

from .channel import _compile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Dict, FrozenSet, Set, Union


def names_inside(code: "CodeType") -> "FrozenSet[str]":
    """Names that functions in some code, as of a comprehension, look for among the global ones only."""
    found: "FrozenSet[str]" = frozenset()
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            found = found.union(one.co_names, names_inside(one))
    return found


def evaluate(source: "Union[str, CodeType]", names: "Dict[str, Any]", local_names: "Dict[str, Any]") -> "Any":
    """Evaluate an expression, or carry out a statement that is compiled; functions in it see the local names too.

    Args:
        source: which
        names: the global ones
        local_names: those of the frame; what is assigned goes there, or to the global ones
    """
    code = _compile(source.lstrip(" \t"), "<string>", "eval", 0, True) if isinstance(source, str) else source
    inside = names_inside(code) if names is not local_names else frozenset()
    own = _assigned(code) if inside else set()
    if not inside or inside.isdisjoint(own.union(local_names)):
        return eval(code, names, local_names)
    merged = dict(names)
    merged.update(local_names)
    before = dict(merged)
    try:
        return eval(code, merged)
    finally:
        for name in [name for name in before if name not in merged]:
            del (local_names if name in own else names)[name]
        for name in [name for name, value in merged.items() if name not in before or before[name] is not value]:
            (local_names if name in own else names)[name] = merged[name]


def _assigned(code: "CodeType") -> "Set[str]":
    """Names that some code assigns or deletes, but for those that it declares global, and those inside functions."""
    return {str(one.argval) for one in dis.get_instructions(code) if one.opname in ("STORE_NAME", "DELETE_NAME")}
