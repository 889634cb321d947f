"""Values of the program in a few words: bounded in length and in time, since a `repr` is code of the program's."""

import collections
import types

from debug_gym_core.debugging.inside.limits import OutOfTime, TimeLimit, repr_of, text_of
from debug_gym_core.debugging.inside.marks import container_of, fields_of, has_plain_repr, mark, mark_within, parts_of
from debug_gym_core.debugging.inside.process import _process_time
from debug_gym_core.debugging.inside.sets import first_of
from debug_gym_core.debugging.inside.signals import is_of_a_handler
from debug_gym_core.debugging.inside.texts import name_of, without_addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

    Part = Tuple[str, Optional[int]]

ROOM = 120
"""Characters of a value."""

MESSAGE_ROOM = 300
"""Characters of an exception's text."""

HEAD, TAIL = 6, 2
"""Elements shown of a container that has more than both."""

DEEPEST = 3
MOST_MARKED = 2000
"""Elements of a container in which a change is noticed wherever it is."""

PARTS = 64
"""Elements that are told apart, to say which of them changed."""

REPR_SECONDS = 0.2
SLOW_SECONDS = 0.02
"""Of the processor: a type whose repr took as long is asked no more."""

ALL_SECONDS = 2.0
"""Of the processor, for the reprs of all values; after that only builtin ones are looked into."""

MARK_SECONDS = 4.0
"""Of the processor, for finding changes where nothing is shown; objects may have half of it."""

MARK_LEVELS = 6
MARK_BYTES = 16 << 20
"""Bytes of an array in which a change is noticed."""

BITS = 2048
SIMPLE = frozenset([bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented)])
_BRACKETS: "Dict[type, Tuple[str, str]]" = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    dict: ("{", "}"),
    collections.deque: ("[", "]"),
}
_EMPTY: "Dict[type, str]" = {set: "set()", frozenset: "frozenset()", collections.deque: "deque([])"}
_NAMED: "Dict[type, str]" = {frozenset: "frozenset({})", collections.deque: "deque({})"}
_DICTS = (collections.OrderedDict, collections.defaultdict, collections.Counter)


class Described:
    """A value as it was at one moment.

    Attributes:
        text: in a few words
        key: tells whether it is what it was, beside the text; None: nobody looked
        parts: of a container that is not tiny, texts and keys of its elements, by how they are reached
        identity: of a container
        size: of a container
    """

    __slots__ = ("identity", "key", "parts", "size", "text")

    def __init__(self, text: str, key: "Optional[int]" = 0, identity: int = 0, size: int = 0) -> None:
        """Keep it."""
        self.text = text
        self.key = key
        self.parts: "Optional[Dict[str, Part]]" = None
        self.identity = identity
        self.size = size


class Values:
    """Describes values, in a bounded time until `end`.

    The program's own timer and handler are as they were after it. Outside of the main thread, where no signal could
    end it, no code of the program's is asked.
    """

    def __init__(self) -> None:
        """Get ready."""
        self._limit = TimeLimit(REPR_SECONDS)
        self._spent = self._marked = 0.0
        self._slow: "Set[type]" = set()

    # ---- time

    def end(self) -> None:
        """What was described are the values of one moment."""
        self._limit.stop()

    def _may_ask(self) -> bool:
        """Whether code of the program's may be asked: its time is limited, and it has not had all of it."""
        return self._spent <= ALL_SECONDS and self._limit.start()

    def _ask(self, value: "Any", level: int, room: int) -> str:
        """The value's own repr; where that raises, what it consists of, as far as `level` allows."""
        kind = type(value)
        if kind in self._slow or not self._may_ask():
            return "<{}>".format(name_of(kind))
        before = _process_time()
        try:
            text = self._limit.call(repr_of, value)
        except OutOfTime:
            self._slow.add(kind)
            return "<{}, whose repr takes too long>".format(name_of(kind))
        except BaseException as error:
            if is_of_a_handler(error):
                raise
            parts = parts_of(value)
            inside = ": " + self._fields(parts, level, room) if parts else ""
            return "<{}, whose repr raises {}{}>".format(name_of(kind), name_of(type(error)), inside)
        finally:
            used = _process_time() - before
            self._spent += used
            if used > SLOW_SECONDS:
                self._slow.add(kind)
            self._limit.extend()
        if len(text) > 20 * ROOM:
            text = text[: 10 * ROOM] + text[-10 * ROOM :]
        return without_addresses(" ".join(text.split()))

    # ---- text

    def text(self, value: "Any", room: int = ROOM) -> str:
        """A value in a few words."""
        return cut(self._text(value, DEEPEST, room), room)

    def describe(self, value: "Any", room: int = ROOM, own: bool = False) -> "Described":
        """The same, with what tells which parts of it changed; `own`: those of an object's variables too."""
        kind = type(value)
        if kind in SIMPLE:
            return Described(cut(self._simple(value, room), room), self._key(value, room))
        text = self._text(value, DEEPEST, room)
        if kind not in _BRACKETS:
            return Described(cut(text, room), self._key_within(value, text, own))
        made = Described(cut(text, room), self._key(value, room), id(value), len(value))
        if kind in (list, dict) and (len(text) > ROOM // 3 or made.size > HEAD + TAIL):
            made.parts = self._parts(value)
        return made

    def _key(self, value: "Any", room: int) -> "Optional[int]":
        """What tells whether there is a change where nothing is shown; None: that takes too long."""
        kind = type(value)
        if kind in SIMPLE:
            if (kind is not str and kind is not bytes) or len(value) <= room:
                return 0
        elif kind not in _BRACKETS or len(value) > MOST_MARKED:
            return 0
        return self._in_time(MARK_SECONDS, mark, value, MARK_LEVELS, MARK_BYTES)

    def _key_within(self, value: "Any", text: str, own: bool) -> "Optional[int]":
        """The same of what is no builtin container: of its whole text, of what is in it, of its variables if asked."""
        if not own and container_of(type(value)) is None:
            return hash(text)
        key = self._in_time(MARK_SECONDS / 2, mark_within, value, own, MARK_LEVELS, MARK_BYTES)
        return None if key is None else hash((text, key))

    def _in_time(self, seconds: float, function: "Callable[..., int]", *arguments: "Any") -> "Optional[int]":
        """Call what finds changes, unless that many seconds are spent; None: it was not, or could not be, called."""
        if self._marked > seconds:
            return None
        before = _process_time()
        try:
            return function(*arguments)
        except (RuntimeError, IndexError):  # another thread changes it
            return None
        finally:
            self._marked += _process_time() - before

    def _part(self, value: "Any", room: int) -> "Part":
        return cut(self._text(value, 2, room), room), self._key(value, room)

    def _parts(self, value: "Any") -> "Optional[Dict[str, Part]]":
        room = ROOM // 2
        try:
            if type(value) is dict:
                if len(value) > PARTS:
                    return None
                items = list(value.items())
                return {"[{}]".format(self.text(key, room)): self._part(one, room) for key, one in items}
            size = len(value)
            places = list(range(size)) if size <= PARTS else [*range(PARTS // 2), *range(size - PARTS // 2, size)]
            return {"[{}]".format(at): self._part(value[at], room) for at in places}
        except (RuntimeError, IndexError):  # another thread changes it
            return None

    def _simple(self, value: "Any", room: int) -> str:
        kind = type(value)
        if kind is str or kind is bytes:
            if len(value) <= room:
                return repr(value)
            half = room // 2
            return "{}...{} ({} {})".format(
                repr(value[:half]), repr(value[-half // 2 :]), len(value), "characters" if kind is str else "bytes"
            )
        if kind is int and value.bit_length() > BITS:
            return "<int of {} bits>".format(value.bit_length())
        return repr(value)

    def _text(self, value: "Any", level: int, room: int) -> str:
        kind = type(value)
        if kind in SIMPLE:
            return self._simple(value, room)
        try:
            if kind in _BRACKETS:
                return self._container(value, kind, level, room)
            if kind in _DICTS:
                return "{}({})".format(name_of(kind), self._container(value, dict, level, room))
            if issubclass(kind, types.ModuleType):
                return "<module {}>".format(value.__name__)
            if kind in (types.FunctionType, types.BuiltinFunctionType):
                return "<function {}>".format(value.__qualname__)
            if kind is types.MethodType:
                return "<method {}>".format(getattr(value.__func__, "__qualname__", "?"))
            if kind is type:
                return "<class {}>".format(value.__qualname__)
            if has_plain_repr(kind):
                fields = fields_of(value)
                if fields:
                    return "<{} {}>".format(name_of(kind), self._fields(fields, level, room))
            return self._ask(value, level, room)
        except Exception as error:  # changed by another thread meanwhile, or of an odd type
            if is_of_a_handler(error):
                raise
            return "<{}>".format(name_of(kind))

    def _fields(self, fields: "Dict[str, Any]", level: int, room: int) -> str:
        """What an object consists of that has no repr of its own."""
        shown = []
        for name, value in list(fields.items())[: HEAD + TAIL]:
            shown.append("{}={}".format(name, self._text(value, level - 1, room // 2) if level > 1 else "..."))
        if len(fields) > HEAD + TAIL:
            shown.append("...")
        return ", ".join(shown)

    def _container(self, value: "Any", kind: type, level: int, room: int) -> str:
        size = len(value)
        opening, closing = _BRACKETS[kind]
        if not size:
            return _EMPTY.get(kind, opening + closing)
        if level <= 0:
            return "{}...{} ({})".format(opening, closing, size)
        whole = size <= HEAD + TAIL
        shown: "List[str]" = []
        used = 0
        for one in self._elements(value, kind, whole):
            text = self._text(one, level - 1, room // 2) if kind is not dict else self._pair(one, level, room)
            used += len(text) + 2
            if used > 2 * room and len(shown) > 1:
                whole = False
                break
            shown.append(text)
        if whole:
            inside = ", ".join(shown) + ("," if kind is tuple and size == 1 else "")
        elif kind in (list, tuple, collections.deque) and len(shown) == HEAD + TAIL:
            inside = ", ".join([*shown[:HEAD], "...", *shown[HEAD:]])
        else:
            inside = ", ".join([*shown, "..."])
        return _NAMED.get(kind, "{}").format(opening + inside + closing) + ("" if whole else " ({})".format(size))

    def _pair(self, pair: "Tuple[Any, Any]", level: int, room: int) -> str:
        return "{}: {}".format(self._text(pair[0], level - 1, room // 2), self._text(pair[1], level - 1, room // 2))

    @staticmethod
    def _elements(value: "Any", kind: type, whole: bool) -> "Iterable[Any]":
        if kind is dict:
            return _first(value.items(), HEAD + TAIL)
        if kind in (set, frozenset):
            return first_of(value, HEAD + TAIL)
        if whole:
            return list(value)
        return [*_first(value, HEAD), *(value[at] for at in range(-TAIL, 0))]

    def exception(self, error: "BaseException") -> "Dict[str, str]":
        """An exception's type and text."""
        kind = type(error)
        message = ""
        simple = len(error.args) == 1 and type(error.args[0]) is str and kind.__module__ == "builtins"
        if simple and kind is not KeyError:
            message = error.args[0]
        elif self._may_ask():
            try:
                message = self._limit.call(text_of, error)
            except BaseException as failed:  # its own code fails, or takes too long
                if is_of_a_handler(failed):
                    raise
                message = ""
        message = without_addresses(message)
        return {"type": name_of(kind), "message": cut(message, MESSAGE_ROOM)}


def _first(values: "Any", count: int) -> "List[Any]":
    found = []
    for one in values:
        found.append(one)
        if len(found) == count:
            break
    return found


def cut(text: str, room: int) -> str:
    """Head and tail of a text that is too long."""
    if len(text) <= room:
        return text
    head = room * 2 // 3
    return text[:head] + "..." + text[len(text) - (room - head - 3) :]
