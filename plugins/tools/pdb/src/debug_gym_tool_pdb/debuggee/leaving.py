"""Steps that leave a frame: where they go on, and what runs in between that nobody means."""

import bdb
import inspect
import types
import weakref

from .channel import Channel
from .frames import is_yielding
from .running import Running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Iterator, Optional, Tuple

_dispatch_line = bdb.Bdb.dispatch_line
_dispatch_return = bdb.Bdb.dispatch_return

_WEAKREFS = frozenset((weakref.WeakSet.add.__code__.co_filename, weakref.finalize.__call__.__code__.co_filename))
_FRAME_OF = (
    (types.GeneratorType, "gi_frame"),
    (types.CoroutineType, "cr_frame"),
    (types.AsyncGeneratorType, "ag_frame"),
)
_NOTHING: "Tuple[Any, Optional[CodeType], int]" = (None, None, -1)
_reference = weakref.ref  # bound once, so that a program that replaces it does not replace ours


class Left:
    """A frame that has returned, and what runs because its variables are gone.

    A step out of a function goes to its caller, not into what the end of its variables calls. pdb, which keeps them
    alive while it steps, never sees it.
    """

    def __init__(self, frame: "FrameType", returned: "Any") -> None:
        """Know what a frame leaves, at its return."""
        self._caller = id(frame.f_back)  # it is there as long as this: its own return is an event
        self._ending = 0
        # A frame may come to be where one of these was, even in the call that ends it: its id alone is no proof.
        self._held = {id(one): (_reference(value), one.f_code, one.f_lasti) for value, one in _suspended(frame)}
        _frame_of(returned)  # made before the others' go, it is nowhere that they were

    def is_cleaned_up(self, frame: "FrameType") -> bool:
        """Whether a frame that is called is part of it."""
        top = frame
        while top.f_back is not None and id(top.f_back) != self._caller:
            top = top.f_back
        if top.f_back is None:
            return False
        if top.f_code.co_name == "__del__" or top.f_code.co_filename in _WEAKREFS:
            return True
        if frame is top:
            self._ending = id(top) if self._ends(top) else 0
        return id(top) == self._ending

    def _ends(self, frame: "FrameType") -> bool:
        """Whether a frame that is called is one that was held, of what is there no more."""
        value, code, at = self._held.pop(id(frame), _NOTHING)
        return code is frame.f_code and at == frame.f_lasti and value() is None


def _frame_of(value: "Any") -> "Optional[FrameType]":
    """The frame of a generator or coroutine that has not ended."""
    for kind, name in _FRAME_OF:
        if type(value) is kind:
            frame: "Optional[FrameType]" = getattr(value, name)
            return frame
    return None


def _suspended(frame: "FrameType") -> "Iterator[Tuple[Any, FrameType]]":
    """Generators and coroutines that a function's variables hold, and their frames; a class has its where it likes."""
    own = frame.f_locals if frame.f_code.co_flags & inspect.CO_OPTIMIZED else {}
    for value in list(own.values()):
        held = _frame_of(value)
        if held is not None:
            yield value, held


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
