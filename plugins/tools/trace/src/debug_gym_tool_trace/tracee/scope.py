"""A frame's variables, and which of them changed: locals, attributes of the repository's objects, globals."""

import dis
import functools
import types

from debug_gym_core.debugging.inside.marks import container_of, fields_of, has_plain_repr

from .values import SIMPLE, Described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Dict, List, Optional, Set, Tuple

    from .files import Files
    from .values import Values

    Look = Dict[str, Described]
    Pairs = List[Tuple[str, str]]

MOST_NAMES = 40
MOST_ATTRIBUTES = 16
MOST_OBJECTS = 6
MOST_GLOBALS = 12
MOST_PARTS = 3
"""Elements of one container that changed in one step and are shown one by one; of more, the container is shown."""

ARGUMENT_ROOM = 240
UNSEEN = " (changed where it is not shown)"
_PLAIN = SIMPLE | {list, tuple, dict, set, frozenset}
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)


class Scope:
    """The variables of one frame, as they were when they were last looked at.

    Attributes:
        arguments: name and text of each argument of the call
        used: the same of attributes and globals that the function uses, as they were at its beginning
    """

    def __init__(self, frame: "FrameType", values: "Values", files: "Files", detailed: bool) -> None:
        """Look at a frame that is about to begin.

        Args:
            frame: which
            values: describes them
            files: tells which classes are the repository's
            detailed: whether anybody wants to know what changes
        """
        self._values = values
        self._files = files
        code = frame.f_code
        self._names = names_of_arguments(code)
        self._used_names = frozenset(code.co_names)
        self._globals = self._own_globals(frame) if detailed and frame.f_globals is not frame.f_locals else []
        variables = frame.f_locals
        arguments = [name for name in self._names if name in variables]
        self.arguments: "Pairs" = [(name, values.text(variables[name], ARGUMENT_ROOM)) for name in arguments]
        self.used: "Pairs" = []
        self._last: "Look" = {}
        if detailed:
            self._last = self._look(frame)
            self.used = [(name, one.text) for name, one in self._last.items() if self._is_used(name, variables)]

    def _is_used(self, name: str, variables: "Dict[str, Any]") -> bool:
        """Whether to tell of an attribute or global at the beginning; what the arguments' texts have is told there."""
        owner, dot, attribute = name.partition(".")
        if not dot:
            return name in self._globals
        if attribute not in self._used_names:
            return False
        kind = type(variables.get(owner))
        return not has_plain_repr(kind) or attribute not in fields_of(variables.get(owner))

    def changes(self, frame: "FrameType") -> "Pairs":
        """What changed since the last look, as names and texts; an empty text: it is gone."""
        before, self._last = self._last, self._look(frame)
        found: "Pairs" = []
        fresh = set()
        for name, now in self._last.items():
            was = before.get(name)
            owner, dot, _ = name.partition(".")
            if dot and owner in fresh:
                continue  # the object itself is shown
            if was is None or not _is_same(was, now):
                found += _difference(name, was, now)
                if was is None or not now.identity or was.identity != now.identity:
                    fresh.add(name)
        gone = [name for name in before if name not in self._last and name.partition(".")[0] not in fresh]
        found += [(name, "") for name in gone if name.partition(".")[0] in self._last or "." not in name]
        return sorted(found, key=lambda one: one[1].endswith(UNSEEN))

    def _look(self, frame: "FrameType") -> "Look":
        variables = frame.f_locals
        found: "Look" = {}
        seen: "Set[int]" = set()
        for name in [*self._names, *(one for one in list(variables) if one not in self._names)]:
            if len(found) >= MOST_NAMES:
                break
            if name not in variables or is_hidden(name):
                continue
            value = variables[name]
            if variables is frame.f_globals and issubclass(type(value), _CODE):
                continue
            fields = self._fields(value) if len(seen) < MOST_OBJECTS and id(value) not in seen else None
            if fields is None:
                found[name] = self._describe(name, value)
                continue
            seen.add(id(value))
            found[name] = self._object(name, value)
            for attribute, one in fields:
                path = "{}.{}".format(name, attribute)
                found[path] = self._describe(path, one)
        for name in self._globals:
            if name in frame.f_globals and name not in found:
                found[name] = self._describe(name, frame.f_globals[name])
        return found

    def _object(self, name: str, value: "Any") -> "Described":
        """What has attributes that are looked at one by one: described when it is new, but for what else is in it."""
        if container_of(type(value)) is not None:
            made = self._values.describe(value)
            made.identity = id(value)
            return made
        last = self._last.get(name)
        return last if last is not None and last.key == id(value) else Described(self._values.text(value), id(value))

    def _describe(self, name: str, value: "Any") -> "Described":
        kind = type(value)
        if kind in _PLAIN:
            return self._values.describe(value)
        last = self._last.get(name)
        if issubclass(kind, _CODE) and last is not None and last.key == id(value):
            return last
        made = self._values.describe(value, own=self._files.is_own_class(kind))
        if issubclass(kind, _CODE):
            made.key = id(value)
        return made

    def _fields(self, value: "Any") -> "Optional[Pairs]":
        """Attributes of an object whose class the repository defines, and what the function uses of its classes'.

        The same of a class of the repository, those of its variables that are plain; and of its functions.
        """
        kind = type(value)
        if kind is types.FunctionType:
            own = fields_of(value) if self._files.is_own(value.__code__.co_filename) else {}
            return [(name, one) for name, one in own.items() if not is_hidden(name)][:MOST_ATTRIBUTES] or None
        is_class = issubclass(kind, type)
        owner = value if is_class else kind
        if kind in SIMPLE or not self._files.is_own_class(owner):
            return None
        own = _plain_variables(value) if is_class else fields_of(value)
        names = sorted(own, key=lambda name: name not in self._used_names)[:MOST_ATTRIBUTES]
        found = [(name, own[name]) for name in own if name in names and isinstance(name, str)]
        for name in sorted(self._used_names):
            if name not in own and len(found) < MOST_ATTRIBUTES:
                for one in type.__dict__["__mro__"].__get__(owner):
                    if name in vars(one):
                        if type(vars(one)[name]) in _PLAIN:
                            found.append((name, vars(one)[name]))
                        break
        return found

    def _own_globals(self, frame: "FrameType") -> "List[str]":
        """Names of the globals to look at: which the function assigns, which are plain, or not there yet."""
        known, builtin = frame.f_globals, frame.f_builtins
        assigned, used = globals_of(frame.f_code)
        missing = [name for name in used if name not in known and name not in builtin]
        plain = [name for name in used if type(known.get(name, len)) in _PLAIN]
        names = [name for name in dict.fromkeys([*assigned, *plain, *missing]) if not is_hidden(name)][:MOST_GLOBALS]
        return [name for name in used if name in names]


def _difference(name: str, was: "Optional[Described]", now: "Described") -> "Pairs":
    """What to tell of a variable that changed: of a large container, only the elements that did."""
    if was is None:
        return [(name, now.text)]
    whole = [(name, now.text if now.text != was.text else now.text + UNSEEN)]
    if was.parts is None or now.parts is None or was.identity != now.identity:
        return whole
    changed = []
    for place, (text, key) in now.parts.items():
        before = was.parts.get(place)
        if before is None or before[0] != text:
            changed.append((name + place, text))
        elif not _is_same_key(before[1], key):
            changed.append((name + place, text + UNSEEN))
    if now.size < was.size:
        changed += [(name + place, "") for place in was.parts if place not in now.parts]
    return changed if 0 < len(changed) <= MOST_PARTS else whole


def _plain_variables(owner: type) -> "Dict[str, Any]":
    """Those of a class's own variables that are constants and containers."""
    own = type.__dict__["__dict__"].__get__(owner)
    return {name: one for name, one in list(own.items()) if type(one) in _PLAIN and not is_hidden(name)}


def _is_same(was: "Described", now: "Described") -> bool:
    if was.text != now.text or not _is_same_key(was.key, now.key):
        return False
    if was.parts is None or now.parts is None:
        return was.parts is now.parts
    return was.parts.keys() == now.parts.keys() and all(
        was.parts[place][0] == text and _is_same_key(was.parts[place][1], key)
        for place, (text, key) in now.parts.items()
    )


def _is_same_key(was: "Optional[int]", now: "Optional[int]") -> bool:
    return was == now or was is None or now is None


def is_hidden(name: "Any") -> bool:
    """Whether a variable is the machinery's: of a class or module, of pytest's assertions, of a comprehension."""
    return type(name) is not str or not name.isidentifier() or (name[:2] == "__" and name[-2:] == "__")


def names_of_arguments(code: "CodeType") -> "List[str]":
    """The names of a function's arguments in their order, `*` ones last."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return [name for name in code.co_varnames[:count] if not name.startswith(".")]


@functools.lru_cache(maxsize=None)
def globals_of(code: "CodeType") -> "Tuple[List[str], List[str]]":
    """The globals that a function assigns, and all that it names; a class's body may mean its own."""
    assigned, used = {}, {}
    for one in dis.get_instructions(code):
        if one.opname in ("STORE_GLOBAL", "LOAD_GLOBAL", "LOAD_NAME"):
            used[one.argval] = True
            if one.opname == "STORE_GLOBAL":
                assigned[one.argval] = True
    return list(assigned), list(used)
