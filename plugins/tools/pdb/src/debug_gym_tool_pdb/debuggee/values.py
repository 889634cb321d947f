"""Values of the program in a few words: bounded in length and in time, since their `repr` is code of the program's."""

import collections
import itertools
import reprlib
import sys
import traceback
import types

from debug_gym_core.debugging.inside.limits import OutOfTime, TimeLimit, text_of
from debug_gym_core.debugging.inside.marks import fields_of, has_plain_repr, mark
from debug_gym_core.debugging.inside.sets import first_of
from debug_gym_core.debugging.inside.texts import name_of, without_addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import AbstractSet, Any, Dict, Optional, Set, Tuple

    Marked = Tuple[str, int]

REPR_SECONDS = 0.2
MESSAGE_LENGTH = 400
TOO_LONG = "<{}, whose repr took too long>"
_LOOKED_INTO = frozenset(
    (
        *(bytearray, bytes, collections.deque, dict, frozenset, int, list, set, str, tuple),
        *(types.FunctionType, types.ModuleType),
    )
)
"""Types whose own repr is not asked for."""


class BoundedRepr(reprlib.Repr):
    """A repr that is short; only containers and numbers are looked into where the time cannot be limited."""

    def __init__(self) -> None:
        """Set the bounds."""
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 8
        self.maxdict = 8
        self.maxstring = self.maxother = self.maxlong = 160
        self.by_type = False
        self.whole = 0
        self.asked: "Optional[type]" = None
        self._slow: "Set[int]" = set()

    def repr1(self, x: "Any", level: int) -> str:
        """See reprlib, which goes by the name of a type: other types may have the same."""
        kind = type(x)
        known = kind in _LOOKED_INTO or kind is getattr(sys.modules.get("array"), "array", None)
        return super().repr1(x, level) if known else self.repr_instance(x, level)

    def repr_dict(self, x: "Dict[Any, Any]", level: int) -> str:
        """A dictionary, in its own order, which reprlib does not keep."""
        if level <= 0:
            return "{...}" if x else "{}"
        first = list(itertools.islice(x.items(), self.maxdict))
        shown = ["{}: {}".format(self.repr1(key, level - 1), self.repr1(value, level - 1)) for key, value in first]
        return "{{{}}}".format(", ".join(shown + ["..."] * (len(x) > self.maxdict)))

    def repr_set(self, x: "AbstractSet[Any]", level: int) -> str:
        """A set."""
        return self._elements(x, level, "{}") if x else "set()"

    def repr_frozenset(self, x: "AbstractSet[Any]", level: int) -> str:
        """A frozen set."""
        return self._elements(x, level, "frozenset({})") if x else "frozenset()"

    def _elements(self, x: "AbstractSet[Any]", level: int, form: str) -> str:
        """The elements of a set, which are not asked for their order."""
        if level <= 0:
            return form.format("{...}")
        shown = [self.repr1(one, level - 1) for one in first_of(x, self.maxset)]
        return form.format("{{{}}}".format(", ".join(shown + ["..."] * (len(x) > self.maxset))))

    def repr_instance(self, x: "Any", level: int) -> str:
        """Any other object."""
        kind = type(x)
        found = fields_of(x) if has_plain_repr(kind) else {}
        if found:
            return self._with_fields(x, found, level)
        if id(kind) in self._slow:
            return TOO_LONG.format(name_of(kind))
        if self.by_type and kind not in (bool, float, complex, type(None)):
            return "<{}>".format(name_of(kind))
        self.asked = kind
        whole = repr(x)
        self.whole = hash((self.whole, without_addresses(whole)))
        return self._cut(whole)

    def _with_fields(self, x: "Any", fields: "Dict[str, Any]", level: int) -> str:
        """An object that has no repr of its own: what it consists of, as `eval` shows it."""
        kind = type(x)
        shown = []
        for name, value in list(fields.items())[: self.maxdict]:
            shown.append("{}={}".format(name, self.repr1(value, level - 1)) if level > 0 else "...")
        if len(fields) > self.maxdict:
            shown.append("...")
        return self._cut("<{} {}>".format(name_of(kind), ", ".join(shown)))

    def too_slow(self) -> None:
        """Remember the type whose repr was asked for last as one that is slow."""
        if self.asked is not None:
            self._slow.add(id(self.asked))

    def repr_bytes(self, x: bytes, level: int) -> str:
        """Bytes, without a copy of all of them."""
        return self._cut(repr(x[: self.maxother]) + ("..." if len(x) > self.maxother else ""))

    repr_bytearray = repr_bytes

    def repr_int(self, x: int, level: int) -> str:
        """An integer, without the digits of a huge one."""
        if x.bit_length() > 2048:
            return "<int of {} bits>".format(x.bit_length())
        return self._cut(repr(x))

    def repr_module(self, x: "types.ModuleType", level: int) -> str:
        """A module without its path."""
        return "<module {!r}>".format(x.__name__)

    def repr_function(self, x: "types.FunctionType", level: int) -> str:
        """A function."""
        return "<function {}>".format(x.__qualname__)

    def _cut(self, text: str) -> str:
        if len(text) <= self.maxother:
            return text
        half = (self.maxother - 3) // 2
        return text[:half] + "..." + text[len(text) - half :]


class Values:
    """Describes values and exceptions of the program."""

    def __init__(self) -> None:
        """Get ready."""
        self._repr = BoundedRepr()

    def describe(self, value: "Any", limit: "TimeLimit") -> str:
        """A short repr without addresses, within the time that is left; after it, of builtin types only."""
        self._repr.by_type = not limit.active
        try:
            return without_addresses(limit.call(self._repr.repr, value))
        except OutOfTime:
            limit.stop()
            self._repr.too_slow()
            return TOO_LONG.format(name_of(type(value)))
        except BaseException as error:
            return "<{}, whose repr raised {}>".format(name_of(type(value)), name_of(type(error)))
        finally:
            self._repr.asked = None

    def marked(self, value: "Any", limit: "TimeLimit") -> "Marked":
        """The same, with a number that tells whether more has changed than is shown."""
        self._repr.whole = 0
        text = self.describe(value, limit)
        try:
            return text, hash((self._repr.whole, mark(value)))
        except RuntimeError:  # it was changed by another thread meanwhile
            return text, 0

    def said(self, error: "BaseException") -> str:
        """An exception's text; empty when its own code fails or takes too long."""
        with TimeLimit(REPR_SECONDS) as limit:
            return self.message(error, limit)

    def as_pdb_says(self, error: "BaseException") -> str:
        """An exception as pdb tells it; where that fails, its type and what it says."""
        try:
            return traceback.format_exception_only(type(error), error)[-1].strip()
        except BaseException:
            return "{}: {}".format(type(error).__name__, self.said(error))

    def message(self, error: "BaseException", limit: "TimeLimit") -> str:
        """The same, within the time that is left."""
        if limit.expired:
            return ""
        try:
            text = without_addresses(limit.call(text_of, error))
        except OutOfTime:
            limit.stop()
            return ""
        except BaseException:
            return ""
        return text if len(text) <= MESSAGE_LENGTH else text[:MESSAGE_LENGTH] + "..."


def in_one_line(error: BaseException) -> str:
    """An exception as Python ends a traceback, without addresses."""
    line = traceback.format_exception_only(type(error), error)[-1].strip()
    return without_addresses(line)[:MESSAGE_LENGTH]
