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
    from types import FrameType
    from typing import Any, Iterator, Optional, Tuple

_dispatch_line = bdb.Bdb.dispatch_line
_dispatch_return = bdb.Bdb.dispatch_return

_WEAKREFS = frozenset((weakref.WeakSet.add.__code__.co_filename, weakref.finalize.__call__.__code__.co_filename))
_FRAME_OF = (
    (types.GeneratorType, "gi_frame"),
    (types.CoroutineType, "cr_frame"),
    (types.AsyncGeneratorType, "ag_frame"),
)


class Left:
    """A frame that has returned, and what runs because its variables are gone.

    A step out of a function goes to its caller, not into what the end of its variables calls. pdb, which keeps them
    alive while it steps, never sees it.
    """

    def __init__(self, frame: "FrameType", returned: "Any") -> None:
        """Know what a frame leaves, at its return; but for what it returns, which goes on."""
        caller = frame.f_back
        self._caller = id(caller)
        self._at = caller.f_lasti if caller is not None else -1
        self._held = frozenset(map(id, _suspended(frame, returned)))

    def is_cleaned_up(self, frame: "FrameType") -> bool:
        """Whether a frame that is called is part of it."""
        top = frame
        while top.f_back is not None and id(top.f_back) != self._caller:
            top = top.f_back
        if top.f_back is None:
            return False
        if top.f_code.co_name == "__del__" or top.f_code.co_filename in _WEAKREFS:
            return True
        return id(top) in self._held and top.f_back.f_lasti == self._at  # else the caller has gone on, and resumed it


def _suspended(frame: "FrameType", returned: "Any") -> "Iterator[FrameType]":
    """Frames of other generators and coroutines that a function's variables hold; a class has them where it likes."""
    own = frame.f_locals if frame.f_code.co_flags & inspect.CO_OPTIMIZED else {}
    for value in list(own.values()):
        for kind, name in _FRAME_OF:
            if type(value) is kind and value is not returned:
                yield getattr(value, name)


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
