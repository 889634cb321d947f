"""How breakpoints and steps are found in the program's threads, and how each of them goes on."""

import bdb
import functools
import pdb
import signal
import sys

from debug_gym_core.debugging.inside.process import _get_ident, _getpid, _main_thread, _settrace
from debug_gym_core.debugging.inside.signals import is_of_a_handler

from .channel import ARM_SIGNAL, Channel, OwnBuiltins, Room, _gettrace
from .conditions import CONDITION, Conditions, TakesTooLong, is_at
from .finder import Finder
from .frames import first_real_line, other_frames, outwards
from .insertion import HELD, RAISED
from .leaving import Leaving, Left
from .own_frames import is_ours
from .shown import Followed
from .stop import Hit
from .tracers import Tracers, is_own
from .unseen import is_inserted
from .values import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, Optional, Set, Tuple

    Tracer = Callable[[FrameType, str, Any], Any]

if hasattr(pdb, "find_first_executable_line"):  # from Python 3.13 on
    pdb.find_first_executable_line = first_real_line

# For each event that is traced: `super()` would look through all the classes.
_exc_info = sys.exc_info
_pthread_kill = signal.pthread_kill
_trace_dispatch = bdb.Bdb.trace_dispatch


class Tracing(Leaving):
    """Threads that are traced: to find breakpoints, or because they step.

    Attributes:
        finder: finds breakpoints while a thread runs freely
        tracers: trace functions of the program's own
        busy: the threads that talk to the host, or run code for that; they stop nowhere
    """

    def __init__(self, channel: "Channel", root: str) -> None:
        """See Conversation."""
        super().__init__(channel, root)
        self.enterframe: "Optional[FrameType]" = None
        self.finder = Finder(self.reached, self.shown, self.sources, self.hooked, self.stepped, self.canonic)
        self.tracers = Tracers(self)
        self.busy: "Set[int]" = set()
        self._pid = _getpid()
        self._hits: "Dict[int, Hit]" = {}
        self._handled = (0, 0)
        self._begun = 0
        self._depth = 0  # of the frame that went on last, and of no frame less that is waited for
        self._awaited: "Optional[str]" = None  # the file that a step from the entry goes to
        self._holds = Conditions().hold
        self._endless = False

    # ---- a breakpoint is reached

    def reached(self, frame: "FrameType", tracer: "Optional[Tracer]") -> "Any":
        """A line with a breakpoint is reached; stop if the breakpoint says so.

        Args:
            frame: where
            tracer: what traces the frame; None: found without tracing it

        Returns:
            what traces the frame from now on
        """
        if self.quitting or _get_ident() in self.busy or _getpid() != self._pid:
            return tracer
        if tracer is None and self._is_stepped(frame):
            return None
        if not self._in_condition(frame) and self.break_here(frame):
            self.tracers.keep()
            self.user_line(frame)
            if self.quitting:
                raise bdb.BdbQuit
            if self.stepper == _get_ident() and not self.finder.waits:
                return self.trace_dispatch
            # Tracing may have ended with this breakpoint: up to Python 3.9 a frame that keeps a trace function does not
            # know its line then.
            return tracer and frame.f_trace
        return tracer

    def stepped(self, frame: "FrameType", event: str, arg: "Any") -> None:
        """A frame that is waited for has an event."""
        if event == "line" and (self._is_handled(frame) or self._is_begun(frame)):
            return
        if Room.is_needed(self._depth):
            with Room():
                self.trace_dispatch(frame, event, arg)
        else:
            self.trace_dispatch(frame, event, arg)
        self._handled = (0, 0)  # nothing else reports it

    def _is_handled(self, frame: "FrameType") -> bool:
        """Whether the trace function has just seen the line that is reported besides."""
        handled, self._handled = self._handled, (0, 0)
        return handled == (id(frame), frame.f_lasti)

    def _is_stepped(self, frame: "FrameType") -> bool:
        """Whether the trace function stops at this line as well, or has done so already."""
        if self._is_handled(frame):
            return True
        return frame.f_trace == self.trace_dispatch and _gettrace() is not None

    def hooked(self, frame: "FrameType", line: int, outcome: int) -> None:
        """What was compiled in before a line with a breakpoint is reached; stop at the line event that follows.

        Args:
            frame: where
            line: of the statement
            outcome: what is known of the breakpoint's condition
        """
        if self.quitting or _get_ident() in self.busy or _getpid() != self._pid:
            return
        if self.finder.waits_for(frame) or (frame.f_trace == self.trace_dispatch and _gettrace() is not None):
            return
        error = _exc_info()[1] if outcome == RAISED else None
        if error is not None and is_of_a_handler(error):
            raise error
        if not self.finder.is_compiled(frame.f_code.co_filename, line, frame.f_code.co_firstlineno):
            return
        if self._in_condition(frame.f_back) or not self.break_here(frame, line, outcome == HELD):
            return
        self.tracers.keep()
        if self.is_foreign(_gettrace()):
            self._stop_among(frame)
            return
        hit = self._hits.pop(_get_ident())

        def at_line(frame: "FrameType", event: str, arg: "Any") -> "Any":
            self.tracers.pass_on(frame, event, arg)
            if event != "line" or is_inserted(frame):
                return at_line
            self._hits[_get_ident()] = hit
            self.user_line(frame)
            if self.quitting:
                raise bdb.BdbQuit
            if self.stepper == _get_ident() and not self.finder.waits:
                return self.trace_dispatch
            if self.stepper is None:
                self.tracers.trace_freely()
            self._trace(frame, self.finder.tracer(frame))
            return frame.f_trace

        self._trace(frame, at_line)
        if _gettrace() is None:
            _settrace(self.finder.on_call)

    def _stop_among(self, frame: "FrameType") -> None:
        """Stop where the program traces itself, before the line, and let it go on tracing."""
        self.tracers.keep()  # it has seen this call too
        _settrace(None)  # in the very call in which it is set again: some trace functions count calls and returns
        self.user_line(frame)
        if self.quitting:
            raise bdb.BdbQuit
        if self.stepper is None:
            self.tracers.trace_freely()
        else:
            self._begun = id(frame)

    def _is_begun(self, frame: "FrameType") -> bool:
        """Whether a line event is that of a statement before which the thread has stopped already."""
        begun, self._begun = self._begun, 0
        return begun == id(frame)

    def _in_condition(self, frame: "Optional[FrameType]") -> bool:
        """Whether a condition that was compiled in is being evaluated."""
        if self.finder.has_conditions:
            while frame is not None:
                if is_inserted(frame) and not is_ours(frame):
                    return True
                frame = frame.f_back
        return False

    def break_here(self, frame: "FrameType", line: int = 0, held: bool = False) -> bool:
        """Decide as bdb does, with conditions compiled once.

        Args:
            frame: where
            line: of the breakpoint that is reached; 0: where the frame is
            held: whether its condition is known to hold
        """
        self._hits.pop(_get_ident(), None)
        name = self.canonic(frame.f_code.co_filename)
        lines = self.breaks.get(name, ())
        at = line or (self.finder.begun(frame) if lines else 0)
        line = at
        if not at:
            return False
        if line not in lines:
            line = frame.f_code.co_firstlineno
            if line not in lines:
                return False
        # All are asked before one stops: each of a function finds out by that which its first line is.
        for one in [one for one in bdb.Breakpoint.bplist[name, line] if is_at(one, frame, at) and one.enabled]:
            note = None
            if one.cond and not held:
                try:
                    if self._endless:
                        raise TakesTooLong
                    if not self._holds(one.cond, frame):
                        continue
                except TakesTooLong:
                    self._endless = False
                    note = "its condition was interrupted: it takes too long"
                except BaseException as error:  # SystemExit too
                    if is_of_a_handler(error):
                        raise
                    # As pdb: stop, whatever the ignore count, and keep a temporary breakpoint.
                    note = "its condition raised " + self._undisturbed(functools.partial(in_one_line, error))
            one.hits += 1
            if one.ignore > 0 and note is None:
                one.ignore -= 1
                continue
            self._hits[_get_ident()] = Hit(one, note, bool(one.temporary) and note is None)
            return True
        return False

    def end_condition(self, frame: "Optional[FrameType]") -> None:
        """Have a condition that is being evaluated raise, as if it was wrong.

        Args:
            frame: the innermost one

        Raises:
            TakesTooLong: there is one; its breakpoint stops
        """
        if self._in_condition(frame) or any(one.f_code.co_filename == CONDITION for one in outwards(frame)):
            self._endless = True
            raise TakesTooLong

    def _undisturbed(self, text: "Callable[[], str]") -> str:
        """A text that the program's own code may make for us (`__str__`, `__repr__`): it stops nowhere meanwhile."""
        ident = _get_ident()
        nested = ident in self.busy
        self.busy.add(ident)
        try:
            return text()
        finally:
            if not nested:
                self.busy.discard(ident)

    # ---- an event is traced

    def trace_dispatch(self, frame: "FrameType", event: str, arg: "Any") -> "Any":
        """Trace the thread that steps; all others run freely."""
        ident = _get_ident()
        if self.quitting or ident in self.busy or is_ours(frame):
            return None
        if _getpid() != self._pid:
            _settrace(None)
            return None
        stepping = self.stepper == ident
        own = self.tracers.pass_on(frame, event, arg) if not self.finder.waits else None
        if stepping:
            left, self._left = self._left, None
            if event == "call" and left is not None and left.is_cleaned_up(frame):
                self._left = left
                tracer = self.finder.on_call(frame, event, arg)
                if frame.f_trace is not None:  # a generator's, that was suspended
                    self._trace(frame, tracer)
                return tracer or own
        if event == "call":
            self.shown.resumed(frame)
            if not stepping or (self.stopframe is not None and frame is not self.stopframe):
                tracer = self.finder.on_call(frame, event, arg)
                # A coroutine that was there when the step began is resumed: the step may end in it.
                return self.trace_dispatch if stepping and frame.f_trace == self.trace_dispatch else tracer or own
        if not stepping:
            tracer = self.finder.tracer(frame)
            self._trace(frame, tracer)
            return tracer and tracer(frame, event, arg)
        if is_inserted(frame) or self._in_condition(frame):  # in what we have compiled in
            return self.trace_dispatch
        if event == "line":
            if not self.finder.waits and self._is_begun(frame):
                return self.trace_dispatch
            if self.finder.monitors(frame):
                self._handled = id(frame), frame.f_lasti
            if frame.f_lasti in self.finder.inside(frame.f_code):
                return self.trace_dispatch
        result: "Any" = _trace_dispatch(self, frame, event, arg)
        self.enterframe = None  # kept by newer versions of bdb for nothing that is used here
        if event == "return" and self.stepper == ident:
            with Room():
                self._arm(frame.f_back)  # bdb may have turned `next` into `step`
                if self.stopframe is None and self._awaited is None:
                    self._left = Left(frame)
        if self.stepper != ident:
            self._trace(frame, self.finder.tracer(frame))
        if self.stepper != ident or self.finder.waits:
            result = frame.f_trace
        if event == "return":
            if frame.f_code.co_flags & bdb.GENERATOR_AND_COROUTINE_FLAGS:
                return self.shown.suspended(frame, result)
            self.shown.left(id(frame))
        if event == "call" and result == self.trace_dispatch:
            self.shown.unfollow(frame)
        if event == "call" and own is not None:
            if result is None:
                return own
            self.tracers.put_aside(frame, own)
        return result

    def jumped(self, frame: "FrameType", before: int) -> None:
        """The event of the line that was left may be reported besides: it is handled still."""
        if self._handled == (id(frame), before):
            self._handled = id(frame), frame.f_lasti

    def is_foreign(self, tracer: "Any") -> bool:
        """Whether a trace function is the program's own, such as that of coverage."""
        return tracer is not None and tracer not in (self.finder.on_call, self.trace_dispatch)

    # ---- a thread goes on

    def resume(self, frame: "Optional[FrameType]") -> None:
        """Arm what the last command asked for, in the calling thread."""
        if self.quitting or _getpid() != self._pid:
            return
        with Room():
            with OwnBuiltins():
                self.finder.watch()
            self.shown.keep_only([frame, *other_frames().values()])
            self._arm(frame)
            if not self.finder.idle:
                self._reach_other_threads()
            self.signals.release()  # near the limit each try to put handlers in place would be one call too many
        self.signals.deliver(frame)
        if self._continuing:
            Room.insist()

    def _arm(self, frame: "Optional[FrameType]") -> None:
        """Arm the calling thread; `frame` is its innermost one that goes on."""
        waited = () if self._continuing else self._waited()
        self.finder.wait_for(*waited)
        stepping = not self._continuing and not waited
        if stepping:
            _settrace(self.trace_dispatch)
        else:
            self.tracers.trace_freely()
        self._depth = 0
        while frame is not None:
            self._depth += 1
            if not is_ours(frame):
                self._trace(frame, self.trace_dispatch if stepping else self.finder.tracer(frame))
            frame = frame.f_back

    def _trace(self, frame: "FrameType", tracer: "Optional[Tracer]") -> None:
        """Trace a frame, or have it tell no more than when it is gone."""
        if self.tracers.are_set():
            if tracer is not None:
                self.tracers.put_aside(frame, frame.f_trace)
            elif is_own(frame.f_trace):
                return
            else:
                tracer = self.tracers.taken_back(frame)
        self.shown.unfollow(frame)
        frame.f_trace = tracer or self.shown.follow(frame)

    def _waited(self) -> "Tuple[FrameType, ...]":
        """The frames that the next stop may be in, where they can be waited for without tracing; else none."""
        if self.stopframe is None or not self.finder.steps:
            return ()
        frames = [self.stopframe]
        if self.returnframe is not None and self.returnframe is not self.stopframe:
            frames.append(self.returnframe)
        if any(frame.f_code.co_flags & bdb.GENERATOR_AND_COROUTINE_FLAGS for frame in frames):
            return ()
        return tuple(frame for frame in frames if not is_ours(frame))

    def _reach_other_threads(self) -> None:
        """Trace frames that other threads are in, for breakpoints set since they were called."""
        main = _main_thread().ident
        for ident, top in other_frames().items():
            frame: "Optional[FrameType]" = top
            while frame is not None:
                if frame.f_trace is None or type(frame.f_trace) is Followed:
                    tracer = self.finder.tracer(frame)
                    if tracer is not None:
                        self._trace(frame, tracer)
                frame = frame.f_back
            if ident == main:
                _pthread_kill(ident, ARM_SIGNAL)

    def arm(self, signum: int, frame: "Optional[FrameType]") -> None:
        """Handle the signal that makes the main thread trace itself."""
        if _getpid() == self._pid and _gettrace() is None and not self.busy & {_get_ident()}:
            self.finder.install()
