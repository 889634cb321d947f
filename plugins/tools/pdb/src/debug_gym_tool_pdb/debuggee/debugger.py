"""pdb over a channel: where the program stops, and how it goes on."""

import atexit
import bdb
import contextlib
import faulthandler
import functools
import inspect
import os
import pdb
import runpy
import signal
import sys
import threading
import traceback
import types

from .channel import (
    _SIG_DFL,
    ARM_SIGNAL,
    INTERRUPT_SIGNAL,
    OURS,
    STACK_SIGNAL,
    Channel,
    OwnBuiltins,
    Room,
    _get_ident,
    _getpid,
    _gettrace,
    _give_builtins,
    _high_copy,
    _settrace,
    _signal,
    _take_back_builtins,
)
from .commands import Stop
from .family import Blackboard, Turn, merge, watch_forks, watch_interpreters
from .finder import Finder
from .forgiving import Forgiving
from .frames import first_real_line, is_cleanup, is_hidden, is_yielding, other_frames, real_line
from .insertion import HELD
from .shown import Followed
from .statements import NOWHERE
from .values import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType
    from typing import Any, Callable, Dict, List, Optional, Set, Tuple

    from .programs import Program

    Json = Dict[str, Any]
    Tracer = Callable[[FrameType, str, Any], Any]

if hasattr(pdb, "find_first_executable_line"):  # from Python 3.13 on
    pdb.find_first_executable_line = first_real_line


class Hit:
    """A breakpoint that a thread is about to stop at.

    Attributes:
        breakpoint: which
        note: what is to be said of it, such as that its condition raised
        last: whether it is gone with this stop
    """

    def __init__(self, breakpoint: "bdb.Breakpoint", note: "Optional[str]", last: bool) -> None:
        """Describe a hit."""
        self.breakpoint = breakpoint
        self.note = note
        self.last = last


class Debugger(Forgiving):
    """pdb over a channel."""

    def __init__(self, channel: "Channel", root: str) -> None:
        """Debug the calling process; its repository lies at `root`."""
        super().__init__(channel, root)
        self.enterframe: "Optional[FrameType]" = None
        self.finder = Finder(self.reached, self.shown, self.sources, self.hooked, self.stepped, self.canonic)
        self._pid = _getpid()
        self._turn = Turn(channel.descriptor)
        self._blackboard = Blackboard()
        self._agreed: "Json" = {"list": [], "next": 1}
        self._children = 0
        self._tracers: "Dict[int, Any]" = {}
        self._caller: "Optional[FrameType]" = None
        self._stepped_out_to = 0
        self._busy: "Set[int]" = set()
        self._stepper: "Optional[int]" = None
        self._continuing = False
        self._awaited: "Optional[str]" = None
        self._hits: "Dict[int, Hit]" = {}
        self._handled = (0, 0)
        self._conditions: "Dict[str, Tuple[CodeType, bool]]" = {}
        self._status: "Any" = None
        self._uncaught: "Optional[Json]" = None

    # ---- conversation with the host

    def converse(self, stop: "Stop", talk: "Callable[[], object]", wait: bool = True) -> bool:
        """Let one thread talk to the host while it is stopped.

        Args:
            stop: why it is stopped
            talk: runs pdb's command loop
            wait: for another thread's conversation to end; else nothing happens while there is one

        Returns:
            whether it talked
        """
        if _getpid() != self._pid or self.quitting or not self._turn.take(wait):
            return False
        talked = False
        self._replaced = _take_back_builtins()
        try:
            gone = self._learn_breakpoints()
            if self.quitting or (stop.step and self._stepper != _get_ident()):
                return False  # the step was overtaken: meanwhile another thread stopped and was told to go on
            cleared = stop.at is not None and bdb.Breakpoint.bpbynumber[stop.at.number] is not stop.at
            if cleared or stop.details.get("breakpoint") in gone:
                return False  # whoever had the turn before cleared it, or it was temporary and stopped there
            self._busy.add(_get_ident())
            self._stop, self._due = stop, True
            talked = True
            try:
                with Room():
                    talk()
            except KeyboardInterrupt:
                self.message("--KeyboardInterrupt--")
            # Before the turn is another thread's, which must know whose step it is.
            self._stepper = None if self._continuing else _get_ident()
        finally:
            self._stop, self._due = None, False
            self.curframe_locals = {}  # pdb would keep the program's objects alive
            self._busy.discard(_get_ident())
            self._share_breakpoints()
            _give_builtins(self._replaced)
            self._turn.give(keep=talked and not self._continuing)
        return True

    def _learn_breakpoints(self) -> "Set[int]":
        """Take over what happened to the breakpoints in other processes; the numbers of those that are gone."""
        theirs = self._blackboard.news()
        if theirs is None:
            return set()
        mine = self.dump_breakpoints()
        state, gone = merge(self._agreed, mine, theirs)
        self._agreed, self._sent_breakpoints = theirs, None
        if state != mine:
            self.change_breakpoints(mine, state)
            self.finder.watch()
        return gone

    def _share_breakpoints(self) -> None:
        """Leave the breakpoints for other processes."""
        state = self.dump_breakpoints()
        if state != self._agreed:
            self._agreed = state
            self._blackboard.write(state)

    # ---- where pdb stops

    def reached(self, frame: "FrameType", tracer: "Optional[Tracer]") -> "Any":
        """A line with a breakpoint is reached; stop if the breakpoint says so.

        Args:
            frame: where
            tracer: what traces the frame; None: found without tracing it

        Returns:
            what traces the frame from now on
        """
        if self.quitting or _get_ident() in self._busy or _getpid() != self._pid:
            return tracer
        if tracer is None and self._is_stepped(frame):
            return None
        if not self._in_condition(frame) and self.break_here(frame):
            self.user_line(frame)
            if self.quitting:
                raise bdb.BdbQuit
            if self._stepper == _get_ident() and not self.finder.waits:
                return self.trace_dispatch
            # Tracing may have ended with this breakpoint: up to Python 3.9 a frame that keeps a trace function does not
            # know its line then.
            return tracer and frame.f_trace
        return tracer

    def stepped(self, frame: "FrameType", event: str, arg: "Any") -> None:
        """A frame that is waited for has an event."""
        if event != "line" or not self._is_handled(frame):
            self.trace_dispatch(frame, event, arg)

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
        if self.quitting or _get_ident() in self._busy or _getpid() != self._pid:
            return
        if self.finder.waits_for(frame) or (frame.f_trace == self.trace_dispatch and _gettrace() is not None):
            return
        if not self.finder.is_compiled(frame.f_code.co_filename, line, frame.f_code.co_firstlineno):
            return
        if self._in_condition(frame.f_back) or not self.break_here(frame, line, outcome == HELD):
            return
        if self._is_foreign(_gettrace()):
            self._stop_among(frame)
            return
        hit = self._hits.pop(_get_ident())

        def at_line(frame: "FrameType", event: str, arg: "Any") -> "Any":
            if event != "line" or frame.f_lineno == NOWHERE:
                return at_line
            self._hits[_get_ident()] = hit
            self.user_line(frame)
            if self.quitting:
                raise bdb.BdbQuit
            if self._stepper == _get_ident() and not self.finder.waits:
                return self.trace_dispatch
            if self._stepper is None:
                self._trace_freely()
            self._trace(frame, self.finder.tracer(frame))
            return frame.f_trace

        self._trace(frame, at_line)
        if _gettrace() is None:
            _settrace(self.finder.on_call)

    def _is_foreign(self, tracer: "Any") -> bool:
        """Whether a trace function is the program's own, such as that of coverage."""
        return tracer is not None and tracer not in (self.finder.on_call, self.trace_dispatch)

    def _stop_among(self, frame: "FrameType") -> None:
        """Stop where the program traces itself, before the line, and let it go on tracing."""
        self._tracers.setdefault(_get_ident(), _gettrace())
        _settrace(None)
        self.user_line(frame)
        if self.quitting:
            raise bdb.BdbQuit
        if self._stepper is None:
            self._trace_freely()

    def _in_condition(self, frame: "Optional[FrameType]") -> bool:
        """Whether a condition that was compiled in is being evaluated."""
        if self.finder.has_conditions:
            while frame is not None:
                if frame.f_lineno == NOWHERE and frame.f_code.co_filename != OURS:
                    return True
                frame = frame.f_back
        return False

    def trace_dispatch(self, frame: "FrameType", event: str, arg: "Any") -> "Any":
        """Trace the thread that steps; all others run freely."""
        ident = _get_ident()
        if self.quitting or ident in self._busy or frame.f_code.co_filename == OURS:
            return None
        if _getpid() != self._pid:
            _settrace(None)
            return None
        stepping = self._stepper == ident
        if stepping:
            caller, self._stepped_out_to = self._stepped_out_to, 0
            if event == "call" and caller and is_cleanup(frame, caller):
                self._stepped_out_to = caller
                return self.finder.on_call(frame, event, arg)
        if event == "call":
            self.shown.resumed(frame)
            if not stepping or (self.stopframe is not None and frame is not self.stopframe):
                tracer = self.finder.on_call(frame, event, arg)
                # A coroutine that was there when the step began is resumed: the step may end in it.
                return self.trace_dispatch if stepping and frame.f_trace == self.trace_dispatch else tracer
        if not stepping:
            tracer = self.finder.tracer(frame)
            self._trace(frame, tracer)
            return tracer and tracer(frame, event, arg)
        if frame.f_lineno == NOWHERE or self._in_condition(frame):  # in what we have compiled in
            return self.trace_dispatch
        if event == "line":
            if self.finder.monitors(frame):
                self._handled = id(frame), frame.f_lasti
            if frame.f_lasti in self.finder.inside(frame.f_code):
                return self.trace_dispatch
        result: "Any" = super().trace_dispatch(frame, event, arg)
        self.enterframe = None  # kept by newer versions of bdb for nothing that is used here
        if event == "return" and self._stepper == ident:
            self._arm(frame.f_back)  # bdb may have turned `next` into `step`
            if self.stopframe is None:
                self._stepped_out_to = id(frame.f_back)
        if self._stepper != ident:
            self._trace(frame, self.finder.tracer(frame))
        if self._stepper != ident or self.finder.waits:
            result = frame.f_trace
        if event == "return":
            if frame.f_code.co_flags & bdb.GENERATOR_AND_COROUTINE_FLAGS:
                return self.shown.suspended(frame, result)
            self.shown.left(id(frame))
        if event == "call" and result == self.trace_dispatch:
            self.shown.unfollow(frame)
        return result

    def user_call(self, frame: "FrameType", argument_list: "Any") -> None:
        """Stop at a call while stepping."""
        if self._awaited is None and self.converse(
            Stop("call", step=True), lambda: pdb.Pdb.user_call(self, frame, argument_list)
        ):
            self.resume(frame)

    def user_line(self, frame: "FrameType") -> None:
        """Stop at a line."""
        elsewhere = self._awaited is not None and self.canonic(frame.f_code.co_filename) != self._awaited
        if elsewhere and _get_ident() not in self._hits and not self.break_here(frame):
            return
        hit = self._hits.pop(_get_ident(), None)
        self._awaited = None
        if self.from_first_line is not None:  # where the command at the entry was to go on from
            go_on, self.from_first_line = self.from_first_line, None
            if not self.break_here(frame):
                go_on(frame)
                self.resume(frame)
                return
            hit = self._hits.pop(_get_ident(), None)
        if hit is None:
            stop = Stop("step", step=True)
        else:
            stop = Stop("breakpoint", breakpoint=hit.breakpoint.number, note=hit.note)
            stop.at = hit.breakpoint

        def talk() -> None:
            self.currentbp = hit.breakpoint.number if hit is not None else 0
            if hit is not None and hit.last:
                self.message("Deleted {}".format(hit.breakpoint))
                self.clear_bpbynumber(hit.breakpoint.number)
            try:
                pdb.Pdb.user_line(self, frame)
            except KeyboardInterrupt:  # in the commands of the breakpoint
                self.message("--KeyboardInterrupt--")
                self.interaction(frame, None)

        if self.converse(stop, talk):
            self.resume(frame)

    def user_return(self, frame: "FrameType", return_value: "Any") -> None:
        """Stop at a return."""
        if self._awaited is None:
            stop = Stop("return", value=(return_value,), step=True)
            if self.converse(stop, lambda: pdb.Pdb.user_return(self, frame, return_value)):
                self.resume(frame)

    def user_exception(self, frame: "FrameType", exc_info: "Any") -> None:
        """Stop at an exception while stepping."""
        if self._awaited is None:
            error = exc_info[1] if isinstance(exc_info[1], BaseException) else None
            stop = Stop("exception", error=error, step=True)
            if isinstance(error, StopIteration) and exc_info[2] is None:  # what is awaited, or a generator, ended
                stop = Stop("step", value=(error.value,), step=True)
            if self.converse(stop, lambda: pdb.Pdb.user_exception(self, frame, exc_info)):
                self.resume(frame)

    def stop_now(self, frame: "FrameType", stop: "Stop", wait: bool = True) -> None:
        """Stop in a frame that is in the middle of a line."""
        tracer = _gettrace()
        _settrace(None)
        self.enterframe = frame
        if not self.converse(stop, lambda: self.interaction(frame, None), wait):
            _settrace(tracer)
        elif self.quitting:
            raise bdb.BdbQuit
        else:
            self.resume(frame)

    def post_mortem(self, error: "BaseException", stop: "Stop", then: "Optional[FrameType]") -> None:
        """Stop at an exception that is over; whatever the commands say, the program goes on freely after it."""
        _settrace(None)
        held = error if sys.version_info >= (3, 13) else error.__traceback__
        for frame, _ in traceback.walk_tb(error.__traceback__):
            self.shown.left(id(frame))
        if error.__traceback__ is not None:
            stop.error = error
            self.converse(stop, lambda: self.interaction(None, held))  # type: ignore[arg-type]
        if not self.quitting:
            self.set_continue()
            self._stepper = None
            self.resume(then)

    def resume(self, frame: "Optional[FrameType]") -> None:
        """Arm what the last command asked for, in the calling thread."""
        if self.quitting or _getpid() != self._pid:
            return
        with OwnBuiltins(), Room():
            self.finder.watch()
        self.shown.keep_only([frame, *other_frames().values()])
        self._arm(frame)
        if not self.finder.idle:
            self._reach_other_threads()

    def _arm(self, frame: "Optional[FrameType]") -> None:
        """Arm the calling thread; `frame` is its innermost one that goes on."""
        waited = () if self._continuing else self._waited()
        self.finder.wait_for(*waited)
        stepping = not self._continuing and not waited
        if stepping:
            _settrace(self.trace_dispatch)
        else:
            self._trace_freely()
        while frame is not None:
            if frame.f_code.co_filename != OURS:
                self._trace(frame, self.trace_dispatch if stepping else self.finder.tracer(frame))
            frame = frame.f_back

    def _trace(self, frame: "FrameType", tracer: "Optional[Tracer]") -> None:
        """Trace a frame, or have it tell no more than when it is gone."""
        if tracer is None and self._is_foreign(frame.f_trace) and _get_ident() in self._tracers:
            return
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
        return tuple(frame for frame in frames if frame.f_code.co_filename != OURS)

    def _reach_other_threads(self) -> None:
        """Trace frames that other threads are in, for breakpoints set since they were called."""
        main = threading.main_thread().ident
        for ident, top in other_frames().items():
            frame: "Optional[FrameType]" = top
            while frame is not None:
                if frame.f_trace is None or type(frame.f_trace) is Followed:
                    tracer = self.finder.tracer(frame)
                    if tracer is not None:
                        self._trace(frame, tracer)
                frame = frame.f_back
            if ident == main:
                signal.pthread_kill(ident, ARM_SIGNAL)

    def arm(self, signum: int, frame: "Optional[FrameType]") -> None:
        """Handle the signal that makes the main thread trace itself."""
        if _getpid() == self._pid and _gettrace() is None and not self._busy & {_get_ident()}:
            self.finder.install()

    def interrupt(self, signum: int, frame: "Optional[FrameType]") -> None:
        """Handle the host's signal: stop at once in the very frame that runs, or end the command that runs."""
        if _getpid() != self._pid or self.quitting:
            return
        if self._busy:
            self._interrupt_command()
            return
        while frame is not None and frame.f_code.co_filename in (OURS, bdb.__file__, pdb.__file__):
            frame = frame.f_back
        if frame is not None:
            self.stop_now(frame, Stop("interrupt"), wait=False)

    def _interrupt_command(self) -> None:
        if not self._executing:
            return
        self._failed = self._interrupted = True
        if _get_ident() in self._busy:
            raise KeyboardInterrupt
        try:
            import ctypes

            for ident in self._busy:
                raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
                raise_in(ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt))
        except (ImportError, AttributeError):
            pass

    def hook(self, *args: "Any", **kwargs: "Any") -> None:
        """Stop where the program calls `breakpoint()` or `pdb.set_trace()`."""
        frame = sys._getframe(1)
        if _getpid() == self._pid and not self.quitting and _get_ident() not in self._busy:
            if kwargs.get("header") is not None:
                self.message(kwargs["header"])
            self.stop_now(frame, Stop("breakpoint"))

    def before_fork(self) -> None:
        """Count the children, so that each has a name."""
        self._children += 1

    def in_child(self) -> None:
        """Debug a forked child too; one of a command at the prompt has nothing to do with the host."""
        if _getpid() == self._pid:
            return
        if _get_ident() in self._busy or self.quitting or not self._turn.shared:
            self._leave_alone()
            return
        self._pid = self.channel.process = _getpid()
        self._turn.forked()
        self._busy = set()
        self._stepper = self._awaited = self._stop = None
        self._rest, self._feeding = [], None
        self._executing = self._due = False
        self._sent_breakpoints = None
        self.hello = {}
        self.output.take()
        if sys.stdout is self.output:  # another thread was at its prompt
            sys.stdout = sys.__stdout__
        name = "child {}" if self.reporter.process is None else self.reporter.process + ".{}"
        self.reporter.process = name.format(self._children)
        self._children = 0
        self.set_continue()
        self.finder.wait_for()
        self._learn_breakpoints()
        self._trace_freely()

    def _leave_alone(self) -> None:
        _settrace(None)
        threading.settrace(None)
        for number in (INTERRUPT_SIGNAL, ARM_SIGNAL):
            _signal(number, _SIG_DFL)
        with contextlib.suppress(OSError):
            os.close(self.channel.descriptor)

    # ---- what pdb decides

    def checkline(self, filename: str, lineno: int) -> int:
        """Check whether a line can have a breakpoint; a line inside a statement stands for its first one."""
        line = super().checkline(filename, lineno)
        statements = self.sources.statements(self.canonic(filename)) if line else None
        return statements.start(line) if statements is not None else line

    def jumped(self, frame: "FrameType", before: int) -> None:
        """The event of the line that was left may be reported besides: it is handled still."""
        if self._handled == (id(frame), before):
            self._handled = id(frame), frame.f_lasti

    def get_stack(
        self, f: "Optional[FrameType]", t: "Optional[TracebackType]"
    ) -> "Tuple[List[Tuple[FrameType, int]], int]":
        """The stack without our own frames; in post-mortem the current one is the last that is not hidden."""
        stack, index = super().get_stack(f, t)
        before = sum(1 for frame, _ in stack[: index + 1] if frame.f_code.co_filename == OURS)
        shown = [(frame, real_line(frame, line)) for frame, line in stack if frame.f_code.co_filename != OURS]
        if not shown:
            return stack, index
        index = max(0, min(index - before, len(shown) - 1))
        if f is None:
            index = len(shown) - 1
            while index and is_hidden(shown[index][0]):
                index -= 1
        return shown, index

    def set_continue(self) -> None:
        """Run freely from here; `resume` arms the breakpoints."""
        self._set_stopinfo(self.botframe, None, -1)
        self._continuing = True

    def dispatch_return(self, frame: "FrameType", arg: "Any") -> "Any":
        """See bdb; a step out of a generator that ends stops in what ran it, of which bdb knows only sometimes."""
        stepped = frame in (self.stopframe, self.returnframe) and not self._continuing
        if stepped and frame.f_code.co_flags & bdb.GENERATOR_AND_COROUTINE_FLAGS and not is_yielding(frame):
            caller = frame.f_back
            of_task = frame.f_code.co_flags & inspect.CO_COROUTINE
            while of_task and caller is not None and not self.files.is_own(caller.f_code.co_filename):
                caller = caller.f_back
            if caller is not None and caller is not self.botframe:
                self._caller = caller
                self._trace(caller, self.trace_dispatch)
        return super().dispatch_return(frame, arg)

    def dispatch_line(self, frame: "FrameType") -> "Any":
        """See bdb."""
        if frame is self._caller:
            self._set_stopinfo(None, None)
        return super().dispatch_line(frame)

    def _set_stopinfo(self, *args: "Any", **kwargs: "Any") -> None:
        self._continuing = False
        self._caller = None
        self._stepped_out_to = 0
        super()._set_stopinfo(*args, **kwargs)  # type: ignore[misc]

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
        for one in bdb.Breakpoint.bplist[name, line]:
            if not one.enabled or not _is_at(one, frame, at):
                continue
            note = None
            if one.cond and not held:
                try:
                    if not self._holds(one.cond, frame):
                        continue
                except Exception as error:
                    # As pdb: stop, whatever the ignore count, and keep a temporary breakpoint.
                    note = "its condition raised " + self._undisturbed(functools.partial(in_one_line, error))
            one.hits += 1
            if one.ignore > 0 and note is None:
                one.ignore -= 1
                continue
            self._hits[_get_ident()] = Hit(one, note, bool(one.temporary) and note is None)
            return True
        return False

    def _holds(self, condition: str, frame: "FrameType") -> bool:
        """Evaluate a condition in a frame."""
        known = self._conditions.get(condition)
        if known is None:
            code = compile(condition.strip(), "<condition>", "eval", dont_inherit=True)
            nested = any(isinstance(one, types.CodeType) for one in code.co_consts)
            known = self._conditions[condition] = code, nested
        names = frame.f_locals
        if known[1]:  # functions in it, as of a comprehension, look for names among the global ones only
            return bool(eval(known[0], dict(frame.f_globals, **names)))
        return bool(eval(known[0], frame.f_globals, names))

    def _undisturbed(self, text: "Callable[[], str]") -> str:
        """A text that the program's own code may make for us (`__str__`, `__repr__`): it stops nowhere meanwhile."""
        ident = _get_ident()
        nested = ident in self._busy
        self._busy.add(ident)
        try:
            return text()
        finally:
            if not nested:
                self._busy.discard(ident)

    # ---- the program's life

    def run_program(self, program: "Program") -> int:
        """Stop before the program's first line, run it, stop at its uncaught exception; returns its exit status."""
        self.program = program
        self.reset()
        atexit.register(self._finish)
        self._install()
        try:
            self._stop_at_entry()
            self.botframe = sys._getframe()
            if not self._continuing:
                self._awaited = self.canonic(program.filename)
                self.set_step()
            else:
                self.set_continue()
            self._stepper = None if self._continuing else _get_ident()
            self.resume(None)
            self.finder.instrument.started = True
            try:
                self._status = program.run(self)
            finally:
                _settrace(None)
        except SystemExit as error:
            self._status = _exit_status(error)
        except bdb.BdbQuit:
            self._status = 0
        except BaseException as error:
            self._status = 1
            self._at_uncaught(error)
        return int(self._status or 0)

    def _stop_at_entry(self) -> None:
        """Hold a conversation in a frame that looks like the program's first line, before any of it was compiled."""
        name = "__debug_gym_entry__"
        names = self.program.namespace
        self.at_entry = True

        def entry() -> None:
            names.pop(name, None)
            frame = sys._getframe(1)
            self.botframe = frame
            self.converse(Stop("entry"), lambda: self.interaction(frame, None))
            self.shown.left(id(frame))

        names[name] = entry
        code = compile("\n" * (self.program.first_line - 1) + name + "()", self.program.filename, "exec")
        exec(code, names)
        self.at_entry = False
        if self.quitting:
            raise bdb.BdbQuit

    def _install(self) -> None:
        _signal(INTERRUPT_SIGNAL, self.interrupt)
        _signal(ARM_SIGNAL, self.arm)
        try:
            # A descriptor of its own: the program may close standard error, and the terminal must not hang up then.
            self._stack_output = os.fdopen(_high_copy(2), "w")
            faulthandler.register(STACK_SIGNAL, self._stack_output, all_threads=True)
        except (OSError, AttributeError, ValueError):
            pass
        self.take_hooks()
        self._take_settrace()
        watch_forks(self.before_fork, self.in_child)
        watch_interpreters(self.started)
        if hasattr(threading, "excepthook"):
            self._thread_excepthook = threading.excepthook
            threading.excepthook = self._in_thread

    def _take_settrace(self) -> None:
        """Let the program trace itself, and find breakpoints again when it has done so."""
        set_in_threads = threading.settrace
        if self.finder.traces_threads:
            set_in_threads(self.finder.on_call)
        in_threads: "List[Any]" = [None]

        @functools.wraps(_settrace)
        def settrace(function: "Any") -> None:
            ident = _get_ident()
            if ident in self._busy or function in (self.finder.on_call, self.trace_dispatch):
                _settrace(function)  # pdb's own
                return
            if function is None:
                if self._tracers.pop(ident, None) is not None and self._stepper != ident:
                    _settrace(None)  # the program's own must not see what follows
            else:
                self._tracers[ident] = function
            if self._stepper == ident:
                return  # the step is finished first
            self._trace_freely()

        @functools.wraps(_gettrace)
        def gettrace() -> "Any":
            ident = _get_ident()
            return _gettrace() if ident in self._busy else self._tracers.get(ident)

        @functools.wraps(set_in_threads)
        def settrace_in_threads(func: "Any") -> None:
            in_threads[0] = func
            set_in_threads(self.finder.on_call if func is None and self.finder.traces_threads else func)

        sys.settrace, sys.gettrace, threading.settrace = settrace, gettrace, settrace_in_threads
        if hasattr(threading, "gettrace"):
            threading.gettrace = functools.wraps(threading.gettrace)(lambda: in_threads[0])

    def _trace_freely(self) -> None:
        """Trace the calling thread by what the program wants to trace it with, else to find breakpoints."""
        function = self._tracers.get(_get_ident())
        if function is None:
            self.finder.install()
        else:
            _settrace(lambda frame, *event: None if frame.f_code.co_filename == OURS else function(frame, *event))

    def take_hooks(self) -> None:
        """Make `breakpoint()` and `pdb.set_trace()` stop here."""
        sys.breakpointhook = self.hook
        pdb.set_trace = self.hook

    def _in_thread(self, args: "Any") -> None:
        """Stop at an exception that ends a thread."""
        self._thread_excepthook(args)
        if args.exc_type is not SystemExit and args.exc_type is not bdb.BdbQuit and args.exc_value is not None:
            self.post_mortem(args.exc_value, Stop("exception"), None)

    def _at_uncaught(self, error: "BaseException") -> None:
        _settrace(None)
        step = error.__traceback__
        while step is not None and step.tb_frame.f_code.co_filename in (OURS, runpy.__file__):
            step = step.tb_next
        error.__traceback__ = step
        try:
            sys.excepthook(type(error), error, step)
        except Exception:
            traceback.print_exception(type(error), error, step)
        if self.channel.process:
            return  # whoever waits for a child learns of its failure from its status
        message = self._undisturbed(lambda: self.values.said(error))
        self._uncaught = {"type": type(error).__name__, "message": message}
        self.post_mortem(error, Stop("exception"), None)

    def _finish(self) -> None:
        """Tell the host about the end; the last thing before the interpreter ends."""
        if _getpid() != self._pid or self.channel.process:
            return
        _settrace(None)
        self._turn.take()  # a daemon thread, or a child, may be talking
        _take_back_builtins()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):  # a stream of the program's own raises what it likes
                stream.flush()
        message: "Json" = {"t": "exit", "status": self._status, "quit": self.quitting, "out": self.output.take()[0]}
        if self._uncaught:
            message["exception"] = self._uncaught
        self._add_started(message)
        self._add_breakpoints(message)
        self.channel.send(message)


def _exit_status(error: "SystemExit") -> int:
    """The exit status that Python makes of a SystemExit, after printing what it prints."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    with contextlib.suppress(Exception):
        sys.stderr.write("{}\n".format(error.code))
    return 1


def _is_at(one: "Any", frame: "FrameType", line: int) -> bool:
    """Whether a breakpoint is meant: one of a function stops at the first line of it that is executed."""
    if one.funcname is None:
        return bool(one.line == line)
    if frame.f_code.co_name != one.funcname:
        return False
    if one.func_first_executable_line is None:
        one.func_first_executable_line = line
    return bool(one.func_first_executable_line == line)
