"""Steps that leave a frame: where they go on, and what runs in between that nobody means."""

import bdb
import codecs
import collections
import gc
import inspect
import sys
import types
import warnings
import weakref

from .channel import Channel
from .frames import is_yielding
from .running import Running
from .shown import Followed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

_dispatch_line = bdb.Bdb.dispatch_line
_dispatch_return = bdb.Bdb.dispatch_return
_get_asyncgen_hooks = sys.get_asyncgen_hooks

_WARNS = ("_warn_unawaited_coroutine", "_showwarnmsg")
_WARNINGS = frozenset(
    function.__code__
    for function in (warnings.WarningMessage.__init__, *(getattr(warnings, name, None) for name in _WARNS))
    if function is not None
)
"""What the interpreter calls to warn, as of a coroutine that was never awaited and of a file that was not closed."""
_CODECS = codecs.IncrementalDecoder.__init__.__code__.co_filename
_UNRAISABLE = tuple(one for one in tuple.__subclasses__() if one.__name__ == "UnraisableHookArgs")
"""What `sys.unraisablehook` is given."""
_SUSPENDED = (
    (types.GeneratorType, "gi_frame", "gi_yieldfrom"),
    (types.CoroutineType, "cr_frame", "cr_await"),
    (types.AsyncGeneratorType, "ag_frame", "ag_await"),
)
_ELSEWHERE = (type, types.ModuleType, types.FunctionType, types.CodeType, types.FrameType)
"""What leads to all of the program."""
_DEPTH = 4
"""As of a generator in a list that an object has: its variables are a dictionary."""
_MOST = 1000
"""Objects that are looked at for what they hold, and elements of one that is."""
_MOST_REFERENCES = 20000
"""What these hold together."""
_SIZED = (list, tuple, dict, set, frozenset, collections.deque)
_NOTHING: "Tuple[Any, Optional[CodeType], int]" = (None, None, -1)

# Bound once, so that a program that replaces them does not replace ours.
_referents = gc.get_referents
_is_tracked = gc.is_tracked
_reference = weakref.ref
_referent = weakref.ref.__call__


class Left:
    """A frame that has returned, and what runs because its variables are gone.

    A step out of a function goes to its caller, not into what the end of its variables calls: destructors, functions of
    weak references, warnings, what generators have still to do. pdb, which keeps them alive while it steps, never sees
    any of it. All of it runs before the caller goes on; but so may more that the caller's instruction calls, as
    `__init__` after `__new__`.
    """

    def __init__(self, frame: "FrameType") -> None:
        """Know what a frame leaves, at its return."""
        caller = frame.f_back
        self._caller = id(caller)  # it is there as long as this: its own return is an event
        self._at = caller.f_lasti if caller is not None else -1
        self._code = frame.f_code
        self._part = 0
        # A frame may come to be where one of these was, even in the call that ends it: its id alone is no proof. From
        # Python 3.11 on that of a generator is made only when it is asked for, so that it may be just like it too; but
        # none has traced it.
        mark = Followed(_forget_nothing, 0)
        mark.active = False
        self._held: "Dict[int, Tuple[Any, CodeType, int]]" = {}
        for value, one in _suspended(frame):
            if sys.version_info >= (3, 11) and one.f_trace is None:
                one.f_trace = mark
            self._held[id(one)] = (_reference(value), one.f_code, one.f_lasti)

    def is_cleaned_up(self, frame: "FrameType") -> bool:
        """Whether a frame that is called is part of it."""
        top = frame
        while top.f_back is not None and id(top.f_back) != self._caller:
            top = top.f_back
        if top.f_back is None or top.f_back.f_lasti != self._at:
            return False
        if frame is top:
            self._part = id(top) if self._is_part(top) else 0
        return id(top) == self._part

    def _is_part(self, frame: "FrameType") -> bool:
        """Whether a frame that is called before the caller goes on is part of it."""
        code = frame.f_code
        if code.co_name == "__del__" or code in _WARNINGS:
            return True
        if self._part and code.co_filename == _CODECS:  # an exception in it is printed with the line, which is read
            return True
        if code is getattr(_get_asyncgen_hooks().finalizer, "__code__", None):
            return True
        return self._ends(frame) or (code is not self._code and _is_told(frame))

    def _ends(self, frame: "FrameType") -> bool:
        """Whether a frame that is called is one that was held, of what is there no more."""
        value, code, at = self._held.pop(id(frame), _NOTHING)
        if code is not frame.f_code or at != frame.f_lasti or value() is not None:
            return False
        return sys.version_info < (3, 11) or frame.f_trace is not None


def _forget_nothing(frame: int) -> None:
    """What is to be done when a frame is gone that was not shown."""


def _is_told(frame: "FrameType") -> bool:
    """Whether a function that is called is given what a weak reference or the interpreter gives one that it tells."""
    for value in frame.f_locals.values() if frame.f_code.co_flags & inspect.CO_OPTIMIZED else ():
        if issubclass(type(value), _reference) and _referent(value) is None:
            return True
        if issubclass(type(value), _UNRAISABLE):
            return True
    return False


def _running(value: "Any") -> "Tuple[Optional[FrameType], Any]":
    """The frame of a generator or coroutine that has not ended, and what it waits for; None: it is something else."""
    for kind, frame, awaited in _SUSPENDED:
        if type(value) is kind:
            return getattr(value, frame), getattr(value, awaited)
    return None, None


def _suspended(frame: "FrameType") -> "Iterator[Tuple[Any, FrameType]]":
    """Generators and coroutines that a function's variables hold, and their frames; a class has its where it likes.

    Those that objects, lists and the like in a variable hold are among them, and frames of what they wait for.
    """
    values = list(frame.f_locals.values()) if frame.f_code.co_flags & inspect.CO_OPTIMIZED else []
    seen: "Set[int]" = set()
    references = 0
    for _ in range(_DEPTH):
        within: "List[Any]" = []
        for value in values:
            if len(seen) >= _MOST or references >= _MOST_REFERENCES:
                return
            # A number, a text and the like lead nowhere: nothing that does is not tracked.
            if id(value) in seen or not _is_tracked(value) or issubclass(type(value), _ELSEWHERE):
                continue
            seen.add(id(value))
            held, awaited = _running(value)
            if held is None and _length(value) < _MOST:
                found = _referents(value)
                references += len(found)
                within.extend(found)
            while held is not None:
                yield value, held
                held, awaited = _running(awaited)
        values = within


def _length(value: "Any") -> int:
    """How many elements something has, as the type says that keeps them; 0: it is no collection."""
    return next((kind.__len__(value) for kind in _SIZED if issubclass(type(value), kind)), 0)


class Leaving(Running):
    """Steps out of functions, generators and tasks.

    Attributes:
        stepper: the thread that steps; None: all run freely
    """

    def __init__(self, channel: "Channel", root: str) -> None:
        """See Conversation."""
        super().__init__(channel, root)
        self._caller: "Optional[FrameType]" = None
        self._left: "Optional[Left]" = None
        self._continuing = False
        self.stepper: "Optional[int]" = None

    def set_continue(self) -> None:
        """Run freely from here; `resume` arms the breakpoints."""
        self._set_stopinfo(self.botframe, None, -1)
        self._continuing = True

    def dispatch_return(self, frame: "FrameType", arg: "Any") -> "Any":
        """See bdb; a step out of a generator that ends stops in what ran it, of which bdb knows only sometimes."""
        if frame is self._caller:
            self._set_stopinfo(None, None)
        stepped = frame in (self.stopframe, self.returnframe) and not self._continuing
        if stepped and frame.f_code.co_flags & bdb.GENERATOR_AND_COROUTINE_FLAGS and not is_yielding(frame):
            caller, is_task = self._runner(frame)
            if is_task:
                return self._leave_task(frame, arg, caller)
            if caller is not None and caller is not self.botframe:
                self._caller = caller
                self._trace(caller, self.trace_dispatch)
        return _dispatch_return(self, frame, arg)

    def _runner(self, frame: "FrameType") -> "Tuple[Optional[FrameType], bool]":
        """What runs a generator or awaits a coroutine, of the repository's own; and whether it is a task that does."""
        caller, is_task = frame.f_back, False
        while frame.f_code.co_flags & inspect.CO_COROUTINE and caller is not None:
            if self.files.is_own(caller.f_code.co_filename):
                break
            is_task = is_task or not caller.f_code.co_flags & bdb.GENERATOR_AND_COROUTINE_FLAGS
            caller = caller.f_back
        return caller, is_task

    def _leave_task(self, frame: "FrameType", arg: "Any", caller: "Optional[FrameType]") -> "Any":
        """Stop at the return of a coroutine that none awaits, as of a function; from there steps go to what runs it."""
        self._set_stopinfo(None, None)
        result = _dispatch_return(self, frame, arg)
        if not self._continuing and self.stopframe in (None, frame):
            if caller is not None and caller is not self.botframe:
                self._set_stopinfo(caller, caller)
                self._trace(caller, self.trace_dispatch)
            else:
                self.set_continue()
                self.stepper = None
                self.resume(frame.f_back)
        return result

    def dispatch_line(self, frame: "FrameType") -> "Any":
        """See bdb."""
        if frame is self._caller:
            self._set_stopinfo(None, None)
        return _dispatch_line(self, frame)

    def _set_stopinfo(self, *args: "Any", **kwargs: "Any") -> None:
        self._continuing = False
        self._caller = None
        self._left = None
        super()._set_stopinfo(*args, **kwargs)  # type: ignore[misc]

    def _trace(self, frame: "FrameType", tracer: "Any") -> None:
        """Trace a frame, or have it tell no more than when it is gone."""
        raise NotImplementedError

    def resume(self, frame: "Optional[FrameType]") -> None:
        """Arm what the last command asked for, in the calling thread."""
        raise NotImplementedError
