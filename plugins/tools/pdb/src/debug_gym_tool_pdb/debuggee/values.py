"""Values of the program in a few words: bounded in length and in time, since their `repr` is code of the program's."""

import collections
import itertools
import reprlib
import sys
import traceback
import types

from debug_gym_core.debugging.inside.limits import OutOfTime, TimeLimit, repr_of, text_of
from debug_gym_core.debugging.inside.marks import container_of, fields_of, has_plain_repr, mark, parts_of
from debug_gym_core.debugging.inside.sets import first_of
from debug_gym_core.debugging.inside.texts import name_of, without_addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import AbstractSet, Any, Dict, Iterable, Optional, Set, Tuple

    Marked = Tuple[str, int, Optional[int]]

REPR_SECONDS = 0.2
MESSAGE_LENGTH = 400
TOO_LONG = "<{}, whose repr took too long>"
RAISED = "<{}, whose repr raised {}{}>"
_DICTS = (collections.OrderedDict, collections.defaultdict, collections.Counter)
_SIMPLE = (bool, float, complex, type(None))
_LOOKED_INTO = frozenset(
    (
        *(bytearray, bytes, collections.deque, dict, frozenset, int, list, set, str, tuple),
        *(types.FunctionType, types.ModuleType),
    )
)
"""Types whose own repr is not asked for."""


class BoundedRepr(reprlib.Repr):
    """A repr that is short; only containers and numbers are looked into where the time cannot be limited.

    What raises, or takes too long, stands for itself alone in what it is in.

    Attributes:
        limit: of the time in which the program is asked
        whole: tells what is not shown of the texts that the program gave
        partial: whether something was not asked for its text
    """

    def __init__(self) -> None:
        """Set the bounds."""
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 8
        self.maxdict = 8
        self.maxstring = self.maxother = self.maxlong = 160
        self.limit = TimeLimit(REPR_SECONDS)
        self.whole = 0
        self.partial = False
        self._slow: "Set[int]" = set()

    def repr1(self, x: "Any", level: int) -> str:
        """See reprlib, which goes by the name of a type: other types may have the same."""
        kind = type(x)
        known = kind in _LOOKED_INTO or kind is getattr(sys.modules.get("array"), "array", None)
        return super().repr1(x, level) if known else self.repr_instance(x, level)

    def repr_dict(self, x: "Dict[Any, Any]", level: int) -> str:
        """A dictionary, in its own order, which reprlib does not keep."""
        return self._pairs(x.items(), len(x), level)

    def _pairs(self, pairs: "Iterable[Tuple[Any, Any]]", size: int, level: int) -> str:
        if level <= 0:
            return "{...}" if size else "{}"
        first = list(itertools.islice(pairs, self.maxdict))
        shown = ["{}: {}".format(self.repr1(key, level - 1), self.repr1(value, level - 1)) for key, value in first]
        return "{{{}}}".format(", ".join(shown + ["..."] * (size > self.maxdict)))

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
        if kind in _SIMPLE:
            return repr(x)
        if id(kind) in self._slow or not self.limit.active:
            self.partial = True
            if kind in _DICTS:
                return self._cut("{}({})".format(name_of(kind), self._inside(x, level)))
            return (TOO_LONG if id(kind) in self._slow else "<{}>").format(name_of(kind))
        try:
            whole = self.limit.call(repr_of, x)
        except OutOfTime:
            self.limit.stop()
            self._slow.add(id(kind))
            self.partial = True
            return TOO_LONG.format(name_of(kind))
        except BaseException as error:
            inside = self._inside(x, level) if level > 0 else ""
            return self._cut(RAISED.format(name_of(kind), name_of(type(error)), inside and ": " + inside))
        self.whole = hash((self.whole, without_addresses(whole)))
        return self._cut(whole)

    def _inside(self, x: "Any", level: int) -> str:
        """What is in an object or a container, without its own repr; empty: it does not say."""
        parts = parts_of(x)
        if parts:
            return self._named(parts, level)
        base = container_of(type(x))
        if base is not None and issubclass(base, dict):
            return self._pairs(base.items(x), base.__len__(x), level)
        if base in (list, tuple, set, frozenset, collections.deque):
            shown = [self.repr1(one, level - 1) for one in itertools.islice(base.__iter__(x), self.maxlist)]
            return "[{}]".format(", ".join(shown + ["..."] * (base.__len__(x) > self.maxlist)))
        return ""

    def _with_fields(self, x: "Any", fields: "Dict[str, Any]", level: int) -> str:
        """An object that has no repr of its own: what it consists of, as `eval` shows it."""
        return self._cut("<{} {}>".format(name_of(type(x)), self._named(fields, level)))

    def _named(self, fields: "Dict[str, Any]", level: int) -> str:
        shown = []
        for name, value in list(fields.items())[: self.maxdict]:
            shown.append("{}={}".format(name, self.repr1(value, level - 1)) if level > 0 else "...")
        if len(fields) > self.maxdict:
            shown.append("...")
        return ", ".join(shown)

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
        self._repr.limit = limit
        self._repr.partial = False
        try:
            return without_addresses(self._repr.repr(value))
        except BaseException as error:
            return RAISED.format(name_of(type(value)), name_of(type(error)), "")

    def marked(self, value: "Any", limit: "TimeLimit") -> "Marked":
        """The same, with numbers that tell whether more has changed than is shown; see `is_same`."""
        self._repr.whole = 0
        text = self.describe(value, limit)
        whole = None if self._repr.partial else self._repr.whole
        try:
            return text, mark(value), whole
        except RuntimeError:  # it was changed by another thread meanwhile
            return text, 0, whole

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


def is_same(before: "Optional[Marked]", now: "Marked") -> bool:
    """Whether a value is what it was: a text that there was no time to ask for tells nothing."""
    if before is None or (before[2] is not None and now[2] is not None):
        return before == now
    return before[1] == now[1]


def in_one_line(error: BaseException) -> str:
    """An exception as Python ends a traceback, without addresses."""
    line = traceback.format_exception_only(type(error), error)[-1].strip()
    return without_addresses(line)[:MESSAGE_LENGTH]
