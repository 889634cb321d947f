"""Evaluates what is typed where the program is stopped, and conditions: as if it stood there."""

import dis
import types

from .channel import OwnBuiltins, _compile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Dict, FrozenSet, Union

_eval = eval  # the program may have another one meanwhile, which is for what is evaluated only


class _Merged(dict):  # type: ignore[type-arg]
    """Global and local names as one; functions that stay see what the global ones are later."""

    def __init__(self, names: "Dict[str, Any]", local_names: "Dict[str, Any]") -> None:
        """Take them as they are."""
        super().__init__(names)
        self.update(local_names)
        self._names = names

    def __missing__(self, name: str) -> "Any":
        """A global name; also asked by LOAD_GLOBAL, since this is no plain dict."""
        return self._names[name]

    def leave(self, local_names: "FrozenSet[str]") -> None:
        """Keep the local names alone, and what Python itself looks up here for a function that is made later."""
        for name in self.keys() - local_names - {"__builtins__", "__name__", "__package__", "__spec__"}:
            del self[name]


class Prepared:
    """An expression or a statement, compiled; functions in it see the local names of the frame too."""

    def __init__(self, code: "CodeType") -> None:
        """Look at it."""
        self._code = code
        self._inside = _asked_for_inside(code)
        self._own = _assigned(code, "NAME") if self._inside else frozenset()
        self._assigns = bool(self._own) or (bool(self._inside) and _assigns_global(code))

    def evaluate(self, names: "Dict[str, Any]", local_names: "Dict[str, Any]") -> "Any":
        """Evaluate it, or carry it out.

        Args:
            names: the global ones
            local_names: those of the frame; what is assigned goes there, or to the global ones
        """
        alone = names is local_names or not self._inside
        if alone or self._inside.isdisjoint(self._own.union(local_names)):
            return _eval(self._code, names, local_names)
        merged = _Merged(names, local_names)
        before = merged.copy() if self._assigns else merged
        try:
            return _eval(self._code, merged)
        finally:
            for name in before.keys() - merged.keys():
                del (local_names if name in self._own else names)[name]
            for name, value in merged.items():
                if name not in before or before[name] is not value:
                    (local_names if name in self._own else names)[name] = value
            merged.leave(self._own.union(local_names))


def evaluate(source: "Union[str, CodeType]", names: "Dict[str, Any]", local_names: "Dict[str, Any]") -> "Any":
    """Evaluate an expression, or carry out a statement that is compiled; see `Prepared`."""
    with OwnBuiltins():
        if isinstance(source, str):
            source = _compile(source.lstrip(" \t"), "<string>", "eval", 0, True)
        prepared = Prepared(source)
    return prepared.evaluate(names, local_names)


def _asked_for_inside(code: "CodeType") -> "FrozenSet[str]":
    """Names that functions in some code, as of a comprehension, look for among the global ones only."""
    found: "FrozenSet[str]" = frozenset()
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            found = found.union(one.co_names, _asked_for_inside(one))
    return found


def _assigned(code: "CodeType", kind: str) -> "FrozenSet[str]":
    """Names that some code assigns or deletes, of a kind that bytecode has for them, but for those inside functions."""
    operations = ("STORE_" + kind, "DELETE_" + kind)
    return frozenset(one.argval for one in dis.get_instructions(code) if one.opname in operations)


def _assigns_global(code: "CodeType") -> bool:
    """Whether some code assigns or deletes a global name, in functions too."""
    inside = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return bool(_assigned(code, "GLOBAL")) or any(map(_assigns_global, inside))
